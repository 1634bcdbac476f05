"""Tokens and relative positions as vectors of T5.

Source of the formulas: Raffel et al. 2020 (T5, arXiv:1910.10683).

Shape letters: B batch, L length, Q query length, K key length, E embedding, H heads, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from t5x import active_mesh
from t5x.errors import T5XError
from t5x.examples.t5 import products
from t5x.examples.t5.dense import Initializer, param_with_axes

Array = jax.Array

default_embed_init = nn.initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)
relpos_init = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")


class Embed(nn.Module):
  """Token embedding, looked up by `take` (a one-hot product would cost 2*V*E flops a token).

  Attributes:
    num_embeddings: V.
    features: E.
    cast_input_dtype: cast tokens to this type first; None does not.
    dtype: type of the embeddings.
    attend_dtype: type of the operands in `attend`; None is `dtype`.
    embedding_init: initialiser of the table.
    one_hot: accepted for T5X's signature; how a token is looked up does not change.
  """

  num_embeddings: int
  features: int
  cast_input_dtype: Any = None
  dtype: Any = jnp.float32
  attend_dtype: Any = None
  embedding_init: Initializer = default_embed_init
  one_hot: bool = False

  def setup(self) -> None:
    """Declares the table."""
    axes = ("vocab", "embed")
    self.embedding = param_with_axes(
      self,
      "embedding",
      self.embedding_init,
      (self.num_embeddings, self.features),
      axes,
    )
    # `attend` takes the parameter as precise as `attend_dtype` is; rows that are looked up are
    # rounded to `dtype` afterwards.
    table = jnp.asarray(
      self.embedding, jnp.promote_types(self.dtype, self.attend_dtype or self.dtype)
    )
    self.table = active_mesh.whole_over_data(table, axes)
    self.copies = active_mesh.copy_per_data_partition(self.table, axes)  # [P, V, E]

  def __call__(self, inputs: Array) -> Array:
    """int tokens `[B, L]` -> `[B, L, E]`."""
    tokens = jnp.asarray(inputs, self.cast_input_dtype)
    if self._divides(tokens):
      x = jax.vmap(_lookup)(self.copies, self._split(tokens)).reshape(*tokens.shape, -1)
    else:
      x = _lookup(self.table, tokens)
    x = x.astype(self.dtype)
    return active_mesh.with_logical_constraint(x, ("batch", "length", "embed"))

  def attend(self, query: Array) -> Array:
    """Logits `[..., V]` in float32 of `query`, `[..., E]`, against the embedding."""
    dtype, float32 = self.attend_dtype or self.dtype, jnp.float32
    x = jnp.asarray(query, dtype)
    if not self._divides(x):
      return products.dot(x, self.table.astype(dtype), float32, transposed=True)
    copies = self.copies.astype(dtype)
    logits = jnp.einsum("p...e,pve->p...v", self._split(x), copies, preferred_element_type=float32)
    return logits.reshape(*x.shape[:-1], -1)

  def _divides(self, x: Array) -> bool:
    """Whether there are several data partitions, with whole rows of `x` each."""
    return len(self.copies) > 1 and x.shape[0] % len(self.copies) == 0

  def _split(self, x: Array) -> Array:
    """`[B, ...]` -> `[P, B/P, ...]`, the rows of each data partition."""
    return x.reshape(len(self.copies), -1, *x.shape[1:])


@jax.custom_vjp
def _lookup(table: Array, tokens: Array) -> Array:
  return jnp.take(table, tokens, axis=0)


def _lookup_backward(residuals, grad):
  # Summed in float32: a token can occur in a batch thousands of times.
  tokens, zeros = residuals
  total = zeros.astype(jnp.float32).at[tokens].add(grad.astype(jnp.float32))
  return total.astype(zeros.dtype), None


_lookup.defvjp(
  lambda table, tokens: (_lookup(table, tokens), (tokens, jnp.zeros_like(table))),
  _lookup_backward,
)


def relative_position_bucket(
  relative_position: Array,
  bidirectional: bool = True,
  num_buckets: int = 32,
  max_distance: int = 128,
) -> Array:
  """Maps relative positions to buckets (Raffel et al. 2020, section 2.1).

  Half of the buckets hold one offset each, the rest grow logarithmically up to `max_distance`;
  everything beyond shares the last one.

  Args:
    relative_position: int array, key position minus query position.
    bidirectional: True for the encoder (the sign gets half of the buckets each); False for the
      decoder (keys after the query share bucket 0).
    num_buckets: number of buckets in all.
    max_distance: distance in tokens from which on all offsets share the last bucket.

  Returns:
    int32 array of the same shape with values in [0, num_buckets).

  Raises:
    T5XError: no bucket would be left for the offsets that share one.
  """
  distance = -relative_position
  offset = jnp.zeros_like(relative_position, dtype=jnp.int32)
  if bidirectional:
    num_buckets //= 2
    offset = (distance < 0).astype(jnp.int32) * num_buckets
    distance = jnp.abs(distance)
  else:
    distance = jnp.maximum(distance, 0)
  by_distance = jnp.asarray(_buckets_by_distance(num_buckets, max_distance))
  return offset + jnp.take(by_distance, distance, mode="clip")


def _buckets_by_distance(num_buckets: int, max_distance: int) -> np.ndarray:
  """Returns the buckets of the distances 0 to max_distance, int32."""
  num_exact = num_buckets // 2
  if not 0 < num_exact < max_distance:
    raise T5XError(
      f"Relative attention of {num_buckets} buckets and a maximum distance of {max_distance} has "
      "no bucket for distances to share."
    )
  distance = np.arange(max_distance + 1)
  # T5X's epsilon and its types, float32 up to the logarithm, decide about distances on an edge.
  ratio = np.log(np.maximum(distance, 1).astype(np.float32) / num_exact + np.finfo(np.float32).eps)
  growth = ratio.astype(np.float64) / np.log(max_distance / num_exact) * (num_buckets - num_exact)
  shared = np.minimum(num_exact + growth.astype(np.int32), num_buckets - 1)
  return np.where(distance < num_exact, distance, shared).astype(np.int32)


class RelativePositionBiases(nn.Module):
  """One learnt bias per head and bucket of relative positions, shared by the layers of a stack.

  Attributes:
    num_heads: H.
    num_buckets, max_distance: as in `relative_position_bucket`.
    dtype: type of the biases.
    embedding_init: initialiser of the table.
  """

  num_heads: int
  num_buckets: int = 32
  max_distance: int = 128
  dtype: Any = jnp.float32
  embedding_init: Initializer = relpos_init

  @nn.compact
  def __call__(
    self,
    qlen: int,
    klen: int,
    bidirectional: bool = True,
    query_index: Array | None = None,
  ) -> Array:
    """Returns the bias to add to attention logits.

    Args:
      qlen: number of query positions (1 when decoding).
      klen: number of key positions.
      bidirectional: as in `relative_position_bucket`.
      query_index: scalar position of the only query when decoding; None if queries start at 0.

    Returns:
      `[1, H, qlen, klen]`.
    """
    table = param_with_axes(
      self,
      "rel_embedding",
      self.embedding_init,
      (self.num_heads, self.num_buckets),
      ("heads", "relpos_buckets"),
    )
    if qlen > 1 and jax.default_backend() == "tpu":
      # A product with one-hot vectors: the matrix unit is done with it before shifting begins.
      offsets = jnp.arange(klen)[None, :] - jnp.arange(qlen)[:, None]
      buckets = relative_position_bucket(
        offsets, bidirectional, self.num_buckets, self.max_distance
      )
      one_hot = jax.nn.one_hot(buckets, self.num_buckets, dtype=self.dtype)
      return jnp.einsum("hn,qkn->hqk", table.astype(self.dtype), one_hot)[None]
    first_offset = -(qlen - 1) if query_index is None else -query_index
    offsets = first_offset + jnp.arange(qlen + klen - 1, dtype=jnp.int32)
    buckets = relative_position_bucket(offsets, bidirectional, self.num_buckets, self.max_distance)
    per_offset = jnp.take(table.astype(self.dtype), buckets, axis=1)
    return _toeplitz(per_offset, qlen)[None]


def _toeplitz(per_offset: Array, query_length: int) -> Array:
  """Spreads a bias per offset, `[H, Q+K-1]`, over the diagonals of `[H, Q, K]`.

  Only the Q+K-1 distinct offsets are looked up. Rows are then shifted by padding each by one
  and reshaping, so that neither direction needs a gather or scatter over Q*K entries.
  """
  if query_length == 1:
    return per_offset[:, None, :]
  num_heads, width = per_offset.shape
  rows = jnp.broadcast_to(per_offset[:, None, :], (num_heads, query_length, width))
  rows = jnp.pad(rows, ((0, 0), (0, 0), (0, 1))).reshape(num_heads, -1)
  rows = rows[:, : query_length * width].reshape(num_heads, query_length, width)
  return rows[:, :, query_length - 1 :]
