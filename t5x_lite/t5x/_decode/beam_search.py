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
  cache_map,
  expand_cache,
)

Array = jax.Array
PyTree = Any


def brevity_penalty(alpha: float, length: Any) -> Array:
  """Length penalty ((5 + length) / 6) ** alpha of Wu et al. 2016 (arXiv:1609.08144), eq. 14."""
  return jnp.power((5.0 + length) / 6.0, alpha)


class _BeamState(flax.struct.PyTreeNode):
  """Loop state; scores are log probabilities, and finished ones are length-normalised.

  Beams are in ascending order of score. Among equal candidates, the one from the earlier beam wins,
  and is placed after the others.
  """

  index: Array  # int32 scalar: tokens decoded so far
  live_scores: Array  # float32 [B, N]
  live_sequences: Array  # int32 [B, N, L]
  live_tokens: Array  # int32 [B, N]: next input
  finished_scores: Array  # float32 [B, N]; `_empty_score` where a slot is empty
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
    inputs: int32 `[B, L]`, prompts: first the BOS (not read: it is 0), then tokens that are forced
      (0 forces nothing).
    cache: caches with one row per example.
    tokens_to_logits: maps a DecodingState to logits `[B*N, V]` and the new cache.
    eos_id: token that ends a decode.
    num_decodes: beams per example.
    alpha: exponent of the length penalty; the length counts the prompt and the EOS. Above 0, long
      decodes are preferred to short ones of the same log probability; below 0, short ones.
    max_decode_len: maximum tokens to decode; None is L.
    decode_rng: not used.
    cache_offset: position of the batch axis in the caches.
    segment: decode only this segment; `cache` is then as the previous segment left it.

  Returns:
    (decodes int32 `[B, N, L]`, scores float32 `[B, N]`), ascending. For a row without a finished
    decode, these are its live beams, with log probabilities that are not length-normalised. An
    empty slot has zeros and score -1e7. With a segment, `Paused` with that as outputs.
  """
  del decode_rng
  batch, length = inputs.shape
  max_len = length if max_decode_len is None else min(max_decode_len, length)
  stop = max_len if segment is None else min(segment.stop, max_len)
  inputs = inputs.astype(jnp.int32)
  empty = _empty_score(alpha, length)
  if segment is not None and segment.rows is not None:
    initial = _BeamState(index=jnp.int32(segment.start), cache=cache, **segment.rows)
  else:
    expanded = expand_cache(cache, num_decodes, cache_offset)
    initial = _first_beam_state(batch, length, num_decodes, empty, expanded)
  longest_penalty = brevity_penalty(alpha, max_len)

  def settled(state: _BeamState) -> Array:
    # Log probabilities only fall, and are negative: a live beam scores best if it loses nothing
    # more and ends where the penalty is largest, which for alpha < 0 is at its next token.
    penalty = jnp.maximum(brevity_penalty(alpha, state.index + 1), longest_penalty)
    return state.finished_scores[:, 0] > state.live_scores[:, -1] / penalty

  def may_improve(state: _BeamState) -> Array:
    return (state.index < stop) & ~all_of(settled(state), segment)

  def step(state: _BeamState) -> _BeamState:
    sequences, token = state.live_sequences.reshape(-1, length), state.live_tokens.reshape(-1, 1)
    logits, new_cache = tokens_to_logits(DecodingState(state.index, sequences, token, state.cache))
    logp = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(batch, num_decodes, -1)
    # T5X forces the last token of a full prompt once more: the index beyond it is clamped.
    forced = lax.dynamic_index_in_dim(inputs, state.index + 1, axis=1)
    penalty = brevity_penalty(alpha, state.index + 1)
    return _beam_select(state, logp, forced, new_cache, eos_id, penalty, empty, cache_offset)

  final = lax.while_loop(may_improve, step, initial)
  outputs = _best_beams(final, empty)
  if segment is None:
    return outputs
  rows = {f.name: getattr(final, f.name) for f in dataclasses.fields(final)}
  del rows["index"], rows["cache"]
  return Paused(outputs, settled(final) | (final.index >= max_len), rows, final.cache)


def _empty_score(alpha: float, length: int) -> Array:
  """Score of an empty slot, below all that finished decodes can have: -1e7 where alpha >= 0.

  Below 0, the penalty enlarges log probabilities, those of decodes too unlikely to count, too.
  """
  return NEG_INF / jnp.minimum(1.0, brevity_penalty(alpha, length))


def _best_beams(final: _BeamState, empty: Array) -> tuple[Array, Array]:
  """Returns (sequences `[B, N, L]`, scores `[B, N]`), of live beams where none has finished."""
  any_finished = (final.finished_scores[:, -1] > empty)[:, None]
  finished_scores = jnp.where(final.finished_scores > empty, final.finished_scores, NEG_INF)
  scores = jnp.where(any_finished, finished_scores, final.live_scores)
  decodes = jnp.where(any_finished[:, :, None], final.finished_sequences, final.live_sequences)
  return decodes, scores


def _first_beam_state(
  batch: int, length: int, num_decodes: int, empty_score: Array, cache: PyTree
) -> _BeamState:
  """One live beam per example; the others cannot win. As in T5X, the BOS is 0."""
  live = jnp.where(jnp.arange(num_decodes) == 0, 0.0, NEG_INF).astype(jnp.float32)
  empty = jnp.zeros((batch, num_decodes, length), jnp.int32)
  return _BeamState(
    index=jnp.zeros((), jnp.int32),
    live_scores=jnp.tile(live, (batch, 1)),
    live_sequences=empty,
    live_tokens=jnp.zeros((batch, num_decodes), jnp.int32),
    finished_scores=jnp.full((batch, num_decodes), empty_score, jnp.float32),
    finished_sequences=empty,
    cache=cache,
  )


def _beam_select(
  state: _BeamState,
  logp: Array,
  forced: Array,
  cache: PyTree,
  eos_id: int,
  penalty: Array,
  empty_score: Array,
  cache_axis: int,
) -> _BeamState:
  """Extends the beams by one token.

  Args:
    state: before the token.
    logp: log probabilities, `[B, N, V]`.
    forced: the prompt's token, `[B, 1]`, or 0. Where there is one, only the best beam stays alive,
      and its score starts anew: beams with one prefix would decode the same.
    cache: after the token before.
    penalty: for the length including this token.
  """
  batch, num_beams, vocab = logp.shape
  scores = (state.live_scores[:, :, None] + logp).reshape(batch, -1)
  # Twice as many candidates as beams: at most half of them can end.
  scores, flat = lax.top_k(scores, min(2 * num_beams, num_beams * vocab))
  # Candidates are numbered beam by beam.
  parents, tokens = flat // vocab, jnp.where(forced != 0, forced, flat % vocab)
  best_alone = jnp.where(jnp.arange(scores.shape[1]) == 0, 0.0, NEG_INF)
  scores = jnp.where(forced != 0, best_alone, scores)
  sequences = jnp.take_along_axis(state.live_sequences, parents[:, :, None], axis=1)
  sequences = lax.dynamic_update_index_in_dim(sequences, tokens[:, :, None], state.index, axis=2)
  ends = tokens == eos_id

  # An ended beam does not live on, but is kept below all others, should nothing else be left.
  live_scores, live_positions = _top_k_ascending(
    jnp.where(ends, NEG_INF + scores, scores), num_beams
  )
  live_sequences = jnp.take_along_axis(sequences, live_positions[:, :, None], axis=1)
  live_tokens = jnp.take_along_axis(tokens, live_positions, axis=1)
  parents = jnp.take_along_axis(parents, live_positions, axis=1)

  possible = ends & (scores > 0.5 * NEG_INF)
  ended = jnp.where(possible, scores / penalty, 2 * empty_score)
  all_scores = jnp.concatenate([state.finished_scores, ended], axis=1)
  finished_scores, finished_positions = _top_k_ascending(all_scores, num_beams)
  all_sequences = jnp.concatenate([state.finished_sequences, sequences], axis=1)
  return _BeamState(
    index=state.index + 1,
    live_scores=live_scores,
    live_sequences=live_sequences,
    live_tokens=live_tokens,
    finished_scores=finished_scores,
    finished_sequences=jnp.take_along_axis(all_sequences, finished_positions[:, :, None], axis=1),
    cache=_reorder_cache(cache, parents, cache_axis),
  )


def _top_k_ascending(scores: Array, k: int) -> tuple[Array, Array]:
  """Returns the `k` best scores of each row and their positions; the first of equals is last."""
  best, positions = lax.top_k(scores, k)
  return jnp.flip(best, axis=1), jnp.flip(positions, axis=1)


def _reorder_cache(cache: PyTree, parents: Array, axis: int) -> PyTree:
  """Gives each beam the cache of its parent, `[B, N]`."""
  batch, num_beams = parents.shape
  if num_beams == 1:
    return cache
  rows = (parents + jnp.arange(batch)[:, None] * num_beams).reshape(-1)

  def reorder(x: Array) -> Array:
    return x if x.ndim <= axis else jnp.take(x, rows, axis=axis)

  return cache_map(reorder, cache)
