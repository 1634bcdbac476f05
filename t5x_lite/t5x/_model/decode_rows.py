"""A decode's state as rows, so that inference can combine those of several batches.

Shape letters: B batch, S encoder length, T decoder length, N decodes per example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.core
import jax
import jax.numpy as jnp
from flax import traverse_util

Array = jax.Array
PyTree = Any
Batch = Mapping[str, Array]


def tokens_and_prompt(batch: Batch, with_targets: bool, eos_id: int | None) -> tuple[Array, Array]:
  """Returns the encoder's tokens `[B, S]` and the decoder's prompt `[B, T]`, 0: not forced.

  Args:
    batch: model features.
    with_targets: whether the targets are the prompt.
    eos_id: of the vocabulary, whatever ends a decode: the targets' own EOS is not forced.
  """
  prompt = batch["decoder_input_tokens"]
  prompt = jnp.where(prompt == eos_id, 0, prompt) if with_targets else jnp.zeros_like(prompt)
  return batch["encoder_input_tokens"], prompt


def rows_of_cache(cache: PyTree, batch: int) -> dict[str, Array]:
  """Returns the arrays of a cache as `{name: [B, N, ...]}`; the scalars only count tokens."""
  flat = traverse_util.flatten_dict(flax.core.unfreeze(cache), sep="/")
  return {k: x.reshape(batch, -1, *x.shape[1:]) for k, x in flat.items() if x.ndim}


def cache_of_rows(empty: PyTree, rows: Mapping[str, Array], start: int, axis: int) -> PyTree:
  """The inverse of `rows_of_cache`, in a cache as long as `empty` that holds `start` tokens."""

  def fill(name: str, template: Array) -> Array:
    if not template.ndim:
      return jnp.full_like(template, start)
    x = rows[name].reshape(-1, *rows[name].shape[2:])
    padding = [(0, 0)] * x.ndim
    padding[axis] = (0, template.shape[axis] - x.shape[axis])
    return jnp.pad(x, padding)

  flat = traverse_util.flatten_dict(flax.core.unfreeze(empty), sep="/")
  return traverse_util.unflatten_dict({k: fill(k, x) for k, x in flat.items()}, sep="/")
