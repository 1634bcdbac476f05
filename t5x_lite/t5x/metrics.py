"""Metrics of a training step that merge over steps, hosts and microbatches.

Each is a `clu.metrics.Metric`: `merge` adds two up, `compute` gives the number. Time metrics get
their duration outside the jitted step, from `set_time_metrics_duration`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, MutableMapping
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
from clu import metrics as clu_metrics
from clu import values as clu_values

Array = jax.Array


@flax.struct.dataclass
class Sum(clu_metrics.Metric):
  """A sum."""

  total: Any

  @classmethod
  def from_model_output(cls, values: Any, mask: Any = None, **_) -> Sum:
    """Sums `values` (any shape) where `mask` is true."""
    values = jnp.asarray(values)
    return cls(total=values.sum() if mask is None else jnp.where(mask, values, 0).sum())

  def merge(self, other: Sum) -> Sum:
    """Adds the other metric."""
    return type(self)(total=self.total + other.total)

  def compute(self) -> Any:
    """Returns the number."""
    return self.total


@flax.struct.dataclass
class Step(clu_metrics.Metric):
  """Something per step."""

  steps: Any = 1

  def replace_steps(self, steps: Any) -> Step:
    """Returns the metric with another number of steps."""
    return self.replace(steps=steps)


@flax.struct.dataclass
class AveragePerStep(Step):
  """A total divided by the number of steps."""

  total: Any = 0.0

  @classmethod
  def from_model_output(cls, values: Any, steps: Any = 1, **_) -> AveragePerStep:
    """Sums `values` (any shape) of `steps` steps."""
    return cls(total=jnp.sum(jnp.asarray(values)), steps=steps)

  def merge(self, other: AveragePerStep) -> AveragePerStep:
    """Adds the other metric."""
    return type(self)(total=self.total + other.total, steps=self.steps + other.steps)

  def compute(self) -> Any:
    """Returns the number."""
    return self.total / self.steps


@flax.struct.dataclass
class Time(clu_metrics.Metric):
  """Seconds since the metrics were last written."""

  duration: Any = None

  def merge(self, other: Time) -> Time:
    """Keeps the duration: it is set after merging."""
    del other
    return self

  def replace_duration(self, duration: Any) -> Time:
    """Returns the metric with its duration (seconds)."""
    return self.replace(duration=duration)

  def compute(self) -> Any:
    """Returns the number."""
    return self.duration


@flax.struct.dataclass
class TimeRate(Time):
  """A count per second."""

  numerator: Any = 0

  @classmethod
  def from_model_output(cls, numerator: Any, **_) -> TimeRate:
    """Makes a rate of `numerator` per second."""
    return cls(numerator=numerator)

  def merge(self, other: TimeRate) -> TimeRate:
    """Adds the other metric."""
    return type(self)(numerator=self.numerator + other.numerator, duration=self.duration)

  def compute(self) -> Any:
    """Returns the number."""
    return self.numerator / self.duration


@flax.struct.dataclass
class StepsPerTime(Step, Time):
  """Steps per second."""

  @classmethod
  def from_model_output(cls, steps: Any = 1, **_) -> StepsPerTime:
    """Makes a rate of `steps` steps per second."""
    return cls(steps=steps)

  def merge(self, other: StepsPerTime) -> StepsPerTime:
    """Adds the other metric."""
    return type(self)(steps=self.steps + other.steps, duration=self.duration)

  def compute(self) -> Any:
    """Returns the number."""
    return self.steps / self.duration


def set_time_metrics_duration(
  metrics: Mapping[str, clu_metrics.Metric], duration: Any
) -> dict[str, clu_metrics.Metric]:
  """Returns the metrics with the duration (seconds) set in time metrics."""
  timed = dict(metrics)
  for name, metric in metrics.items():
    if isinstance(metric, Time):
      timed[name] = metric.replace_duration(duration)
  return timed


def set_microbatch_adjusted_metrics_microbatches(
  metrics: Mapping[str, clu_metrics.Metric], num_microbatches: int
) -> dict[str, clu_metrics.Metric]:
  """Returns metrics that count a step once, after merging those of its microbatches."""
  adjusted = dict(metrics)
  for name, metric in metrics.items():
    if isinstance(metric, Step):
      adjusted[name] = metric.replace_steps(metric.steps / num_microbatches)
  return adjusted


def untimed(metrics: Mapping[str, clu_metrics.Metric]) -> dict[str, clu_metrics.Metric]:
  """Returns the metrics of a step whose time does not count (it was compiled)."""

  def without_count(metric: clu_metrics.Metric) -> clu_metrics.Metric:
    if isinstance(metric, TimeRate):
      return metric.replace(numerator=0 * metric.numerator)
    if isinstance(metric, StepsPerTime):
      return metric.replace_steps(0 * metric.steps)
    return metric

  return {name: without_count(metric) for name, metric in metrics.items()}


def merge_metrics(
  a: Mapping[str, clu_metrics.Metric] | None, b: Mapping[str, clu_metrics.Metric]
) -> dict[str, clu_metrics.Metric]:
  """Merges metrics name by name; `a` is None for the first."""
  if a is None:
    return dict(b)
  return {name: a[name].merge(metric) for name, metric in b.items()}


def compute_values(metrics: Mapping[str, clu_metrics.Metric]) -> MutableMapping[str, Any]:
  """Computes all metrics on the host.

  Returns:
    Mapping from name to `clu.values.Scalar`, which clu's writers and T5X's summaries take.
  """
  host = jax.device_get(metrics)
  return {name: clu_values.Scalar(np.asarray(m.compute())) for name, m in host.items()}


def compute_base_metrics(
  logits: Array,
  targets: Array,
  mask: Array | None,
  loss: Array,
  weight_sum: Array | None = None,
  z_loss: Array | None = None,
) -> dict[str, clu_metrics.Metric]:
  """Makes the metrics every model reports.

  Args:
    logits: `[B, T, V]`.
    targets: int `[B, T]`.
    mask: loss weights `[B, T]`; accuracy counts every non-zero weight as 1. None is all 1.
    loss: total loss of the batch.
    weight_sum: sum of the weights used in the loss; None is that of `mask`.
    z_loss: part of `loss` that is z-loss.

  Returns:
    Metrics by T5X's names. `timing/*` still need a duration.
  """
  if mask is None:
    mask = jnp.ones_like(targets)
  if weight_sum is None:
    weight_sum = jnp.sum(mask)
  num_tokens, num_seqs, num_devices = targets.size, targets.shape[0], jax.device_count()
  per_token = functools.partial(clu_metrics.Average, count=jnp.asarray(num_tokens, jnp.int32))
  metrics = {
    "accuracy": clu_metrics.Accuracy.from_model_output(
      logits=logits, labels=targets, mask=mask != 0
    ),
    "loss": AveragePerStep(total=loss),
    "loss_per_nonpadding_target_token": clu_metrics.Average(total=loss, count=weight_sum),
    "loss_per_all_target_tokens": per_token(total=loss),
    "non_padding_fraction/loss_weights": per_token(total=weight_sum),
    "timing/seqs_per_second": TimeRate.from_model_output(numerator=num_seqs),
    "timing/steps_per_second": StepsPerTime(),
    "timing/seconds": Time(),
    "timing/seqs": Sum(total=jnp.asarray(num_seqs, jnp.int32)),
    "timing/seqs_per_second_per_core": TimeRate.from_model_output(numerator=num_seqs / num_devices),
    "timing/target_tokens_per_second": TimeRate.from_model_output(numerator=num_tokens),
    "timing/target_tokens_per_second_per_core": TimeRate.from_model_output(
      numerator=num_tokens / num_devices
    ),
  }
  if z_loss is not None:
    metrics["z_loss"] = AveragePerStep(total=z_loss)
    metrics["cross_ent_loss"] = AveragePerStep(total=loss - z_loss)
    metrics["z_loss_per_all_target_tokens"] = per_token(total=z_loss)
    metrics["cross_ent_loss_per_all_target_tokens"] = per_token(total=loss - z_loss)
  return metrics


def compute_padding_metrics(
  batch: Mapping[str, Array], features: tuple[str, ...]
) -> dict[str, clu_metrics.Metric]:
  """Makes the metrics of how well batches are filled.

  Args:
    batch: model features; packed if it has `<stack>_segment_ids`.
    features: token features, e.g. ('encoder_input_tokens', 'decoder_target_tokens').

  Returns:
    `non_padding_fraction/<…>` and `/overall` (in [0, 1]), and `effective_batch_size/<…>`
    (examples): non-empty rows, or packed examples. <…> is the feature, or the stack if packed.
  """
  metrics: dict[str, clu_metrics.Metric] = {}
  real, total = jnp.zeros((), jnp.int32), 0
  for feature in features:
    stack, tokens = feature.split("_", 1)[0], batch[feature]
    num_real = jnp.sum(tokens > 0)
    real, total = real + num_real, total + tokens.size
    segments = batch.get(f"{stack}_segment_ids")
    name = stack
    if segments is None:
      name, size = feature, jnp.sum((tokens > 0).any(axis=-1), dtype=jnp.int32)
    else:
      size = jnp.sum(segments.max(axis=-1), dtype=jnp.int32)
    metrics[f"non_padding_fraction/{name}"] = _average(num_real, tokens.size)
    metrics[f"effective_batch_size/{name}"] = AveragePerStep(total=size)
  metrics["non_padding_fraction/overall"] = _average(real, total)
  return metrics


def _average(total: Array, count: int) -> clu_metrics.Average:
  return clu_metrics.Average(total=total.astype(jnp.float32), count=jnp.asarray(count, jnp.int32))
