"""changes.jsonl: one line per changed dialogue or turn, with all that is needed to undo it."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import decode_lines
from sgdx_t5x.papers.checkdst.metrics_counterfactual import GoalEdit
from sgdx_t5x.papers.checkdst.split import Line

_EXPECTED = "changes.jsonl next to perturbation.json, as `sgdx checkdst perturb` wrote it"
_FIX = "copy the whole folder, or perturb the original again"


def changes_name(split: str) -> str:
  """Returns the file's name."""
  return f"{split}/changes.jsonl"


def read_changes(corpus: Corpus, split: str) -> dict[str, list[Line]]:
  """Returns dialogue id -> its lines.

  Raises:
    SgdxError: no such file, or a line that is not from `sgdx checkdst perturb`.
  """
  origin = f"{corpus.origin}: {changes_name(split)}"
  try:
    raw = corpus.source.read(changes_name(split))
  except (OSError, KeyError):
    raise SgdxError(f"no {origin}", expected=_EXPECTED, fix=_FIX) from None
  changes: dict[str, list[Line]] = {}
  for location, line in decode_lines(raw, origin, _EXPECTED, _FIX):
    if not isinstance(line, dict) or not isinstance(line.get("dialogue_id"), str):
      raise SgdxError(f"{location}: no change", expected=_EXPECTED, fix=_FIX)
    changes.setdefault(line["dialogue_id"], []).append(line)
  return changes


@dataclasses.dataclass(frozen=True)
class Changes:
  """What was changed.

  Attributes:
    names: dialogue id -> replaced value of a non-categorical slot -> its replacement.
    choices: (dialogue id, service) -> categorical slot -> replaced value -> its replacement.
    goals: dialogue id -> the edit of its last turn, of counterfactuals.
    repairs: (dialogue id, turn, service) -> slot -> the value that is said first and corrected.
  """

  names: dict[str, Mapping[str, str]]
  choices: dict[tuple[str, str], dict[str, dict[str, str]]]
  goals: dict[str, GoalEdit]
  repairs: dict[tuple[str, int, str], dict[str, str]]


def recorded_changes(corpus: Corpus, split: str, with_goals: Iterable[str] = ()) -> Changes:
  """Reads the changes of a perturbed split.

  Args:
    corpus: of the perturbed dialogues.
    split: the split.
    with_goals: ids of the dialogues whose last turn was edited.

  Raises:
    SgdxError: as `read_changes` does, or an edit is missing.
  """
  changes, location = Changes({}, {}, {}, {}), f"{corpus.origin}: {changes_name(split)}"
  for dialogue_id, lines in read_changes(corpus, split).items():
    try:
      for line in lines:
        _add(changes, dialogue_id, line)
    except (AttributeError, KeyError, TypeError, ValueError) as e:
      problem = f"{location}, dialogue {dialogue_id}: {malformed(e)}"
      raise SgdxError(problem, expected=_EXPECTED, fix=_FIX) from None
  if missing := [name for name in with_goals if name not in changes.goals]:
    raise SgdxError(f"{location}: no edit of {missing[0]}", expected=_EXPECTED, fix=_FIX)
  return changes


def exchanged_values(line: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
  """Returns (service, categorical slot, value, its replacement) of a line for a dialogue."""
  swaps: list[tuple[str, str, str, str]] = []
  for place, exchanged in line.get("categorical", {}).items():
    service, _, slot = place.rpartition(".")
    swaps += [(service, slot, value, partner) for value, partner in exchanged.items()]
  return swaps


def _add(changes: Changes, dialogue_id: str, line: Mapping[str, Any]) -> None:
  if "of" in line:
    changes.goals[dialogue_id] = GoalEdit.of(line)
  if strings := line.get("strings"):
    changes.names[dialogue_id] = dict(strings)
  for service, slot, value, partner in exchanged_values(line):
    of_service = changes.choices.setdefault((dialogue_id, service), {})
    of_service.setdefault(slot, {})[value] = partner
  for insertion in line.get("insertions", ()):
    if insertion["kind"] == "repair":
      service, _, slot = insertion["slot"].rpartition(".")
      of_turn = changes.repairs.setdefault((dialogue_id, line["turn"], service), {})
      of_turn[slot] = insertion["instead"]
