"""Autoregressive decoding: beam search and sampling, with T5X's semantics.

Results are sorted ascending: the best decode of an example is the last. Token 0 is an ordinary
token that a model may generate, and fills up what follows an EOS.

Shape letters: B batch, N decodes (beams) per example, L length, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from t5x.errors import T5XError

Array = jax.Array
PyTree = Any

# Score of what cannot happen. Finite, so that sums and comparisons of such scores stay defined.
NEG_INF = -1.0e7
MIN_TEMPERATURE = 1e-4


@flax.struct.dataclass
class DecodingState:
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


@flax.struct.dataclass
class Segment:
  """A stretch of a decode. Between two of them, rows that are done can make room for others.

  Attributes:
    start: tokens decoded before it.
    stop: pause when so many are decoded.
    rows: `Paused.rows` of the segment before, one row per example; None at the start.
    active: bool `[B]`, rows to wait for; None is all.
  """

  start: int = flax.struct.field(pytree_node=False, default=0)
  stop: int = flax.struct.field(pytree_node=False, default=0)
  rows: PyTree = None
  active: Array | None = None


@flax.struct.dataclass
class Paused:
  """A decode at the end of a segment.

  Attributes:
    outputs: what the decode returns; final in rows that are done.
    done: bool `[B]`, rows that further steps would not change.
    rows: what the next segment needs, one row per example.
    cache: caches, one row per decode.
  """

  outputs: Any
  done: Array
  rows: PyTree
  cache: PyTree = None


class CannotPauseError(Exception):
  """Raised while tracing: this decode cannot be cut into segments without changing it."""


def brevity_penalty(alpha: float, length: Any) -> Array:
  """Length penalty ((5 + length) / 6) ** alpha of Wu et al. 2016 (arXiv:1609.08144), eq. 14."""
  return jnp.power((5.0 + length) / 6.0, alpha)


def flat_batch_beam_expand(x: Array, num_decodes: int, axis: int = 0) -> Array:
  """Repeats each row of the batch axis: `[B, …]` -> `[B*N, …]`; scalars stay as they are."""
  x = jnp.asarray(x)
  return x if x.ndim <= axis or num_decodes == 1 else jnp.repeat(x, num_decodes, axis=axis)


def _expand_cache(cache: PyTree, num_decodes: int, axis: int) -> PyTree:
  return jax.tree_util.tree_map(lambda x: flat_batch_beam_expand(x, num_decodes, axis), cache)


def _all_of(done: Array, segment: Segment | None) -> Array:
  """Whether every row that counts is done."""
  if segment is not None and segment.active is not None:
    done = done | ~segment.active
  return jnp.all(done)


def _forced_token(inputs: Array, index: Array) -> Array:
  """Returns the prompt token that output `index` is forced to be, 0 for none: `[B]`."""
  following = jnp.pad(inputs[:, 1:], ((0, 0), (0, 1)))
  return lax.dynamic_index_in_dim(following, index, axis=1, keepdims=False)


# --- Beam search -----------------------------------------------------------------------------


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
    initial = _first_beam_state(
      inputs, num_decodes, _expand_cache(cache, num_decodes, cache_offset)
    )
  max_penalty = brevity_penalty(alpha, max_len)

  def settled(state: _BeamState) -> Array:
    return state.finished_scores[:, -1] > state.live_scores[:, 0] / max_penalty

  def may_improve(state: _BeamState) -> Array:
    return (state.index < stop) & ~_all_of(settled(state), segment)

  def step(state: _BeamState) -> _BeamState:
    logits, new_cache = tokens_to_logits(_beam_decoding_state(state))
    logp = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(batch, num_decodes, -1)
    forced = _forced_token(inputs, state.index)[:, None, None]
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


# --- Sampling --------------------------------------------------------------------------------


@flax.struct.dataclass
class _SampleState:
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
  temperature: float | Array = 1.0,
  topk: int = 1,
  topp: float = 0.0,
  cache_offset: int = 0,
  max_decode_steps: int | Array | None = None,
  rescale_log_probs: bool = True,
  state_callback_fn: Callable[[DecodingState], DecodingState] | None = None,
  logit_callback_fn: Callable[[Array, DecodingState], Array] | None = None,
  segment: Segment | None = None,
) -> tuple[Array, Array] | Paused:
  """Samples tokens; with `topk=1`, the default, greedy. Stops when all rows have an EOS.

  Args:
    inputs: as for `beam_search`.
    cache: as for `beam_search`.
    tokens_to_logits: as for `beam_search`.
    eos_id: token that ends a decode.
    decode_rng: key; None is key 0.
    num_decodes: decodes per example.
    temperature: logits are divided by it.
    topk: keep the k most probable tokens; 0 keeps all.
    topp: keep the most probable tokens that together have this probability, in [0, 1); 0 keeps
      all (Holtzman et al. 2020, arXiv:1904.09751). At most one of topk and topp is not 0.
    cache_offset: position of the batch axis in the caches.
    max_decode_steps: tokens to decode at most; None is L.
    rescale_log_probs: score by the distribution sampled from (so exactly 0 when greedy) instead of
      the model's.
    state_callback_fn: called with the state before each step.
    logit_callback_fn: called with logits and state at each step.
    segment: decode this stretch only; `cache` is then as the stretch before left it.

  Returns:
    (decodes int32 `[B, N, L]`, log probabilities float32 `[B, N]`), ascending. Forced tokens add
    nothing to the latter, nor do those after the EOS. With a segment, `Paused` with that as
    outputs.

  Raises:
    T5XError: both topk and topp are given.
    CannotPauseError: a segment of a decode that is not greedy.
  """
  if isinstance(topk, int) and isinstance(topp, float) and topk and topp:
    raise T5XError(
      found=f"topk = {topk} and topp = {topp}",
      expected="at most one of them other than 0",
      fix="set decoding.temperature_sample.topk = 0 to sample by topp",
    )
  callbacks = (state_callback_fn, logit_callback_fn)
  if segment is not None and not (isinstance(topk, int) and topk == 1 and not any(callbacks)):
    # Which random numbers a row gets depends on the rows beside it.
    raise CannotPauseError
  batch, length = inputs.shape
  inputs = flat_batch_beam_expand(inputs.astype(jnp.int32), num_decodes)
  rows = inputs.shape[0]
  max_len = length if max_decode_steps is None else jnp.minimum(max_decode_steps, length)
  stop = max_len if segment is None else jnp.minimum(segment.stop, max_len)
  rng = jax.random.PRNGKey(0) if decode_rng is None else decode_rng
  if segment is not None and segment.rows is not None:
    flat = {k: x.reshape(rows, *x.shape[2:]) for k, x in segment.rows.items()}
    initial = _SampleState(index=jnp.int32(segment.start), rng=rng, cache=cache, **flat)
  else:
    initial = _SampleState(
      index=jnp.zeros((), jnp.int32),
      sequences=jnp.zeros((rows, length), jnp.int32),
      cur_token=inputs[:, :1],
      ended=jnp.zeros((rows,), bool),
      log_prob=jnp.zeros((rows,), jnp.float32),
      rng=rng,
      cache=_expand_cache(cache, num_decodes, cache_offset),
    )

  def done(state: _SampleState) -> Array:
    return state.ended.reshape(batch, num_decodes).all(axis=1)

  def unfinished(state: _SampleState) -> Array:
    return (state.index < stop) & ~_all_of(done(state), segment)

  def step(state: _SampleState) -> _SampleState:
    visible = DecodingState(state.index, state.sequences, state.cur_token, state.cache)
    if state_callback_fn is not None:
      visible = state_callback_fn(visible)
    logits, new_cache = tokens_to_logits(visible)
    logits = logits.astype(jnp.float32)
    if logit_callback_fn is not None:
      logits = logit_callback_fn(logits, visible)
    key, rng = jax.random.split(state.rng)
    token, logp = _sample_token(key, logits, temperature, topk, topp, rescale_log_probs)
    forced = _forced_token(inputs, state.index)
    token = jnp.where(forced != 0, forced, token)
    logp = jnp.where((forced != 0) | state.ended, 0.0, logp)
    token = jnp.where(state.ended, 0, token)[:, None]
    return _SampleState(
      index=state.index + 1,
      sequences=lax.dynamic_update_slice_in_dim(visible.sequences, token, state.index, axis=1),
      cur_token=token,
      ended=state.ended | (token[:, 0] == eos_id),
      log_prob=state.log_prob + logp,
      rng=rng,
      cache=new_cache,
    )

  final = lax.while_loop(unfinished, step, initial)
  outputs = _sort_decodes(
    final.sequences.reshape(batch, num_decodes, length),
    final.log_prob.reshape(batch, num_decodes),
  )
  if segment is None:
    return outputs
  names = ("sequences", "cur_token", "ended", "log_prob")
  rows = {n: (x := getattr(final, n)).reshape(batch, num_decodes, *x.shape[1:]) for n in names}
  return Paused(outputs, done(final) | (final.index >= max_len), rows, final.cache)


def _sort_decodes(decodes: Array, scores: Array) -> tuple[Array, Array]:
  """Puts the decodes of each example, `[B, N, L]`, in ascending order of scores, `[B, N]`."""
  if scores.shape[1] == 1:
    return decodes, scores
  order = jnp.argsort(scores, axis=-1)
  return (
    jnp.take_along_axis(decodes, order[:, :, None], axis=1),
    jnp.take_along_axis(scores, order, axis=1),
  )


def _sample_token(
  key: Array,
  logits: Array,
  temperature: float | Array,
  topk: int,
  topp: float,
  rescale_log_probs: bool,
) -> tuple[Array, Array]:
  """Chooses a token per row of logits `[R, V]`; returns tokens int32 `[R]` and log p `[R]`."""
  if isinstance(topk, int) and topk == 1:
    token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
    if rescale_log_probs:
      return token, jnp.zeros(token.shape, jnp.float32)
    return token, _log_prob_of(token, logits)
  scaled = logits / jnp.maximum(temperature, MIN_TEMPERATURE)
  if topk:
    kth = lax.top_k(scaled, topk)[0][:, -1:]
    scaled = jnp.where(scaled < kth, NEG_INF, scaled)
  elif not isinstance(topp, float) or topp:
    scaled = _keep_nucleus(scaled, topp)
  token = jax.random.categorical(key, scaled).astype(jnp.int32)
  return token, _log_prob_of(token, scaled if rescale_log_probs else logits)


def _log_prob_of(token: Array, logits: Array) -> Array:
  logp = jax.nn.log_softmax(logits)
  return jnp.take_along_axis(logp, token[:, None], axis=1)[:, 0]


def _keep_nucleus(logits: Array, topp: float | Array) -> Array:
  """Masks all but the fewest most probable tokens with joint probability `topp` or more."""
  ordered = jnp.flip(jnp.sort(logits, axis=-1), axis=-1)
  before = jnp.cumsum(jax.nn.softmax(ordered), axis=-1) - jax.nn.softmax(ordered)
  # The most probable token stays whatever topp is: nothing comes before it.
  num_kept = jnp.sum(before < jnp.maximum(topp, np.finfo(np.float32).tiny), axis=-1)
  threshold = jnp.take_along_axis(ordered, num_kept[:, None] - 1, axis=-1)
  return jnp.where(logits < threshold, NEG_INF, logits)
