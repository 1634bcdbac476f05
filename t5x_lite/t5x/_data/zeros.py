"""Batches of zeros, to compile a function before there is data. Re-exported by `t5x.utils`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


def get_zeros_batch_like_spec(batch_spec: Mapping[str, Any]) -> dict[str, np.ndarray]:
  """Returns zeros of these shapes and types.

  Args:
      batch_spec: {feature: anything with `shape` and `dtype`}.
  """
  return {name: np.zeros(spec.shape, spec.dtype) for name, spec in batch_spec.items()}


def get_zeros_batch_like_dataset(
  dataset: tf.data.Dataset, batch_size: int | None = None
) -> dict[str, np.ndarray]:
  """Returns a batch of zeros like a dataset's batches, without reading any.

  Args:
      dataset: dataset of batches, all of one shape.
      batch_size: size of the first axis; None is the dataset's.
  """

  def zeros(spec: tf.TensorSpec) -> np.ndarray:
    shape = list(spec.shape)
    if batch_size is not None:
      shape[0] = batch_size
    return np.zeros(shape, spec.dtype.as_numpy_dtype)

  return {name: zeros(spec) for name, spec in dataset.element_spec.items()}
