"""Batches on the devices."""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
from collections.abc import Iterator, Mapping

import jax
import numpy as np
import tensorflow as tf

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


class DevicePrefetcher:
  """Iterates over device batches, which a background thread reads and transfers ahead.

  Args:
      ds: batched dataset (or iterable of dicts of numpy arrays) of this host.
      sharding: sharding of every feature's batch axis, or None for the default device.
      depth: batches kept ready.
  """

  def __init__(self, ds, sharding=None, depth: int = 2):
    self._queue: queue.Queue = queue.Queue(maxsize=depth)
    self._stop = threading.Event()
    self._batches = ds.as_numpy_iterator() if isinstance(ds, tf.data.Dataset) else iter(ds)
    self._sharding = sharding
    self._thread = threading.Thread(target=self._fill, daemon=True, name="t5x-input")
    self._thread.start()

  def _put(self, item) -> None:
    # Looks for `close` now and then: a full queue would hold the thread for ever.
    while not self._stop.is_set():
      with contextlib.suppress(queue.Full):
        self._queue.put(item, timeout=0.2)
        return

  def _fill(self) -> None:
    try:
      for batch in self._batches:
        if self._stop.is_set():
          return
        self._put(to_device(batch, self._sharding))
      self._put(StopIteration())
    except BaseException as e:  # handed to the consumer
      self._put(e)

  def __iter__(self) -> Iterator[Mapping[str, jax.Array]]:
    return self

  def __next__(self) -> Mapping[str, jax.Array]:
    item = self._queue.get()
    if isinstance(item, BaseException):
      self._queue.put(item)  # for the next call; the thread has ended, so there is room
      raise item
    return item

  def close(self) -> None:
    """Stops the thread."""
    self._stop.set()
    self._thread.join(timeout=5)
