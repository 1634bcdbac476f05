"""Answers of an utterance classifier: which slots does a turn inform?"""

import dataclasses
import pathlib
from collections.abc import Mapping

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.coco.coco_turns import Goal, UserTurn
from sgdx_t5x.papers.coco.coco_words import predictions, read_lines

FEWEST = 0.8  # minimum precision and recall on real turns; else answers are refused
NONE = "none"


@dataclasses.dataclass(frozen=True)
class Quality:
  """How good a classifier is on real turns: counts of slots that were informed and found."""

  right: int = 0
  found: int = 0
  told: int = 0
  turns: int = 0

  @property
  def precision(self) -> float:
    """Share of the slots found that were informed."""
    return self.right / self.found if self.found else 0.0

  @property
  def recall(self) -> float:
    """Share of the slots informed that were found."""
    return self.right / self.told if self.told else 0.0

  def __add__(self, other: "Quality") -> "Quality":
    pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
    return Quality(*(a + b for a, b in pairs))


def read_answers(path: str | pathlib.Path) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
  """Reads {"id", "slots": [...]} lines: of real turns ("1_00000.t04") and candidates ("...#0").

  Lines of `t5x.infer` on the task sgd_user_turn_goals are read as well: "city, date" or "none";
  the best, if there are several decodes.

  Returns:
    id -> slots; and id -> the classifier's input, where the file has it.

  Raises:
    SgdxError: no such file, or a malformed line.
  """
  expected = '{"id": "1_00000.t04#0", "slots": ["city", ...]}'
  found, inputs = {}, {}
  for where, line in read_lines(pathlib.Path(path), expected):
    slots = line.get("slots")
    if slots is None and isinstance(answer := next(iter(predictions(line)), None), str):
      slots = [slot.strip() for slot in answer.split(",")]
    if not isinstance(slots, list) or not all(isinstance(slot, str) for slot in slots):
      raise SgdxError(f"{where}: no slots", expected=expected, fix="correct the file")
    found[line["id"]] = frozenset(slots) - {NONE}
    if isinstance(line.get("inputs"), str):
      inputs[line["id"]] = line["inputs"]
  return found, inputs


def quality_of(answers: Mapping[str, frozenset[str]], turn: UserTurn) -> Quality:
  """Returns the counts of the answer for a real turn; zeros if there is none."""
  if turn.id not in answers:
    return Quality()
  found, told = answers[turn.id], frozenset(turn.goal.told)
  return Quality(len(found & told), len(found), len(told), 1)


def check_quality(path: str, found: Quality, force: bool) -> None:
  """Refuses a classifier that is wrong too often, unless `force`."""
  if not found.turns or (min(found.precision, found.recall) < FEWEST and not force):
    raise SgdxError(
      f"{path}: on {found.turns:,} real turns, precision {found.precision:.3f} and "
      f"recall {found.recall:.3f}",
      expected=f"at least {FEWEST} for both, on the real turns of --classify-out",
      fix="train the classifier longer, or pass --force"
      if found.turns
      else "also have it answer the real turns in --classify-out: they show how good it is",
    )


def accepts(answer: frozenset[str], goal: Goal, strict: bool) -> bool:
  """Whether an answer has no slots other than the goal's and, if strict, all of these."""
  told = frozenset(goal.told)
  return answer == told if strict else answer <= told
