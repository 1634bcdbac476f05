"""Attention of a few queries to cached keys and values, when decoding.

A decoding step has one query per decode, so it is bound by reading the caches. How these are laid
out decides whether the backend's matrix units can be used for that:

- On a CPU or GPU, `[B, H, L, D]`: each head is a matrix, contiguous in memory.
- On a TPU, `[B, L, G, H/G*D]`: all heads side by side. A product with one row per head would go to
  the vector unit, which takes ten times as long as the memory does (t5x_lite/docs/tpu-aot.md).
  Instead the queries of all heads are put on the diagonal of one matrix `[H/G, H/G*D]`, whose
  product with the keys is that of every head with its own. Multiplying with the zeros costs the
  matrix unit less than waiting. G is the number of model partitions, of which each holds H/G heads.

Shape letters: B batch, N queries per row, L length of the cache, H heads, D head size.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from t5x import active_mesh
from t5x.examples.t5 import products, softmax_attention

Array = jax.Array


def heads_side_by_side() -> bool:
  """Whether caches are laid out as on a TPU."""
  return jax.default_backend() == "tpu"


def length_axis() -> int:
  """Returns the axis of a cache that counts tokens."""
  return 1 if heads_side_by_side() else 2


def to_cache(x: Array) -> Array:
  """Keys or values `[B, L, H, D]` in the layout of the caches."""
  if not heads_side_by_side():
    return x.swapaxes(1, 2)
  batch, length, heads, size = x.shape
  groups = _groups(heads)
  x = x.reshape(batch, length, groups, heads // groups * size)
  return active_mesh.with_logical_constraint(x, ("batch", None, "heads", None))


def attend(
  query: Array,
  key: Array,
  value: Array,
  bias: Array | None = None,
  mask: Array | None = None,
  float32_scores: bool = False,
) -> Array:
  """Softmax attention to caches.

  Args:
    query: `[B, N, H, D]`.
    key: from `to_cache`.
    value: from `to_cache`.
    bias: added to the scores, `[1, H, 1, L]`, or None.
    mask: added to the scores, `[B or 1, 1, 1, L]`, or None.
    float32_scores: keep scores in float32 whatever the type of `query`.

  Returns:
    `[B, N, H, D]` in the type of `value`.
  """
  scores_type = jnp.float32 if float32_scores else None
  if not heads_side_by_side():
    query = query.swapaxes(1, 2)
    scores = products.einsum("bhnd,bhld->bhnl", query, key, scores_type)
    weights = _softmax(scores, bias, mask).astype(value.dtype)
    return products.einsum("bhnl,bhld->bhnd", weights, value).swapaxes(1, 2)
  batch, num, heads, size = query.shape
  groups = _groups(heads)
  diagonal = jnp.repeat(jnp.eye(heads // groups, dtype=query.dtype), size, axis=1)  # [H/G, H/G*D]
  rows = query.reshape(batch, num, groups, 1, -1) * diagonal
  scores = jnp.einsum("bngre,blge->bgrnl", rows, key, preferred_element_type=scores_type)
  scores = scores.reshape(batch, heads, num, -1)
  weights = _softmax(scores, bias, mask).astype(value.dtype)
  weights = weights.reshape(batch, groups, heads // groups, num, -1)
  mixed = jnp.einsum("bgrnl,blge->bngre", weights, value)
  return (mixed * diagonal).sum(axis=3).reshape(query.shape)


def _groups(heads: int) -> int:
  partitions = active_mesh.num_model_partitions()
  return 1 if heads % partitions else partitions


def _softmax(scores: Array, bias: Array | None, mask: Array | None) -> Array:
  """Weights `[B, H, N, L]` in float32."""
  scores = softmax_attention.add_terms(scores, bias, mask)
  return jax.nn.softmax(scores.astype(jnp.float32), axis=-1)
