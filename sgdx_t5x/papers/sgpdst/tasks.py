"""SeqIO tasks and mixtures of SGP-DST's four sub-models.

Their metrics cover single questions, given the gold states before the turn and, for copy and cross,
the gold intent; `sgdx track` gives the joint goal accuracy of whole dialogues, from predictions
alone. Importing this module registers them.
"""

import functools
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import seqio

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_features as features
from sgdx_t5x.papers.sgpdst.sgpdst import (
  PARTS,
  SAMPLING,
  Answers,
  Pair,
  intent_before,
  own_values,
  right_answers,
  share_kept,
  system_answers,
)
from sgdx_t5x.papers.sgpdst.sgpdst_features import FEATURES, Example, SgpReader, SgpStyle
from sgdx_t5x.records.frame_examples import Make
from sgdx_t5x.records.turns import NONE, FrameContext, Gold, States
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.tasks.registration import register_encoder_task, register_mixtures
from sgdx_t5x.tasks.vocabularies import encoder_vocabulary_later, sample_encoder_vocabulary

# What is asked about: suffix of the example's id, whether it is a positive example, slot, and
# function that makes the example and its targets in a variant.
_Question = Callable[[SgpReader], tuple[Example, list[int]]]
_Asked = tuple[str, bool, int, _Question]


def sgpdst_examples(
  split: str,
  original: Sequence[Service],
  shown: Mapping[str, Schema],
  vocabulary: WordPieceFile,
  lengths: Mapping[str, int],
  *,
  part: str,
  style: SgpStyle,
) -> Make:
  """Returns what makes one sub-model's examples of a frame, for every variant.

  States before a turn and, for copy and cross, the active intent are the gold ones; `sgdx track`
  uses predicted ones. For train, examples are subsampled, differently in every epoch, and combine
  also gets examples of system turns.

  Args:
    split: of the records.
    original: services of the split's original schema.
    shown: variant -> its schema.
    vocabulary: tokenizes the texts.
    lengths: of features, as far as they are set.
    part: one of `sgpdst.PARTS`.
    style: of the input and of training.
  """
  length = lengths.get("inputs")
  readers = {v: SgpReader(part, schema, vocabulary, style, length) for v, schema in shown.items()}
  for reader in readers.values():
    reader.check()  # here, as tf.data turns what is raised below into an error of its own
  sampling = SAMPLING[style.sampling][part] if split == "train" else None
  draw = random.Random(zlib.crc32(f"{part}/{'+'.join(shown)}".encode()))

  def make(
    context: FrameContext, states: States, gold: Gold
  ) -> Iterator[tuple[str, dict[str, list[int]]]]:
    service = original[context.service]
    labels = right_answers(service, context, gold, states)
    questions = list(_questions(part, service, context, states, gold, labels, split == "train"))
    changed = {service.slots[slot].name for _, positive, slot, _ in questions if positive}
    for id_suffix, positive, slot, question in questions:
      name = service.slots[slot].name if slot != NONE else ""
      for variant, reader in readers.items():
        if sampling and draw.random() >= share_kept(sampling, positive, name, changed):
          continue
        example, targets = question(reader)
        frame = f"{ExampleId(variant, split, context.frame_id, name or None)}{id_suffix}"
        yield frame, {**example.features, "targets": targets}

  return make


def _questions(
  part: str,
  service: Service,
  context: FrameContext,
  states: States,
  gold: Gold,
  labels: Answers,
  training: bool,
) -> Iterator[_Asked]:
  """Yields (id suffix, whether positive, slot, function from a reader to (example, targets))."""
  previous = own_values(context, states)
  if part == "intent":
    previous_intent, jumped = intent_before(context, states), features.has_jumped(context, states)
    target = gold.intent if gold.intent != NONE else len(service.intents)
    yield "", True, NONE, lambda r: (r.intent(context, previous_intent, jumped), [target + 1])
  elif part == "combine":
    # What the user accepts without saying it is no span of the utterance: "copy" learns that.
    copied = {slot for slot in labels.copies if not service.slots[slot].is_categorical}
    for slot in range(len(service.slots)):
      if slot not in copied:
        yield "", _says(labels, slot), slot, _combine(context, labels, slot)
    if training and context.turn:
      spoken = system_answers(service, context, gold)
      for slot in range(len(service.slots)):
        yield "?system", _says(spoken, slot), slot, _combine(context, spoken, slot, by_system=True)
  elif part == "copy":
    for slot in features.copied_slots(context):
      is_copied = slot in labels.copies
      yield "", is_copied, slot, _copy(context, slot, slot in previous, gold.intent, is_copied)
  else:
    slots: Sequence[int] = range(len(service.slots))
    if not training:
      slots = features.open_slots(service, context, previous)
    from_system = features.given_slots(context)
    for pair in features.crossed_pairs(context, states, slots):
      is_copied = pair in labels.crosses
      id_suffix = f"?from={pair[1][0]}.{pair[1][1]}"
      filled = pair[0] in previous or pair[0] in from_system
      question = _cross(context, pair, filled, gold.intent, is_copied)
      yield id_suffix, is_copied, pair[0], question


def _says(labels: Answers, slot: int) -> bool:
  return slot in labels.spans or slot in labels.options or slot in labels.requested


def _combine(
  context: FrameContext, labels: Answers, slot: int, by_system: bool = False
) -> _Question:
  def make(reader: SgpReader) -> tuple[Example, list[int]]:
    example = (reader.combine_system if by_system else reader.combine)(context, slot)
    return example, features.slot_targets(example, labels, slot)

  return make


def _copy(
  context: FrameContext, slot: int, filled: bool, intent: int, is_copied: bool
) -> _Question:
  target = [a.YES if is_copied else a.NO]
  return lambda reader: (reader.copy(context, slot, filled, intent), target)


def _cross(
  context: FrameContext, pair: Pair, filled: bool, intent: int, is_copied: bool
) -> _Question:
  target = [a.YES if is_copied else a.NO]
  return lambda reader: (reader.cross(context, pair, filled, intent), target)


def register_sgpdst_families(
  prefix: str,
  *,
  data: str,
  vocabulary: Callable[[], seqio.Vocabulary],
  style: SgpStyle | None = None,
) -> None:
  """Registers the tasks and mixtures of one data set: per sub-model, those of a prompt format."""
  metrics = {"intent": intent_accuracy, "combine": slot_accuracies}
  for part in PARTS:
    task = functools.partial(
      register_encoder_task,
      tracker="SGP-DST",
      format=f"sgpdst_{part}",
      vocabulary=vocabulary,
      features=FEATURES,
      examples=sgpdst_examples,
      metric=metrics.get(part, copy_scores),
      needs=("acts", "spans"),
      part=part,
      style=style or SgpStyle(),
    )
    register_mixtures(f"{prefix}sgpdst_{part}", data, task)


def intent_accuracy(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of intent. Args: targets and the model's answers, one per frame."""
  pairs = zip(targets, predictions, strict=True)
  return {"intent_accuracy": _mean([_at(t, 0) == _at(p, 0) for t, p in pairs])}


def slot_accuracies(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of combine.

  Args:
    targets: of the combine model, one per slot.
    predictions: its answers.

  Returns:
    span_accuracy and option_accuracy over slots with a gold span or option, none_accuracy over
    those with neither, requested_f1.
  """
  spans, options, nothing = [], [], []
  gold_requests, predicted_requests = [], []
  for target, vector in zip(targets, predictions, strict=True):
    start, end, option, requested, has_span = (_at(target, i) for i in range(5))
    answer = a.read_slot(vector)
    span_right = (answer.first, answer.last) == (start, end)
    option_right = answer.option + 1 == option
    gold_requests.append(requested == a.YES)
    predicted_requests.append(answer.requested > 0.5)
    if has_span == a.YES:
      spans.append(span_right)
    elif option > 1:
      options.append(option_right)
    else:
      nothing.append(span_right and option_right)
  return {
    "span_accuracy": _mean(spans),
    "option_accuracy": _mean(options),
    "none_accuracy": _mean(nothing),
    "requested_f1": _f1(gold_requests, predicted_requests),
  }


def copy_scores(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of copy and cross. Args: targets and answers, one per slot or pair."""
  gold = [_at(target, 0) == a.YES for target in targets]
  predicted = [a.read_copy(vector) > 0.5 for vector in predictions]
  true_positives = sum(x and y for x, y in zip(gold, predicted, strict=True))
  return {
    "accuracy": _mean([x == y for x, y in zip(gold, predicted, strict=True)]),
    "precision": true_positives / sum(predicted) if any(predicted) else float("nan"),
    "recall": true_positives / sum(gold) if any(gold) else float("nan"),
    "f1": _f1(gold, predicted),
  }


def _at(vector: Any, place: int) -> int:
  return int(np.asarray(vector).reshape(-1)[place])


def _mean(is_right: list[bool]) -> float:
  return float(np.mean(is_right)) if is_right else float("nan")


def _f1(gold: list[bool], predicted: list[bool]) -> float:
  """Returns F1; NaN if there are neither gold nor predicted positives."""
  true_positives = sum(x and y for x, y in zip(gold, predicted, strict=True))
  total = sum(gold) + sum(predicted)
  return 2 * true_positives / total if total else float("nan")


register_sgpdst_families("", data="full", vocabulary=encoder_vocabulary_later)
register_sgpdst_families(
  "sample_",
  data="sample",
  vocabulary=sample_encoder_vocabulary,
  # Its small vocabulary cuts words into many pieces.
  style=SgpStyle(utterance=120, sampling="mild"),
)
