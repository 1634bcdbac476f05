"""Batches on the devices."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import numpy as np
import tensorflow as tf

from t5x._process.read_ahead import ReadAhead

Batch = Mapping[str, np.ndarray]


def pad_rows(batch: Batch, rows: int) -> Batch:
  """Fills the first axis of every array up to `rows` with zeros (zero weights: no effect)."""
  have = len(next(iter(batch.values())))
  if have == rows:
    return batch
  padded = {}
  for name, array in batch.items():
    padding = np.zeros((rows - have, *array.shape[1:]), array.dtype)
    padded[name] = np.concatenate([array, padding])
  return padded


def to_device(batch: Batch, sharding) -> Mapping[str, jax.Array]:
  """Puts this host's part of a batch on its devices."""
  if sharding is None:
    return jax.device_put(batch)
  put = functools.partial(jax.make_array_from_process_local_data, sharding)
  return jax.tree.map(put, batch)


class DevicePrefetcher(ReadAhead):
  """Iterates over device batches, which a background thread reads and transfers ahead.

  Args:
      ds: batched dataset (or iterable of dicts of numpy arrays) of this host.
      sharding: sharding of every feature's batch axis, or None for the default device.
  """

  def __init__(self, ds, sharding=None):
    batches = ds.as_numpy_iterator() if isinstance(ds, tf.data.Dataset) else iter(ds)
    super().__init__((to_device(batch, sharding) for batch in batches), ahead=2)
