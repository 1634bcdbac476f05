"""Upper bound of SpanDST's labels and decoding rules: its score when all answers are gold."""

import collections
import dataclasses
from collections.abc import Iterable

from walked import walked_scores

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.metrics.frames import FrameScores
from sgdx_t5x.records.turns import Gold, gold_history
from sgdx_t5x.spandst.answers import CLEAR, KEEP, MEMORY, SPAN, SYSTEM, VALUE
from sgdx_t5x.spandst.answers import DONTCARE as ANY
from sgdx_t5x.spandst.choices import Choices, frame_choices
from sgdx_t5x.spandst.spandst import Choice, new_values, right_choices
from sgdx_t5x.spandst.walk import Prediction, Question


@dataclasses.dataclass(frozen=True)
class Ceiling:
  """What a tracker with gold answers scores.

  Attributes:
    scores: scores of its frames.
    mechanisms: mechanism of a change of a value -> count.
  """

  scores: FrameScores
  mechanisms: collections.Counter

  def goal_accuracy(self) -> list[float]:
    """JGA in percent: all, seen, unseen."""
    scores, found = self.scores, self.scores.metrics["joint_goal_accuracy"] * 100
    return [float(found[part].mean()) for part in (slice(None), scores.seen, ~scores.seen)]


def ceiling(
  dialogues: list[Dialogue],
  schema: Schema,
  seen: Iterable[str],
  *,
  system: bool = True,
  memory: bool = True,
  system_spans: bool = True,
) -> Ceiling:
  """Tracks dialogues with gold answers; a slot that needs a disabled mechanism is kept as it is."""
  gold, before = gold_and_before(dialogues, schema)
  mechanisms = collections.Counter()

  def predict(questions: list[Question]) -> list[Prediction]:
    found = []
    for context, states in ((q.context, q.states) for q in questions):
      service, right = schema.services[context.service], gold[context.frame_id]
      own = states.get(context.service)
      all_choices = frame_choices(context, states)
      choices = Choices(all_choices.system if system else {}, all_choices.memory if memory else ())
      labels = right_choices(service, context, right, before[context.frame_id], choices)
      if not system_spans:
        labels = {slot: [c for c in cs if c[:2] != (SPAN, 0)] for slot, cs in labels.items()}
      answers = {slot: cs[0] for slot, cs in labels.items() if cs}
      for slot, cs in changes({s: cs for s, cs in labels.items() if cs}):
        mechanisms[_shown(cs, choices, slot, context.turn)] += 1
      values = new_values(service, context, own.values if own else {}, choices, answers)
      found.append(Prediction(right.intent, right.requested, values))
    return found

  return Ceiling(walked_scores(dialogues, schema, predict, seen), mechanisms)


def changes(labels: dict[int, list[Choice]]) -> list[tuple[int, list[Choice]]]:
  """(slot, right answers) of the slots whose value changes."""
  return [(slot, choices) for slot, choices in labels.items() if choices[0].kind != KEEP]


def _shown(right: list[Choice], choices: Choices, slot: int, turn: int) -> str:
  """The mechanism of a change; "possible value" only if there is no other."""
  names = [_mechanism(choice, choices, slot, turn) for choice in right]
  return next((name for name in names if name != "possible value"), names[0])


def _mechanism(choice: Choice, choices: Choices, slot: int, turn: int) -> str:
  """How a right answer changes a slot's value."""
  if choice.kind == SYSTEM:
    return "offered in the last turn" if choices.system[slot][1] == turn - 1 else "offered earlier"
  if choice.kind == SPAN:
    return "user's span" if choice.number else "system's span"
  return _MECHANISMS[choice.kind]


_MECHANISMS = {
  KEEP: "kept",
  ANY: "dontcare",
  CLEAR: "cleared",
  VALUE: "possible value",
  MEMORY: "another service",
}


def gold_and_before(dialogues, schema) -> tuple[dict[str, Gold], dict[str, dict]]:
  """Gold labels and this service's gold values before the turn, by frame id."""
  gold, before = {}, {}
  for context, right, states in (x for d in dialogues for x in gold_history(d, schema)):
    own = states.get(context.service)
    gold[context.frame_id], before[context.frame_id] = right, own.values if own else {}
  return gold, before
