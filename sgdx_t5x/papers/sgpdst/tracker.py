"""Tracks turn by turn with SGP-DST, which has a checkpoint for each of its four sub-models.

Questions that depend on earlier answers are asked after them: the intent given the previous intent,
copy and cross given the previous state and this turn's intent. So no gold history is needed, and
none is read unless it is given: the released pipeline reads it.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x import tasks
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_features as features
from sgdx_t5x.papers.sgpdst.sgpdst import (
  MIN_REQUESTED,
  PARTS,
  Answers,
  intent_before,
  new_values,
  own_values,
)
from sgdx_t5x.papers.sgpdst.sgpdst_features import Example, SgpReader
from sgdx_t5x.records.turns import NONE, Gold, States, gold_history
from sgdx_t5x.spandst.walk import Predict, Prediction, Question
from sgdx_t5x.tracking.checkpoints import Checkpoint
from sgdx_t5x.tracking.model import LoadedModel
from sgdx_t5x.tracking.protocol import KEPT_SCHEMAS, Shown, TrackedFrame, changes, walked

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

  def predict(questions: Sequence[Question]) -> list[Prediction]:
    intents = _intents(original, readers["intent"], ask, questions)
    frames = [
      _Asked(original, readers, q, intent, None if gold is None else gold[q.context.frame_id])
      for q, intent in zip(questions, intents, strict=True)
    ]
    for part in ("combine", "copy", "cross"):
      inputs: list[Mapping[str, Sequence[int]]] = []
      for frame in frames:
        inputs += (example.features for example in frame.examples[part].values())
      vectors = iter(ask(part, inputs))
      for frame in frames:
        frame.vectors[part] = {key: next(vectors) for key in frame.examples[part]}
    return [frame.prediction() for frame in frames]

  return predict


def _intents(
  original: Schema,
  reader: SgpReader,
  ask: Ask,
  questions: Sequence[Question],
) -> list[int]:
  examples = []
  for context, states in ((q.context, q.states) for q in questions):
    previous_intent = intent_before(context, states)
    examples.append(reader.intent(context, previous_intent, features.has_jumped(context, states)))
  vectors = ask("intent", [example.features for example in examples])
  intents = []
  for question, vector in zip(questions, vectors, strict=True):
    option, _ = a.read_intent(vector)
    number = len(original.services[question.context.service].intents)
    intents.append(option if option < number else NONE)
  return intents


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
    context, states = question.context, question.states
    self._question, self._intent, self._gold = question, intent, gold and gold[1]
    if gold is not None:
      intent, states = gold[0].intent, gold[1]
    self._service = original.services[context.service]
    filled = own_values(context, states)
    tracked = set(self._service.tracked_slots)
    slots = range(len(self._service.slots))
    combine = {slot: readers["combine"].combine(context, slot) for slot in slots}
    # Rules only fill empty slots, so FILLED is never set here.
    fillable = tracked - filled.keys()
    copied = [slot for slot in features.copied_slots(context) if slot in fillable]
    copy = {slot: readers["copy"].copy(context, slot, False, intent) for slot in copied}
    empty = features.open_slots(self._service, context, filled)
    pairs = features.crossed_pairs(context, states, empty)
    cross = {pair: readers["cross"].cross(context, pair, False, intent) for pair in pairs}
    self.examples: dict[str, Mapping[Any, Example]] = {
      "combine": combine, "copy": copy, "cross": cross
    }  # fmt: skip
    self.vectors: dict[str, dict] = {}

  def prediction(self) -> Prediction:
    """Returns the prediction that the answers give."""
    spans, options, requested = {}, {}, {}
    for slot, vector in self.vectors["combine"].items():
      answer = a.read_slot(vector)
      span = features.read_span(self.examples["combine"][slot], answer, slot)
      if span is not None:
        spans[slot] = span, answer.span
      options[slot] = answer.option, answer.probability
      requested[slot] = answer.requested
    answers = Answers(
      spans,
      options,
      requested,
      {slot: a.read_copy(vector) for slot, vector in self.vectors["copy"].items()},
      {pair: a.read_copy(vector) for pair, vector in self.vectors["cross"].items()},
    )
    context, states = self._question.context, self._question.states
    values = new_values(self._service, context, states, answers, self._gold)
    requested_slots = tuple(slot for slot, answer in requested.items() if answer > MIN_REQUESTED)
    return Prediction(self._intent, requested_slots, values)


_FORMAT = "sgpdst_"


def load(checkpoints: Sequence[Checkpoint], lengths: Mapping[str, int]) -> "SgpDST":
  """Returns the tracker of four checkpoints. Raises SgdxError unless they are of its four parts."""
  sub_models = [_part(checkpoint) for checkpoint in checkpoints]
  if sorted(sub_models) != sorted(PARTS):
    pairs = zip(sub_models, checkpoints, strict=True)
    raise SgdxError(
      "SGP-DST from " + ", ".join(f"{folder.path} ({part})" for part, folder in pairs),
      expected=f"one checkpoint for each of its sub-models: {', '.join(PARTS)}",
      fix="pass the folders of all four, trained with gin/papers/sgpdst/intent.gin, combine.gin, "
      "copy.gin and cross.gin, and no others",
    )
  models = dict(zip(sub_models, checkpoints, strict=True))
  return SgpDST({part: LoadedModel(models[part], lengths) for part in PARTS})


def _part(checkpoint: Checkpoint) -> str:
  """Returns the sub-model that a checkpoint is of; the name of its task if it is of none."""
  task = tasks.REGISTERED.get(checkpoint.task)
  return task.format.removeprefix(_FORMAT) if task else checkpoint.task


class SgpDST:
  """See `protocol.Tracker`."""

  name = "SGP-DST"
  reads_acts = needs_acts = True

  def __init__(self, models: Mapping[str, LoadedModel], reads_gold: bool = False):
    """Takes loaded models.

    Args:
      models: sub-model -> its model.
      reads_gold: let copy and cross use gold history, as in the released pipeline.
    """
    self._models, self.reads_gold = models, reads_gold
    self._of = functools.lru_cache(KEPT_SCHEMAS)(self._make_readers)

  @property
  def settings(self) -> Mapping[str, str]:
    """See `protocol.Tracker`."""
    settings = {"tracker": self.name}
    if self.reads_gold:
      settings["history"] = "gold"
    for part, model in self._models.items():
      style = changes(model.task.style_or_format)
      settings |= {f"{part} {name}": x for name, x in {**model.settings, **style}.items()}
    return settings

  def with_gold_history(self) -> "SgpDST":
    """Returns the same tracker with gold history."""
    return SgpDST(self._models, reads_gold=True)

  def check(self, shown: Shown) -> None:
    """See `protocol.Tracker`."""
    for reader in self._of(shown).values():
      reader.check()

  def track(self, dialogues: Sequence[Dialogue], shown: Shown) -> Iterator[dict[str, TrackedFrame]]:
    """See `protocol.Tracker`."""

    def ask(part: str, features: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
      return self._models[part].answer(features)

    gold = None
    if self.reads_gold:
      gold = {}
      for dialogue in dialogues:
        for context, labels, states in gold_history(dialogue, shown.original):
          gold[context.frame_id] = labels, states
    predict = sgpdst_tracker(shown.original, self._of(shown), ask, gold)
    yield from walked(dialogues, shown, predict)

  def _make_readers(self, shown: Shown) -> dict[str, SgpReader]:
    readers: dict[str, SgpReader] = {}
    for part, model in self._models.items():
      vocabulary, length = model.model.input_vocabulary, model.lengths["inputs"]
      readers[part] = SgpReader(part, shown.schema, vocabulary, model.task.style_or_format, length)
    return readers
