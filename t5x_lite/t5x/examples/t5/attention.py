"""Multi-head attention of T5: no bias terms, no 1/sqrt(d) on the query, cached decoding.

Shape letters: B batch, N decodes per example, Q query length, K key length, E embedding, H heads,
D head size.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from t5x import partitioning
from t5x.errors import T5XError
from t5x.examples.t5 import layers

Array = jax.Array


def scaled_query_init(head_dim: int) -> layers.Initializer:
  """Initialiser of the query kernel: the usual one over sqrt(head_dim).

  T5 folds attention's 1/sqrt(d) into this initialiser; the forward pass does not rescale
  (Raffel et al. 2020; Shazeer et al. 2018, Mesh TensorFlow).
  """
  return lambda *args: layers.kernel_init(*args) / math.sqrt(head_dim)


def dot_product_attention(
  query: Array,
  key: Array,
  value: Array,
  bias: Array | None,
  dropout_rng: Array | None = None,
  dropout_rate: float = 0.0,
  float32_logits: bool = False,
  heads_first: bool = False,
) -> Array:
  """Softmax attention.

  Args:
    query: `[B, Q, H, D]`.
    key: `[B, K, H, D]`, or `[B, H, K, D]` with `heads_first` (the layout of the caches).
    value: as `key`.
    bias: added to the logits, broadcast to `[B, H, Q, K]`; None for none.
    dropout_rng: drops attention weights if given.
    dropout_rate: probability in [0, 1) of dropping a weight.
    float32_logits: compute logits and softmax in float32 whatever the type of the inputs.
    heads_first: layout of `key` and `value`.

  Returns:
    `[B, Q, H, D]` in the type of `value`.
  """
  dtype = value.dtype
  if float32_logits:
    query, key = query.astype(jnp.float32), key.astype(jnp.float32)
  # Heads first: XLA on CPU multiplies batches of matrices several times faster in this layout,
  # and on an accelerator the transposition is a choice of layout.
  query = query.swapaxes(1, 2)
  if not heads_first:
    key, value = key.swapaxes(1, 2), value.swapaxes(1, 2)
  logits = jnp.einsum("bhqd,bhkd->bhqk", query, key)
  if bias is not None:
    logits = logits + bias.astype(logits.dtype)
  weights = jax.nn.softmax(logits, axis=-1).astype(dtype)
  if dropout_rng is not None and dropout_rate > 0.0:
    # The same mask for all queries of a row, as in T5: fewer random bits.
    shape = (*weights.shape[:2], 1, weights.shape[3])
    keep = jax.random.bernoulli(dropout_rng, 1.0 - dropout_rate, shape)
    weights = weights * (keep.astype(dtype) / jnp.asarray(1.0 - dropout_rate, dtype))
  return jnp.einsum("bhqk,bhkd->bhqd", weights, value).swapaxes(1, 2)


class MultiHeadDotProductAttention(nn.Module):
  """Attention with kernels `[E, H*D]` and `[H*D, E]`.

  In decoding, self-attention keeps its keys and values in the collection `cache` and
  cross-attention in `cross_cache`. The first is per decode and changes every step. The second is
  per example, computed once from the encoder's output and never written again, so that decoding
  neither projects it anew, nor copies it per beam, nor carries it through the loop.
  """

  num_heads: int
  head_dim: int
  dtype: Any = jnp.float32
  dropout_rate: float = 0.0
  float32_logits: bool = False

  def setup(self) -> None:
    """Declares the three input projections."""
    features, axes = self.num_heads * self.head_dim, ("embed", "joined_kv")
    self.query = layers.Dense(
      features, axes, init=scaled_query_init(self.head_dim), dtype=self.dtype
    )
    self.key = layers.Dense(features, axes, dtype=self.dtype)
    self.value = layers.Dense(features, axes, dtype=self.dtype)

  @nn.compact
  def __call__(
    self,
    inputs_q: Array,
    inputs_kv: Array | None,
    bias: Array | None = None,
    deterministic: bool = True,
    decode: str | None = None,
  ) -> Array:
    """Attends from `inputs_q` to `inputs_kv`.

    Args:
      inputs_q: `[B, Q, E]`; `[B*N, 1, E]` when decoding.
      inputs_kv: `[B, K, E]`; not read in cross-attention once its cache exists.
      bias: added to the logits: `[B or 1, H or 1, Q, K]`.
      deterministic: True switches dropout off.
      decode: None, 'self' or 'cross': whether, and as what, to use a cache; 'cross_direct':
        cross-attention of a short decode, without one.

    Returns:
      `[B, Q, E]`.
    """
    query = self._split(self.query(inputs_q))
    dropout_rng = None
    if not deterministic and self.dropout_rate > 0.0:
      dropout_rng = self.make_rng("dropout")
    if decode == "self" and self.has_variable("cache", "cached_key"):
      x = self._attend_self_cached(query, inputs_kv, bias)
    elif decode == "cross":
      x = self._attend_cross_cached(query, inputs_kv, bias)
    elif decode == "cross_direct":
      x = self._attend_cross_directly(query, inputs_kv, bias)
    else:
      key, value = self._split(self.key(inputs_kv)), self._split(self.value(inputs_kv))
      if decode == "self":
        self._create_self_cache(key)
      x = dot_product_attention(
        query, key, value, bias, dropout_rng, self.dropout_rate, self.float32_logits
      )
    x = x.reshape(*x.shape[:2], self.num_heads * self.head_dim)
    return layers.Dense(inputs_q.shape[-1], ("joined_kv", "embed"), dtype=self.dtype, name="out")(x)

  def _split(self, x: Array) -> Array:
    """`[B, L, H*D]` -> `[B, L, H, D]`."""
    x = x.reshape(*x.shape[:-1], self.num_heads, self.head_dim)
    return partitioning.with_logical_constraint(x, ("batch", "length", "heads", "kv"))

  def _create_self_cache(self, key: Array) -> None:
    """Makes an empty cache as long as `key`, `[B, L, H, D]`."""
    batch, length, heads, head_dim = key.shape
    shape = (batch, heads, length, head_dim)
    self.variable("cache", "cached_key", jnp.zeros, shape, key.dtype)
    self.variable("cache", "cached_value", jnp.zeros, shape, key.dtype)
    self.variable("cache", "cache_index", lambda: jnp.zeros((), jnp.int32))

  def _attend_self_cached(self, query: Array, x: Array, bias: Array | None) -> Array:
    """One decoding step: appends the key and value of `x` `[B*N, 1, E]` and attends."""
    if query.shape[1] != 1:
      raise T5XError(
        found=f"{query.shape[1]} decoder tokens in a cached decoding step",
        expected="1 token per step",
        fix="call decode(..., decode=True) with tokens of shape [batch, 1]",
      )
    cached_key = self.variable("cache", "cached_key")
    cached_value = self.variable("cache", "cached_value")
    cache_index = self.variable("cache", "cache_index")
    index = cache_index.value
    key, value = (self._split(f(x)).swapaxes(1, 2) for f in (self.key, self.value))
    key = jax.lax.dynamic_update_slice_in_dim(cached_key.value, key, index, axis=2)
    value = jax.lax.dynamic_update_slice_in_dim(cached_value.value, value, index, axis=2)
    cached_key.value, cached_value.value, cache_index.value = key, value, index + 1
    past = (jnp.arange(key.shape[2]) <= index)[None, None, None, :]
    past_bias = layers.attention_mask_bias(past, self.dtype)
    bias = past_bias if bias is None else bias + past_bias
    return dot_product_attention(
      query, key, value, bias, float32_logits=self.float32_logits, heads_first=True
    )

  def _attend_cross_cached(self, query: Array, encoded: Array, bias: Array | None) -> Array:
    """Attends to the encoder's output, whose keys and values are projected on the first call."""
    cached_key = self.variable(
      "cross_cache", "cached_key", lambda: self._split(self.key(encoded)).swapaxes(1, 2)
    )
    cached_value = self.variable(
      "cross_cache", "cached_value", lambda: self._split(self.value(encoded)).swapaxes(1, 2)
    )
    key, value = cached_key.value, cached_value.value
    # The decodes of one example become queries against the same keys: [B*N, Q] -> [B, N*Q].
    shape, batch = query.shape, key.shape[0]
    x = dot_product_attention(
      query.reshape(batch, -1, *shape[2:]),
      key,
      value,
      bias,
      float32_logits=self.float32_logits,
      heads_first=True,
    )
    return x.reshape(shape)

  def _attend_cross_directly(self, query: Array, encoded: Array, bias: Array | None) -> Array:
    """Attends to the encoder's output without making keys and values of it.

    A key is W e, so a query q meets it as (q W) e: W goes to the few queries instead of the many
    keys, and likewise for values. For a handful of steps that is a fraction of the work of
    projecting every position of the input once.
    """
    kernels = (f.variables["params"]["kernel"].astype(self.dtype) for f in (self.key, self.value))
    key, value = (k.reshape(-1, self.num_heads, self.head_dim) for k in kernels)
    shape, encoded = query.shape, encoded.astype(self.dtype)
    query = query.reshape(encoded.shape[0], -1, *shape[2:])  # [B*N, 1] -> [B, N]
    query = jnp.einsum("bnhd,ehd->bhne", query, key)
    logits = jnp.einsum("bhne,bse->bhns", query, encoded)
    if bias is not None:
      logits = logits + bias.astype(logits.dtype)
    weights = jax.nn.softmax(logits, axis=-1).astype(self.dtype)
    x = jnp.einsum("bhns,bse->bhne", weights, encoded)
    return jnp.einsum("bhne,ehd->bnhd", x, value).reshape(shape)
