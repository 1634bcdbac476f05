"""Inference over whole datasets: sorted by length, each distinct input once, in order again.

Where T5X pads every example of every task to one length and decodes copies, here rows are
(1) run once per distinct input, (2) sorted by length into a bounded set of padded lengths,
(3) put back in the dataset's order. Attention masks padding out, so predictions are those of the
plain path.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from gin import config as _gin_config
from t5x import _cli
from t5x.errors import T5XError

LENGTH_BUCKETS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)

# A padded length is compiled for once it fills this many batches; fewer rows join a longer one.
_MIN_BATCHES_PER_LENGTH = 2


@dataclasses.dataclass
class Rows:
  """Distinct examples of a dataset, without their padding.

  Args:
      features: per distinct example {feature: unpadded 1-D array, or the array as it is}.
      full_shapes: {feature: padded shape of one example}.
      dtypes: {feature: dtype}.
      indices: dataset index of every example.
      row_of: for every example, its position in `features`.
  """

  features: list[dict[str, np.ndarray]]
  full_shapes: dict[str, tuple[int, ...]]
  dtypes: dict[str, np.dtype]
  indices: list[int]
  row_of: list[int]


def _unpad(array: np.ndarray) -> np.ndarray:
  """Cuts trailing zeros of a 1-D array."""
  if array.ndim != 1:
    return array
  nonzero = np.flatnonzero(array)
  return array[: nonzero[-1] + 1].copy() if nonzero.size else array[:0]


def collect_rows(ds: Iterable, key_features: Iterable[str] | None = None) -> Rows:
  """Reads an enumerated dataset of padded model features and finds equal rows.

  Args:
      ds: tf.data.Dataset of (index, {feature: array}).
      key_features: features that decide whether two rows are the same; None means all.
  """
  rows = Rows([], {}, {}, [], [])
  first_with: dict[bytes, int] = {}
  iterator = ds.as_numpy_iterator() if hasattr(ds, "as_numpy_iterator") else iter(ds)
  for index, example in iterator:
    if not rows.full_shapes:
      rows.full_shapes = {k: v.shape for k, v in example.items()}
      rows.dtypes = {k: v.dtype for k, v in example.items()}
    features = {k: _unpad(np.asarray(v)) for k, v in example.items()}
    names = sorted(features) if key_features is None else key_features
    key = b"|".join(
      n.encode() + str(features[n].shape).encode() + features[n].tobytes() for n in names
    )
    row = first_with.setdefault(key, len(rows.features))
    if row == len(rows.features):
      rows.features.append(features)
    rows.indices.append(int(index))
    rows.row_of.append(row)
  return rows


def _groups(length_names: Iterable[str], rows: Rows) -> list[tuple[list[str], int]]:
  """Features that are cut together (encoder_*, decoder_*), with their full length."""
  groups: dict[str, list[str]] = {}
  for name in length_names:
    if name in rows.full_shapes and len(rows.full_shapes[name]) == 1:
      groups.setdefault(name.split("_")[0], []).append(name)
  return [(names, max(rows.full_shapes[n][0] for n in names)) for names in groups.values()]


def _bucket(length: int, full: int) -> int:
  """The smallest padded length that holds `length`, at most `full`."""
  return min((b for b in LENGTH_BUCKETS if b >= length), default=full) if length < full else full


def plan_batches(lengths: np.ndarray, full: int, batch_size: int) -> list[tuple[np.ndarray, int]]:
  """Sorts rows by length and cuts them into batches with few distinct padded lengths.

  Args:
      lengths: unpadded length of each row.
      full: the padded length of the dataset.
      batch_size: rows per batch; only the last batch may have fewer.

  Returns:
      [(row numbers, padded length)], longest first.
  """
  order = np.argsort(-lengths, kind="stable")
  batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
  buckets = [min(_bucket(int(lengths[b[0]]), full), full) for b in batches]
  planned: list[tuple[np.ndarray, int]] = []
  current, used = full, 0
  for i, batch in enumerate(batches):
    # Longest first. A shorter length starts only where the one before has been used enough
    # and enough batches are left: each costs a compilation.
    left = len(batches) - i
    enough = i == 0 or min(used, left) >= _MIN_BATCHES_PER_LENGTH
    if buckets[i] < current and enough:
      current, used = buckets[i], 0
    used += 1
    planned.append((batch, current))
  return planned


def _pad_to(array: np.ndarray, shape: tuple[int, ...], dtype) -> np.ndarray:
  out = np.zeros(shape, dtype)
  out[tuple(slice(0, n) for n in array.shape)] = array
  return out


def _rows_per_batch(num_rows: int, batch_size: int, multiple: int) -> int:
  """`batch_size`, or less for a dataset smaller than half a batch."""
  size = multiple
  while size < num_rows:
    size *= 2
  return min(size, batch_size)


def uses_prompts() -> bool:
  """Whether gin makes the decoder start from the targets (then they are part of the input)."""
  return any(
    selector.endswith("predict_batch_with_aux") and params.get("prompt_with_targets")
    for (_, selector), params in _gin_config._CONFIG.items()
  )


def _to_host(outputs: Any) -> Any:
  if jax.process_count() > 1:
    return multihost_utils.process_allgather(outputs, tiled=True)
  return jax.device_get(outputs)


class BatchInference:
  """Applies one jitted model function to whole datasets.

  Args:
      step_fn: `fn(params, batch, rng)` -> array or tree of arrays, rows first.
      batch_size: rows per device batch, over all hosts.
      train_state_axes: the state with PartitionSpecs (its `.params` is used).
      partitioner: places batches.
      cut: 'encoder' pads only encoder features to a bucket (decoding: the decoder's length is
          the limit of the decode), 'all' pads each stack to its own (scoring).
      merge_equal: run equal inputs once.
      check_stop: called between batches; raises to stop.
      buckets: False pads everything to full length (the plain path).
  """

  def __init__(
    self,
    step_fn: Callable,
    batch_size: int,
    train_state_axes,
    partitioner,
    cut: str = "encoder",
    merge_equal: bool = True,
    check_stop: Callable[[], None] | None = None,
    buckets: bool = True,
  ):
    self._partitioner = partitioner
    layout = partitioner.get_data_layout()  # one row per data partition
    self._multiple = layout.batch_size
    self._batch_size = -(-batch_size // self._multiple) * self._multiple
    self._cut, self._merge_equal, self._buckets = cut, merge_equal, buckets
    self._check_stop = check_stop or (lambda: None)
    self._sharding = partitioner.sharding(partitioner.data_partition_spec)
    self._step_fn, self._axes, self._compiled = step_fn, train_state_axes, None
    self.stats: dict[str, float] = {}

  def _fn(self, params, batch, rng):
    # Made late: an evaluator measures lengths before there is a train state.
    if self._compiled is None:
      self._compiled = self._partitioner.partition(
        self._step_fn,
        in_axis_resources=(self._axes.params, self._partitioner.data_partition_spec, None),
        out_axis_resources=None,  # replicated: every host gets all rows
      )
    return self._compiled(params, batch, rng)

  def _key_features(self, ds) -> list[str] | None:
    names = list(ds.element_spec[1]) if hasattr(ds, "element_spec") else []
    if self._cut == "encoder" and "encoder_input_tokens" in names and not uses_prompts():
      return ["encoder_input_tokens"]
    return None

  def _plan(self, rows: Rows):
    """Yields (row numbers, {feature: padded shape of one row})."""
    shapes = dict(rows.full_shapes)
    everything = _groups(rows.full_shapes, rows)
    encoder = [g for g in everything if g[0][0].startswith("encoder")]
    main = (encoder or (everything if self._cut == "all" else []))[:1]
    size = _rows_per_batch(len(rows.features), self._batch_size, self._multiple)
    if not main or not self._buckets:
      for i in range(0, len(rows.features), size):
        yield np.arange(i, min(i + size, len(rows.features))), shapes, size
      return
    names, full = main[0]
    lengths = np.array([max(len(r[n]) for n in names) for r in rows.features])
    for numbers, bucket in plan_batches(lengths, full, size):
      batch_shapes = dict(shapes)
      batch_shapes.update({n: (bucket,) for n in names})
      if self._cut == "all":
        for others, other_full in everything:
          if others is not names:
            longest = max(len(rows.features[r][n]) for r in numbers for n in others)
            cut = max(_bucket(longest, other_full), 16)
            batch_shapes.update({n: (min(cut, other_full),) for n in others})
      yield numbers, batch_shapes, size

  def _batch(self, rows: Rows, numbers: np.ndarray, shapes, size: int):
    # The last batch is filled with copies of a row: they finish when that row does.
    filled = list(numbers) + [numbers[-1]] * (size - len(numbers))
    batch = {}
    for name, shape in shapes.items():
      dtype = rows.dtypes[name]
      full = np.stack([_pad_to(rows.features[r][name], shape, dtype) for r in filled])
      batch[name] = jax.make_array_from_callback(
        full.shape, self._sharding, lambda index, full=full: full[index]
      )
    return batch

  def __call__(self, ds, train_state, rng=None, what: str = "") -> list[tuple[int, Any]]:
    """Returns [(dataset index, output of that row)] in the dataset's order.

    Args:
        ds: enumerated, unbatched dataset of model features.
        train_state: has `.params`.
        rng: key for sampling; None is key 0.
        what: name for the progress line.
    """
    started = time.time()
    rows = collect_rows(ds, self._key_features(ds) if self._merge_equal else None)
    if not rows.indices:
      raise T5XError(
        f"There is nothing to run the model on{f' for {what}' if what else ''}.",
        found="a dataset without examples",
        fix="check the split and the task's filters.",
      )
    if not self._merge_equal:
      rows.features = [rows.features[r] for r in rows.row_of]
      rows.row_of = list(range(len(rows.indices)))
    rng = jax.random.PRNGKey(0) if rng is None else rng
    outputs: list[Any] = [None] * len(rows.features)
    pending: list[tuple[np.ndarray, Any]] = []
    progress = _Progress(what, len(rows.features), len(rows.indices))

    def collect():
      numbers, device_out = pending.pop(0)
      host_out = _to_host(device_out)
      for i, row in enumerate(numbers):
        outputs[row] = jax.tree.map(lambda x, i=i: x[i], host_out)
      progress.advance(len(numbers))

    shapes_seen = set()
    for number, (numbers, shapes, size) in enumerate(self._plan(rows)):
      self._check_stop()
      shapes_seen.add(tuple(sorted(shapes.items())))
      batch = self._batch(rows, numbers, shapes, size)
      pending.append(
        (numbers, self._fn(train_state.params, batch, jax.random.fold_in(rng, number)))
      )
      if len(pending) > 1:  # one batch runs while the next is prepared
        collect()
    while pending:
      collect()
    self.stats = {
      "examples": len(rows.indices),
      "rows_run": len(rows.features),
      "shapes": len(shapes_seen),
      "seconds": time.time() - started,
    }
    progress.done(self.stats)
    return [(i, outputs[r]) for i, r in zip(rows.indices, rows.row_of, strict=True)]


class _Progress:
  """A line per 30 s about a long evaluation, and one at its end."""

  def __init__(self, what: str, rows: int, examples: int):
    self._what, self._rows, self._examples = what, rows, examples
    self._done, self._started = 0, time.time()
    self._next = self._started + 30

  def advance(self, rows: int) -> None:
    self._done += rows
    now = time.time()
    if self._what and now > self._next:
      self._next = now + 30
      rate = self._done / (now - self._started)
      eta = (self._rows - self._done) / rate
      _cli.log(f"{self._what}: {self._done}/{self._rows} rows, {rate:.1f}/s, ETA {eta:.0f} s")

  def done(self, stats: Mapping[str, float]) -> None:
    if self._what:
      _cli.log(
        f"{self._what}: {self._examples} examples ({self._rows} distinct) in "
        f"{stats['seconds']:.1f} s"
      )


def get_infer_fn(
  infer_step: Callable,
  batch_size: int,
  train_state_axes,
  partitioner,
  keep_aux_as_numpy: bool = False,
  **kwargs,
) -> Callable:
  """Returns `infer_fn(ds, train_state, rng=None)` in seqio's format.

  Args:
      infer_step: `model.predict_batch`, `.predict_batch_with_aux` or `.score_batch`, called as
          fn(params, batch) or fn(params, batch, rng=key).
      batch_size: rows per batch over all hosts.
      train_state_axes: the state with PartitionSpecs.
      partitioner: partitioner of the state.
      keep_aux_as_numpy: leave auxiliary values as arrays instead of lists.
      **kwargs: for `BatchInference`.

  Returns:
      A function returning [(index, output)], or ([(index, output)], {aux name: [value]}) if
      the step returns a pair; rows in the dataset's order.
  """
  takes_rng = "rng" in inspect.signature(infer_step).parameters

  def step(params, batch, rng):
    return infer_step(params, batch, rng=rng) if takes_rng else infer_step(params, batch)

  kwargs.setdefault("cut", "encoder" if takes_rng else "all")
  run = BatchInference(step, batch_size, train_state_axes, partitioner, **kwargs)

  def plain(x):
    return x if keep_aux_as_numpy else np.asarray(x).tolist()

  def infer_fn(ds, train_state, rng=None, what: str = ""):
    results = run(ds, train_state, rng, what)
    if not isinstance(results[0][1], tuple):
      return [(i, np.asarray(out).tolist()) for i, out in results]
    indexed = [(i, np.asarray(out[0]).tolist()) for i, out in results]
    aux_rows = [out[1] for _, out in results]
    aux = jax.tree.map(lambda *values: [plain(v) for v in values], *aux_rows)
    return indexed, aux

  infer_fn.inference = run
  return infer_fn
