"""Beam search; see `t5x.decoding`.

Shape letters: B batch, N beams per example, L length, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import flax
import jax
import jax.numpy as jnp
from jax import lax

from t5x._decode.state import (
  NEG_INF,
  DecodingState,
  Paused,
  Segment,
  TokensToLogits,
  all_of,
  expand_cache,
  forced_token,
)

Array = jax.Array
PyTree = Any


def brevity_penalty(alpha: float, length: Any) -> Array:
  """Length penalty ((5 + length) / 6) ** alpha of Wu et al. 2016 (arXiv:1609.08144), eq. 14."""
  return jnp.power((5.0 + length) / 6.0, alpha)


@flax.struct.dataclass
class _BeamState:
  """Loop state; scores are log probabilities, and finished ones are length-normalised."""

  index: Array  # int32 scalar: tokens decoded so far
  live_scores: Array  # float32 [B, N], descending
  live_sequences: Array  # int32 [B, N, L]
  live_tokens: Array  # int32 [B, N]: next input
  finished_scores: Array  # float32 [B, N], descending; NEG_INF where a slot is empty
  finished_sequences: Array  # int32 [B, N, L]
  cache: PyTree


def beam_search(
  inputs: Array,
  cache: PyTree,
  tokens_to_logits: TokensToLogits,
  eos_id: int,
  num_decodes: int = 4,
  alpha: float = 0.6,
  max_decode_len: int | None = None,
  decode_rng: Array | None = None,
  cache_offset: int = 0,
  segment: Segment | None = None,
) -> tuple[Array, Array] | Paused:
  """Beam search; stops when no live beam of any row can beat the worst finished one.

  Args:
    inputs: int32 `[B, L]`, prompts: first the BOS, then tokens that are forced (0 forces
      nothing).
    cache: caches with one row per example.
    tokens_to_logits: from a DecodingState to logits `[B*N, V]` and the new cache.
    eos_id: token that ends a decode.
    num_decodes: beams per example.
    alpha: exponent of the length penalty; the length counts the EOS.
    max_decode_len: tokens to decode at most; None is L.
    decode_rng: not used.
    cache_offset: position of the batch axis in the caches.
    segment: decode this stretch only; `cache` is then as the stretch before left it.

  Returns:
    (decodes int32 `[B, N, L]`, scores float32 `[B, N]`), ascending. Of a row without a finished
    decode these are its live beams with log probabilities that are not length-normalised. An
    empty slot has zeros and score -1e7. With a segment, `Paused` with that as outputs.
  """
  del decode_rng
  batch, length = inputs.shape
  max_len = length if max_decode_len is None else min(max_decode_len, length)
  stop = max_len if segment is None else min(segment.stop, max_len)
  inputs = inputs.astype(jnp.int32)
  if segment is not None and segment.rows is not None:
    initial = _BeamState(index=jnp.int32(segment.start), cache=cache, **segment.rows)
  else:
    initial = _first_beam_state(inputs, num_decodes, expand_cache(cache, num_decodes, cache_offset))
  max_penalty = brevity_penalty(alpha, max_len)

  def settled(state: _BeamState) -> Array:
    return state.finished_scores[:, -1] > state.live_scores[:, 0] / max_penalty

  def may_improve(state: _BeamState) -> Array:
    return (state.index < stop) & ~all_of(settled(state), segment)

  def step(state: _BeamState) -> _BeamState:
    logits, new_cache = tokens_to_logits(_beam_decoding_state(state))
    logp = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(batch, num_decodes, -1)
    forced = forced_token(inputs, state.index)[:, None, None]
    only_forced = jnp.where(jnp.arange(logp.shape[-1]) == forced, 0.0, NEG_INF)
    logp = jnp.where(forced != 0, only_forced, logp)
    return _beam_select(state, logp, new_cache, eos_id, alpha, cache_offset)

  final = lax.while_loop(may_improve, step, initial)
  any_finished = (final.finished_scores[:, 0] > NEG_INF)[:, None]
  scores = jnp.where(any_finished, final.finished_scores, final.live_scores)
  decodes = jnp.where(any_finished[:, :, None], final.finished_sequences, final.live_sequences)
  outputs = jnp.flip(decodes, axis=1), jnp.flip(scores, axis=1)
  if segment is None:
    return outputs
  rows = {f.name: getattr(final, f.name) for f in dataclasses.fields(final)}
  del rows["index"], rows["cache"]
  return Paused(outputs, settled(final) | (final.index >= max_len), rows, final.cache)


def _first_beam_state(inputs: Array, num_decodes: int, cache: PyTree) -> _BeamState:
  """One live beam per example, with the BOS as its next input; the others cannot win."""
  batch, length = inputs.shape
  live = jnp.where(jnp.arange(num_decodes) == 0, 0.0, NEG_INF).astype(jnp.float32)
  empty = jnp.zeros((batch, num_decodes, length), jnp.int32)
  return _BeamState(
    index=jnp.zeros((), jnp.int32),
    live_scores=jnp.tile(live, (batch, 1)),
    live_sequences=empty,
    live_tokens=jnp.repeat(inputs[:, :1], num_decodes, axis=1),
    finished_scores=jnp.full((batch, num_decodes), NEG_INF, jnp.float32),
    finished_sequences=empty,
    cache=cache,
  )


def _beam_decoding_state(state: _BeamState) -> DecodingState:
  return DecodingState(
    cur_index=state.index,
    sequences=state.live_sequences.reshape(-1, state.live_sequences.shape[-1]),
    cur_token=state.live_tokens.reshape(-1, 1),
    cache=state.cache,
  )


def _beam_select(
  state: _BeamState, logp: Array, cache: PyTree, eos_id: int, alpha: float, cache_axis: int
) -> _BeamState:
  """Extends the beams by one token with log probabilities `logp`, `[B, N, V]`."""
  batch, num_beams, vocab = logp.shape
  scores = (state.live_scores[:, :, None] + logp).reshape(batch, -1)
  # Twice as many candidates as beams: at most half of them can end.
  scores, flat = lax.top_k(scores, min(2 * num_beams, num_beams * vocab))
  parents, tokens = flat // vocab, flat % vocab
  sequences = jnp.take_along_axis(state.live_sequences, parents[:, :, None], axis=1)
  sequences = lax.dynamic_update_index_in_dim(sequences, tokens[:, :, None], state.index, axis=2)
  ends = tokens == eos_id

  live_scores, chosen = lax.top_k(jnp.where(ends, NEG_INF + scores, scores), num_beams)
  live_sequences = jnp.take_along_axis(sequences, chosen[:, :, None], axis=1)
  live_tokens = jnp.take_along_axis(tokens, chosen, axis=1)
  parents = jnp.take_along_axis(parents, chosen, axis=1)

  possible = ends & (scores > 0.5 * NEG_INF)
  ended = jnp.where(possible, scores / brevity_penalty(alpha, state.index + 1), 2 * NEG_INF)
  all_scores = jnp.concatenate([state.finished_scores, ended], axis=1)
  finished_scores, kept = lax.top_k(all_scores, num_beams)
  all_sequences = jnp.concatenate([state.finished_sequences, sequences], axis=1)
  return _BeamState(
    index=state.index + 1,
    live_scores=live_scores,
    live_sequences=live_sequences,
    live_tokens=live_tokens,
    finished_scores=finished_scores,
    finished_sequences=jnp.take_along_axis(all_sequences, kept[:, :, None], axis=1),
    cache=_reorder_cache(cache, parents, cache_axis),
  )


def _reorder_cache(cache: PyTree, parents: Array, axis: int) -> PyTree:
  """Gives each beam the cache of its parent, `[B, N]`."""
  batch, num_beams = parents.shape
  if num_beams == 1:
    return cache
  rows = (parents + jnp.arange(batch)[:, None] * num_beams).reshape(-1)

  def reorder(x: Array) -> Array:
    return x if x.ndim <= axis else jnp.take(x, rows, axis=axis)

  return jax.tree_util.tree_map(reorder, cache)
