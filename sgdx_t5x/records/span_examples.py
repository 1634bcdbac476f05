"""Records -> SpanDST's examples, in tf.data: one per frame and variant."""

import array
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.augment.variant_schemas import VariantSchemas
from sgdx_t5x.data.example_id import ExampleId
from sgdx_t5x.records.source import split_of
from sgdx_t5x.records.tracker_fields import ROWS, TEXTS, read_frame
from sgdx_t5x.trackers.span_features import FEATURES, LENGTHS, SpanReader, targets
from sgdx_t5x.trackers.span_text import SpanStyle
from sgdx_t5x.trackers.spandst import right_choices

_SCALARS = ("frame_id", "turn", "service_index", "active_intent")
_LISTS = ("utterances", "gold_slot", "gold_value", "requested_slots", *ROWS, *TEXTS)
_ID = "example_id_pretokenized"


def span_examples(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: VariantSchemas,
  variants: Sequence[str],
  style: SpanStyle,
) -> tf.data.Dataset:
  """Turns batches of records into examples.

  The state before a turn is the gold one: for inference without it, `trackers.span_tracking`.
  Slots, values and intents come in the schema's order but where a model is to train.

  Args:
    batches: of `RecordSource.batches`, of version 1.1.0.
    sequence_length: lengths of the features; what is missing is `span_features.LENGTHS`.
    output_features: whose `inputs` vocabulary cuts texts.
    schemas: schemas of all variants.
    variants: every record gives an example for each.
    style: of the input.

  Returns:
    Examples {each of `span_features.FEATURES`: int32 [any], example_id_pretokenized: string}, of a
    record by variant. They fit the lengths.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split).services
  vocabulary, lengths = output_features["inputs"].vocabulary, {**LENGTHS, **(sequence_length or {})}
  readers = {v: SpanReader(schemas.get(split, v), vocabulary, style, lengths) for v in variants}
  shuffled = style.shuffle and split == "train"

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """Returns what the graph takes out of Python: ids, all numbers, and how many of each kind."""
    ids, numbers, sizes = [], array.array("i"), []
    for record in _records(arrays):
      service = original[record["service_index"]]
      known, states, gold = read_frame(record, service)
      own = states.get(known.service)
      right = None
      for variant, reader in readers.items():
        name = str(ExampleId(variant, split, known.frame_id))
        example = reader.example(known, states, name if shuffled else None)
        if right is None:
          before = own.values if own else {}
          right = right_choices(service, known, gold, before, example.choices)
        example.features["targets"] = targets(example, right, gold, lengths["targets"])
        ids.append(name)
        for feature in FEATURES:
          found = example.features[feature]
          numbers.fromlist(found)
          sizes.append(len(found))
    each = np.array(sizes, np.int64).reshape(-1, len(FEATURES))
    return [np.array(ids, object), np.frombuffer(numbers, np.int32), each]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def make(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    lists = [part for key in _LISTS for part in (batch[key].flat_values, batch[key].row_splits)]
    taken = [*(batch[key] for key in _SCALARS), *lists]
    ids, numbers, sizes = tf.numpy_function(columns, taken, [tf.string, tf.int32, tf.int64])
    ids.set_shape([None])
    numbers.set_shape([None])
    sizes.set_shape([None, len(FEATURES)])
    rows = tf.RaggedTensor.from_row_lengths(numbers, tf.reduce_sum(sizes, axis=1), validate=False)
    return {_ID: ids, "numbers": rows, "sizes": sizes}

  def split_up(row: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    parts = tf.split(row["numbers"], row["sizes"], num=len(FEATURES))
    return {_ID: row[_ID], **dict(zip(FEATURES, parts, strict=True))}

  # One list for all features: `unbatch` takes 25 microseconds for each that is ragged.
  return batches.map(make).prefetch(1).unbatch().map(split_up)


def _records(arrays: Sequence[np.ndarray]) -> Iterator[dict]:
  """Yields the records of a batch, lists as lists."""
  columns = [array.tolist() for array in arrays]
  scalars, lists = columns[: len(_SCALARS)], columns[len(_SCALARS) :]
  values, splits = lists[::2], lists[1::2]
  for i, row in enumerate(zip(*scalars, strict=True)):
    record = dict(zip(_SCALARS, row, strict=True))
    for name, all_values, at in zip(_LISTS, values, splits, strict=True):
      record[name] = all_values[at[i] : at[i + 1]]
    yield record
