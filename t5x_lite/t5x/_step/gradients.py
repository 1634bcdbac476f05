"""Gradients of a batch, in microbatches if asked to, and the update they make.

Re-exported by `t5x.trainer`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from clu import metrics as clu_metrics

from t5x import metrics as metrics_lib
from t5x.errors import T5XError

Metrics = Mapping[str, Any]


def _split(batch, num_microbatches: int):
  """[B, ...] -> [num_microbatches, B / num_microbatches, ...], rows in order."""
  return jax.tree.map(
    lambda x: x.reshape(num_microbatches, x.shape[0] // num_microbatches, *x.shape[1:]), batch
  )


def accumulate_grads_microbatched(
  model,
  train_state,
  batch,
  dropout_rng,
  num_microbatches: int | None,
  data_partition_spec=None,
):
  """Computes the gradients of a batch, in microbatches if asked to.

  Gradients of microbatches are summed, not averaged, and metrics merged. The sum is kept in
  float32 and only then rounded to the gradients' own type: in bfloat16, a sum that has grown to
  256 times its terms would no longer grow.

  Args:
      model: has `loss_fn`, see `Trainer`.
      train_state: its parameters are read.
      batch: {feature: [B, ...]}.
      dropout_rng: key; microbatch i uses its own split.
      num_microbatches: None or 1 computes the batch at once.
      data_partition_spec: sharding of a microbatch's features, or None.

  Returns:
      (gradients, metrics, None); T5X returns a model's mutable collections as the third item.

  Raises:
      T5XError: if the batch size is not divisible by `num_microbatches`.
  """
  params = train_state.params
  grad_fn = jax.value_and_grad(model.loss_fn, has_aux=True)
  if num_microbatches is None or num_microbatches <= 1:
    (_, metrics), grads = grad_fn(params, batch, dropout_rng)
    return grads, metrics, None
  size = next(iter(batch.values())).shape[0]
  if size % num_microbatches:
    raise T5XError(
      f"Batch size {size} does not divide evenly into {num_microbatches} microbatches.",
      fix="change BATCH_SIZE or trainer.Trainer.num_microbatches.",
    )

  def body(total, xs):
    microbatch, rng = xs
    if data_partition_spec is not None:
      microbatch = jax.lax.with_sharding_constraint(microbatch, data_partition_spec)
    (_, metrics), grads = grad_fn(params, microbatch, rng)
    return jax.tree.map(lambda t, g: t + g.astype(t.dtype), total, grads), metrics

  # One microbatch after the other: side by side they would need the memory of the whole batch.
  zeros = jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.promote_types(p.dtype, "float32")), params)
  rngs = jax.random.split(dropout_rng, num_microbatches)
  total, stacked = jax.lax.scan(body, zeros, (_split(batch, num_microbatches), rngs))
  grads = jax.tree.map(lambda t, p: t.astype(p.dtype), total, params)
  per_microbatch = [jax.tree.map(lambda x, i=i: x[i], stacked) for i in range(num_microbatches)]
  metrics = functools.reduce(metrics_lib.merge_metrics, per_microbatch)
  # Each microbatch has counted a step.
  metrics = metrics_lib.set_microbatch_adjusted_metrics_microbatches(metrics, num_microbatches)
  return grads, metrics, None


def apply_grads(
  train_state,
  grad_accum,
  metrics: Metrics,
  learning_rate,
  weight_metrics_computer,
  other_state_variables: Mapping[str, Any] | None = None,
):
  """Returns (the next train state, metrics with `learning_rate` and weight metrics added).

  Args:
      train_state: parameters and slots.
      grad_accum: gradients.
      metrics: this step's metrics.
      learning_rate: this step's learning rate; None leaves it to the optimizer.
      weight_metrics_computer: a `WeightMetricsComputer`, or None.
      other_state_variables: further arguments of the state's `apply_gradient`.
  """
  new_state = train_state.apply_gradient(
    grad_accum, learning_rate=learning_rate, **(other_state_variables or {})
  )
  metrics = dict(metrics)
  if learning_rate is not None:
    metrics["learning_rate"] = clu_metrics.Average(
      total=jnp.float32(learning_rate), count=jnp.int32(1)
    )
  if weight_metrics_computer is not None:
    weights = weight_metrics_computer.compute_metrics(grad_accum, train_state, new_state)
    metrics.update(weights)
  return new_state, metrics
