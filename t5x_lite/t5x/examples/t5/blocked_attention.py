"""Softmax attention in blocks whose scores stay in a CPU's cache.

Over a whole batch the scores, `[B, H, Q, K]`, go through memory at every pass. Here one row and a
few heads are computed at a time, and the backward pass computes the scores again, as in Dao et al.
2022 (arXiv:2205.14135), but for all keys at once. Accelerators have their own ways to do so.

Shape letters as in `softmax_attention`; N groups of heads, G heads in a group.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp

from t5x import active_mesh
from t5x.examples.t5 import softmax_attention

Array = jax.Array

# Bytes of float32 scores. Less than these in all: the batch fits the cache as it is.
_WHOLE = 6_000_000
_BLOCK = 2_000_000


def applies(query: Array, key: Array, bias: Array | None, mask: Array | None) -> bool:
  """Whether `attend` is the faster one: on one CPU, and with scores that are past its cache.

  Args:
    query: `[B, H, Q, D]`.
    key: `[B, H, K, D]`.
    bias: None, or what can be added to the scores; `[1, H, Q, K]` or it does not apply.
    mask: likewise; one for all heads or it does not apply.
  """
  if jax.default_backend() != "cpu" or active_mesh.num_devices() > 1:
    return False
  batch, *scores = (*query.shape[:3], key.shape[2])
  fits = bias is None or bias.shape == (1, *scores)
  fits = fits and (mask is None or mask.shape[1] == 1)
  return fits and 4 * batch * math.prod(scores) > _WHOLE


def attend(
  query: Array,
  key: Array,
  value: Array,
  bias: Array | None = None,
  mask: Array | None = None,
  float32_scores: bool = False,
) -> Array:
  """As `softmax_attention.attend`, equal to it up to rounding."""
  batch, heads, queries, _ = query.shape
  if mask is not None:
    mask = jnp.broadcast_to(mask, (batch, 1, *mask.shape[2:]))
    mask = jax.lax.optimization_barrier(mask)  # or it is computed for each head again
  if bias is not None:
    bias = jax.lax.optimization_barrier(bias)
  split = functools.partial(_split, group=_group_size(heads, queries * key.shape[2]))
  out = _attend(split(query), split(key), split(value), split(bias), mask, float32_scores)
  return out.swapaxes(0, 1).reshape(batch, heads, queries, -1)


def _split(x: Array | None, group: int) -> Array | None:
  """[B, H, ...] -> [N, B, G, ...]."""
  if x is None:
    return None
  batch, heads, *rest = x.shape
  return x.reshape(batch, heads // group, group, *rest).swapaxes(0, 1)


def _group_size(heads: int, head: int) -> int:
  """The most heads that divide all and fit a block, at least one; `head`: scores of one."""
  divisors = [n for n in range(1, heads + 1) if heads % n == 0]
  return max((n for n in divisors if 4 * n * head <= _BLOCK), default=1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _attend(query, key, value, bias, mask, float32_scores):
  return _forward(query, key, value, bias, mask, float32_scores)[0]


def _forward(query, key, value, bias, mask, float32_scores):
  def of_group(group):
    *inputs, bias = group  # [B, G, ...], [1, G, Q, K]

    def of_row(row):
      query, key, value, mask = row
      scores = softmax_attention.scores(query, key, _first(bias), mask, float32_scores)
      return softmax_attention.weighted_mean(scores, value)

    return jax.lax.map(of_row, (*inputs, mask))

  out, largest, total = jax.lax.map(of_group, (query, key, value, bias))
  return out, (query, key, value, bias, largest, total, out, mask)


def _backward(float32_scores, residuals, d_out):
  *inputs, bias, largest, total, out, mask = residuals

  def of_group(group):
    *inputs, bias = group

    def of_row(d_bias, row):
      mask, query, key, value, *rest = row
      scores = softmax_attention.scores(query, key, _first(bias), mask, float32_scores)
      *gradients, d_scores = softmax_attention.backward(query, key, value, scores, *rest)
      return None if bias is None else d_bias + d_scores, gradients

    d_bias = None if bias is None else jnp.zeros(bias.shape[1:], jnp.float32)
    return jax.lax.scan(of_row, d_bias, (mask, *inputs))

  d_bias, gradients = jax.lax.map(of_group, (*inputs, largest, total, out, d_out, bias))
  if bias is not None:
    d_bias = d_bias[:, None].astype(bias.dtype)
  return *gradients, d_bias, None


def _first(x: Array | None) -> Array | None:
  return None if x is None else x[0]


_attend.defvjp(_forward, _backward)
