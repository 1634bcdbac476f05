"""Decoding in stages, so that a batch never waits long for its slowest row.

A decode of up to T tokens is cut at 8, 16, 32, ... tokens (not before 16 where a program costs more
than a batch). After each stage, finished rows leave. The others wait until a full batch of rows has
come equally far, and continue together. So the rows of a batch are always at the same position (one
for the whole batch, as in the caches), caches are only as long as their stage needs, and each row
takes exactly the steps that it would take in a batch of its own.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5x import decoding
from t5x._infer.overlap import OverlappedCalls
from t5x._infer.rows import rows_per_batch

_FIRST_STOP = {False: 8, True: 16}  # by `few_programs`
# A decode of so few tokens is not worth the compilation of further stages.
_SHORT_DECODE = 32
# Rows that are copied at once from a packed encoding; copying fewer takes as long.
_COPIED = 8
# Encoder length that shorter rows are padded to when they wait: each length is a program.
_SHORTEST = 128


def stage_stops(length: int, few_programs: bool = False) -> list[int]:
  """Tokens at which a decode of up to `length` pauses; the last is `length`.

  >>> stage_stops(100), stage_stops(20), stage_stops(100, few_programs=True)
  ([8, 16, 32, 64, 100], [20], [16, 32, 64, 100])
  """
  stops = []
  if length > _SHORT_DECODE:
    stop = _FIRST_STOP[few_programs]
    while stop < length:
      stops.append(stop)
      stop *= 2
  return [*stops, length]


def _round_up(length: int, full: int) -> int:
  """The next power of two, at most `full`, so that waiting rows have few encoder lengths."""
  return min(1 << max(length - 1, 15).bit_length(), full)


@dataclasses.dataclass
class _Pool:
  """Rows that wait at the same token, padded to the same encoder length.

  Args:
      stage: index of the stage they wait for.
      length: encoder length.
      numbers: row numbers, in the order of `rows`.
      rows: `Paused.rows` with the capacity of a batch; None while there are none.
  """

  stage: int
  length: int
  numbers: list[int] = dataclasses.field(default_factory=list)
  rows: Any = None


@functools.partial(jax.jit, donate_argnums=0)
def _move_rows(pool, rows, source, target):
  """Copies `rows[source]` to `pool[target]`, padding with zeros; drops targets out of range."""

  def move(p, r):
    r = jnp.take(r, source, axis=0)
    r = jnp.pad(r, [(0, 0), *((0, a - b) for a, b in zip(p.shape[1:], r.shape[1:], strict=True))])
    return p.at[target].set(r, mode="drop")

  return jax.tree.map(move, pool, rows)


@functools.partial(jax.jit, donate_argnums=0)
def _move_packed(pool, packed, source, target):
  """Copies packed tokens, from each flat position in `source` on, to fill `pool[target]`."""

  def move(p, x):
    positions = source[:, None] + jnp.arange(p.shape[1])
    tokens = jnp.take(x.reshape(-1, *x.shape[2:]), positions, axis=0, mode="clip")
    return p.at[target].set(tokens, mode="drop")

  return jax.tree.map(move, pool, packed)


class StagedDecode:
  """Runs batches through the stages.

  Args:
      decode: `decode(params, batch, rng, segment)` -> device `decoding.Paused`.
      calls: runs `decode`, several at a time where that is faster.
      params: parameters.
      rng: key passed to `decode` (greedy decodes and beam searches do not use it).
      decode_length: T.
      full_length: padded encoder length of the dataset.
      batch_size: rows per batch.
      multiple: rows per batch must be a multiple of this.
      fetch: copies device values to this host.
      deliver: `deliver(numbers, positions, outputs)` takes the outputs of rows that are done.
      make_batch: `make_batch(numbers, encoder length, rows)` -> a batch of rows given to `take`.
      few_programs: use few stages, and keep their last batches at full size: for when a program
          takes longer to compile, or to trace and load, than a batch to run.
  """

  def __init__(
    self,
    decode: Callable,
    calls: OverlappedCalls,
    params,
    rng,
    decode_length: int,
    full_length: int,
    batch_size: int,
    multiple: int,
    fetch: Callable,
    deliver: Callable[[Sequence[int], Sequence[int], Any], None],
    make_batch: Callable[[Sequence[int], int, int], Mapping[str, Any]],
    few_programs: bool = False,
  ):
    self._decode, self._calls, self._params, self._rng = decode, calls, params, rng
    self._stops = stage_stops(decode_length, few_programs)
    self._full, self._size, self._multiple = full_length, batch_size, multiple
    self._fetch, self._deliver, self._make_batch = fetch, deliver, make_batch
    self._few = few_programs
    self._pools: dict[tuple[int, int], _Pool] = {}
    # What the device is working on: (rows, stage, encoder length, future of Paused). An entry is
    # settled only when the next is dispatched, so that the device does not wait for the host.
    self._running: collections.deque = collections.deque()

  def start(self, numbers: Sequence[int], batch, length: int) -> None:
    """Starts a batch; rows of `batch` beyond those in `numbers` are ignored."""
    self._dispatch(numbers, batch, 0, length, None, len(next(iter(batch.values()))))

  def take(self, numbers: Sequence[int], sizes: Sequence[int], starts: Sequence[int], encoded):
    """Takes rows from a packed encoding; they wait for others of similar length.

    Args:
        numbers: row numbers.
        sizes: number of encoder tokens of each.
        starts: offset of each in the flattened rows of `encoded`.
        encoded: `[P, L, E]`.
    """
    lengths = [_round_up(max(size, _SHORTEST), self._full) for size in sizes]
    for length in sorted(set(lengths)):
      same_length = [i for i, x in enumerate(lengths) if x == length]
      rows = {"encoder": {"encoded": encoded}}
      sources = [starts[i] for i in same_length]
      self._wait(0, length, [numbers[i] for i in same_length], sources, rows)

  def finish(self, check_stop: Callable[[], None]) -> None:
    """Runs everything to its end; `check_stop` raises to stop between two batches."""
    while self._running or self._pools:
      check_stop()
      if self._running:
        self._settle()
        continue
      # The least advanced pools first: their rows join those further on.
      pool = self._pools.pop(min(self._pools))
      longer = [key for key in self._pools if key[0] == pool.stage]
      rows, source = pool.rows, list(range(len(pool.numbers)))
      if not pool.stage:  # such rows are copied from flat positions, like packed ones
        source = [i * pool.length for i in source]
      # Few rows are padded further to fill a batch with longer ones, rather than run alone.
      if longer and len(self._pools[longer[0]].numbers) + len(source) <= self._size:
        self._wait(pool.stage, longer[0][1], pool.numbers, source, rows)
      else:
        self._resume(pool)

  def _dispatch(self, numbers, batch, stage: int, length: int, rows, size: int) -> None:
    """Starts the next stage of a batch of `size` rows, of which the first have `numbers`."""
    start = self._stops[stage - 1] if stage else 0
    active = np.arange(size) < len(numbers)
    segment = decoding.Segment(start, self._stops[stage], rows, active)
    if stage == 0 and rows is not None:  # already encoded
      segment = dataclasses.replace(segment, rows=None, encoded=rows["encoder"]["encoded"])
    inputs = self._params, batch, self._rng, segment
    paused = self._calls.start((stage, length, size), self._decode, *inputs)
    self._running.append((list(numbers), stage, length, paused))
    if len(self._running) > 1:
      self._settle()

  def _settle(self) -> None:
    """Delivers the finished rows of the oldest running batch; the others wait."""
    numbers, stage, length, future = self._running.popleft()
    paused = future.result()
    finished, outputs = self._fetch((paused.finished, paused.outputs))
    positions = np.arange(len(numbers))
    finished_positions = positions[finished[: len(numbers)]]
    self._deliver([numbers[i] for i in finished_positions], finished_positions, outputs)
    unfinished = [int(i) for i in positions if not finished[i]]
    if unfinished:
      length = _round_up(length, self._full)
      self._wait(stage + 1, length, [numbers[i] for i in unfinished], unfinished, paused.rows)

  def _wait(self, stage: int, length: int, numbers: list[int], source: list[int], rows) -> None:
    """Moves rows into a pool; a full pool is resumed.

    Args:
        stage: the stage they wait for.
        length: encoder length of the pool.
        numbers: row numbers.
        source: their positions in `rows`, or those of their first tokens if they are packed and
            wait for the first stage.
        rows: arrays to copy from.
    """
    move = _move_rows if stage else _move_packed
    while numbers:
      pool = self._pools.setdefault((stage, length), _Pool(stage, length))
      if pool.rows is None:
        pool.rows = self._empty(rows, length)
      have = len(pool.numbers)
      # A fixed number of indices, however few rows there are: each number would be a program.
      index_size = self._size if stage else _COPIED
      count = min(self._size - have, len(numbers), index_size)
      target = np.full(index_size, self._size)  # out of range: dropped
      target[:count] = np.arange(have, have + count)
      origin = np.zeros_like(target)
      origin[:count] = source[:count]
      pool.rows = move(pool.rows, rows, origin, target)
      pool.numbers += numbers[:count]
      numbers, source = numbers[count:], source[count:]
      if len(pool.numbers) == self._size:
        self._resume(self._pools.pop((stage, length)))

  def _empty(self, rows, length: int):
    """Zeros for a batch shaped like `rows`, with encoder features of this length."""

    def zeros(path, x):
      trailing = (length, *x.shape[2:]) if path[0].key == "encoder" else x.shape[1:]
      return jnp.zeros((self._size, *trailing), x.dtype, device=x.sharding)

    return jax.tree_util.tree_map_with_path(zeros, rows)

  def _resume(self, pool: _Pool) -> None:
    """Decodes the next stage of a pool, in a smaller batch if it is not full."""
    size = self._size
    if not self._few:
      size = rows_per_batch(len(pool.numbers), size, self._multiple)
    rows = pool.rows
    if size < self._size:
      rows = jax.tree.map(lambda x: jax.device_put(x[:size], x.sharding), rows)
    batch = {} if pool.stage else self._make_batch(pool.numbers, pool.length, size)
    self._dispatch(pool.numbers, batch, pool.stage, pool.length, rows, size)
