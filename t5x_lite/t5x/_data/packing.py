"""Examples side by side in rows: the order that fills the rows, and the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import seqio
import tensorflow as tf

# Number of examples among which to look for those that fill a row well.
PACKING_WINDOW = 256


def order_for_packing(sizes: np.ndarray, capacity: Sequence[int]) -> np.ndarray:
  """Orders examples so that filling rows in that order leaves little room unused.

  First fit decreasing (Johnson 1973): the largest example first, each into the first row with room
  for it. The rows are then shuffled, in the same way for the same examples.

  Args:
      sizes: int `[N, F]`, lengths of the F features of N examples.
      capacity: int `[F]`, lengths of a packed row.

  Returns:
      int64 `[N]`, a permutation.
  """
  room = [np.full(len(sizes), length) for length in capacity]
  row_of = np.zeros(len(sizes), np.int64)
  # A row is full when one of its features is, so an example is as large as its tightest feature.
  by_size = np.argsort(-(sizes / np.asarray(capacity)).max(axis=1), kind="stable")
  for example, size in zip(by_size.tolist(), sizes[by_size].tolist(), strict=True):
    fits = room[0] >= size[0]
    for free, n in zip(room[1:], size[1:], strict=True):
      fits &= free >= n
    row_of[example] = row = fits.argmax()
    for free, n in zip(room, size, strict=True):
      free[row] -= n
  # Otherwise the longest examples of a window would always come first.
  shuffled = np.random.default_rng(sizes.sum()).permutation(len(sizes))
  return by_size[np.argsort(shuffled[row_of[by_size]], kind="stable")]


def reorder_for_packing(
  ds: tf.data.Dataset, converter: seqio.FeatureConverter, lengths: Mapping[str, int]
) -> tf.data.Dataset:
  """Reorders `PACKING_WINDOW` examples at a time so that neighbours fill rows well.

  SeqIO packs examples in the order they come in: 1.7 of T5DST's prompts per row of 512 tokens,
  where there is room for 2.2.
  """
  names = [n for n in converter.TASK_FEATURES if n in ds.element_spec]
  if any(ds.element_spec[n].shape.rank != 1 for n in names):
    return ds
  capacity = np.array([lengths[n] for n in names])

  def reorder(batch):
    ragged = {n: _as_ragged(batch[n]) for n in names}
    sizes = tf.stack([tf.cast(x.row_lengths(), tf.int64) for x in ragged.values()], axis=1)
    order = tf.numpy_function(
      lambda s: order_for_packing(np.minimum(s, capacity), capacity), [sizes], tf.int64
    )
    order.set_shape([None])
    return {n: tf.gather(x, order) for n, x in ragged.items()}

  ds = ds.map(lambda example: {n: example[n] for n in names})
  return ds.ragged_batch(PACKING_WINDOW).map(reorder, tf.data.AUTOTUNE).unbatch()


def _as_ragged(x) -> tf.RaggedTensor:
  return x if isinstance(x, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(x)


def pack(examples: Sequence[np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
  """Packs examples into rows as `seqio.trim_and_pack_dataset` does, in the order they come in.

  An example that does not fit in the row of those before it begins the next row. SeqIO's loop over
  examples, in TensorFlow, takes longer to run and to trace.

  Args:
      examples: for each of F features int32 `[N, any]`, N examples padded with zeros.
      lengths: for each feature its length in a packed row, L; no example has more tokens.

  Returns:
      For each feature three arrays int32 `[R, L]`: tokens, positions within an example, and the
      numbers of the examples in a row, from 1; all are 0 in padding.
  """
  sizes = [np.count_nonzero(x, axis=1) for x in examples]
  row_of = _rows(np.stack(sizes, axis=1).tolist(), lengths)
  first_of_row = np.searchsorted(row_of, row_of)  # the first example in the row of each
  packed = []
  for x, size, length in zip(examples, sizes, lengths, strict=True):
    used = np.arange(x.shape[1]) < size[:, None]
    position = np.nonzero(used)[1]
    tokens_before, examples_before = np.cumsum(size) - size, np.cumsum(size > 0) - (size > 0)
    start = tokens_before - tokens_before[first_of_row]
    segment = examples_before - examples_before[first_of_row] + 1
    at = np.repeat(row_of, size), np.repeat(start, size) + position
    tokens, positions, segments = np.zeros((3, row_of[-1] + 1, length), np.int32)
    tokens[at], positions[at], segments[at] = x[used], position, np.repeat(segment, size)
    packed += [tokens, positions, segments * (tokens != 0)]
  return packed


def _rows(sizes: Sequence[Sequence[int]], lengths: Sequence[int]) -> np.ndarray:
  """Returns the row of each example, `[N]`: the last one as long as all features have room."""
  row, room, rows = 0, list(lengths), []
  for example in sizes:
    room_after = [a - b for a, b in zip(room, example, strict=True)]
    if min(room_after) < 0:
      row += 1
      room_after = [a - b for a, b in zip(lengths, example, strict=True)]
    room = room_after
    rows.append(row)
  return np.array(rows)
