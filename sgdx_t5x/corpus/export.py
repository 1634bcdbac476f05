"""Writes a corpus's dialogues with its variants' names, as the official converter does.

The output equals that of generate_sgdx_dialogues.py in the dstc8 repository (as fixed in 2023-08)
byte for byte: its rules (`variants.py` has them for `Dialogue`), and the text of Python's
json.dump with an indent of 2 and sorted keys.

Encoding takes most of the time, and variants share most of the text. So a file is encoded once,
with marks as placeholders for names; each variant fills in its own. Renaming may change the order
of keys, so a mapping whose keys are slots is one mark.
"""

import dataclasses
import functools
import json
import pathlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import PERTURBATION, SIMULATION, Corpus, schema_path
from sgdx_t5x.corpus.dialogue import Dialogue, check_dialogue, decode_dialogues
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.sources import Source
from sgdx_t5x.corpus.variants import INTENT_ACTS, ORIGINAL, Renaming, renamings
from sgdx_t5x.errors import SgdxError, UsageError, malformed
from sgdx_t5x.files.reading import not_utf8
from sgdx_t5x.files.writing import atomic_write, writing_fix
from sgdx_t5x.parallel import worker_processes

ALL = "all"
_MANIFESTS = (PERTURBATION, SIMULATION)
_encode = json.JSONEncoder(indent=2, sort_keys=True).encode
_ENTRY = "\n" + 16 * " "  # before a key of slot_values, parameters and service_results alike
_END = _ENTRY[:-2] + "}"
# A mark is a placeholder: a text that no file contains, and the index of its replacement.
_MARK = secrets.token_hex(12)
_MARKED = re.compile(f'"{_MARK}([0-9]+)"')

_Renamings = Mapping[str, Renaming]
_Fill = Callable[[_Renamings], str]  # returns JSON text with a variant's names


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
  """A file of dialogues that was written, once per variant."""

  split: str
  variants: tuple[str, ...]
  dialogues: int


def choose(
  corpus: Corpus,
  variants: Iterable[str],
  splits: Iterable[str],
  schema: Callable[[str, str], Schema] | None = None,
) -> dict[str, dict[str, Schema]]:
  """Returns split -> variant -> schema of what is to be written.

  Args:
    corpus: where the dialogues are.
    variants: names; "all" among them stands for all variants of the corpus but the original.
    splits: names; "all" among them stands for all.
    schema: callable (split, variant) -> schema; defaults to `corpus.schema`.

  Raises:
    SgdxError: there is no such split or variant, or there are no dialogues in them.
  """
  schema = schema or corpus.schema
  variants, chosen = list(variants), {}
  named = [x for split in splits for x in (corpus.splits if split == ALL else [split])]
  for split in dict.fromkeys(named):
    corpus.schema(split)  # raises if there is no such split
    released = [v for v in corpus.variants if v != ORIGINAL and corpus.has_schema(split, v)]
    names = [x for variant in variants for x in (released if variant == ALL else [variant])]
    for name in names:
      corpus.check_kinds(split, name)
    chosen[split] = {name: schema(split, name) for name in dict.fromkeys(names)}
  if not any(chosen.values()):
    raise SgdxError(
      f"{corpus.origin}: no schema variants",
      expected="variants beside the original, for all of them to be exported",
      fix="name others: --variant corrupt_1, or --variant NAME=DIR for schemas of your own",
    )
  if not any(names and corpus.dialogue_files(split) for split, names in chosen.items()):
    raise SgdxError(
      f"{corpus.origin}: no dialogues to export in split {', '.join(chosen)}",
      expected="dialogues_*.json in the folder of the split, and a variant's schema",
      available=corpus.file_counts(),
      fix="choose a split that has both",
    )
  return chosen


def export(
  corpus: Corpus,
  chosen: Mapping[str, Mapping[str, Schema]],
  out: str | pathlib.Path,
  processes: int = 1,
) -> Iterator[Written]:
  """Writes {out}/{variant}/{split}/: schema.json, and the converted dialogues.

  A schema of the corpus is copied unchanged.

  Every file is written atomically, and replaces an existing one.

  Args:
    corpus: its source must be picklable, to be opened in other processes too.
    chosen: split -> variant -> schema, see `choose`.
    out: folder; created if missing.
    processes: number of worker processes. If several, the calling script needs
      `if __name__ == "__main__"`.

  Yields:
    What was written, file by file in the order of the corpus.

  Raises:
    SgdxError: dialogues that do not fit the schema, a folder with dialogues of another corpus, or
      a file that cannot be written.
  """
  out = pathlib.Path(out)
  _check_others(corpus, chosen, out)
  tasks = []
  for split, schemas in chosen.items():
    original = corpus.schema(split)
    for variant, schema in schemas.items():
      text = _schema_text(corpus, split, variant, schema)
      _write_file(out / variant / split / "schema.json", text)
      for name in _manifests(corpus, split):
        _write_file(out / variant / name, _text_of(corpus, name))
    names = {variant: renamings(original, schema) for variant, schema in schemas.items()}
    files = corpus.dialogue_files(split) if schemas else ()
    tasks += [_Task(split, name, original, names, corpus.source, out) for name in files]
  processes = min(processes, len(tasks))
  if processes <= 1:
    for task in tasks:
      yield _write(task)
    return
  with worker_processes(processes, "converting dialogues") as run:
    yield from run(_write, tasks)


def _check_others(corpus: Corpus, chosen: Mapping[str, Iterable[str]], out: pathlib.Path) -> None:
  """Refuses folders with files that would remain and belong to the split: another corpus's."""
  for split, variants in chosen.items():
    own = {*corpus.dialogue_files(split), *_manifests(corpus, split)}
    names = (f"{split}/dialogues_*.json", *_MANIFESTS)
    for folder in (out / variant for variant in variants):
      found = [path for name in names for path in folder.glob(name.format(split=split))]
      if others := sorted({path.relative_to(folder).as_posix() for path in found} - own):
        raise SgdxError(
          f"--out {folder} contains {others[0]}, which {corpus.origin} lacks",
          expected="a folder without files of another corpus: they would be mixed with this one's",
          available=f"{len(others)} such files",
          fix=f"delete {folder / split}, or name another folder",
        )


def _manifests(corpus: Corpus, split: str) -> list[str]:
  """Returns the files that say how a split was made, and whether only last turns are scored."""
  return [name for each in _MANIFESTS if corpus.has(name := each.format(split=split))]


def convert_text(
  text: str | bytes, origin: str, schema: Schema, variants: Sequence[_Renamings]
) -> tuple[int, Iterator[str]]:
  """Converts the text of a file of dialogues.

  Args:
    text: JSON, in original names.
    origin: file name, for errors.
    schema: the original one.
    variants: renamings of its services, see `variants.renamings`.

  Returns:
    Number of dialogues, and an iterator over the JSON texts with the names of each variant.

  Raises:
    SgdxError: not a file of dialogues, or one that does not fit the schema.
  """
  data = decode_dialogues(text, origin)
  marks = _Marks()
  for item in data:
    dialogue = Dialogue.from_json(item if isinstance(item, dict) else {}, origin)
    check_dialogue(dialogue, schema, origin)
    try:
      _mark_dialogue(item, marks)
    except (KeyError, TypeError, AttributeError) as e:
      raise SgdxError(
        f"{origin}, dialogue {item['dialogue_id']}: {malformed(e)}",
        expected="a dialogue in the DSTC8 format",
        fix="restore the file, or write it again",
      ) from None
  parts = _MARKED.split(_encode(data))  # text, number, text, number, ..., text
  numbers = [int(n) for n in parts[1::2]]

  def fill(names: _Renamings) -> str:
    filled = [marked(names) for marked in marks.fills]
    parts[1::2] = [filled[n] for n in numbers]
    return "".join(parts)

  return len(data), map(fill, variants)


# --- marks ---------------------------------------------------------------------------------


class _Marks:
  """Creates marks and stores what each stands for; equal names share a mark."""

  def __init__(self):
    self.fills: list[_Fill] = []
    self._known: dict[tuple, str] = {}

  def service(self, name: str) -> str:
    return self._of((name,), lambda to: to[name].service if name in to else name)

  def slot(self, service: str, name: str) -> str:
    return self._of((service, "slot", name), lambda to: to[service].slots.get(name, name))

  def intent(self, service: str, name: str) -> str:
    return self._of((service, "intent", name), lambda to: to[service].intents.get(name, name))

  def entries(self, service: str, values: dict[str, Any]) -> str | dict:
    """Marks a mapping whose keys are slots. Returns an empty one as it is."""
    if not values:
      return values
    items = [(slot, _encode(x).replace("\n", _ENTRY)) for slot, x in values.items()]
    return self._mark(lambda to: _entries(items, to[service].slots))

  def _of(self, key: tuple, name: Callable[[_Renamings], str]) -> str:
    if key not in self._known:
      self._known[key] = self._mark(lambda to: _encode(name(to)))
    return self._known[key]

  def _mark(self, fill: _Fill) -> str:
    self.fills.append(fill)
    return f"{_MARK}{len(self.fills) - 1}"


def _entries(items: Sequence[tuple[str, str]], slots: Mapping[str, str]) -> str:
  # Into a new mapping: a new name may equal another original name.
  renamed = {slots.get(slot, slot): text for slot, text in items}
  lines = [f"{_ENTRY}{_encode(slot)}: {text}" for slot, text in sorted(renamed.items())]
  return "{" + ",".join(lines) + _END


def _mark_dialogue(data: dict[str, Any], marks: _Marks) -> None:
  """Replaces everything that a variant renames by marks."""
  data["services"] = [marks.service(s) for s in data["services"]]
  for turn in data["turns"]:
    for frame in turn["frames"]:
      _mark_frame(frame, frame["service"], marks)


def _mark_frame(frame: dict[str, Any], service: str, marks: _Marks) -> None:
  slot = functools.partial(marks.slot, service)
  intent = functools.partial(marks.intent, service)
  frame["service"] = marks.service(service)
  for span in frame.get("slots") or ():
    span["slot"] = slot(span["slot"])
  if state := frame.get("state"):
    state["active_intent"] = intent(state["active_intent"])
    if "requested_slots" in state:
      state["requested_slots"] = [slot(s) for s in state["requested_slots"]]
    state["slot_values"] = marks.entries(service, state["slot_values"])
  for action in frame.get("actions") or ():
    if action.get("slot") == "intent" and action["act"] in INTENT_ACTS:
      for key in {"values", "canonical_values"} & action.keys():
        action[key] = [intent(name) for name in action[key]]
    elif "slot" in action:
      action["slot"] = slot(action["slot"])
  if call := frame.get("service_call"):
    call["method"] = intent(call["method"])
    call["parameters"] = marks.entries(service, call["parameters"])
  if results := frame.get("service_results"):
    frame["service_results"] = [marks.entries(service, result) for result in results]


# --- files and processes -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _Task:
  """A file of dialogues to convert, with all that a worker process needs for it."""

  split: str
  name: str
  original: Schema
  names: Mapping[str, _Renamings]  # by variant
  source: Source
  out: pathlib.Path


def _schema_text(corpus: Corpus, split: str, variant: str, schema: Schema) -> str:
  if corpus.has_schema(split, variant) and schema is corpus.schema(split, variant):
    return _text_of(corpus, schema_path(variant, split))
  return json.dumps(schema.to_json(), indent=2) + "\n"


def _text_of(corpus: Corpus, name: str) -> str:
  try:
    return corpus.source.read(name).decode("utf-8")
  except UnicodeDecodeError as e:
    raise not_utf8(f"{corpus.origin}: {name}", e, "UTF-8, in which it is copied") from None


def _write(task: _Task) -> Written:
  origin = f"{task.source.origin}: {task.name}"
  text, variants = task.source.read(task.name), list(task.names.values())
  dialogues, texts = convert_text(text, origin, task.original, variants)
  for variant, converted in zip(task.names, texts, strict=True):
    _write_file(task.out / variant / task.name, converted)
  return Written(task.split, tuple(task.names), dialogues)


def _write_file(path: pathlib.Path, text: str) -> None:
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "--out") as file:
      file.write(text)
    return
  except UsageError:  # an input
    raise
  except OSError as e:
    found, fix = f"--out {path.parent}: {e.strerror}", writing_fix(e, "name another folder")
  except SgdxError as e:
    found, fix = e.found, writing_fix(e, "name another folder")
  raise SgdxError(
    found,
    expected="a writable folder, on a disk with space for the dialogues of each variant",
    fix=f"{fix}; the files written so far are complete",
  )
