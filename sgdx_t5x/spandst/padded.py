"""Converts SeqIO task features to model features: one example per row, zero-padded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import seqio
import tensorflow as tf

_WINDOW = 64  # examples that are padded at once: one by one takes ten times as long


class PaddedFeatureConverter(seqio.FeatureConverter):
  """Truncates or pads examples to their lengths; does not pack them.

  Subclasses map model features to task features in `FEATURES`, and declare their types in
  `TASK_FEATURES` and `MODEL_FEATURES`. Features named `encoder_...` may be truncated to the longest
  example of a batch.
  """

  FEATURES: ClassVar[Mapping[str, str]]  # model feature -> task feature
  PACKING_FEATURE_DTYPES: Mapping[str, tf.DType] | None = None

  # Checking each feature of each example takes longer than creating the example.
  def __init__(self, *args: Any, apply_length_check: bool = False, **options: Any):
    super().__init__(*args, apply_length_check=apply_length_check, **options)

  def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each model feature."""
    return {name: task_feature_lengths[source] for name, source in self.FEATURES.items()}

  def _convert_features(
    self, ds: tf.data.Dataset, task_feature_lengths: Mapping[str, int]
  ) -> tf.data.Dataset:
    lengths = self.get_model_feature_lengths(task_feature_lengths)

    def renamed(batch: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.RaggedTensor]:
      return {name: batch[source] for name, source in self.FEATURES.items()}

    return padded(ds, lengths, renamed)


def specs(*names: str) -> dict[str, seqio.FeatureConverter.FeatureSpec]:
  """Returns int32 feature specs, as a converter declares them."""
  return {name: seqio.FeatureConverter.FeatureSpec(dtype=tf.int32) for name in names}


def padded(
  ds: tf.data.Dataset,
  lengths: Mapping[str, int],
  convert: Callable[[Mapping[str, tf.RaggedTensor]], Mapping[str, tf.RaggedTensor]],
) -> tf.data.Dataset:
  """Turns examples into rows of fixed length.

  Args:
    ds: examples with 1-D features.
    lengths: of the model's features.
    convert: maps features of several examples, `[examples, None]`, to the model's.

  Returns:
    One row of the model's features per example, truncated or zero-padded to their lengths; with the
    cardinality, which Google's T5X needs before it reads a data set.
  """

  def rows(batch: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
    converted = convert(batch)
    return {name: converted[name].to_tensor(shape=[None, n]) for name, n in lengths.items()}

  number = ds.cardinality()
  padded_rows = ds.ragged_batch(_WINDOW).map(rows, tf.data.AUTOTUNE).unbatch()
  if number < 0:  # infinite or unknown
    return padded_rows
  return padded_rows.apply(tf.data.experimental.assert_cardinality(number))
