"""Multi-head attention of T5: no bias terms, no 1/sqrt(d) on the query, cached decoding.

Shape letters: B batch, N decodes per example, Q query length, K key length, E embedding, H heads,
D head size.
"""

from __future__ import annotations

import math
from typing import Any, cast

import jax
import jax.numpy as jnp
from flax import linen as nn

from t5x import active_mesh
from t5x.errors import T5XError
from t5x.examples.t5 import (
  blocked_attention,
  cached_attention,
  dense,
  masks,
  products,
  softmax_attention,
)

Array = jax.Array

kernel_init = nn.initializers.variance_scaling(1.0, "fan_in", "normal")  # the others' is truncated


def scaled_query_init(init: dense.Initializer, head_dim: int) -> dense.Initializer:
  """Initialiser of the query kernel: `init` over sqrt(head_dim).

  T5 folds attention's 1/sqrt(d) into this initialiser; the forward pass does not rescale
  (Raffel et al. 2020; Shazeer et al. 2018, Mesh TensorFlow).
  """
  return lambda *args: init(*args) / math.sqrt(head_dim)


def dot_product_attention(
  query: Array,
  key: Array,
  value: Array,
  bias: Array | None = None,
  dropout_rng: Array | None = None,
  dropout_rate: float = 0.0,
  deterministic: bool = False,
  dtype: Any = None,
  float32_logits: bool = False,
  mask_bias: Array | None = None,
) -> Array:
  """Softmax attention.

  Args:
    query: `[B, Q, H, D]`.
    key: `[B, K, H, D]`.
    value: `[B, K, H, D]`.
    bias: added to the logits, `[B or 1, H or 1, Q or 1, K]`, or None.
    dropout_rng: drops attention weights if given.
    dropout_rate: probability in [0, 1) of dropping a weight.
    deterministic: True drops none.
    dtype: type of the values and the result; None is that of `value`.
    float32_logits: compute logits in float32 whatever the type of the inputs.
    mask_bias: a second bias, with no gradient (see `softmax_attention.attend`: `mask`), or None.

  Returns:
    `[B, Q, H, D]`.
  """
  # Heads first: XLA on CPU multiplies batches of matrices several times faster in this layout,
  # and on an accelerator the transposition is a choice of layout.
  query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
  value = value if dtype is None else value.astype(dtype)
  if dropout_rng is not None and dropout_rate > 0.0 and not deterministic:
    # T5 drops a key for all queries of a row alike. So its value can be dropped instead, which
    # leaves the weights, many times larger, alone.
    keep = dense.keep_mask(dropout_rng, dropout_rate, (*value.shape[:2], 1, value.shape[2]))
    scale = keep.swapaxes(2, 3).astype(value.dtype) / jnp.asarray(1.0 - dropout_rate, value.dtype)
    value = value * scale
  blocked = blocked_attention.applies(query, key, bias, mask_bias)
  attend = (blocked_attention if blocked else softmax_attention).attend
  return attend(query, key, value, bias, mask_bias, float32_logits).swapaxes(1, 2)


class MultiHeadDotProductAttention(nn.Module):
  """Attention with kernels `[E, H*D]` and `[H*D, E]`.

  In decoding, self-attention keeps its keys and values in the collection `cache` and
  cross-attention in `cross_cache`. The first is per decode and changes every step. The second is
  per example, computed once from the encoder's output and never written again, so that decoding
  neither projects it anew, nor copies it per beam, nor carries it through the loop.

  Attributes:
    num_heads: H.
    head_dim: D.
    dtype: type of the computation.
    dropout_rate: probability in [0, 1) of dropping an attention weight.
    kernel_init: initialiser of the kernels; see `scaled_query_init`.
    float32_logits: compute logits in float32 whatever `dtype` is.
  """

  num_heads: int
  head_dim: int
  dtype: Any = jnp.float32
  dropout_rate: float = 0.0
  kernel_init: dense.Initializer = kernel_init
  float32_logits: bool = False

  def setup(self) -> None:
    """Declares the three input projections."""
    self.query = self._project_in(scaled_query_init(self.kernel_init, self.head_dim))
    self.key = self._project_in(self.kernel_init)
    self.value = self._project_in(self.kernel_init)

  def _project_in(self, init: dense.Initializer) -> dense.DenseGeneral:
    """`[B, L, E]` -> `[B, L, H, D]`."""
    return dense.DenseGeneral(
      (self.num_heads, self.head_dim),
      dtype=self.dtype,
      kernel_init=init,
      kernel_axes=("embed", "joined_kv"),
    )

  @nn.compact
  def __call__(
    self,
    inputs_q: Array,
    inputs_kv: Array | None,
    mask: Array | None = None,
    bias: Array | None = None,
    *,
    decode: bool = False,
    deterministic: bool = False,
    cross_decode: str | None = None,
  ) -> Array:
    """Attends from `inputs_q` to `inputs_kv`.

    Args:
      inputs_q: `[B, Q, E]`; `[B*N, 1, E]` when decoding.
      inputs_kv: `[B, K, E]`; None is allowed where a cache has its keys and values.
      mask: which keys to attend to (True, or more than 0), `[B or 1, H or 1, Q or 1, K]`, or None.
      bias: added to the logits, `[B or 1, H or 1, Q, K]`, or None; when decoding, it may also be
        only the row of this step, `[1, H, 1, K]`.
      decode: self-attention with a cache: the first call makes it, each later call has one query.
      deterministic: True switches dropout off.
      cross_decode: 'cached': cross-attention with a cache; 'direct': cross-attention of a short
        decode, without one.

    Returns:
      `[B, Q, E]`.
    """
    query = self._sharded(self.query(inputs_q))
    inputs = cast(Array, inputs_kv)  # where it is None, a cache is read instead
    dropout_rng = None
    if not deterministic and self.dropout_rate > 0.0:
      dropout_rng = self.make_rng("dropout")
    if decode and self.has_variable("cache", "cached_key"):
      x = self._attend_self_cached(query, inputs_q, mask, bias)
    elif cross_decode is not None:
      mask_bias = masks.attention_mask_bias(mask, self.dtype)
      cached = cross_decode == "cached"
      attend = self._attend_cross_cached if cached else self._attend_cross_directly
      x = attend(query, inputs, mask_bias)
    else:
      key, value = self._sharded(self.key(inputs)), self._sharded(self.value(inputs))
      if decode:
        self._create_self_cache(key)
      x = dot_product_attention(
        query,
        key,
        value,
        bias,
        dropout_rng,
        self.dropout_rate,
        float32_logits=self.float32_logits,
        mask_bias=masks.attention_mask_bias(mask, self.dtype),
      )
    return dense.DenseGeneral(
      inputs_q.shape[-1],
      axis=(-2, -1),
      dtype=self.dtype,
      kernel_init=self.kernel_init,
      kernel_axes=("joined_kv", "embed"),
      name="out",
    )(x)

  def _sharded(self, x: Array) -> Array:
    """`x`, `[B, L, H, D]`, divided over the mesh."""
    return active_mesh.with_logical_constraint(x, ("batch", "length", "heads", "kv"))

  def _create_self_cache(self, key: Array) -> None:
    """Makes an empty cache as long as `key`, `[B, L, H, D]`."""
    empty = cached_attention.to_cache(jnp.zeros_like(key))
    self.variable("cache", "cached_key", lambda: empty)
    self.variable("cache", "cached_value", lambda: empty)
    self.variable("cache", "cache_index", lambda: jnp.zeros((), jnp.int32))

  def _attend_self_cached(
    self, query: Array, x: Array, mask: Array | None, bias: Array | None
  ) -> Array:
    """One decoding step: appends the key and value of `x` `[B*N, 1, E]` and attends."""
    if query.shape[1] != 1:
      raise T5XError(f"A cached decoding step takes 1 token per row, not {query.shape[1]}.")
    cached_key: nn.Variable = self.variable("cache", "cached_key")
    cached_value: nn.Variable = self.variable("cache", "cached_value")
    cache_index: nn.Variable = self.variable("cache", "cache_index")
    index = cache_index.value
    key, value = (cached_attention.to_cache(self._sharded(f(x))) for f in (self.key, self.value))
    axis = cached_attention.length_axis()
    key = jax.lax.dynamic_update_slice_in_dim(cached_key.value, key, index, axis=axis)
    value = jax.lax.dynamic_update_slice_in_dim(cached_value.value, value, index, axis=axis)
    cached_key.value, cached_value.value, cache_index.value = key, value, index + 1
    past = (jnp.arange(key.shape[axis]) <= index)[None, None, None, :]
    mask_bias = masks.attention_mask_bias(masks.combine_masks(mask, past, dtype=bool), self.dtype)
    if bias is not None and bias.shape[-2] > 1:
      bias = jax.lax.dynamic_slice_in_dim(bias, index, 1, axis=-2)
    return cached_attention.attend(query, key, value, bias, mask_bias, self.float32_logits)

  def _attend_cross_cached(self, query: Array, encoded: Array, mask: Array | None) -> Array:
    """Attends to the encoder's output, whose keys and values are projected on the first call."""

    def project(layer: dense.DenseGeneral) -> Array:
      return cached_attention.to_cache(self._sharded(layer(encoded)))

    key = self.variable("cross_cache", "cached_key", project, self.key).value
    value = self.variable("cross_cache", "cached_value", project, self.value).value
    # The decodes of one example become queries against the same keys: [B*N, Q] -> [B, N*Q].
    rows = query.reshape(key.shape[0], -1, *query.shape[2:])
    x = cached_attention.attend(rows, key, value, None, mask, self.float32_logits)
    return x.reshape(query.shape)

  def _attend_cross_directly(self, query: Array, encoded: Array, mask: Array | None) -> Array:
    """Attends to the encoder's output without making keys and values of it.

    A key is W e, so a query q meets it as (q W) e: W goes to the few queries instead of the many
    keys, and likewise for values. For a handful of steps that is a fraction of the work of
    projecting every position of the input once.
    """
    kernels = (f.variables["params"]["kernel"].astype(self.dtype) for f in (self.key, self.value))
    key, value = (k.reshape(-1, self.num_heads, self.head_dim) for k in kernels)
    shape, encoded = query.shape, encoded.astype(self.dtype)
    query = query.reshape(encoded.shape[0], -1, *shape[2:])  # [B*N, 1] -> [B, N]
    query = products.einsum("bnhd,ehd->bhne", query, key)
    logits = products.einsum("bhne,bse->bhns", query, encoded)
    logits = softmax_attention.add_terms(logits, mask)
    weights = jax.nn.softmax(logits, axis=-1).astype(self.dtype)
    x = products.einsum("bhns,bse->bhne", weights, encoded)
    return products.einsum("bhne,ehd->bnhd", x, value).reshape(shape)
