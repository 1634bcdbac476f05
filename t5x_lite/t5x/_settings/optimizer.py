"""Checks of an optimizer as gin configures it, which would otherwise fail at its first step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from t5x import adafactor, optimizers
from t5x._process.dtypes import check_dtype
from t5x.errors import T5XError, check_flag, check_number, check_whole, first_line

_NUMBERS = {  # setting of Adafactor: whether it may be None
  "beta1": True,
  "decay_rate": False,
  "step_offset": False,
  "clipping_threshold": True,
  "weight_decay_rate": True,
  "epsilon1": False,
  "epsilon2": False,
  "weight_decay_rate_lr_exponent": True,
  "global_norm_clip_threshold": True,
  "max_parameter_scale": True,
}


def check_optimizer(optimizer: optimizers.OptimizerDef) -> None:
  """Raises T5XError for settings with which Adafactor or optax could not take a step."""
  if isinstance(optimizer, adafactor.Adafactor):
    _check_adafactor(optimizer)
  elif isinstance(optimizer, optimizers.OptaxWrapper):
    _check_optax(optimizer)


def _check_adafactor(optimizer: adafactor.Adafactor) -> None:
  prefix = "adafactor.Adafactor."
  for name, optional in _NUMBERS.items():
    check_number(getattr(optimizer, name), prefix + name, optional=optional)
  check_whole(optimizer.min_dim_size_to_factor, f"{prefix}min_dim_size_to_factor", 0)
  for name in ("factored", "skip_nan_updates", "multiply_by_parameter_scale"):
    if not isinstance(getattr(optimizer, name), adafactor.HParamMap):
      check_flag(getattr(optimizer, name), prefix + name)
  check_dtype(optimizer.dtype_momentum, f"{prefix}dtype_momentum")
  rules = optimizer.logical_factor_rules
  try:
    roles = [] if rules is None else dict(rules).values()
  except (TypeError, ValueError):
    roles = [rules]
  if not all(isinstance(role, adafactor.FactorDim) for role in roles):
    raise T5XError(
      f"{prefix}logical_factor_rules is not a dict of rules.",
      found=repr(rules)[:200],
      expected="{logical axis: FactorDim}, or None",
      fix=f"{prefix}logical_factor_rules = @adafactor.standard_logical_factor_rules()",
    )


def _check_optax(optimizer: optimizers.OptaxWrapper) -> None:
  """Raises T5XError if a setting has the wrong type: optax notices that at the first step."""

  def step(params: Any) -> Any:
    settings = optimizer.update_hyper_params(learning_rate=1.0)
    return optimizer.apply_gradient(settings, params, optimizer.init_state(params), params)

  try:
    jax.eval_shape(step, {"kernel": jax.ShapeDtypeStruct((2, 2), jnp.float32)})
  except TypeError as e:
    raise T5XError(
      "The optimizer cannot take a step with its settings.",
      found=first_line(e),
      expected="numbers, or the values in optax's documentation",
      fix="correct what gin binds to OPTIMIZER and to the optax functions in it",
    ) from e
  except Exception:  # it needs the real parameters
    return
