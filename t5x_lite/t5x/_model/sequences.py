"""Sequences of tokens in rows. Re-exported by `t5x.models`.

Shape letters: B batch, L length.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

Array = jax.Array


def remove_prefix(sequence: Array, prefix_length: Array) -> Array:
  """Shifts the tokens after a prefix to the beginning of their row.

  Args:
    sequence: int `[B, L]`.
    prefix_length: int `[B]`, tokens to drop.

  Returns:
    int `[B, L]`, filled up with 0.
  """
  length = sequence.shape[-1]
  source = jnp.arange(length) + prefix_length[:, None]
  shifted = jnp.take_along_axis(sequence, jnp.minimum(source, length - 1), axis=1)
  return jnp.where(source < length, shifted, 0)


def count_packed_examples(segment_ids: Array) -> Array:
  """Counts the examples in packed rows: the starts of ids other than that of padding, 0.

  Args:
    segment_ids: int `[B, L]`; ids need not be consecutive.

  Returns:
    int scalar.
  """
  before = jnp.pad(segment_ids, ((0, 0), (1, 0)))[:, :-1]
  return jnp.sum((segment_ids != before) & (segment_ids != 0))
