"""Records -> examples of trackers that read a frame with an encoder, in tf.data."""

import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from sgdx_t5x.data.schema import Service
from sgdx_t5x.records.tracker_fields import ROWS, TEXTS, read_frame
from sgdx_t5x.trackers.turns import Gold, Known, States

_SCALARS = ("frame_id", "turn", "service_index", "active_intent")
_LISTS = ("utterances", "gold_slot", "gold_value", "requested_slots", *ROWS, *TEXTS)
_ID = "example_id_pretokenized"

# From what may be known of a frame, what held before it (gold), and what is right in it, to ids of
# examples and their features.
Make = Callable[[Known, States, Gold], Iterable[tuple[str, Mapping[str, list[int]]]]]


def frame_examples(
  batches: tf.data.Dataset, services: Sequence[Service], features: Sequence[str], make: Make
) -> tf.data.Dataset:
  """Turns batches of records into examples.

  Args:
    batches: of `RecordSource.batches`, of version 1.1.0.
    services: of the split's original schema.
    features: names of the features.
    make: gives the examples of a frame, any number of them.

  Returns:
    Examples {each of `features`: int32 [any], example_id_pretokenized: string}.
  """

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """Returns what the graph takes out of Python: ids, all numbers, and how many of each kind."""
    ids, numbers, sizes = [], array.array("i"), []
    for record in records_of(arrays):
      for name, example in make(*read_frame(record, services[record["service_index"]])):
        ids.append(name)
        for feature in features:
          found = example[feature]
          numbers.fromlist(found)
          sizes.append(len(found))
    each = np.array(sizes, np.int64).reshape(-1, len(features))
    return [np.array(ids, object), np.frombuffer(numbers, np.int32), each]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def make_all(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    kinds = [tf.string, tf.int32, tf.int64]
    ids, numbers, sizes = tf.numpy_function(columns, flat_columns(batch), kinds)
    ids.set_shape([None])
    numbers.set_shape([None])
    sizes.set_shape([None, len(features)])
    rows = tf.RaggedTensor.from_row_lengths(numbers, tf.reduce_sum(sizes, axis=1), validate=False)
    return {_ID: ids, "numbers": rows, "sizes": sizes}

  def split_up(row: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    parts = tf.split(row["numbers"], row["sizes"], num=len(features))
    return {_ID: row[_ID], **dict(zip(features, parts, strict=True))}

  # One list for all features: `unbatch` takes 25 microseconds for each that is ragged.
  return batches.map(make_all).prefetch(1).unbatch().map(split_up)


def flat_columns(batch: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
  """Returns the fields of a batch of records as Python is to get them, for `records_of`."""
  lists = [part for key in _LISTS for part in (batch[key].flat_values, batch[key].row_splits)]
  return [*(batch[key] for key in _SCALARS), *lists]


def records_of(arrays: Sequence[np.ndarray]) -> Iterator[dict]:
  """Yields the records of a batch, lists as lists. Args: arrays, of `flat_columns`."""
  columns = [array.tolist() for array in arrays]
  scalars, lists = columns[: len(_SCALARS)], columns[len(_SCALARS) :]
  values, splits = lists[::2], lists[1::2]
  for i, row in enumerate(zip(*scalars, strict=True)):
    record = dict(zip(_SCALARS, row, strict=True))
    for name, all_values, at in zip(_LISTS, values, splits, strict=True):
      record[name] = all_values[at[i] : at[i + 1]]
    yield record
