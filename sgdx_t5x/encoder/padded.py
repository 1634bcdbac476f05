"""From the features of a SeqIO task to a model's: one example a row, padded with zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import seqio
import tensorflow as tf


class PaddedFeatureConverter(seqio.FeatureConverter):
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
    return ds.map(
      lambda example: padded({n: example[s] for n, s in self.FEATURES.items()}, lengths),
      tf.data.AUTOTUNE,
    )


def specs(*names: str) -> dict[str, seqio.FeatureConverter.FeatureSpec]:
  """Returns the types of features of whole numbers, as a converter declares them."""
  return {name: seqio.FeatureConverter.FeatureSpec(dtype=tf.int32) for name in names}


def padded(row: Mapping[str, tf.Tensor], lengths: Mapping[str, int]) -> dict[str, tf.Tensor]:
  """Returns features cut or padded with zeros to their lengths."""
  done = {}
  for name, length in lengths.items():
    x = row[name][:length]
    done[name] = tf.ensure_shape(tf.pad(x, [[0, length - tf.size(x)]]), [length])
  return done
