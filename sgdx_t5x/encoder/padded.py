"""From the features of a SeqIO task to a model's: one example a row, padded with zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import seqio
import tensorflow as tf

_WINDOW = 64  # examples that are padded at once: one by one takes ten times as long


class RowConverter(seqio.FeatureConverter):
  """As SeqIO's, but does not check lengths, to which rows are cut or padded in any case.

  The check, of each feature of each example, takes longer than all that makes the example.
  """

  def __init__(self, *args: Any, apply_length_check: bool = False, **how: Any):
    super().__init__(*args, apply_length_check=apply_length_check, **how)


class PaddedFeatureConverter(RowConverter):
  """Pads examples to their lengths; does not pack them.

  Subclasses say in `FEATURES` which feature of the task each of the model's is, and in
  `TASK_FEATURES` and `MODEL_FEATURES` what types these have. Features called `encoder_...` may be
  cut to the longest of a batch.
  """

  FEATURES: ClassVar[Mapping[str, str]]  # of the model -> of the task
  PACKING_FEATURE_DTYPES = None

  def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each model feature."""
    return {name: task_feature_lengths[source] for name, source in self.FEATURES.items()}

  def _convert_features(
    self, ds: tf.data.Dataset, task_feature_lengths: Mapping[str, int]
  ) -> tf.data.Dataset:
    lengths = self.get_model_feature_lengths(task_feature_lengths)
    return padded(
      ds, lengths, lambda batch: {name: batch[source] for name, source in self.FEATURES.items()}
    )


def specs(*names: str) -> dict[str, seqio.FeatureConverter.FeatureSpec]:
  """Returns the types of features of whole numbers, as a converter declares them."""
  return {name: seqio.FeatureConverter.FeatureSpec(dtype=tf.int32) for name in names}


def padded(
  ds: tf.data.Dataset,
  lengths: Mapping[str, int],
  convert: Callable[[Mapping[str, tf.RaggedTensor]], Mapping[str, tf.RaggedTensor]],
) -> tf.data.Dataset:
  """Turns examples into rows.

  Args:
    ds: examples of features [any].
    lengths: of the model's features.
    convert: from features of several examples, [examples, any], to the model's.

  Returns:
    Rows of the model's features, cut or padded with zeros to their lengths; as many as examples,
    which Google's T5X wants to know of a data set before it reads it.
  """

  def rows(batch: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
    found = convert(batch)
    return {name: found[name].to_tensor(shape=[None, n]) for name, n in lengths.items()}

  number = ds.cardinality()
  found = ds.ragged_batch(_WINDOW).map(rows, tf.data.AUTOTUNE).unbatch()
  return found.apply(tf.data.experimental.assert_cardinality(number)) if number >= 0 else found
