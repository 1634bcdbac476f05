"""Metrics of parameters, gradients and updates, per array. Re-exported by `t5x.trainer`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from t5x import metrics as metrics_lib
from t5x._checkpoint.read import flatten

PyTree = Any


def _rms(x: jax.Array) -> jax.Array:
  return jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32))))


def _largest(x: jax.Array) -> jax.Array:
  return jnp.max(jnp.abs(x))


class WeightMetricsComputer:
  """Computes the sizes of parameters, gradients and updates at every step.

  Metrics, averaged over steps: `weight_rms/<param>` and `weight_max/<param>` after the update,
  `weight_gradient_rms/<param>`, `weight_update_rms/<param>` and, of the update divided by the
  parameter before it, `weight_update_divided_by_weight_rms/<param>`; and `weight_gradient_norm` of
  all gradients together. Bind `trainer.Trainer.weight_metrics_computer =
  @trainer.WeightMetricsComputer()`.
  """

  def compute_metrics(self, gradients: PyTree, old_train_state, new_train_state) -> dict[str, Any]:
    """Returns {name: AveragePerStep} of one step.

    Args:
        gradients: tree like the parameters.
        old_train_state: before the update (`params` is read).
        new_train_state: after it.
    """
    old_params, new_params = flatten(old_train_state.params), flatten(new_train_state.params)
    grads = flatten(gradients)
    squares = [jnp.sum(jnp.square(g.astype(jnp.float32))) for g in grads.values()]
    values = {"weight_gradient_norm": jnp.sqrt(sum(squares))}
    for name, param in old_params.items():
      update = new_params[name].astype(jnp.float32) - param.astype(jnp.float32)
      values[f"weight_rms/{name}"] = _rms(new_params[name])
      values[f"weight_max/{name}"] = _largest(new_params[name])
      values[f"weight_gradient_rms/{name}"] = _rms(grads[name])
      values[f"weight_update_rms/{name}"] = _rms(update)
      values[f"weight_update_divided_by_weight_rms/{name}"] = _rms(update / param)
    return {k: metrics_lib.AveragePerStep.from_model_output(v) for k, v in values.items()}
