"""Rows of a dataset for inference: each distinct one once, in batches of similar lengths."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

# Lengths are padded to multiples of this, and of twice it above 256.
_GRAIN = 16


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

  def examples_of(self) -> list[list[int]]:
    """Returns the dataset indices of each distinct row."""
    examples: list[list[int]] = [[] for _ in self.features]
    for index, row in zip(self.indices, self.row_of, strict=True):
      examples[row].append(index)
    return examples

  def stack(self, numbers: Sequence[int], shapes: Mapping[str, tuple[int, ...]]):
    """Returns rows as a batch {feature: [len(numbers), *shape]}, padded with zeros."""
    batch = {}
    for name, shape in shapes.items():
      out = batch[name] = np.zeros((len(numbers), *shape), self.dtypes[name])
      for place, number in zip(out, numbers, strict=True):
        array = self.features[number][name]
        place[tuple(slice(0, n) for n in array.shape)] = array
    return batch


def _unpad(array: np.ndarray) -> np.ndarray:
  """Cuts trailing zeros of a 1-D array."""
  if array.ndim != 1:
    return array
  nonzero = np.flatnonzero(array)
  return array[: nonzero[-1] + 1].copy() if nonzero.size else array[:0]


def read_rows(ds: Iterable, key_features: Sequence[str] | None = None, merge: bool = True) -> Rows:
  """Reads an enumerated dataset of padded model features.

  Args:
      ds: tf.data.Dataset (or iterable) of (index, {feature: array}).
      key_features: features that decide the output; None means all.
      merge: keep equal rows once.
  """
  rows = Rows()
  first_with: dict[str, int] = {}
  iterator = ds.as_numpy_iterator() if hasattr(ds, "as_numpy_iterator") else iter(ds)
  for index, example in iterator:
    if not rows.full_shapes:
      rows.full_shapes = {k: v.shape for k, v in example.items()}
      rows.dtypes = {k: v.dtype for k, v in example.items()}
    features = {k: _unpad(np.asarray(v)) for k, v in example.items()}
    digest = hashlib.blake2b(digest_size=16)
    for name in key_features or sorted(features):
      digest.update(f"{name}{features[name].shape}".encode())
      digest.update(features[name].tobytes())
    # Without merging, an equal row still needs a key of its own.
    key = digest.hexdigest() if merge else f"{digest.hexdigest()}-{index}"
    row = first_with.setdefault(key, len(rows.features))
    if row == len(rows.features):
      rows.features.append(features)
      rows.keys.append(key)
    rows.indices.append(int(index))
    rows.row_of.append(row)
  return rows


def round_length(length: int, full: int) -> int:
  """Rounds a length up to one that batches are padded to, at most `full`.

  >>> [round_length(n, 500) for n in (0, 17, 256, 257, 499)]
  [16, 32, 256, 288, 500]
  """
  grain = _GRAIN if length <= 256 else 2 * _GRAIN
  return min(max(-(-length // grain), 1) * grain, full)


def plan_batches(
  lengths: Sequence[int], full: int, batch_size: int, compile_cost: float
) -> list[tuple[np.ndarray, int]]:
  """Sorts rows by length and cuts them into batches with the best few padded lengths.

  The time of a batch is taken as proportional to its padded length, and a further padded length
  costs a compilation; the plan minimises the sum (by dynamic programming over the batches, longest
  first: a batch is padded to the first of its run).

  Args:
      lengths: unpadded length of each row.
      full: the padded length of the dataset.
      batch_size: rows per batch; only the last batch may have fewer.
      compile_cost: time of a compilation over that of a batch of full length.

  Returns:
      [(positions in `lengths`, padded length)], longest first.
  """
  order = np.argsort(-np.asarray(lengths), kind="stable")
  batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
  padded = [round_length(int(lengths[b[0]]), full) for b in batches]
  # cost[i]: least time of the batches from i on, if a run of equal lengths starts at i.
  cost, end = [0.0] * (len(batches) + 1), [0] * len(batches)
  starts = [i for i in range(len(batches)) if i == 0 or padded[i] < padded[i - 1]]
  for i in reversed(starts):
    ends = [j for j in starts if j > i] + [len(batches)]
    costs = [(j - i) * padded[i] + compile_cost * full + cost[j] for j in ends]
    best = int(np.argmin(costs))
    cost[i], end[i] = costs[best], ends[best]
  planned, run = [], 0
  for i, batch in enumerate(batches):
    run = i if i and end[run] == i else run
    planned.append((batch, padded[run]))
  return planned


def rows_per_batch(num_rows: int, batch_size: int, multiple: int) -> int:
  """`batch_size`, or the next power of two times `multiple` that holds fewer rows."""
  size = multiple
  while size < num_rows:
    size *= 2
  return min(size, batch_size)
