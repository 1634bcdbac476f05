"""Training and teacher-forced evaluation steps.

One jitted function per kind of step; the train state is donated, so that old and new parameters
are never in memory together.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from clu import values as clu_values

from t5x import metrics as metrics_lib
from t5x._data.devices import pad_rows, to_device
from t5x._process.log import log
from t5x._step.actions import (
  ActionMode,
  BaseAction,
  EarlyStoppingAction,
  TerminateOnNanAction,
)
from t5x._step.ahead import StepsAhead
from t5x._step.divergence import LossWatch
from t5x._step.gradients import accumulate_grads_microbatched, apply_grads
from t5x._step.metrics_manager import MetricsManager, shown_loss
from t5x._step.weight_metrics import WeightMetricsComputer
from t5x.errors import T5XError, check_whole

__all__ = [
  "ActionMode",
  "BaseAction",
  "EarlyStoppingAction",
  "MetricsManager",
  "TerminateOnNanAction",
  "Trainer",
  "WeightMetricsComputer",
  "accumulate_grads_microbatched",
  "apply_grads",
  "compute_metrics",
]

Metrics = Mapping[str, Any]

# Metrics of this many steps are fetched from the device at once: for each step, the host would wait
# for the device and then the device for the host.
_STEPS_PER_FETCH = 50


def compute_metrics(metrics: Metrics, seconds: float) -> dict[str, float]:
  """Computes merged metrics of `seconds` of work as {name: float}; drops arrays."""
  # Rates divide by it, and a clock may not have advanced.
  metrics = metrics_lib.set_time_metrics_duration(metrics, max(seconds, 1e-9))
  values = {k: getattr(v, "value", v) for k, v in metrics_lib.compute_values(metrics).items()}
  return {name: float(value) for name, value in values.items() if np.ndim(value) == 0}


def _num_tokens(metrics: Metrics) -> float:
  """Real (non-padding) tokens of encoder and decoder in one step; 0 if the model counts none."""
  fraction = metrics.get("non_padding_fraction/overall")
  return float(getattr(fraction, "total", 0.0))


def _shapes(batch) -> tuple:
  return tuple(sorted((name, array.shape) for name, array in batch.items()))


class Trainer:
  """Takes training and evaluation steps.

  Args:
      model: has `loss_fn(params, batch, dropout_rng)` and `eval_fn(params, batch)`, both
          -> (loss, {name: clu metric}).
      train_state: the initial state; its buffers are donated to the first step.
      partitioner: places state and batches.
      eval_names: tasks of the teacher-forced evaluation.
      summary_dir: MODEL_DIR, or None for no TensorBoard events.
      rng: key; the dropout key of step n is fold_in(rng, n), so a resumed run repeats them.
      learning_rate_fn: step -> learning rate, called with the step before the update.
      num_microbatches: number of parts each batch is split into; gradients are summed.
      weight_metrics_computer: a `WeightMetricsComputer`, or None for no such metrics.
      train_state_axes: the state with PartitionSpecs; None asks the partitioner.
  """

  def __init__(
    self,
    model,
    train_state,
    partitioner,
    eval_names: Sequence[str] = (),
    summary_dir: str | None = None,
    rng=None,
    learning_rate_fn: Callable | None = None,
    num_microbatches: int | None = None,
    weight_metrics_computer=None,
    train_state_axes=None,
  ):
    check_whole(num_microbatches, "trainer.Trainer.num_microbatches", 0, optional=True)
    if learning_rate_fn is not None and not callable(learning_rate_fn):
      raise T5XError(
        "trainer.Trainer.learning_rate_fn is no function of the step.",
        found=repr(learning_rate_fn),
        expected="a schedule; a constant is one with factors = 'constant'",
        fix="trainer.Trainer.learning_rate_fn = @utils.create_learning_rate_scheduler()",
      )
    self._model, self._partitioner = model, partitioner
    self.train_state = train_state
    self._rng = jax.random.PRNGKey(0) if rng is None else rng
    self._learning_rate_fn = learning_rate_fn
    self._num_microbatches = num_microbatches
    self._weight_metrics_computer = weight_metrics_computer
    if train_state_axes is None:
      train_state_axes = partitioner.get_mesh_axes(train_state)
    self._axes = train_state_axes
    self._sharding = partitioner.sharding(partitioner.data_partition_spec)
    self._last: dict[str, float] = {}
    self.compile_seconds: float | None = None  # of the latest step that was compiled
    self._shapes: set[tuple] = set()  # of batches that the step is compiled for
    self._pending: list[Metrics] = []
    self._ahead = StepsAhead()
    self._merged: Metrics | None = None
    self._latest: Metrics | None = None  # of the last step that was fetched
    self._step = int(train_state.step)
    self._tokens = self._token_steps = 0.0
    self.losses = LossWatch(last_seen=self._step)
    self.train_metrics_manager = MetricsManager("train", summary_dir)
    self._writers = {
      "train": self.train_metrics_manager,
      **{n: MetricsManager(f"training_eval/{n}", summary_dir) for n in eval_names},
    }
    self._train_step = self._make_train_step()
    self._eval_step = self._make_eval_step()

  def _make_train_step(self):
    """Compiles (state, batch, key) -> (next state, metrics, learning rate) for the mesh."""
    model, num_microbatches = self._model, self._num_microbatches
    constraint = self._sharding if self._partitioner.mesh.size > 1 else None
    weight_metrics = self._weight_metrics_computer

    def train_step(state, batch, rng):
      rng = jax.random.fold_in(rng, state.step)  # a resumed run draws what it would have drawn
      grads, metrics, _ = accumulate_grads_microbatched(
        model, state, batch, rng, num_microbatches, data_partition_spec=constraint
      )
      learning_rate = None
      if self._learning_rate_fn is not None:
        learning_rate = self._learning_rate_fn(state.step)
      new_state, metrics = apply_grads(state, grads, metrics, learning_rate, weight_metrics)
      # Apart from the metrics, which are fetched later: the progress line shows it, and waiting for
      # it is waiting for the step.
      logged_rate = jnp.float32(jnp.nan if learning_rate is None else learning_rate)
      return new_state, metrics, logged_rate

    return self._partitioner.partition(
      train_step,
      in_axis_resources=(self._axes, self._partitioner.data_partition_spec, None),
      out_axis_resources=(self._axes, None, None),
      donate_argnums=(0,),
      compiler_options=self._partitioner.training_options(),
    )

  def _make_eval_step(self):
    """Compiles (parameters, batch) -> metrics for the mesh."""
    model = self._model

    def eval_step(params, batch):
      return model.eval_fn(params, batch)[1]

    return self._partitioner.partition(
      eval_step,
      in_axis_resources=(self._axes.params, self._partitioner.data_partition_spec),
      out_axis_resources=None,
    )

  def wait_for_room(self) -> None:
    """Waits until the host is at most two steps, or a tenth of a second, ahead of the device.

    Without it the host runs ahead of the device by as many steps as JAX allows (32 on a CPU).
    """
    self._ahead.wait_for_room()

  def compiles(self, batch) -> bool:
    """Whether a step would compile for this batch: it is the first with its shapes."""
    return _shapes(batch) not in self._shapes

  def step(self, batch) -> None:
    """Takes one training step; returns as soon as it is dispatched, unless it is compiled.

    Call `wait_for_room` before, or the host runs far ahead of the device.

    Args:
        batch: {feature: global array [B, ...]} on the devices.
    """
    compiling = self.compiles(batch)
    started = time.time()
    self.train_state, metrics, rate = self._train_step(self.train_state, batch, self._rng)
    self._learning_rate = rate
    self._ahead.add(rate)
    if compiling:
      jax.block_until_ready(rate)
      self._shapes.add(_shapes(batch))
      self.compile_seconds = time.time() - started
      seconds = {"timing/compilation_seconds": self.compile_seconds}
      self._writers["train"].write_scalars(self._step, seconds)
      metrics = metrics_lib.untimed(metrics)
    self._pending.append(metrics)
    if len(self._pending) >= _STEPS_PER_FETCH:
      self._fetch(in_flight=2)  # the device goes on while the host waits for older steps

  def train(
    self, batch_iter: Iterator, num_steps: int, start_step: int | None = None
  ) -> futures.Future[Mapping[str, clu_values.Scalar]]:
    """Takes some training steps and writes their metrics.

    `t5x.train` calls `step` itself, to look at signals, losses and checkpoints in between.

    Args:
        batch_iter: iterator over batches of this host as numpy.
        num_steps: steps to take.
        start_step: number of the first one; None is the train state's.

    Returns:
        A completed future of {name: `clu.values.Scalar`}.
    """
    started = time.time()
    start_step = self._step + len(self._pending) if start_step is None else start_step
    for _ in range(num_steps):
      self.wait_for_room()
      self.step(to_device(next(batch_iter), self._sharding))
    self._fetch()
    values = self.summarize(start_step + num_steps, time.time() - started)
    completed: futures.Future[Mapping[str, clu_values.Scalar]] = futures.Future()
    completed.set_result({name: clu_values.Scalar(value) for name, value in values.items()})
    return completed

  def _fetch(self, in_flight: int = 0) -> None:
    """Merges pending steps' metrics on the host, except the `in_flight` latest; checks losses."""
    finished = self._pending[: len(self._pending) - in_flight]
    self._pending = self._pending[len(finished) :]
    for metrics in jax.device_get(finished):
      self._step += 1  # by number: the state on the device may already be some steps further
      self.losses.look(self._step, metrics)
      self._tokens += _num_tokens(metrics)
      self._token_steps += 1
      self._merged = metrics_lib.merge_metrics(self._merged, metrics)
      self._latest = metrics

  def check_losses(self) -> LossWatch:
    """Returns what is known about the losses up to the latest step; waits for it."""
    self._fetch()
    return self.losses

  def last_metrics(self) -> dict[str, float]:
    """{'loss', 'lr', 'tokens_per_step'} of the latest step; waits for it.

    Of several processes, each asks at moments of its own, so there it is the latest step whose loss
    all of them have looked at: they must agree on the step at which a loss was not finite.

    The loss is per target token where that is known: a plain sum (no normalizing factor) is shown
    divided by the number of tokens. The loss of a model that counts no tokens is shown as it is.
    Tokens are the mean over this run's steps.
    """
    if jax.process_count() == 1:
      self._fetch()
    if self._latest is not None:
      values = compute_metrics(self._latest, 1.0)
      self._last = {"loss": values.get(shown_loss(self._model, values), float("nan"))}
      if self._tokens:
        self._last["tokens_per_step"] = self._tokens / self._token_steps
      if self._learning_rate_fn is not None:
        self._last["lr"] = float(self._learning_rate)
    return self._last

  def summarize(self, step: int, seconds: float) -> dict[str, float]:
    """Computes and writes the metrics since the last call.

    Args:
        step: step to write them under.
        seconds: duration of these steps (`check_losses` waits for them), without those compiled.
    """
    self._fetch()
    if self._merged is None:
      return {}
    values = compute_metrics(self._merged, seconds)
    self._merged = None
    if self._learning_rate_fn is not None:  # `learning_rate` itself is the mean
      values["learning_rate/current"] = float(self._learning_rate)
    self._writers["train"].write_scalars(step, values)
    return values

  def evaluate(self, datasets: Mapping[str, Iterable], batch_size: int) -> dict[str, dict]:
    """Teacher-forced evaluation.

    Args:
        datasets: {task: batches of this host as numpy}.
        batch_size: rows per batch on this host; a shorter last batch is padded.

    Returns:
        {task: {metric: value}}.
    """
    step = int(self.train_state.step)
    results = {}
    for task, ds in datasets.items():
      started, per_batch = time.time(), []
      batches = ds.as_numpy_iterator() if hasattr(ds, "as_numpy_iterator") else ds
      for batch in batches:
        device_batch = to_device(pad_rows(batch, batch_size), self._sharding)
        per_batch.append(self._eval_step(self.train_state.params, device_batch))
      if not per_batch:
        log(f"training_eval {task}: no examples")
        continue
      # Fetched in the end: the device computes a batch while the host reads the next.
      merged = functools.reduce(metrics_lib.merge_metrics, jax.device_get(per_batch))
      values = compute_metrics(merged, time.time() - started)
      values["timing/evaluation_seconds"] = time.time() - started
      self._writers[task].write_scalars(step, values)
      results[task] = values
    return results

  def close(self) -> None:
    """Closes the event files."""
    for writer in self._writers.values():
      writer.close()
