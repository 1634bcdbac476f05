"""Choosing a token by its probability; see `t5x.decoding`.

Shape letters: R rows, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from t5x._decode.state import NEG_INF

Array = jax.Array

# At or below this, sampling is greedy: logits divided by less would lose their differences.
MIN_TEMPERATURE = 1e-4


def sample_token(
  key: Array,
  logits: Array,
  temperature: float | Array,
  topk: int | Array,
  topp: float | Array,
  rescale_log_probs: bool,
) -> tuple[Array, Array]:
  """Chooses a token per row.

  Args:
    key: random key.
    logits: float32 `[R, V]`.
    temperature: a number, or one per row `[R]`.
    topk: see `decoding.temperature_sample`; may be traced.
    topp: see `decoding.temperature_sample`; may be traced.
    rescale_log_probs: see `decoding.temperature_sample`.

  Returns:
    (tokens int32 `[R]`, log probabilities float32 `[R]`).
  """
  fixed = isinstance(temperature, (int, float))
  if (isinstance(topk, int) and topk == 1) or (fixed and temperature <= MIN_TEMPERATURE):
    return _most_probable(logits, rescale_log_probs)
  heat = temperature if fixed else jnp.asarray(temperature)
  divisor = jnp.maximum(heat, MIN_TEMPERATURE)
  scaled = logits / (divisor[:, None] if jnp.ndim(divisor) else divisor)
  scaled = _keep_top(scaled, topk)
  if not isinstance(topp, (int, float)) or topp:
    scaled = keep_nucleus(scaled, topp)
  token = jax.random.categorical(key, scaled).astype(jnp.int32)
  logp = _log_prob_of(token, scaled if rescale_log_probs else logits)
  if fixed:
    return token, logp
  greedy_token, greedy_logp = _most_probable(logits, rescale_log_probs)
  sampled = heat > MIN_TEMPERATURE
  return jnp.where(sampled, token, greedy_token), jnp.where(sampled, logp, greedy_logp)


def _most_probable(logits: Array, rescale_log_probs: bool) -> tuple[Array, Array]:
  token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
  if rescale_log_probs:
    return token, jnp.zeros(token.shape, jnp.float32)
  return token, _log_prob_of(token, logits)


def _log_prob_of(token: Array, logits: Array) -> Array:
  logp = jax.nn.log_softmax(logits)
  return jnp.take_along_axis(logp, token[:, None], axis=1)[:, 0]


def _keep_top(logits: Array, topk: Any) -> Array:
  """Masks all but the `topk` most probable tokens; 0 masks none."""
  if isinstance(topk, int):
    if not topk:
      return logits
    kth = lax.top_k(logits, min(topk, logits.shape[-1]))[0][:, -1:]
    return jnp.where(logits < kth, NEG_INF, logits)
  ordered = jnp.flip(jnp.sort(logits, axis=-1), axis=-1)
  kth = lax.dynamic_index_in_dim(ordered, jnp.maximum(topk, 1) - 1, axis=1)
  return jnp.where((topk > 0) & (logits < kth), NEG_INF, logits)


def keep_nucleus(logits: Array, topp: float | Array) -> Array:
  """Masks all but the fewest most probable tokens whose joint probability reaches `topp`."""
  ordered = jnp.flip(jnp.sort(logits, axis=-1), axis=-1)
  before = jnp.cumsum(jax.nn.softmax(ordered), axis=-1) - jax.nn.softmax(ordered)
  # The most probable token stays whatever topp is: nothing comes before it.
  num_kept = jnp.sum(before < jnp.maximum(topp, np.finfo(np.float32).tiny), axis=-1)
  threshold = jnp.take_along_axis(ordered, num_kept[:, None] - 1, axis=-1)
  return jnp.where(logits < threshold, NEG_INF, logits)
