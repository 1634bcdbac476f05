"""Softmax attention with a custom gradient: few passes over the scores.

What attention costs outside of its matrix products is passes over arrays of the size of the
scores, `[B, H, Q, K]`. Here the forward pass makes two (scores; weights times values) and the
backward pass four, where automatic differentiation of a plain softmax makes three and five:

- the sum that normalises a row of weights is one more column of the product with the values, and
  the division is left to its result (as in Dao et al. 2022, arXiv:2205.14135);
- the backward pass needs `sum_k weights * d_weights` per query, which is `sum_d output * d_output`;
- positions' bias `[1, H, Q, K]` and mask `[B, 1, Q, K]` are never added up to `[B, H, Q, K]`.

Shape letters: B batch, Q query length, K key length, H heads, D head size.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from t5x.examples.t5 import products

Array = jax.Array


def describe() -> str:
  """Describes briefly how attention is computed on this machine's devices."""
  details = {"gpu": "; cuDNN's fused kernel is not used"}
  if jax.device_count() == 1:
    details["cpu"] = ", in blocks where a batch of scores exceeds the cache"
  return f"attention as XLA compiles it{details.get(jax.default_backend(), '')}"


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def attend(
  query: Array,
  key: Array,
  value: Array,
  bias: Array | None = None,
  mask: Array | None = None,
  float32_scores: bool = False,
) -> Array:
  """Computes `softmax(query key^T + bias + mask) value`.

  Scores are kept in the type of `query`; exponentials and sums are float32 in any case.

  Args:
    query: `[B, H, Q, D]`.
    key: `[B, H, K, D]`.
    value: `[B, H, K, D]`.
    bias: added to the scores, `[B or 1, H or 1, Q or 1, K or 1]`; differentiated. None for none.
    mask: added to the scores, of a like shape; not differentiated. None for none.
    float32_scores: keep scores in float32 whatever the type of `query`.

  Returns:
    `[B, H, Q, D]` in the type of `value`.
  """
  return _forward(query, key, value, bias, mask, float32_scores)[0]


def add_terms(scores: Array, *terms: Array | None) -> Array:
  """Adds bias and mask to scores, in their type; None adds nothing."""
  for term in terms:
    if term is not None:
      scores = scores + term.astype(scores.dtype)
  return scores


def _forward(query, key, value, bias, mask, float32_scores):
  all_scores = scores(query, key, bias, mask, float32_scores)
  out, largest, total = weighted_mean(all_scores, value)
  return out, (query, key, value, bias, all_scores, largest, total, out)


def _backward(float32_scores, residuals, d_out):
  del float32_scores
  query, key, value, bias, *saved = residuals
  *gradients, d_scores = backward(query, key, value, *saved, d_out)
  d_bias = None
  if bias is not None:
    d_bias = d_scores if bias.shape[0] > 1 else _sum_rows(d_scores)
    axes = tuple(i for i in (1, 2, 3) if bias.shape[i] == 1)
    d_bias = jnp.sum(d_bias, axes, keepdims=True) if axes else d_bias
    d_bias = d_bias.astype(bias.dtype)
  return *gradients, d_bias, None


def scores(
  query: Array, key: Array, bias: Array | None, mask: Array | None, float32_scores: bool
) -> Array:
  """Computes `query key^T + bias + mask`, `[..., Q, K]`."""
  dtype = jnp.float32 if float32_scores else None
  scores = products.einsum("...qd,...kd->...qk", query, key, dtype)
  return add_terms(scores, bias, mask)


def weighted_mean(scores: Array, value: Array) -> tuple[Array, Array, Array]:
  """Computes `softmax(scores) value`.

  Args:
    scores: `[..., Q, K]`.
    value: `[..., K, D]`.

  Returns:
    The result, `[..., Q, D]`, and what `backward` needs, both `[..., Q, 1]` in float32: the largest
    score and the sum of the exponentials relative to it.
  """
  largest = jnp.max(scores, axis=-1, keepdims=True).astype(jnp.float32)
  weights = jnp.exp(scores.astype(jnp.float32) - largest).astype(value.dtype)
  ones = jnp.ones((*value.shape[:-1], 1), value.dtype)
  sums = products.einsum(
    "...qk,...kd->...qd", weights, jnp.concatenate([value, ones], axis=-1), jnp.float32
  )
  total = sums[..., -1:]  # at least 1: the largest weight is
  # Not as one logarithm: where all keys are masked, that of the total is lost in the -1e10.
  return (sums[..., :-1] / total).astype(value.dtype), largest, total


def backward(
  query: Array,
  key: Array,
  value: Array,
  scores: Array,
  largest: Array,
  total: Array,
  out: Array,
  d_out: Array,
) -> tuple[Array, Array, Array, Array]:
  """Returns the gradients of `query`, `key`, `value` and `scores`, from that of the result."""
  dtype = value.dtype
  weights = jnp.exp(scores.astype(jnp.float32) - largest) * (1.0 / total)
  d_value = products.einsum("...qk,...qd->...kd", weights.astype(dtype), d_out)
  d_weights = products.einsum("...qd,...kd->...qk", d_out, value, jnp.float32)
  mean = jnp.sum(d_out.astype(jnp.float32) * out.astype(jnp.float32), axis=-1, keepdims=True)
  d_scores = (weights * (d_weights - mean)).astype(dtype)
  d_query = products.einsum("...qk,...kd->...qd", d_scores, key)
  d_key = products.einsum("...qk,...qd->...kd", d_scores, query)
  return d_query, d_key, d_value, d_scores


def _sum_rows(x):
  """Sums over the first axis, kept, in float32, in the way that is fast on the backend."""
  if jax.default_backend() == "tpu":  # within the pass that computes `x`
    return jnp.sum(x, axis=0, keepdims=True, dtype=jnp.float32)
  # XLA's reduction over rows is slow on a CPU: a tenth of a training step of T5 Small.
  ones = jnp.ones(x.shape[0], x.dtype)
  return jnp.einsum("b,bhqk->hqk", ones, x, preferred_element_type=jnp.float32)[None]


attend.defvjp(_forward, _backward)
