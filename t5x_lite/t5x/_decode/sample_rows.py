"""Sampling where each row may be at a different position; see `decoding.temperature_sample`.

Callbacks and filled caches need this. Without them, one index for all rows is cheaper.

Shape letters: R rows (decodes of all examples), L length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax
import jax
import jax.numpy as jnp
from jax import lax

from t5x._decode.sample_token import sample_token
from t5x._decode.state import DecodingState, TokensToLogits

Array = jax.Array
PyTree = Any

# Extra positions after the last token: finished rows write there while others continue.
_SPARE = 2


@flax.struct.dataclass
class SamplingLoopState:
  """What callbacks of `temperature_sample` read and may replace.

  Attributes:
    step: int32 scalar, steps made so far.
    cur_index: int32 `[R]`, position in `sequences` of each row's `cur_token`.
    sequences: int32 `[R, L + 2]`: BOS, prompt, what was sampled, 0 beyond. A token other than 0
      after the current position is forced.
    cache: caches, one row per decode.
    cur_token: int32 `[R, 1]`, input of the next step.
    ended: bool `[R, 1]`.
    rng: random key.
    log_prob: float32 `[R]`, log probability of what was sampled.
  """

  step: Array
  cur_index: Array
  sequences: Array
  cache: PyTree
  cur_token: Array
  ended: Array
  rng: Array
  log_prob: Array


def sample_rows(
  inputs: Array,
  cache: PyTree,
  tokens_to_logits: TokensToLogits,
  eos_id: int,
  rng: Array,
  sampling: tuple[Any, ...],
  initial_index: Array | None,
  limits: Array | None,
  state_callback: Callable[[SamplingLoopState], SamplingLoopState],
  logit_callback: Callable[[Array, SamplingLoopState], Array],
) -> tuple[Array, Array]:
  """Samples one decode per row.

  Args:
    inputs: int32 `[R, L]`, prompts with the BOS.
    cache: caches, one row per decode.
    tokens_to_logits: see `temperature_sample`; `cur_index` of its state is `[R]`.
    eos_id: token that ends a decode, unless it is part of the prompt.
    rng: random key.
    sampling: the last four arguments of `sample_token`.
    initial_index: int32 `[R]`, where each row starts; None is 0.
    limits: int32 `[R]`, maximum tokens of each row; None is L.
    state_callback: see `temperature_sample`.
    logit_callback: see `temperature_sample`.

  Returns:
    (sequences int32 `[R, L]` without the BOS, log probabilities float32 `[R]`).
  """
  rows, length = inputs.shape
  limits = jnp.full((rows,), length) if limits is None else limits
  eos_in_prompt = jnp.sum(inputs == eos_id, axis=1)
  start = jnp.zeros((rows,), jnp.int32) if initial_index is None else initial_index

  def step(state: SamplingLoopState) -> SamplingLoopState:
    state = state_callback(state)
    logits, new_cache = tokens_to_logits(
      DecodingState(state.cur_index, state.sequences[:, :length], state.cur_token, state.cache)
    )
    logits = jnp.asarray(logit_callback(logits, state), jnp.float32)
    key, rng = jax.random.split(state.rng)
    token, logp = sample_token(key, logits, *sampling)
    index = jnp.minimum(state.cur_index, limits)
    forced = jnp.take_along_axis(state.sequences, index[:, None] + 1, axis=1)[:, 0]
    ended = state.ended[:, 0]
    token = jnp.where(ended, 0, jnp.where(forced != 0, forced, token))
    sequences = state.sequences.at[jnp.arange(rows), index + 1].set(token)
    # Counted, since an EOS may be forced by a callback anywhere.
    has_new_eos = jnp.sum(sequences == eos_id, axis=1) > eos_in_prompt
    return SamplingLoopState(
      step=state.step + 1,
      cur_index=index + 1,
      sequences=sequences,
      cache=new_cache,
      cur_token=token[:, None],
      ended=(ended | has_new_eos | (index + 1 >= limits))[:, None],
      rng=rng,
      log_prob=state.log_prob + jnp.where((forced != 0) | ended, 0.0, logp),
    )

  final = lax.while_loop(
    lambda state: ~jnp.all(state.ended),
    step,
    SamplingLoopState(
      step=jnp.zeros((), jnp.int32),
      cur_index=jnp.asarray(start, jnp.int32),
      sequences=jnp.pad(inputs, ((0, 0), (0, _SPARE))),
      cache=cache,
      cur_token=jnp.take_along_axis(inputs, jnp.asarray(start, jnp.int32)[:, None], axis=1),
      ended=jnp.zeros((rows, 1), bool),
      rng=rng,
      log_prob=jnp.zeros((rows,), jnp.float32),
    ),
  )
  final = state_callback(final)
  return final.sequences[:, 1 : length + 1], final.log_prob
