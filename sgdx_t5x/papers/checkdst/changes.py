"""changes.jsonl: one line per changed dialogue or turn, with all that is needed to undo it.

`recorded_changes` puts together what was changed in a set, over all steps.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import decode_lines
from sgdx_t5x.files.writing import json_line
from sgdx_t5x.papers.checkdst.manifest import Manifest
from sgdx_t5x.papers.checkdst.split import Line

_EXPECTED = 'a line {"dialogue_id": ..., ...} written by `sgdx checkdst perturb`'


def changes_name(split: str, step: int | None = None) -> str:
  """Returns the file's name, for the last step or an earlier one (counted from 1)."""
  return f"{split}/changes.jsonl" if step is None else f"{split}/changes_{step}.jsonl"


def encode_lines(lines: Iterable[Line]) -> str:
  """Returns the lines as JSON Lines text."""
  return "".join(map(json_line, lines))


def read_changes(corpus: Corpus, split: str, step: int | None = None) -> dict[str, list[Line]]:
  """Returns dialogue id -> its lines, for the last step or an earlier one.

  Raises:
    SgdxError: no such file, or a line that is not from `sgdx checkdst perturb`.
  """
  name = changes_name(split, step)
  origin = f"{corpus.origin}: {name}"
  try:
    raw = corpus.source.read(name)
  except (OSError, KeyError):
    raise SgdxError(
      f"no {origin}",
      expected="the changes, next to perturbation.json",
      fix="copy the whole folder that `sgdx checkdst perturb` wrote, or perturb the original again",
    ) from None
  found: dict[str, list[Line]] = {}
  for where, line in decode_lines(raw, origin, _EXPECTED, "perturb the original again"):
    if not isinstance(line, dict) or not isinstance(line.get("dialogue_id"), str):
      raise SgdxError(f"{where}: no change", expected=_EXPECTED, fix="perturb the original again")
    found.setdefault(line["dialogue_id"], []).append(line)
  return found


Names = dict[str, str]  # replaced value -> its replacement
_REPAIR = "repair"


@dataclasses.dataclass(frozen=True)
class Changes:
  """What was changed.

  Attributes:
    names: dialogue id -> replaced values of non-categorical slots.
    choices: dialogue id -> (service, categorical slot) -> replaced values.
    goals: dialogue id -> the line of its counterfactual.
    repairs: (dialogue id, turn) -> (service, slot) -> the value that is said first and corrected.
  """

  names: dict[str, Names] = dataclasses.field(default_factory=dict)
  choices: dict[str, dict[tuple[str, str], Names]] = dataclasses.field(default_factory=dict)
  goals: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
  repairs: dict[tuple[str, int], dict[tuple[str, str], str]] = dataclasses.field(
    default_factory=dict
  )


def recorded_changes(corpus: Corpus, split: str, manifests: Sequence[Manifest]) -> Changes:
  """Reads the changes of every step.

  Args:
    corpus: a perturbed corpus.
    split: its split.
    manifests: one per step; a later step may replace what an earlier one inserted.

  Raises:
    SgdxError: no changes.jsonl, or a malformed line in it.
  """
  changes = Changes()
  for number, _ in enumerate(manifests, start=1):
    step = number if number < len(manifests) else None
    for dialogue_id, lines in read_changes(corpus, split, step).items():
      try:
        for line in lines:
          _add(changes, dialogue_id, line)
      except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise SgdxError(
          f"{corpus.origin}: {changes_name(split, step)}, dialogue {dialogue_id}: {malformed(e)}",
          expected="a file as written by `sgdx checkdst perturb`",
          fix="copy the whole folder, or perturb the original again",
        ) from None
  return changes


def _add(changes: Changes, dialogue_id: str, line: Mapping[str, Any]) -> None:
  if "of" in line:
    _ = line["service"], line["kept"], line["changed"].items(), line["dropped"], line["added"]
    changes.goals[dialogue_id] = line
    return
  if strings := line.get("strings", {}):
    names = changes.names.setdefault(dialogue_id, {})
    _then(names, strings)
    for (of, _), repairs in changes.repairs.items():
      if of == dialogue_id:
        repairs.update({place: strings.get(value, value) for place, value in repairs.items()})
  for place, replaced in line.get("categorical", {}).items():
    service, _, slot = place.rpartition(".")
    of_dialogue = changes.choices.setdefault(dialogue_id, {})
    _then(of_dialogue.setdefault((service, slot), {}), replaced)
  for insertion in line.get("insertions", ()):
    if insertion["kind"] == _REPAIR:
      service, _, slot = insertion["slot"].rpartition(".")
      of_turn = changes.repairs.setdefault((dialogue_id, line["turn"]), {})
      of_turn[service, slot] = insertion["instead"]


def _then(names: Names, later: Mapping[str, str]) -> None:
  """Adds a later step's replacements, which may replace what an earlier one inserted."""
  for old, new in names.items():
    names[old] = later.get(new, new)
  made = set(names.values())
  names.update({old: new for old, new in later.items() if old not in names and new not in made})
