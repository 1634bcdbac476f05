"""Softmax attention in blocks whose scores stay in a CPU's cache.

Over a whole batch the scores, `[B, H, Q, K]`, go through memory at every pass. Here one row and a
few heads are computed at a time, and the backward pass computes the scores again, as in Dao et al.
2022 (arXiv:2205.14135), but for all keys at once. Accelerators have their own ways to do so.

The heads of a group are separate matrix products, which a CPU computes faster than a batched one,
and in parallel.

Shape letters as in `softmax_attention`; N groups of heads, G heads in a group.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp

from t5x import active_mesh
from t5x.examples.t5 import products, softmax_attention

Array = jax.Array

# Bytes of float32 scores. Up to this many in total, the batch fits the cache as it is.
_WHOLE = 6_000_000
# Heads at a time: more take longer to compile.
_GROUP = 12


def applies(query: Array, key: Array, bias: Array | None, mask: Array | None) -> bool:
  """Whether `attend` is the faster one: on one CPU, with scores that exceed its cache.

  Args:
    query: `[B, H, Q, D]`.
    key: `[B, H, K, D]`.
    bias: None, or added to the scores; `[1, H, Q, K]`, or `attend` does not apply.
    mask: likewise; one for all heads, or `attend` does not apply.
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
  """Like `softmax_attention.attend`, equal to it up to rounding."""
  batch, heads, queries, size = query.shape
  if mask is not None:
    mask = jnp.broadcast_to(mask, (batch, 1, *mask.shape[2:]))
    mask = jax.lax.optimization_barrier(mask)  # otherwise it is computed again for each head
  if bias is not None:
    bias = jax.lax.optimization_barrier(bias)
  # Heads side by side, as the preceding products have them: a head is a few columns of a row.
  flat = (x.swapaxes(1, 2).reshape(batch, x.shape[2], -1) for x in (query, key, value))
  groups = heads // max(n for n in range(1, _GROUP + 1) if heads % n == 0)
  query, key, value = (_split(x, groups) for x in flat)
  if bias is not None:
    bias = bias.reshape(groups, -1, *bias.shape[2:])
  out = _attend(query, key, value, bias, mask, (heads // groups, float32_scores))
  out = jnp.moveaxis(out, 0, 2).reshape(batch, queries, heads, size)
  return out.swapaxes(1, 2)


def _split(x: Array, groups: int) -> Array:
  """[B, L, H*D] -> [N, B, L, G*D]."""
  return jnp.moveaxis(x.reshape(*x.shape[:2], groups, -1), 2, 0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _attend(query, key, value, bias, mask, settings):
  return _forward(query, key, value, bias, mask, settings)[0]


def _forward(query, key, value, bias, mask, settings):
  """Shapes as `_split` makes them; `settings` are (G, whether scores are float32)."""
  heads, float32_scores = settings

  def of_head(bias, mask, query, key, value):
    scores = softmax_attention.scores(query, key, bias, mask, float32_scores)
    largest = jnp.max(scores, axis=-1, keepdims=True).astype(jnp.float32)
    weights = jnp.exp(scores.astype(jnp.float32) - largest)
    total = jnp.sum(weights, axis=-1, keepdims=True)  # at least 1: the largest weight is
    out = products.einsum("...qk,...kd->...qd", weights.astype(value.dtype), value, jnp.float32)
    return (out / total).astype(value.dtype), largest, total

  def of_group(group):
    bias, *inputs = group

    def of_row(row):
      mask, *inputs = row
      per_head = [of_head(*head) for head in _heads(heads, bias, mask, inputs)]
      return [jnp.concatenate(x, axis=-1) for x in zip(*per_head, strict=True)]

    return jax.lax.map(of_row, (mask, *inputs))

  out, largest, total = jax.lax.map(of_group, (bias, query, key, value))
  return out, (query, key, value, bias, mask, largest, total, out)


def _backward(settings, residuals, d_out):
  """Computes the scores of each head again; their gradients add up to that of the bias."""
  heads, float32_scores = settings
  query, key, value, bias, mask, *saved = residuals

  def of_head(bias, mask, query, key, value, *saved):
    scores = softmax_attention.scores(query, key, bias, mask, float32_scores)
    return softmax_attention.backward(query, key, value, scores, *saved)

  def of_group(group):
    bias, *inputs = group

    def of_row(d_bias, row):
      mask, *inputs = row
      per_head = [of_head(*head) for head in _heads(heads, bias, mask, inputs)]
      *gradients, d_scores = zip(*per_head, strict=True)
      if bias is not None:  # one array per head: each is added to in place
        d_bias = [a + b for a, b in zip(d_bias, d_scores, strict=True)]
      return d_bias, [jnp.concatenate(x, axis=-1) for x in gradients]

    d_bias = [] if bias is None else [jnp.zeros(bias.shape[1:], jnp.float32)] * heads
    return jax.lax.scan(of_row, d_bias, (mask, *inputs))

  d_bias, gradients = jax.lax.map(of_group, (bias, query, key, value, *saved, d_out))
  d_bias = None if bias is None else jnp.stack(d_bias, axis=1).astype(bias.dtype)
  return *gradients, d_bias, None


def _heads(
  heads: int, bias: Array | None, mask: Array | None, inputs: Sequence[Array]
) -> Iterator[tuple[Array | None, ...]]:
  """Yields (bias `[Q, K]`, mask, each of the inputs) of one head after the other.

  Args:
    heads: G.
    bias: `[G, Q, K]`, or None.
    mask: `[1, Q, K]`, or None.
    inputs: `[L, G*D]` each; D need not be the same.
  """
  mask = None if mask is None else mask[0]
  columns = [jnp.split(x, heads, axis=-1) for x in inputs]
  for i, head in enumerate(zip(*columns, strict=True)):
    yield (None if bias is None else bias[i]), mask, *head


_attend.defvjp(_forward, _backward)
