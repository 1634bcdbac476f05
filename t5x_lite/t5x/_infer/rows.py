"""Rows of a dataset for inference: each distinct row once, in batches of similar lengths."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

# Lengths are padded to multiples of this; above 256, to multiples of twice this.
_GRAIN = 16

# Compile time relative to the time of a full-length batch. On a CPU it is measured with T5-small; a
# batch of a smaller network takes less time, down to that of tracing and loading a program from the
# cache on disk. On accelerators a batch takes milliseconds and a compilation tens of seconds.
_COMPILE_COST = {"cpu": 0.1}
COMPILE_COST_OF_TINY = 1.0
_COMPILE_COST_ELSEWHERE = 100.0
_PARAMETERS_OF_SMALL = 60e6


@dataclasses.dataclass
class Rows:
  """Distinct examples of a dataset, without their padding.

  Args:
      features: per distinct example {feature: unpadded 1-D array, or the array as it is}.
      keys: per distinct example a digest of the features that decide its output.
      full_shapes: {feature: padded shape of one example}.
      dtypes: {feature: dtype}.
      indices: dataset index of every example.
      row_of: for every example, its position in `features`.
  """

  features: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
  keys: list[str] = dataclasses.field(default_factory=list)
  full_shapes: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
  dtypes: dict[str, np.dtype] = dataclasses.field(default_factory=dict)
  indices: list[int] = dataclasses.field(default_factory=list)
  row_of: list[int] = dataclasses.field(default_factory=list)

  def stack(self, numbers: Sequence[int], shapes: Mapping[str, tuple[int, ...]]):
    """Returns rows as a batch {feature: [len(numbers), *shape]}, padded with zeros."""
    batch = {}
    for name, shape in shapes.items():
      out = batch[name] = np.zeros((len(numbers), *shape), self.dtypes[name])
      for i, number in enumerate(numbers):
        array = self.features[number][name]
        place: tuple[Any, ...] = (i, *(slice(0, n) for n in array.shape))
        out[place] = array
    return batch


def _unpad(array: np.ndarray) -> np.ndarray:
  """Cuts trailing zeros of a 1-D array."""
  if array.ndim != 1:
    return array
  nonzero = np.flatnonzero(array)
  # A copy, since a view would keep the padded array in memory.
  return array[: nonzero[-1] + 1].copy() if nonzero.size else array[:0]


def read_rows(
  ds: Iterable,
  rows: Rows,
  key_features: Sequence[str] | None = None,
  merge: bool = True,
  window: int | None = None,
) -> Iterator[tuple[int, bool]]:
  """Reads an enumerated dataset of padded model features into `rows`, a window at a time.

  Args:
      ds: tf.data.Dataset (or iterable) of (index, {feature: array}).
      rows: empty; is filled.
      key_features: features that decide the output; None means all.
      merge: keep only one of equal rows.
      window: distinct rows to read between two yields; None reads all.

  Yields:
      (number of distinct rows so far, whether these are all).
  """
  first_with: dict[str, int] = {}
  iterator = ds.as_numpy_iterator() if hasattr(ds, "as_numpy_iterator") else iter(ds)
  for index, example in iterator:
    if not rows.full_shapes:
      rows.dtypes = {k: v.dtype for k, v in example.items()}
      rows.full_shapes = {k: v.shape for k, v in example.items()}
    features = {k: _unpad(np.asarray(v)) for k, v in example.items()}
    digest = hashlib.blake2b(digest_size=16)
    for name in key_features or sorted(features):
      digest.update(f"{name}{features[name].shape}".encode())
      digest.update(features[name].tobytes())
    # Without merging, an equal row still needs a key of its own.
    key = digest.hexdigest() if merge else f"{digest.hexdigest()}-{index}"
    row = first_with.setdefault(key, len(rows.features))
    rows.indices.append(int(index))
    rows.row_of.append(row)
    if row == len(rows.features):
      rows.keys.append(key)
      rows.features.append(features)
      if window and len(rows.features) % window == 0:
        yield len(rows.features), False
  yield len(rows.features), True


def round_length(length: int, full: int) -> int:
  """Rounds a length up to one that batches are padded to, at most `full`.

  >>> [round_length(n, 500) for n in (0, 17, 256, 257, 499)]
  [16, 32, 256, 288, 500]
  """
  grain = _GRAIN if length <= 256 else 2 * _GRAIN
  return min(max(-(-length // grain), 1) * grain, full)


def halved_length(length: int, full: int) -> int:
  """Halves `full` as long as the length fits: few lengths serve all sets.

  >>> [halved_length(n, 500) for n in (0, 60, 126, 250, 499)]
  [31, 62, 250, 250, 500]
  """
  while full // 2 >= max(length, _GRAIN):
    full //= 2
  return full


def compile_cost(variables: Any) -> float:
  """Compile time relative to the time of a full-length batch, for a network of this size."""
  cost = _COMPILE_COST.get(jax.default_backend())
  if cost is None:
    return _COMPILE_COST_ELSEWHERE
  parameters = sum(x.size for x in jax.tree.leaves(variables))
  return max(cost, min(COMPILE_COST_OF_TINY, cost * _PARAMETERS_OF_SMALL / parameters))


def plan_batches(
  lengths: Sequence[int],
  full: int,
  batch_size: int,
  compile_cost: float,
  compiled: Collection[int] = (),
) -> list[tuple[np.ndarray, int]]:
  """Sorts rows by length and cuts them into batches with the best few padded lengths.

  The time of a batch is taken as proportional to its padded length, and a length that is not
  compiled yet costs a compilation; the plan minimises the sum (by dynamic programming over the
  batches, longest first: a run of batches is padded to what its first one needs). Where a
  compilation takes longer than all batches, they are likely one set of many, such as a turn of
  some dialogues: then few lengths are compiled, for later sets too.

  Args:
      lengths: unpadded length of each row.
      full: the padded length of the dataset.
      batch_size: rows per batch; only the last batch may have fewer.
      compile_cost: compile time relative to the time of a full-length batch.
      compiled: padded lengths that are already compiled.

  Returns:
      [(positions in `lengths`, padded length)], longest first.
  """
  order = np.argsort(-np.asarray(lengths), kind="stable")
  batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
  rounded = halved_length if len(batches) < compile_cost else round_length
  needed = [rounded(int(lengths[b[0]]), full) for b in batches]
  starts = [i for i in range(len(batches)) if i == 0 or needed[i] < needed[i - 1]]
  # best[i]: (time of batches i and later, if a run starts at i; its end; its padded length).
  best: dict[int, tuple[float, int, int]] = {len(batches): (0.0, 0, 0)}
  for i in reversed(starts):
    paddings = [(needed[i], 0.0 if needed[i] in compiled else compile_cost * full)]
    paddings += [(n, 0.0) for n in compiled if n > needed[i]]
    plans = []
    for end, (time_after, _, _) in best.items():
      plans += [((end - i) * n + price + time_after, end, n) for n, price in paddings]
    best[i] = min(plans)
  planned, end, length = [], 0, 0
  for i, batch in enumerate(batches):
    if i == end:
      _, end, length = best[i]
    planned.append((batch, length))
  return planned


def rows_per_batch(num_rows: int, batch_size: int, multiple: int) -> int:
  """`multiple` times the smallest power of two that holds the rows, at most `batch_size`."""
  size = multiple
  while size < num_rows:
    size *= 2
  return min(size, batch_size)
