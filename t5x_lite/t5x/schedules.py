"""Learning rate schedules as products of factors: T5X's `utils.create_learning_rate_scheduler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t5x.errors import T5XError, check_number

FACTORS = (
  "constant",
  "linear_warmup",
  "linear_decay",
  "rsqrt_decay",
  "rsqrt_normalized_decay",
  "decay_every",
  "cosine_decay",
)


def create_learning_rate_scheduler(
  factors: str = "constant * linear_warmup * rsqrt_decay",
  base_learning_rate: float = 0.5,
  warmup_steps: int = 1000,
  decay_factor: float = 0.5,
  steps_per_decay: int = 20000,
  steps_per_cycle: int = 100000,
  step_offset: int = 0,
  min_learning_rate: float = 1e-8,
) -> Callable[[Any], jax.Array]:
  """Makes a schedule that is a product of factors.

  With s = max(0, step - step_offset), w = warmup_steps and b = base_learning_rate:
    constant: b.
    linear_warmup: min(1, s / w).
    linear_decay: b * min(s / w, 1 + decay_factor * (w - s)), not below 0.
    rsqrt_decay: 1 / sqrt(max(s, w)).
    rsqrt_normalized_decay: sqrt(w) / sqrt(max(s, w)).
    decay_every: decay_factor ** (s // steps_per_decay).
    cosine_decay: half a cosine from 1 to 0 per steps_per_cycle, started after the warm-up.

  Args:
    factors: names joined by `*`, e.g. 'constant * rsqrt_decay'.
    base_learning_rate: b.
    warmup_steps: w, in steps.
    decay_factor: see linear_decay and decay_every.
    steps_per_decay: steps between two decays of decay_every.
    steps_per_cycle: steps of one cosine.
    step_offset: step at which the schedule's clock starts.
    min_learning_rate: the product is never below this.

  Returns:
    A function from step (int scalar) to learning rate (float32 scalar).

  Raises:
    T5XError: a factor is unknown, or a number is invalid.
  """
  prefix = "utils.create_learning_rate_scheduler"
  for number, setting, minimum in (
    (base_learning_rate, "base_learning_rate", 0),
    (warmup_steps, "warmup_steps", 0),
    (decay_factor, "decay_factor", 0),
    (steps_per_decay, "steps_per_decay", 1),
    (steps_per_cycle, "steps_per_cycle", 1),
    (step_offset, "step_offset", None),
    (min_learning_rate, "min_learning_rate", 0),
  ):
    check_number(number, f"{prefix}.{setting}", minimum)
  names = _factor_names(factors)

  def value(name: str, count: jax.Array) -> Any:
    step = count.astype(jnp.float32)
    if name == "constant":
      return base_learning_rate
    if name == "linear_warmup":
      return jnp.minimum(1.0, step / warmup_steps) if warmup_steps else 1.0
    if name == "linear_decay":
      rise = step / warmup_steps if warmup_steps else jnp.inf
      fall = 1.0 + decay_factor * (warmup_steps - step)
      return base_learning_rate * jnp.maximum(0.0, jnp.minimum(rise, fall))
    if name == "rsqrt_decay":
      return 1.0 / jnp.sqrt(jnp.maximum(1.0, jnp.maximum(step, warmup_steps)))
    if name == "rsqrt_normalized_decay":
      root = jnp.sqrt(jnp.maximum(1.0, float(warmup_steps)))
      return root / jnp.sqrt(jnp.maximum(1.0, jnp.maximum(step, warmup_steps)))
    if name == "decay_every":
      return decay_factor ** (count // steps_per_decay)  # of integers, which jit does not round
    progress = jnp.maximum(0.0, (step - warmup_steps) / float(steps_per_cycle))
    return jnp.maximum(0.0, 0.5 * (1.0 + jnp.cos(jnp.pi * (progress % 1.0))))

  def schedule(step: Any) -> jax.Array:
    count = jnp.maximum(0, jnp.asarray(step) - step_offset)
    rate = jnp.float32(1.0)
    for name in names:
      rate = rate * value(name, count)
    return jnp.maximum(rate, min_learning_rate).astype(jnp.float32)

  return schedule


def _factor_names(factors: str) -> list[str]:
  """Splits 'constant * rsqrt_decay' into names; raises T5XError for an unknown one."""
  names = [name.strip() for name in factors.split("*")] if isinstance(factors, str) else [factors]
  for name in names:
    if name not in FACTORS:
      raise T5XError(
        found=f"learning rate factor {name!r} in {factors!r}",
        expected="factors joined by *",
        available=", ".join(FACTORS),
        fix="set utils.create_learning_rate_scheduler.factors",
      )
  return names
