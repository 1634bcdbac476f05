"""Choosing a token by its probability; see `t5x.decoding`.

Shape letters: R rows, V vocabulary.
"""

from __future__ import annotations

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
  temperature: float,
  topk: int,
  topp: float,
  rescale_log_probs: bool,
) -> tuple[Array, Array]:
  """Chooses a token per row.

  Args:
    key: random key.
    logits: float32 `[R, V]`.
    temperature, topk, topp, rescale_log_probs: see `decoding.temperature_sample`.

  Returns:
    (tokens int32 `[R]`, log probabilities float32 `[R]`).
  """
  if topk == 1 or temperature <= MIN_TEMPERATURE:
    token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
    no_loss = jnp.zeros(token.shape, jnp.float32)
    return token, no_loss if rescale_log_probs else _log_prob_of(token, logits)
  scaled = logits / temperature
  if topk:
    kth = lax.top_k(scaled, min(topk, scaled.shape[-1]))[0][:, -1:]
    scaled = jnp.where(scaled < kth, NEG_INF, scaled)
  if topp:
    scaled = keep_nucleus(scaled, topp)
  token = jax.random.categorical(key, scaled).astype(jnp.int32)
  return token, _log_prob_of(token, scaled if rescale_log_probs else logits)


def _log_prob_of(token: Array, logits: Array) -> Array:
  logp = jax.nn.log_softmax(logits)
  return jnp.take_along_axis(logp, token[:, None], axis=1)[:, 0]


def keep_nucleus(logits: Array, topp: float) -> Array:
  """Masks all but the fewest most probable tokens whose joint probability reaches `topp`."""
  ordered = jnp.flip(jnp.sort(logits, axis=-1), axis=-1)
  probability_before = jnp.cumsum(jax.nn.softmax(ordered), axis=-1) - jax.nn.softmax(ordered)
  # The most probable token stays whatever topp is: nothing comes before it.
  num_kept = jnp.sum(probability_before < jnp.maximum(topp, np.finfo(np.float32).tiny), axis=-1)
  threshold = jnp.take_along_axis(ordered, num_kept[:, None] - 1, axis=-1)
  return jnp.where(logits < threshold, NEG_INF, logits)
