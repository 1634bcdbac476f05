"""What decoding functions share: states, segments, prompts and caches.

Shape letters: B batch, N decodes (beams) per example, L length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax
import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array
PyTree = Any

# Score of the impossible. Finite, so that sums and comparisons of such scores stay defined.
NEG_INF = -1.0e7


class DecodingState(flax.struct.PyTreeNode):
  """What a decoding step may read.

  Attributes:
    cur_index: int32 scalar, tokens decoded so far.
    sequences: int32 `[B*N, L]`, tokens decoded so far, 0 beyond.
    cur_token: int32 `[B*N, 1]`, input of this step.
    cache: caches, one row per decode.
  """

  cur_index: Array
  sequences: Array
  cur_token: Array
  cache: PyTree


TokensToLogits = Callable[[DecodingState], tuple[Array, PyTree]]


class Segment(flax.struct.PyTreeNode):
  """A part of a decode. Between two segments, finished rows can make room for others.

  Attributes:
    start: number of tokens decoded before it.
    stop: pause when this many are decoded.
    rows: `Paused.rows` of the previous segment, one row per example; None at the start.
    active: bool `[B]`, rows to wait for; None is all.
    encoded: at the start, the encoder's output `[B, S, E]` if it is known.
  """

  start: int = flax.struct.field(pytree_node=False, default=0)
  stop: int = flax.struct.field(pytree_node=False, default=0)
  rows: PyTree = None
  active: Any = None
  encoded: Array | None = None


class Paused(flax.struct.PyTreeNode):
  """A decode at the end of a segment.

  Attributes:
    outputs: what the decode returns; final in rows that are finished.
    finished: bool `[B]`, rows that further steps would not change.
    rows: what the next segment needs, one row per example.
    cache: caches, one row per decode.
  """

  outputs: Any
  finished: Array
  rows: PyTree
  cache: PyTree = None


class CannotPauseError(Exception):
  """Raised while tracing: this decode cannot be cut into segments without changing it."""


# Caches that all rows share: T5X's layers keep relative positions and position counters in them.
_SHARED_CACHES = ("cache_index", "cached_bias", "position_embedder_index")


def cache_map(fn: Callable[[Array], Array], cache: PyTree) -> PyTree:
  """Applies a function to the arrays of a cache that have a row per decode."""

  def apply(path: tuple[Any, ...], x: Array) -> Array:
    return x if path and getattr(path[-1], "key", None) in _SHARED_CACHES else fn(x)

  return jax.tree_util.tree_map_with_path(apply, cache)


def flat_batch_beam_expand(x: Array, beam_size: int, offset: int = 0) -> Array:
  """Repeats each row of the batch axis: `[B, …]` -> `[B*N, …]`; scalars stay as they are."""
  x = jnp.asarray(x)
  return x if x.ndim <= offset or beam_size == 1 else jnp.repeat(x, beam_size, axis=offset)


def expand_cache(cache: PyTree, num_decodes: int, axis: int) -> PyTree:
  """Repeats each row of a cache `num_decodes` times along `axis`."""
  return cache_map(lambda x: flat_batch_beam_expand(x, num_decodes, axis), cache)


def all_of(finished: Array, segment: Segment | None) -> Array:
  """Whether every row that counts is done."""
  if segment is not None and segment.active is not None:
    finished = finished | ~segment.active
  return jnp.all(finished)


def forced_token(inputs: Array, index: Array) -> Array:
  """Returns the prompt token that output `index` is forced to be, 0 for none: `[B]`."""
  following = jnp.pad(inputs[:, 1:], ((0, 0), (0, 1)))
  return lax.dynamic_index_in_dim(following, index, axis=1, keepdims=False)
