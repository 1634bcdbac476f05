"""Records -> examples of trackers that read a frame with an encoder, in tf.data."""

import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.records.source import flat_fields, rows_of_fields
from sgdx_t5x.records.tracker_fields import ROWS, TEXTS, read_frame
from sgdx_t5x.records.turns import FrameContext, Gold, States
from sgdx_t5x.records.unbatching import unbatched

_SCALARS = ("frame_id", "turn", "service_index", "active_intent")
_LISTS = ("utterances", "gold_slot", "gold_value", "requested_slots", *ROWS, *TEXTS)
_ID = "example_id_pretokenized"

# Maps what a tracker may know about a frame, the gold states before it, and its gold labels to
# (example id, features) pairs.
Make = Callable[
  [FrameContext, States, Gold], Iterable[tuple[str, Mapping[str, list[int] | array.array]]]
]


def frame_examples(
  batches: tf.data.Dataset, services: Sequence[Service], features: Sequence[str], make: Make
) -> tf.data.Dataset:
  """Turns batches of records into examples.

  Args:
    batches: from `RecordSource.batches`, version 1.1.0.
    services: of the split's original schema.
    features: names of the features.
    make: returns the examples of a frame, any number of them.

  Returns:
    Examples {each of `features`: int32 [any], example_id_pretokenized: string}.
  """

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """Returns the arrays that the graph needs: ids, row lengths, and the values per feature."""
    ids, numbers, sizes = [], [array.array("i") for _ in features], []
    for record in records_of(arrays):
      for name, example in make(*read_frame(record, services[record["service_index"]])):
        ids.append(name)
        for feature, all_numbers in zip(features, numbers, strict=True):
          values = example[feature]
          if isinstance(values, list):  # much faster than to extend by it
            all_numbers.fromlist(values)
          else:
            all_numbers.extend(values)
          sizes.append(len(values))
    sizes_by_feature = np.array(sizes, np.int64).reshape(-1, len(features))
    return [np.array(ids, object), sizes_by_feature, *map(np.asarray, numbers)]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def make_all(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    kinds = [tf.string, tf.int64, *[tf.int32] * len(features)]
    ids, sizes, *numbers = tf.numpy_function(columns, flat_columns(batch), kinds)
    examples = {_ID: tf.ensure_shape(ids, [None])}
    for i, (feature, values) in enumerate(zip(features, numbers, strict=True)):
      values, of_each = tf.ensure_shape(values, [None]), tf.ensure_shape(sizes[:, i], [None])
      examples[feature] = tf.RaggedTensor.from_row_lengths(values, of_each, validate=False)
    return examples

  return unbatched(batches.map(make_all).prefetch(1))


def flat_columns(batch: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
  """Returns the fields of a batch of records as flat tensors, the input of `records_of`."""
  return flat_fields(batch, _SCALARS, _LISTS)


def records_of(arrays: Sequence[np.ndarray]) -> Iterator[dict]:
  """Yields the records of a batch as dicts. Args: arrays, from `flat_columns`."""
  names = (*_SCALARS, *_LISTS)
  for values in rows_of_fields(arrays, len(_SCALARS)):
    yield dict(zip(names, values, strict=True))
