"""Records -> examples of SGP-DST's sub-models, in tf.data."""

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import seqio
import tensorflow as tf

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.papers.sgpdst import sgpdst_features as features
from sgdx_t5x.papers.sgpdst.sgpdst import (
  SAMPLING,
  Answers,
  Pair,
  intent_before,
  own_values,
  right_answers,
  share_kept,
  system_answers,
)
from sgdx_t5x.papers.sgpdst.sgpdst_answers import NO, YES
from sgdx_t5x.papers.sgpdst.sgpdst_features import FEATURES, Example, SgpReader, SgpStyle
from sgdx_t5x.records.frame_examples import frame_examples
from sgdx_t5x.records.source import split_of
from sgdx_t5x.records.turns import NONE, Gold, Known, States
from sgdx_t5x.variants.variant_schemas import VariantSchemas

# What is asked about: suffix of the example's id, whether it is a positive example, slot, and
# function that makes the example and its targets in a variant.
_Question = Callable[[SgpReader], tuple[Example, list[int]]]
_Asked = tuple[str, bool, int, _Question]


def sgpdst_examples(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: VariantSchemas,
  variants: Sequence[str],
  part: str,
  style: SgpStyle,
) -> tf.data.Dataset:
  """Turns batches of records into examples of one sub-model.

  States before a turn and, for copy and cross, the active intent are the gold ones; `sgdx track`
  uses predicted ones. For train, examples are subsampled, differently in every epoch, and combine
  also gets examples of system turns.

  Args:
    batches: from `RecordSource.batches`, version 1.1.0.
    sequence_length: lengths of the features.
    output_features: the `inputs` vocabulary tokenizes the texts.
    schemas: schemas of all variants.
    variants: each record yields its examples for every variant.
    part: one of `sgpdst.PARTS`.
    style: of the input and of training.

  Returns:
    Examples {each of `sgpdst_features.FEATURES`: int32 [any], example_id_pretokenized: string}.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split).services
  vocabulary, length = output_features["inputs"].vocabulary, (sequence_length or {}).get("inputs")
  readers = {v: SgpReader(part, schemas.get(split, v), vocabulary, style, length) for v in variants}
  sampling = SAMPLING[style.sampling][part] if split == "train" else None
  draw = random.Random(zlib.crc32(f"{part}/{'+'.join(variants)}".encode()))

  def make(known: Known, states: States, gold: Gold) -> Iterator[tuple[str, dict[str, list[int]]]]:
    service = original[known.service]
    labels = right_answers(service, known, gold, states)
    asked = list(_asked(part, service, known, states, gold, labels, split == "train"))
    changed = {service.slots[slot].name for _, positive, slot, _ in asked if positive}
    for about, positive, slot, question in asked:
      name = service.slots[slot].name if slot != NONE else ""
      for variant, reader in readers.items():
        if sampling and draw.random() >= share_kept(sampling, positive, name, changed):
          continue
        example, targets = question(reader)
        frame = f"{ExampleId(variant, split, known.frame_id, name or None)}{about}"
        yield frame, {**example.features, "targets": targets}

  return frame_examples(batches, original, FEATURES, make)


def _asked(
  part: str,
  service: Service,
  known: Known,
  states: States,
  gold: Gold,
  labels: Answers,
  training: bool,
) -> Iterator[_Asked]:
  """Yields (id suffix, whether positive, slot, function from a reader to (example, targets))."""
  held = own_values(known, states)
  if part == "intent":
    before, jumped = intent_before(known, states), features.has_jumped(known, states)
    right = gold.intent if gold.intent != NONE else len(service.intents)
    yield "", True, NONE, lambda r: (r.intent(known, before, jumped), [right + 1])
  elif part == "combine":
    taken = {slot for slot in labels.copies if not service.slots[slot].is_categorical}
    for slot in range(len(service.slots)):
      if slot not in taken:
        yield "", _says(labels, slot), slot, _combine(known, labels, slot)
    if training and known.turn:
      spoken = system_answers(service, known, gold)
      for slot in range(len(service.slots)):
        yield "?system", _says(spoken, slot), slot, _combine(known, spoken, slot, by_system=True)
  elif part == "copy":
    for slot in features.copied_slots(known):
      right = [YES if slot in labels.copies else NO]
      yield "", right == [YES], slot, _copy(known, slot, slot in held, gold.intent, right)
  else:
    slots = range(len(service.slots)) if training else features.open_slots(service, known, held)
    given = features.given_slots(known)
    for pair in features.crossed_pairs(known, states, slots):
      right = [YES if pair in labels.crosses else NO]
      about = f"?from={pair[1][0]}.{pair[1][1]}"
      filled = pair[0] in held or pair[0] in given
      yield about, right == [YES], pair[0], _cross(known, pair, filled, gold.intent, right)


def _says(labels: Answers, slot: int) -> bool:
  return slot in labels.spans or slot in labels.options or slot in labels.requested


def _combine(known: Known, labels: Answers, slot: int, by_system: bool = False) -> _Question:
  def make(reader: SgpReader) -> tuple[Example, list[int]]:
    example = (reader.combine_system if by_system else reader.combine)(known, slot)
    return example, features.slot_targets(example, labels, slot)

  return make


def _copy(known: Known, slot: int, filled: bool, intent: int, right: list[int]) -> _Question:
  return lambda reader: (reader.copy(known, slot, filled, intent), right)


def _cross(known: Known, pair: Pair, filled: bool, intent: int, right: list[int]) -> _Question:
  return lambda reader: (reader.cross(known, pair, filled, intent), right)
