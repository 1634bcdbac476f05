"""Inference over whole datasets, with no work done twice and little done on padding.

Where T5X pads every example of every task to one length, decodes duplicates, and waits for the
slowest row of each batch, here rows are
(1) run once per distinct input, (2) sorted by length into a few padded lengths, or encoded side by
side where that is faster (`t5x._infer.packed_rows`), (3) decoded in stages that rows leave when
they finish (`t5x._infer.staged_decode`), (4) stored as they finish (`t5x._infer.journal`), and (5)
put back in the dataset's order. Attention masks out padding and neighbours, so predictions are
those of the plain path (`utils.get_infer_fn.efficient = False`).
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from t5x import decoding
from t5x._infer import packed_rows
from t5x._infer.journal import Journal
from t5x._infer.overlap import OverlappedCalls, max_calls
from t5x._infer.rows import (
  COMPILE_COST_OF_TINY,
  Rows,
  compile_cost,
  plan_batches,
  read_rows,
  round_length,
  rows_per_batch,
)
from t5x._infer.staged_decode import StagedDecode
from t5x._process.progress import InferenceProgress
from t5x._process.read_ahead import ReadAhead
from t5x._script.gin_config import parsed
from t5x.errors import T5XError

# A CPU gains nothing from more rows, and they are padded to the longest.
_MOST_ROWS_ON_CPU = 32
_MOST_WHOLE_ROWS_ON_CPU = 8  # no decoder waits for them

# Rows are sorted by length within windows of this many batches, while later rows are read.
_BATCHES_PER_WINDOW = 64


def uses_prompts() -> bool:
  """Whether gin makes the decoder start from the targets (then they are part of the input)."""
  for (_, selector), params in parsed().items():
    if selector.endswith("predict_batch_with_aux") and params.get("prompt_with_targets"):
      return True
  return False


def _reads_inputs_alone(step: Callable) -> bool:
  """Whether `encoder_input_tokens` decide what a model's method predicts.

  They do in T5X's own, unless gin gives prompts; others may pass prompts on.
  """
  model = type(getattr(step, "__self__", None))
  names = ("predict_batch", "predict_batch_with_aux")
  methods = [step, *(getattr(model, name, step) for name in names)]
  is_t5x = all(str(getattr(m, "__module__", None)).startswith("t5x.") for m in methods)
  return is_t5x and not uses_prompts()


def _accepts_segments(step: Callable) -> bool:
  """Whether a model's method can decode one segment at a time."""
  decode = getattr(getattr(step, "__self__", None), "predict_batch_with_aux", step)
  parameters = inspect.signature(step).parameters.values()
  passed_on = any(p.name == "segment" or p.kind is p.VAR_KEYWORD for p in parameters)
  return passed_on and "segment" in inspect.signature(decode).parameters


def _longest(rows: Rows, numbers: Sequence[int], names: Sequence[str]) -> int:
  """Tokens of the longest of these features of these rows."""
  longest = 0
  for number in numbers:
    for name in names:
      longest = max(longest, len(rows.features[number][name]))
  return longest


def _to_host(outputs: Any) -> Any:
  if jax.process_count() > 1:
    return multihost_utils.process_allgather(outputs, tiled=True)
  return jax.device_get(outputs)


@dataclasses.dataclass(frozen=True)
class _Run:
  """What the batches of one dataset share.

  Attributes:
      params: parameters.
      rng: key for sampling.
      first_key: number of the first batch's key; smaller ones may be those of an earlier run.
      rows: the dataset's distinct rows.
      calls: runs the device function, several times at once where that is faster.
      deliver: `deliver(row numbers, their positions in a batch, the batch's outputs)` keeps them.
  """

  params: Any
  rng: jax.Array
  first_key: int
  rows: Rows
  calls: OverlappedCalls
  deliver: Callable[[Sequence[int], Sequence[int], Any], None]


class BatchInference:
  """Applies one model function, `step_fn`, to whole datasets. Args: see `utils.get_infer_fn`."""

  def __init__(
    self,
    step_fn: Callable,
    batch_size: int,
    train_state_axes,
    partitioner,
    efficient: bool = True,
    check_stop: Callable[[], None] | None = None,
  ):
    self._partitioner = partitioner
    # Every data partition takes as many rows as the others.
    self._multiple = partitioner.mesh.shape["data"]
    self._batch_size = -(-batch_size // self._multiple) * self._multiple
    self._takes_rng = "rng" in inspect.signature(step_fn).parameters
    self._efficient = efficient
    self._staged = efficient and _accepts_segments(step_fn)
    self._model: Any = getattr(step_fn, "__self__", None)
    self._check_stop = check_stop or (lambda: None)
    self._sharding = NamedSharding(partitioner.mesh, partitioner.data_partition_spec)
    self._step_fn, self._axes = step_fn, train_state_axes
    self._compiled: dict[str, Callable] = {}
    self._lengths: dict[int, set[int]] = {}  # rows per batch -> padded lengths so far
    self._cost = 0.0  # compile time relative to the time of a batch
    self.stats: dict[str, float] = {}

  # ------------------------------------------------------------------ the device function

  def _step(self, params, batch, rng, segment):
    kwargs = {"rng": rng} if self._takes_rng else {}  # scoring takes none
    if segment is not None:
      kwargs["segment"] = segment
    return self._step_fn(params, batch, **kwargs)

  def _fn(self, params, batch, rng, segment=None):
    """Calls the model's function, or decodes one segment; compiles it for each new shape."""
    rows = self._partitioner.data_partition_spec
    if segment is None:  # None: replicated, so that every host gets all rows
      step = self._partitioned("step", self._step, (rows, None, None), None)
    else:
      active = self._on_devices(np.asarray(segment.active))
      segment = dataclasses.replace(segment, active=active)
      out = decoding.Paused(outputs=None, finished=None, rows=rows)
      step = self._partitioned("segment", self._step, (rows, None, rows), out)
    return step(params, batch, rng, segment)

  def _encode(self, params, packed: packed_rows.PackedRows):
    rows = self._partitioner.data_partition_spec
    encode = self._partitioned("encode", self._model.encode_packed, (rows, rows), rows)
    return encode(params, *map(self._on_devices, (packed.tokens, packed.segment_ids)))

  def _partitioned(self, name: str, fn: Callable, arguments: tuple[Any, ...], out: Any) -> Callable:
    # Made late: an evaluator measures lengths before there is a train state.
    if name not in self._compiled:
      self._compiled[name] = self._partitioner.partition(
        fn,
        in_axis_resources=(self._axes.params, *arguments),
        out_axis_resources=out,
      )
    return self._compiled[name]

  def _on_devices(self, x: np.ndarray) -> jax.Array:
    """Places rows that every process has on the devices, each its part."""
    return jax.make_array_from_callback(x.shape, self._sharding, lambda index: x[index])

  def _can_be_staged(self, params, ds, rng) -> bool:
    """Traces the decode to see whether it can be paused (sampling cannot)."""
    if not self._staged:
      return False
    shapes = {
      name: jax.ShapeDtypeStruct((self._multiple, *spec.shape), spec.dtype.as_numpy_dtype)
      for name, spec in ds.element_spec[1].items()
    }
    active = jax.ShapeDtypeStruct((self._multiple,), np.bool_)
    try:
      with self._partitioner.activate():
        jax.eval_shape(self._step, params, shapes, rng, decoding.Segment(0, 1, None, active))
    except decoding.CannotPauseError:
      self._staged = False
    return self._staged

  def _is_to_be_packed(self, ds) -> bool:
    """Whether to encode rows side by side: on a CPU, where time is proportional to tokens."""
    if jax.default_backend() != "cpu" or self._partitioner.mesh.size > 1:
      return False
    length = packed_rows.packed_length(ds.element_spec[1]["encoder_input_tokens"].shape[0])
    return hasattr(self._model, "gains_by_packing") and self._model.gains_by_packing(length)

  # ------------------------------------------------------------------ planning

  def _shapes_of(self, rows: Rows, numbers: Sequence[int], encoder_length: int):
    """Padded shapes of a batch: the planned one for the encoder, the longest for scored targets."""
    shapes = dict(rows.full_shapes)
    for name, shape in rows.full_shapes.items():
      if len(shape) != 1:
        continue
      if name.startswith("encoder"):
        shapes[name] = (min(encoder_length, shape[0]),)
      elif self._efficient and not self._takes_rng:  # scoring; decoding is up to the full length
        stack = name.split("_")[0]  # its features, such as tokens and weights, are padded alike
        group = [n for n in shapes if n.startswith(stack) and len(shapes[n]) == 1]
        longest = _longest(rows, numbers, group)
        shapes[name] = (round_length(longest, shape[0]),)
    return shapes

  def _plan(
    self, rows: Rows, windows: Iterator[tuple[int, bool]], stored_keys: Collection[str]
  ) -> Iterator[tuple[list[int], Mapping[str, tuple[int, ...]], int, int]]:
    """Yields (row numbers, {feature: padded shape}, encoder length, batch size) of each batch.

    A window of rows is sorted by length while the following ones are read. Rows that do not fill
    a batch wait for the next window.
    """
    size, started, waiting, num_read = self._batch_size, False, [], 0
    if self._efficient and jax.default_backend() == "cpu":
      max_rows = _MOST_ROWS_ON_CPU if self._staged else _MOST_WHOLE_ROWS_ON_CPU
      size = min(size, max(max_rows // self._multiple, 1) * self._multiple)
    for until, is_all in ReadAhead(windows):
      waiting += [i for i in range(num_read, until) if rows.keys[i] not in stored_keys]
      num_read = until
      # Known with the first row, which is why this is not above.
      encoder = [n for n, s in rows.full_shapes.items() if n.startswith("encoder") and len(s) == 1]
      full = max((rows.full_shapes[n][0] for n in encoder), default=0)
      small = is_all and not started and self._efficient
      if small and self._cost <= COMPILE_COST_OF_TINY:  # else a compilation takes longer
        size = rows_per_batch(len(waiting), size, self._multiple)
      compiled = self._lengths.setdefault(size, set())  # also those of previous tasks
      if encoder and self._efficient:
        lengths = [_longest(rows, [r], encoder) for r in waiting]
        planned = plan_batches(lengths, full, size, self._cost, compiled)
      else:
        order = np.arange(len(waiting))
        planned = [(order[i : i + size], full) for i in range(0, len(order), size)]
      batches = []
      for positions, length in planned:
        batches.append(([waiting[p] for p in positions], length))
      waiting = []
      if batches and len(batches[-1][0]) < size and not is_all:
        waiting = batches.pop()[0]  # with rows of the next window, they may fill one
      for numbers, length in batches:
        started = True
        compiled.add(length)
        yield numbers, self._shapes_of(rows, numbers, length), length, size

  def _plan_packed(
    self, rows: Rows, windows: Iterator[tuple[int, bool]], stored_keys: Collection[str]
  ) -> Iterator[tuple[packed_rows.PackedRows, int]]:
    """Yields (rows to encode together, number of rows to decode together)."""
    size, waiting, num_read = min(self._batch_size, _MOST_ROWS_ON_CPU), [], 0
    for until, is_all in ReadAhead(windows):
      waiting += [i for i in range(num_read, until) if rows.keys[i] not in stored_keys]
      if is_all and not num_read:
        size = rows_per_batch(len(waiting), size, 1)
      num_read = until
      packed, waiting = packed_rows.pack(rows, waiting, "encoder_input_tokens", is_all)
      for batch in packed:
        yield batch, size

  def _device_batch(self, rows: Rows, numbers: list[int], shapes, size: int):
    # The last batch is filled up with copies of a row: they end when that row does.
    filled = numbers + [numbers[-1]] * (size - len(numbers))
    return {name: self._on_devices(x) for name, x in rows.stack(filled, shapes).items()}

  # ------------------------------------------------------------------ running

  def __call__(
    self, ds, train_state, rng=None, label: str = "", journal: Journal | None = None
  ) -> list[tuple[int, Any]]:
    """Returns [(dataset index, output of that row)] in the dataset's order.

    Args:
        ds: enumerated, unbatched dataset of model features.
        train_state: has `.params`.
        rng: key for sampling; None is key 0.
        label: name for the progress line.
        journal: stores results as they are produced, and provides those of an earlier run.
    """
    started = time.time()
    rng = jax.random.PRNGKey(0) if rng is None else rng
    params = train_state.params
    self._cost = compile_cost(params)
    staged = self._can_be_staged(params, ds, rng)
    # Equal inputs have equal outputs, unless they are sampled.
    merge = self._efficient and (staged or not self._takes_rng)
    names = list(ds.element_spec[1])
    encoder_decides = self._takes_rng and "encoder_input_tokens" in names
    encoder_decides = encoder_decides and _reads_inputs_alone(self._step_fn)
    key_features = ["encoder_input_tokens"] if encoder_decides else None
    stored = journal.read() if journal is not None else {}
    outputs: dict[str, Any] = dict(stored)
    rows, progress = Rows(), InferenceProgress(label)
    windows = read_rows(ds, rows, key_features, merge, _BATCHES_PER_WINDOW * self._batch_size)

    def deliver(numbers: Sequence[int], positions: Sequence[int], batch_outputs: Any) -> None:
      keys = [rows.keys[n] for n in numbers]
      for key, position in zip(keys, positions, strict=True):
        outputs[key] = jax.tree.map(lambda x, i=position: x[i], batch_outputs)
      if journal is not None:
        journal.write(keys, [outputs[key] for key in keys])
      progress.advance(len(numbers), len(rows.keys) - len(stored))

    at_a_time = max_calls(self._partitioner.mesh.size) if self._efficient else 1
    with OverlappedCalls(at_a_time) as calls:
      # Each batch of an earlier run added at least one result.
      run = _Run(params, rng, len(stored), rows, calls, deliver)
      if staged and self._is_to_be_packed(ds):
        shapes = self._run_packed(run, self._plan_packed(rows, windows, stored))
      else:
        run_planned = self._run_staged if staged else self._run_whole
        shapes = run_planned(run, self._plan(rows, windows, stored))
    if not rows.indices:
      raise T5XError(
        f"There are no examples to run the model on{f' for {label}' if label else ''}.",
        found="an empty dataset",
        fix="check the split and the task's filters.",
      )
    self.stats = {
      "examples": len(rows.indices),
      "distinct": len(rows.keys),
      "rows_run": sum(key not in stored for key in rows.keys),
      "shapes": shapes,
      "seconds": time.time() - started,
    }
    progress.done(self.stats)
    return [(i, outputs[rows.keys[r]]) for i, r in zip(rows.indices, rows.row_of, strict=True)]

  def _stages(self, run: _Run, size: int) -> StagedDecode:
    """The stages of a staged decode of `size` rows a batch."""
    rows = run.rows

    def make_batch(numbers, length, size):
      return self._device_batch(rows, numbers, self._shapes_of(rows, numbers, length), size)

    return StagedDecode(
      self._fn,
      run.calls,
      run.params,
      run.rng,
      rows.full_shapes["decoder_input_tokens"][0],
      rows.full_shapes["encoder_input_tokens"][0],
      size,
      self._multiple,
      _to_host,
      run.deliver,
      make_batch,
      few_programs=self._cost >= COMPILE_COST_OF_TINY,
    )

  def _run_staged(self, run: _Run, plan: Iterator) -> int:
    """Runs the batches of `_plan`. Returns how many programs they took."""
    stages = None
    for numbers, shapes, length, size in plan:
      self._check_stop()
      # Made with the first batch, when the rows' shapes are known.
      stages = stages or self._stages(run, size)
      stages.start(numbers, self._device_batch(run.rows, numbers, shapes, size), length)
    if stages is not None:
      stages.finish(self._check_stop)
    return len(run.calls.shapes)

  def _run_packed(self, run: _Run, plan: Iterator) -> int:
    """Like `_run_staged`, with rows of any length encoded side by side, those of `_plan_packed`."""
    stages, shapes = None, set()
    for packed, size in plan:
      self._check_stop()
      stages = stages or self._stages(run, size)
      shapes.add(packed.tokens.shape)
      encoded = self._encode(run.params, packed)
      stages.take(packed.numbers, packed.sizes, packed.starts, encoded)
    if stages is not None:
      stages.finish(self._check_stop)
    return len(run.calls.shapes | shapes)

  def _run_whole(self, run: _Run, plan: Iterator) -> int:
    """Like `_run_staged`, for functions that cannot be paused."""
    running: list[tuple[list[int], Any]] = []

    def settle():
      numbers, output = running.pop(0)
      run.deliver(numbers, range(len(numbers)), _to_host(output.result()))

    try:
      for key_number, (numbers, shapes, _, size) in enumerate(plan, run.first_key):
        self._check_stop()
        batch = self._device_batch(run.rows, numbers, shapes, size)
        key = jax.random.fold_in(run.rng, key_number)
        output = run.calls.start(tuple(sorted(shapes.items())), self._fn, run.params, batch, key)
        running.append((numbers, output))
        if len(running) > run.calls.max_calls:  # they run while the next batch is prepared
          settle()
    finally:  # also when stopped: nothing that has run is lost
      while running:
        settle()
    return len(run.calls.shapes)
