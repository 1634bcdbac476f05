"""Which keys a query of attention may see, as masks and as biases.

Shape letters: B batch (several dimensions with `extra_batch_dims`), Q query length, K key length,
L length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t5x.errors import T5XError

Array = jax.Array

# Large enough that float32 addition swallows the logit it is added to: a query with no key left
# attends uniformly to everything, as in T5X. A larger value would overflow bfloat16 sums.
MASK_BIAS = -1e10


def make_attention_mask(
  query_input: Array,
  key_input: Array,
  pairwise_fn: Callable[[Array, Array], Array] = jnp.multiply,
  extra_batch_dims: int = 0,
  dtype: Any = jnp.float32,
) -> Array:
  """Makes a mask by applying a function to each pair of a query and a key.

  Args:
    query_input: `[B, Q]`, for example whether a token is not padding, or segment ids.
    key_input: `[B, K]`.
    pairwise_fn: maps a query's and a key's value to whether the query sees the key.
    extra_batch_dims: axes of size 1 to add in front.
    dtype: type of the mask.

  Returns:
    `[B, 1, Q, K]`, the axis of size 1 for heads.
  """
  mask = pairwise_fn(query_input[..., :, None], key_input[..., None, :])[..., None, :, :]
  return mask.reshape((1,) * extra_batch_dims + mask.shape).astype(dtype)


def make_causal_mask(x: Array, extra_batch_dims: int = 0, dtype: Any = jnp.float32) -> Array:
  """Makes a mask that lets each position see itself and those before it.

  Args:
    x: `[B, L]`; only its shape matters, padding is ignored.
    extra_batch_dims: axes of size 1 to add in front.
    dtype: type of the mask.

  Returns:
    `[B, 1, L, L]`.
  """
  positions = jnp.broadcast_to(jnp.arange(x.shape[-1]), x.shape)
  return make_attention_mask(positions, positions, jnp.greater_equal, extra_batch_dims, dtype)


def combine_masks(*masks: Array | None, dtype: Any = jnp.float32) -> Array | None:
  """Returns the logical and of the masks other than None; None if there are none.

  Raises:
    T5XError: they differ in rank.
  """
  given = _of_one_rank(masks)
  return functools.reduce(jnp.logical_and, given).astype(dtype) if given else None


def combine_biases(*masks: Array | None) -> Array | None:
  """Returns the sum of the biases other than None; None if there are none.

  Raises:
    T5XError: they differ in rank.
  """
  given = _of_one_rank(masks)
  return functools.reduce(jnp.add, given) if given else None


def _of_one_rank(arrays: tuple[Array | None, ...]) -> list[Array]:
  given = [x for x in arrays if x is not None]
  if len({x.ndim for x in given}) > 1:
    raise T5XError(
      "Attention masks or biases differ in rank.",
      found=", ".join(str(x.shape) for x in given),
      expected="the same number of dimensions, for example [batch, 1, queries, keys]",
    )
  return given


def make_decoder_mask(
  decoder_target_tokens: Array,
  dtype: Any,
  decoder_causal_attention: Array | None = None,
  decoder_segment_ids: Array | None = None,
) -> Array:
  """Makes the mask of a decoder's self-attention.

  Args:
    decoder_target_tokens: int `[B, L]`, 0 is padding.
    dtype: type of the mask.
    decoder_causal_attention: `[B, L]`, 1 for the tokens of a prefix, which see one another whatever
      their order; None for no prefix.
    decoder_segment_ids: int `[B, L]` of packed examples, which do not see each other, or None.

  Returns:
    `[B, 1, L, L]`; padding neither sees nor is seen.
  """
  visible = make_causal_mask(decoder_target_tokens, dtype=bool)
  if decoder_causal_attention is not None:
    prefix = decoder_causal_attention != 0
    visible |= make_attention_mask(prefix, prefix, jnp.logical_and, dtype=bool)
  tokens = decoder_target_tokens > 0
  visible &= make_attention_mask(tokens, tokens, jnp.logical_and, dtype=bool)
  if decoder_segment_ids is not None:
    ids = decoder_segment_ids
    visible &= make_attention_mask(ids, ids, jnp.equal, dtype=bool)
  return visible.astype(dtype)


def attention_mask_bias(mask: Array | None, dtype: Any) -> Array | None:
  """Turns a mask (True or positive: attend) into an additive bias of the same shape."""
  if mask is None:
    return None
  attend = mask if mask.dtype == bool else mask > 0
  return jnp.where(attend, 0.0, MASK_BIAS).astype(dtype)
