"""The output of Google's script for "Show, Don't Tell", and the demonstrations that it read.

`../shared/golden/sdt` has rows and FLAGS.txt. Google's demonstrations are not there: those that the
rows contain are parsed from them, all others from the user's copy of sdt_prompts.py.
"""

import dataclasses
import gzip
import json
import os
import pathlib
import re
from collections.abc import Iterator, Mapping

import pytest
from shared import find_shared, shared_file

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, read_dialogues
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.prompts.sdt.demonstrations import (
  Demonstration,
  Demonstrations,
  demonstrations_text,
  parse_demonstrations,
)
from sgdx_t5x.prompts.sdt.google_prompts import read_google_prompts

FOLDER = "golden/sdt"
_STYLES = {
  "--mcq_cat_vals": {"values": "letters"},
  "--target_format=active": {"target": "active"},
  "--use_slot_ids": {"slot_ids": True},
  "--use_intent_slot_descs": {"descriptions": True},
  "--add_intents": {"intents": "list"},
  "--mcq_intents": {"intents": "letters"},
}
_NEUTRAL = ("--subdirs=", "--sgdx=", "--prompt_indices=", "--norandomize_")


@dataclasses.dataclass(frozen=True)
class GoldenSet:
  """A file of rows.

  Attributes:
    name: name of the file, without extensions.
    split, variant: those of the schemas.
    style: fields of `SdtStyle`.
    shuffle: whether the script shuffled.
  """

  name: str
  split: str
  variant: str
  style: Mapping[str, object]
  shuffle: bool

  def rows(self) -> list[str]:
    text = gzip.decompress(shared_file(f"{FOLDER}/{self.name}.tsv.gz").read_bytes()).decode()
    return text.split("\n")[:-1]


def golden_sets() -> list[GoldenSet]:
  """All sets that FLAGS.txt lists; none if ../shared is absent."""
  file = find_shared(f"{FOLDER}/FLAGS.txt")
  return list(map(_parse_set, file.read_text().splitlines())) if file else []


def _parse_set(line: str) -> GoldenSet:
  name, flags = (part.strip() for part in line.split("|"))
  given = dict(flag.partition("=")[::2] for flag in flags.split())
  style = {"values": "list", "demo": int(given.get("--prompt_indices", -1))}
  for flag in flags.split():
    assert flag in _STYLES or flag.startswith(_NEUTRAL), flag
    style |= _STYLES.get(flag, {})
  shuffle = "--norandomize_slots" not in given
  return GoldenSet(name, given["--subdirs"], given.get("--sgdx", "original"), style, shuffle)


def golden_dialogues(corpus: Corpus, split: str) -> list[Dialogue]:
  """The dialogues whose rows were recorded, in their order, without reading the others."""
  ids = json.loads(shared_file(f"{FOLDER}/dialogue_ids.json").read_text())[split]
  found = {}
  for number in {int(name.partition("_")[0]) for name in ids}:
    file = f"{split}/dialogues_{number:03d}.json"
    name = next(name for name in corpus.dialogue_files(split) if name.endswith(file))
    found |= {d.dialogue_id: d for d in read_dialogues(corpus.source.read(name), name)}
  return [found[name] for name in ids]


def own_copy() -> Demonstrations:
  """The user's copy of sdt_prompts.py; skips without one."""
  path = os.environ.get("SGDX_SDT_PROMPTS") or shared_file(FOLDER) / "sdt_prompts.py"
  if not pathlib.Path(path).is_file():  # CI has none either
    pytest.skip("no copy of Google's sdt_prompts.py: set SGDX_SDT_PROMPTS to its path")
  demos = read_google_prompts(pathlib.Path(path).read_bytes(), "sdt_prompts.py")
  return parse_demonstrations(demonstrations_text(demos).encode(), "sdt_prompts.py")


def shown_demonstrations(corpus: Corpus) -> Demonstrations:
  """The demonstrations in the rows with --prompt_indices=0, in lower case."""
  found: dict[str, Demonstration] = {}
  for wanted in golden_sets():
    plain = not ({"slot_ids", "descriptions"} & set(wanted.style)) and wanted.style["demo"] == 0
    if plain and wanted.variant == "original" and not wanted.shuffle:
      for service, source in _sources(corpus, wanted):
        demo = _read_source(service, source)
        if service.name not in found or demo.intents:
          found[service.name] = demo
  text = demonstrations_text(found.values()).encode()
  return parse_demonstrations(text, "golden rows")


def _sources(corpus: Corpus, wanted: GoldenSet) -> Iterator[tuple[Service, str]]:
  dialogues = {d.dialogue_id: d for d in golden_dialogues(corpus, wanted.split)}
  for row in wanted.rows():
    source, _, dialogue, turn, frame = row.split("\t")
    service = dialogues[dialogue].turns[int(turn)].frames[int(frame)].service
    yield corpus.schema(wanted.split)[service], source


def _read_source(service: Service, source: str) -> Demonstration:
  """Parses "[example] ... [slots] ... [intent] ... [context] ..."."""
  shown = source.partition("[example] ")[2].partition(" [context] ")[0]
  text, _, rest = shown.partition(" [slots] ")
  slots, _, intents = rest.partition(" [intent] ")
  names = {service.slots[i].name.lower(): i for i in service.tracked_slots}
  pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
  parts = re.split(rf"(?:^|\s)({pattern})=", slots)[1:]
  values = {}
  for name, value in zip(parts[::2], parts[1::2], strict=True):
    slot = service.slots[names[name]]
    values[slot.name] = _choice(value, slot.possible_values)
  intent, order = "NONE", ()
  if intents:
    known = {name.lower(): name for name in service.intent_index}
    order = tuple(known[x] for x in re.findall(r"(?<=[a-z]\) )\S+", intents))
    intent = _choice(intents, order)
  return Demonstration(service.name, text, values, intent, order)


def _choice(shown: str, choices: tuple[str, ...]) -> str:
  """Reads "b of possible values a) x b) y" or "y of possible values x, y"."""
  value, said, _ = shown.partition(" of possible values ")
  if not said:
    return value
  if "a) " in shown and len(value) == 1:
    return choices["abcdefghijklmnopqrstuvwxyz".index(value)]
  return {choice.lower(): choice for choice in choices}.get(value, value)
