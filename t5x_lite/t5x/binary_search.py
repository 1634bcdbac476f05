"""Search over the bits of numbers: masks of the most probable tokens without sorting.

A threshold is found by halving the range of all numbers, 32 times. Each step is one reduction
over the vocabulary, which a partitioner can shard, unlike a sort.

Shape letters: B batch dimensions (any number), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

Array = jax.Array
Predicate = Callable[[Array], Array]

_SIGN = 0x80000000


def int32_bsearch(batch_shape: Sequence[int], predicate: Predicate) -> Array:
  """Finds the largest int32 for which a predicate is False.

  Args:
    batch_shape: B; each element is searched for independently.
    predicate: int32 `[B]` -> bool `[B]`; False up to some number, True above it.

  Returns:
    int32 `[B]`; the smallest number if the predicate is always True.
  """
  return _to_int32(_search(batch_shape, lambda key: predicate(_to_int32(key))))


def float32_bsearch(batch_shape: Sequence[int], predicate: Predicate) -> Array:
  """Finds the largest finite float32 for which a predicate is False.

  Args:
    batch_shape: B; each element is searched for independently.
    predicate: float32 `[B]` -> bool `[B]`; False up to some number, True above it. It is only
      called with finite numbers.

  Returns:
    float32 `[B]`; the smallest finite number if the predicate is always True.
  """
  # Keys outside of these two stand for infinities and NaNs.
  first, last = (_key_of(jnp.float32(sign * jnp.finfo(jnp.float32).max)) for sign in (-1, 1))

  def above(key: Array) -> Array:
    inside = (key >= first) & (key <= last)
    return jnp.where(inside, predicate(_to_float32(jnp.clip(key, first, last))), key > last)

  return _to_float32(jnp.maximum(_search(batch_shape, above), first))


def topk_mask(x: Array, k: int, replace_val: Array | float) -> Array:
  """Replaces all but the `k` largest values of each row; ties with the last one stay.

  Args:
    x: `[B, V]`.
    k: number of values to keep, in [1, V].
    replace_val: value that replaces the others.

  Returns:
    `[B, V]`.
  """

  def too_high(threshold: Array) -> Array:
    return jnp.sum(x >= threshold[..., None], axis=-1) < k

  threshold = float32_bsearch(x.shape[:-1], too_high)
  return jnp.where(x >= threshold[..., None], x, jnp.asarray(replace_val, x.dtype))


def topp_mask(logits: Array, p: float, replace_val: Array | float) -> Array:
  """Replaces all but the fewest most probable tokens whose joint probability reaches `p`.

  Args:
    logits: `[B, V]`.
    p: probability in (0, 1].
    replace_val: value that replaces the others.

  Returns:
    `[B, V]`; tokens as probable as the last one stay too.
  """
  probs = jax.nn.softmax(logits, axis=-1)

  def too_high(threshold: Array) -> Array:
    return jnp.sum(probs, axis=-1, where=probs >= threshold[..., None]) < p

  threshold = float32_bsearch(logits.shape[:-1], too_high)
  return jnp.where(probs >= threshold[..., None], logits, jnp.asarray(replace_val, logits.dtype))


def _search(batch_shape: Sequence[int], above: Predicate) -> Array:
  """Returns the largest uint32 key for which `above` is False, bit by bit; 0 if there is none."""

  def decide(i: Array, key: Array) -> Array:
    with_bit = key | (jnp.uint32(_SIGN) >> i.astype(jnp.uint32))
    return jnp.where(above(with_bit), key, with_bit)

  return jax.lax.fori_loop(0, 32, decide, jnp.zeros(tuple(batch_shape), jnp.uint32))


def _to_int32(key: Array) -> Array:
  """Keys in ascending order -> int32 in ascending order."""
  return jax.lax.bitcast_convert_type(key ^ jnp.uint32(_SIGN), jnp.int32)


def _to_float32(key: Array) -> Array:
  """Keys in ascending order -> float32 in ascending order.

  The bits of positive floats ascend as the numbers do, those of negative ones descend.
  """
  bits = jnp.where(key & jnp.uint32(_SIGN), key ^ jnp.uint32(_SIGN), ~key)
  return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _key_of(x: Array) -> Array:
  """The inverse of `_to_float32`."""
  bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
  return jnp.where(bits & jnp.uint32(_SIGN), ~bits, bits ^ jnp.uint32(_SIGN))
