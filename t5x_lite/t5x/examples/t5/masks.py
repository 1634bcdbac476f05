"""Which keys a query of attention may see, as masks and as biases.

Shape letters: B batch, Q query length, K key length.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from t5x.errors import T5XError

Array = jax.Array

# Large enough that float32 addition swallows the logit it is added to: a query with no key left
# attends uniformly to everything, as in T5X. A larger value would overflow bfloat16 sums.
MASK_BIAS = -1e10


def combine_masks(*masks: Array | None, dtype: Any = jnp.float32) -> Array | None:
  """Returns the logical and of the masks other than None; None if there are none.

  Raises:
    T5XError: they differ in rank.
  """
  present = [mask for mask in masks if mask is not None]
  if len({mask.ndim for mask in present}) > 1:
    raise T5XError(f"Attention masks differ in rank: {[mask.shape for mask in present]}.")
  return functools.reduce(jnp.logical_and, present).astype(dtype) if present else None


def attention_mask_bias(mask: Array | None, dtype: Any) -> Array | None:
  """Turns a mask (True or positive: attend) into an additive bias of the same shape."""
  if mask is None:
    return None
  attend = mask if mask.dtype == bool else mask > 0
  return jnp.where(attend, 0.0, MASK_BIAS).astype(dtype)
