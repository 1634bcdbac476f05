"""Autoregressive decoding: beam search and sampling, with T5X's semantics.

Results are sorted ascending: the best decode of an example is the last. Token 0 is an ordinary
token that a model may generate, and pads what follows an EOS.

Shape letters: B batch, N decodes (beams) per example, L length, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import flax
import jax
import jax.numpy as jnp
from jax import lax

from t5x._decode.beam_search import beam_search, brevity_penalty
from t5x._decode.sample_token import MIN_TEMPERATURE, sample_token
from t5x._decode.state import (
  NEG_INF,
  CannotPauseError,
  DecodingState,
  Paused,
  Segment,
  TokensToLogits,
  all_of,
  cache_map,
  expand_cache,
  flat_batch_beam_expand,
  forced_token,
)
from t5x.errors import T5XError

__all__ = [
  "MIN_TEMPERATURE",
  "NEG_INF",
  "CannotPauseError",
  "DecodingState",
  "Paused",
  "Segment",
  "beam_search",
  "brevity_penalty",
  "cache_map",
  "flat_batch_beam_expand",
  "temperature_sample",
]

Array = jax.Array
PyTree = Any


class _SampleState(flax.struct.PyTreeNode):
  """Loop state; R = B*N rows."""

  index: Array  # int32 scalar
  sequences: Array  # int32 [R, L]
  cur_token: Array  # int32 [R, 1]
  ended: Array  # bool [R]
  log_prob: Array  # float32 [R]
  rng: Array
  cache: PyTree


def temperature_sample(
  inputs: Array,
  cache: PyTree,
  tokens_to_logits: TokensToLogits,
  eos_id: int,
  decode_rng: Array | None = None,
  num_decodes: int = 1,
  temperature: float = 1.0,
  topk: int = 1,
  topp: float = 0.0,
  cache_offset: int = 0,
  max_decode_steps: int | None = None,
  rescale_log_probs: bool = True,
  segment: Segment | None = None,
) -> tuple[Array, Array] | Paused:
  """Samples tokens; with `topk=1`, the default, greedy. Stops when all rows have an EOS.

  An EOS that is forced does not end a decode.

  Args:
    inputs, cache, tokens_to_logits, eos_id: as for `beam_search`.
    decode_rng: key; None is key 0.
    num_decodes: decodes per example.
    temperature: logits are divided by it; 0 is greedy.
    topk: keep the k most probable tokens; 0 keeps all.
    topp: keep the most probable tokens that together have this probability, in [0, 1]; 0 keeps
      all (Holtzman et al. 2020, arXiv:1904.09751). At most one of topk and topp is not 0.
    cache_offset: position of the batch axis in the caches.
    max_decode_steps: maximum tokens to decode after the prompt; None is up to L. The prompt
      and these together are at most L tokens.
    rescale_log_probs: score by the distribution sampled from (so exactly 0 when greedy) instead of
      the model's.
    segment: decode only this segment; `cache` is then as the previous segment left it.

  Returns:
    (decodes int32 `[B, N, L]`, log probabilities float32 `[B, N]`), ascending. Forced tokens add
    nothing to the latter, nor do those after the EOS. With a segment, `Paused` with that as
    outputs.

  Raises:
    T5XError: both topk and topp are given, or topp is above 1.
    CannotPauseError: a segment of a decode that is not greedy.
  """
  check_kept_tokens(topk, topp)
  if segment is not None and topk != 1:
    # Which random numbers a row gets depends on the rows beside it.
    raise CannotPauseError
  batch, length = inputs.shape
  inputs = flat_batch_beam_expand(inputs.astype(jnp.int32), num_decodes)
  limits = None  # maximum length of each row, int32 [R]: prompts differ in length
  if max_decode_steps is not None:
    limits = jnp.minimum(jnp.sum(inputs != 0, axis=1) + max_decode_steps, length)
  rng = jax.random.PRNGKey(0) if decode_rng is None else decode_rng
  stop = length if segment is None else jnp.minimum(segment.stop, length)
  initial = _initial_state(inputs, cache, rng, num_decodes, cache_offset, segment)

  def done(state: _SampleState) -> Array:
    return state.ended.reshape(batch, num_decodes).all(axis=1)

  def unfinished(state: _SampleState) -> Array:
    return (state.index < stop) & ~all_of(done(state), segment)

  def step(state: _SampleState) -> _SampleState:
    logits, new_cache = tokens_to_logits(
      DecodingState(state.index, state.sequences, state.cur_token, state.cache)
    )
    key, rng = jax.random.split(state.rng)
    logits = logits.astype(jnp.float32)  # a network's may be bfloat16
    token, logp = sample_token(key, logits, temperature, topk, topp, rescale_log_probs)
    forced = forced_token(inputs, state.index)
    ended = state.ended | ((token == eos_id) & (forced == 0))
    if limits is not None:
      ended |= state.index + 1 >= limits
    return _append(state, token, logp, forced).replace(ended=ended, rng=rng, cache=new_cache)

  final = lax.while_loop(unfinished, step, initial)
  outputs = _sort_decodes(
    final.sequences.reshape(batch, num_decodes, length),
    final.log_prob.reshape(batch, num_decodes),
  )
  if segment is None:
    return outputs
  names = ("sequences", "cur_token", "ended", "log_prob")
  rows = {n: (x := getattr(final, n)).reshape(batch, num_decodes, *x.shape[1:]) for n in names}
  return Paused(outputs, done(final) | (final.index >= length), rows, final.cache)


def check_kept_tokens(topk: int, topp: float) -> None:
  """Raises T5XError if tokens are to be kept by no probability, or also by number."""
  if topp > 1:
    raise T5XError(
      "topp is not a probability.",
      found=repr(topp),
      expected="a number from 0 to 1",
      fix="decoding.temperature_sample.topp = 0.9",
    )
  if topk and topp:
    raise T5XError(
      found=f"topk = {topk} and topp = {topp}",
      expected="at most one of them other than 0",
      fix="set decoding.temperature_sample.topk = 0 to sample by topp",
    )


def _initial_state(
  inputs: Array,
  cache: PyTree,
  rng: Array,
  num_decodes: int,
  cache_offset: int,
  segment: Segment | None,
) -> _SampleState:
  """The state before the first token, or as the previous segment left it."""
  rows, length = inputs.shape
  if segment is not None and segment.rows is not None:
    flat = {k: x.reshape(rows, *x.shape[2:]) for k, x in segment.rows.items()}
    return _SampleState(index=jnp.int32(segment.start), rng=rng, cache=cache, **flat)
  return _SampleState(
    index=jnp.zeros((), jnp.int32),
    sequences=jnp.zeros((rows, length), jnp.int32),
    cur_token=jnp.zeros_like(inputs[:, :1]),  # T5X reads no BOS from `inputs`
    ended=jnp.zeros((rows,), bool),
    log_prob=jnp.zeros((rows,), jnp.float32),
    rng=rng,
    cache=expand_cache(cache, num_decodes, cache_offset),
  )


def _append(state: _SampleState, token: Array, logp: Array, forced: Array) -> _SampleState:
  """Appends a token to each row: the forced one where there is one, 0 where the row has ended.

  Args:
    state: before the token.
    token: chosen by the model, int32 `[R]`.
    logp: its log probability, `[R]`.
    forced: the prompt's token, or 0, `[R]`.
  """
  logp = jnp.where((forced != 0) | state.ended, 0.0, logp)
  token = jnp.where(forced != 0, forced, token)
  token = jnp.where(state.ended, 0, token)[:, None]
  return state.replace(
    index=state.index + 1,
    sequences=lax.dynamic_update_slice_in_dim(state.sequences, token, state.index, axis=1),
    cur_token=token,
    log_prob=state.log_prob + logp,
  )


def _sort_decodes(decodes: Array, scores: Array) -> tuple[Array, Array]:
  """Puts the decodes of each example, `[B, N, L]`, in ascending order of scores, `[B, N]`."""
  if scores.shape[1] == 1:
    return decodes, scores
  order = jnp.argsort(scores, axis=-1)
  return (
    jnp.take_along_axis(decodes, order[:, :, None], axis=1),
    jnp.take_along_axis(scores, order, axis=1),
  )
