"""Several rows side by side in one, as in packed training, so that little padding is encoded.

On a CPU an encoder's time is proportional to its tokens, and each padded length is a program to
compile or load. Packed, rows of all lengths fill one shape to more than 99%.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from t5x._infer.rows import Rows, rows_per_batch

# Length of a packed row. Attention costs more in longer rows, used only for longer inputs.
_LENGTH = 512
# Tokens encoded by one call.
_TOKENS = 8192


@dataclasses.dataclass(frozen=True)
class PackedRows:
  """Rows that are encoded together.

  Attributes:
    numbers: row numbers.
    sizes: number of tokens of each.
    starts: offset of each in the flattened `tokens`.
    tokens: int32 `[P, L]`, the packed rows; 0 is padding.
    segment_ids: int32 `[P, L]`, 1, 2, ... for the rows within a packed one; 0 is padding.
  """

  numbers: list[int]
  sizes: list[int]
  starts: list[int]
  tokens: np.ndarray
  segment_ids: np.ndarray


def packed_length(full: int) -> int:
  """Length of packed rows of inputs of up to `full` tokens; longer inputs get rows of `full`."""
  return min(_LENGTH, full)


def best_fit(sizes: Sequence[int], capacity: int) -> list[list[int]]:
  """Distributes items over bins by best fit decreasing (Johnson 1973).

  Args:
    sizes: size of each item, at most `capacity`.
    capacity: capacity of a bin. An item of size 0 has one to itself: attention, which has no
      token of it to see, is uniform over the bin.

  Returns:
    Positions in `sizes` of the items of each bin.

  >>> best_fit([3, 7, 5, 2, 3], 10)
  [[1, 0], [2, 4, 3]]
  """
  bins: list[list[int]] = []
  with_room: list[list[int]] = [[] for _ in range(capacity + 1)]  # room -> bins that have it
  for item in np.argsort(-np.asarray(sizes), kind="stable"):
    size = int(sizes[item]) or capacity
    room = next((n for n in range(size, capacity) if with_room[n]), capacity)
    if room == capacity:
      bins.append([])
    bin_number = len(bins) - 1 if room == capacity else with_room[room].pop()
    bins[bin_number].append(int(item))
    with_room[room - size].append(bin_number)
  return bins


def pack(
  rows: Rows, numbers: Sequence[int], feature: str, partial: bool
) -> tuple[list[PackedRows], list[int]]:
  """Packs rows.

  Args:
    rows: the rows.
    numbers: which of them to pack.
    feature: name of the encoder's tokens.
    partial: whether to also pack rows that do not fill a call.

  Returns:
    What each call encodes, and the numbers of the rows left over.
  """
  if not numbers:  # of an empty dataset no shape is known
    return [], []
  full = rows.full_shapes[feature][0]
  packed: list[PackedRows] = []
  leftover: list[int] = []
  limits = sorted({packed_length(full), full})
  # Inputs longer than a packed row have rows of the full length, apart from the others.
  for shorter, length in zip([-1, *limits], limits, strict=False):
    fitting = [n for n in numbers if shorter < len(rows.features[n][feature]) <= length]
    bins = []  # of row numbers
    for items in best_fit([len(rows.features[n][feature]) for n in fitting], length):
      bins.append([fitting[item] for item in items])
    rows_per_call = max(_TOKENS // length, 1)
    for i in range(0, len(bins), rows_per_call):
      group = bins[i : i + rows_per_call]
      if len(group) < rows_per_call and not partial:
        leftover += itertools.chain.from_iterable(group)
      else:
        size = rows_per_call if i else rows_per_batch(len(group), rows_per_call, 1)
        packed.append(_side_by_side(rows, group, feature, size, length))
  return packed, leftover


def _side_by_side(
  rows: Rows, bins: Sequence[Sequence[int]], feature: str, size: int, length: int
) -> PackedRows:
  """Lays the rows of each bin out in one packed row; rows beyond the bins are padding."""
  tokens = np.zeros((size, length), rows.dtypes[feature])
  segment_ids = np.zeros((size, length), np.int32)
  numbers, sizes, starts = [], [], []
  for i, items in enumerate(bins):
    at = 0
    for segment, number in enumerate(items, 1):
      row = rows.features[number][feature]
      tokens[i, at : at + len(row)] = row
      segment_ids[i, at : at + len(row)] = segment
      numbers.append(number)
      sizes.append(len(row))
      starts.append(i * length + at)
      at += len(row)
  return PackedRows(numbers, sizes, starts, tokens, segment_ids)
