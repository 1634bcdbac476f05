"""Tracks dialogues with SGP-DST: from its sub-models' answers to the state after every turn.

Questions that depend on earlier answers are asked after them: the intent given the previous intent,
copy and cross given the previous state and this turn's intent. So no gold history is needed, and
none is read unless it is given: the released pipeline reads it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_features as features
from sgdx_t5x.papers.sgpdst.sgpdst import Answers, Rules, intent_before, new_values, own_values
from sgdx_t5x.papers.sgpdst.sgpdst_features import Example, SgpReader
from sgdx_t5x.records.turns import NONE, Gold, States
from sgdx_t5x.spandst.walk import Predict, Prediction, Question

# Maps a sub-model and features of examples, without targets, to one answer per example.
Ask = Callable[[str, Sequence[Mapping[str, Sequence[int]]]], Sequence[Sequence[int]]]


# Frame id -> labels, and gold states before the turn.
History = Mapping[str, tuple[Gold, States]]


def sgpdst_tracker(
  original: Schema,
  readers: Mapping[str, SgpReader],
  ask: Ask,
  gold: History | None = None,
) -> Predict:
  """Returns the tracker for `walk`.

  Args:
    original: the split's original schema.
    readers: one per sub-model, for the split in the variant shown to the models.
    ask: the models.
    gold: states before the turn and the turn's intent, which copy and cross then use instead of
      predictions, as in the released pipeline (an oracle).
  """
  rules = Rules()

  def predict(questions: Sequence[Question]) -> list[Prediction]:
    intents = _intents(original, readers["intent"], ask, questions)
    asked = [
      _Asked(original, readers, q, intent, None if gold is None else gold[q.known.frame_id])
      for q, intent in zip(questions, intents, strict=True)
    ]
    for part in ("combine", "copy", "cross"):
      examples = [example for one in asked for example in one.examples[part].values()]
      vectors = iter(ask(part, [example.features for example in examples]))
      for one in asked:
        one.vectors[part] = {key: next(vectors) for key in one.examples[part]}
    return [one.prediction(rules) for one in asked]

  return predict


def _intents(
  original: Schema,
  reader: SgpReader,
  ask: Ask,
  questions: Sequence[Question],
) -> list[int]:
  examples = []
  for known, states in ((q.known, q.states) for q in questions):
    before = intent_before(known, states)
    examples.append(reader.intent(known, before, features.has_jumped(known, states)))
  vectors = ask("intent", [example.features for example in examples])
  found = []
  for question, vector in zip(questions, vectors, strict=True):
    option = a.read_intent(vector).option
    number = len(original.services[question.known.service].intents)
    found.append(option if option < number else NONE)
  return found


class _Asked:
  """The questions about a frame once its intent is known, and their answers."""

  def __init__(
    self,
    original: Schema,
    readers: Mapping[str, SgpReader],
    question: Question,
    intent: int,
    gold: tuple[Gold, States] | None,
  ):
    known, states = question.known, question.states
    self._question, self._intent, self._gold = question, intent, gold and gold[1]
    if gold is not None:
      intent, states = gold[0].intent, gold[1]
    self._service = original.services[known.service]
    held = own_values(known, states)
    tracked = set(self._service.tracked_slots)
    combine = {slot: readers["combine"].combine(known, slot) for slot in self._slots}
    copy = {
      slot: readers["copy"].copy(known, slot, slot in held, intent)
      for slot in features.copied_slots(known)
      if slot in tracked and slot not in held
    }
    # Rules only fill empty slots, so FILLED is never set here.
    slots = features.open_slots(self._service, known, held)
    cross = {
      pair: readers["cross"].cross(known, pair, False, intent)
      for pair in features.crossed_pairs(known, states, slots)
    }
    self.examples: dict[str, Mapping[Any, Example]] = {
      "combine": combine,
      "copy": copy,
      "cross": cross,
    }
    self.vectors: dict[str, dict] = {}

  @property
  def _slots(self) -> range:
    return range(len(self._service.slots))

  def prediction(self, rules: Rules) -> Prediction:
    """Returns the prediction that the answers give."""
    spans, options, requested = {}, {}, {}
    for slot, vector in self.vectors["combine"].items():
      found = a.read_slot(vector)
      span = features.read_span(self.examples["combine"][slot], found, slot)
      if span is not None:
        spans[slot] = span, found.span
      options[slot] = found.option, found.probability
      requested[slot] = found.requested
    answers = Answers(
      spans,
      options,
      requested,
      {slot: a.read_copy(vector) for slot, vector in self.vectors["copy"].items()},
      {pair: a.read_copy(vector) for pair, vector in self.vectors["cross"].items()},
    )
    known, states = self._question.known, self._question.states
    values = new_values(self._service, known, states, answers, rules, self._gold)
    asked = tuple(slot for slot, found in requested.items() if found > rules.requested)
    return Prediction(self._intent, asked, values)
