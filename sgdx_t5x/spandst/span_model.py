"""The span tracker: one pass over a frame, an answer for each slot; trained by `t5x.train`.

Inputs and answers are described in README.md. Shape letters: B batch, L length, E width, S slots, V
values, M values of other services, I intents, F frames per row, R rows of targets, C choices for a
slot: KEEP, DONTCARE, CLEAR, SYSTEM, SPAN, then the values, then the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import seqio
from flax import linen as nn

from sgdx_t5x.spandst import answers, heads
from sgdx_t5x.spandst.encoder import Bert, BertConfig
from sgdx_t5x.spandst.features import MAX_FRAMES, SpanFeatureConverter
from sgdx_t5x.spandst.model import Batch, EncoderModel, Metrics, millionths, share, target_rows

Array = jax.Array
_FIXED = answers.SPAN  # choices that every slot has: kinds 1 to 5
_NEVER = 2 * heads.CLOSED


class SpanTracker(nn.Module):
  """The encoder and its heads.

  Attributes:
    config: of the encoder.
    lexical: give the encoder lexical features, which speed up learning: `heads.TokenMarks`.
    pooled: represent a slot, value, intent or memory by its marker plus the mean of its words, not
      the marker alone; speeds up learning with an encoder that was pretrained this way.
  """

  config: BertConfig
  lexical: bool = False
  pooled: bool = False

  @nn.compact
  def __call__(self, batch: Batch, deterministic: bool = True) -> dict[str, Array]:
    """Scores the answers for all slots.

    Args:
      batch: model features of `features.SpanFeatureConverter`, except `targets`.
      deterministic: False enables dropout.

    Returns:
      Float32 log probabilities `choices` `[B, S, C]`, `starts` and `ends` `[B, S, L]`, `intents`
      `[B, F, 1 + I]`, and logits `requested` `[B, S]`.
    """
    width, tokens = self.config.emb_dim, batch["encoder_input_tokens"]
    segments, frames = batch["encoder_segments"], batch["encoder_frames"]
    bits = answers.CONTEXT_BITS
    # What tokens do not say is added to their embeddings: the context at each slot's and intent's
    # marker, and which part of the frame a token is in.
    added = heads.BitEmbedding(bits, width, name="slot_context")(
      batch["slot_context"], batch["slots"], tokens.shape[1]
    ) + heads.BitEmbedding(bits, width, name="intent_context")(
      batch["intent_context"], batch["intents"], tokens.shape[1]
    )
    encoder = Bert(self.config, name="encoder")
    lists = (batch[name] for name in ("slots", "values", "memory", "intents"))
    markers = heads.placed(tokens.shape[1], *lists) | (batch["encoder_positions"] == 0)
    added += heads.TokenMarks(width, self.lexical, name="marks")(
      tokens, segments, frames, markers, encoder.token_embedder(tokens)
    )
    hidden = encoder(
      tokens,
      types=(segments >= answers.SCHEMA).astype(jnp.int32),
      positions=batch["encoder_positions"],
      segment_ids=frames,
      extra_embeddings=added,
      deterministic=deterministic,
    )
    if self.pooled:  # averages over the words of each marker's text
      words = heads.words_of_texts(segments, markers)  # [B, L, L]
      num_words = jnp.maximum(words.sum(axis=-1, keepdims=True), 1)
      hidden += (words / num_words).astype(hidden.dtype) @ hidden
    slots = heads.at(hidden, batch["slots"]).astype(jnp.float32)
    # [B, S, L]: a slot points to the utterances of its own frame, not of others in the row.
    may_point = _span_tokens(segments)[:, None] & (
      frames[:, None, :] == batch["slot_frames"][:, :, None]
    )
    pointers = {}
    for name in ("starts", "ends"):
      logits = heads.PointerHead(name=name)(slots, hidden)
      pointers[name] = heads.log_softmax(logits, may_point)
    return {
      "choices": self._choices(batch, hidden, slots, may_point.any(axis=-1)),
      **pointers,
      "requested": heads.ClassHead(1, name="requested")(slots)[..., 0],
      "intents": self._intents(batch, encoder, hidden),
    }

  def _choices(self, batch: Batch, hidden: Array, slots: Array, may_point: Array) -> Array:
    """Returns log probabilities `[B, S, C]`; `may_point`: which slots have tokens to point to."""
    num_slots = batch["slots"].shape[1]

    def has(bit: int) -> Array:
      return (batch["slot_context"] & bit) > 0

    fillable = has(answers.FILLABLE) & (batch["slots"] > 0)
    fixed = jnp.stack(  # in the order of the kinds
      [
        jnp.ones_like(fillable),  # KEEP
        fillable,  # DONTCARE
        fillable & has(answers.CLEAR_OPEN),
        fillable & has(answers.SYSTEM_OPEN),
        fillable & has(answers.SPAN_OPEN) & may_point,
      ],
      axis=-1,
    )
    of_slot = batch["value_slots"][:, None, :] == jnp.arange(1, num_slots + 1)[:, None]
    values_open = of_slot & (batch["values"] > 0)[:, None] & fillable[..., None]
    same_frame = batch["memory_frames"][:, None, :] == batch["slot_frames"][:, :, None]
    memory_open = same_frame & (batch["memory"] > 0)[:, None]
    memory_open &= (fillable & has(answers.MEMORY_OPEN))[..., None]
    values = heads.at(hidden, batch["values"]).astype(jnp.float32)
    owners = heads.at(slots, batch["value_slots"] - 1)
    of_values = heads.OptionHead(name="values")(values, owners)[:, None]
    memory = heads.at(hidden, batch["memory"]).astype(jnp.float32)
    logits = [
      heads.ClassHead(_FIXED, name="kinds")(slots),
      jnp.broadcast_to(of_values, values_open.shape),
      heads.PointerHead(project_keys=True, name="memory")(slots, memory),
    ]
    opened = jnp.concatenate([fixed, values_open, memory_open], axis=-1)
    return heads.log_softmax(jnp.concatenate(logits, axis=-1), opened)

  def _intents(self, batch: Batch, encoder: Bert, hidden: Array) -> Array:
    """Returns log probabilities `[B, F, 1 + I]` of NONE and the intents of each frame."""
    is_first = (batch["encoder_positions"] == 0) & (batch["encoder_frames"] > 0)
    numbers = jnp.arange(1, MAX_FRAMES + 1)
    of_frame = batch["encoder_frames"][:, None, :] == numbers[:, None]
    # [B, F]: each frame's [CLS]; 0 for a frame that the row does not have, whose scores are unused.
    firsts = jnp.argmax(is_first[:, None] & of_frame, axis=-1)
    pooled = encoder.pool(heads.at(hidden, firsts)).astype(jnp.float32)
    none = heads.ClassHead(1, name="no_intent")(pooled)
    states = heads.at(hidden, batch["intents"]).astype(jnp.float32)
    logits = heads.ClassHead(1, name="intents")(states)[:, None, :, 0]
    is_of_frame = (batch["intents"] > 0)[:, None]
    is_of_frame &= batch["intent_frames"][:, None, :] == numbers[:, None]
    logits = jnp.broadcast_to(logits, is_of_frame.shape)
    opened = jnp.concatenate([jnp.ones_like(none, bool), is_of_frame], axis=-1)
    return heads.log_softmax(jnp.concatenate([none, logits], axis=-1), opened)


def _span_tokens(segments: Array) -> Array:
  return (segments == answers.SYSTEM_UTTERANCE) | (segments == answers.USER_UTTERANCE)


class SpanModel(EncoderModel):
  """The span tracker for T5X's scripts.

  Args:
    module: a `SpanTracker`.
    input_vocabulary: of the inputs.
    output_vocabulary: `seqio.PassThroughVocabulary`, of targets and answers.
    optimizer_def: the optimizer.
    longest_span: maximum tokens in a span.

  Raises:
    SgdxError: the vocabulary has more pieces than the encoder has rows for.
  """

  FEATURE_CONVERTER_CLS = SpanFeatureConverter

  def __init__(
    self,
    module: SpanTracker,
    input_vocabulary: seqio.Vocabulary,
    output_vocabulary: seqio.Vocabulary,
    optimizer_def: Any,
    longest_span: int = 14,
  ):
    super().__init__(module, input_vocabulary, output_vocabulary, optimizer_def)
    self.longest_span = longest_span

  def likelihoods(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns log likelihoods of gold answers: 'slots' and 'requested' `[B, S]`, 'intent' `[B, R]`.

    For a slot, probabilities are summed over its right answers (marginal likelihood).
    """
    slot, kind, first, last = target_rows(batch)
    is_slot = batch["slots"] > 0
    of_row = _of_rows(scores, batch, slot, kind, first, last)
    of_slot = slot[..., None] == jnp.arange(1, is_slot.shape[1] + 1)  # [B, R, S]
    counts = of_slot & (of_row > heads.CLOSED / 2)[..., None]
    marginal = jax.nn.logsumexp(jnp.where(counts, of_row[..., None], _NEVER), axis=1)
    # A slot without a row that counts has the answer KEEP.
    marginal = jnp.where(counts.any(axis=1), marginal, scores["choices"][..., 0])
    requested = (of_slot & (kind == answers.REQUESTED)[..., None]).any(axis=1)
    sign = jnp.where(requested, 1.0, -1.0)
    intents = scores["intents"]  # [B, F, 1 + I]; rows say which frame they are of
    flat = (batch["target_frames"] - 1) * intents.shape[-1] + first
    is_intent = (kind == answers.INTENT) & (first < intents.shape[-1])
    of_intent = _take(intents, jnp.where(is_intent, flat, 0))
    is_intent &= of_intent > heads.CLOSED / 2
    return {
      "slots": jnp.where(is_slot, marginal, 0.0),
      "requested": jnp.where(is_slot, jax.nn.log_sigmoid(sign * scores["requested"]), 0.0),
      "intent": jnp.where(is_intent, of_intent, 0.0),
    }

  def answers(self, scores: Mapping[str, Array], batch: Batch) -> Array:
    """Returns int32 `[B, 2 + 6 S]`, of unpacked frames; README.md says what the numbers mean."""
    # Otherwise, XLA computes log probabilities again for each length of a span.
    scores = jax.lax.optimization_barrier(dict(scores))
    choices, num_values = scores["choices"], batch["values"].shape[1]
    # [B, S]: the number of each slot's most probable choice: 0 to 4 are the kinds KEEP to SPAN,
    # then come the V values (of all slots; those of others are closed), then those of the memory.
    best = jnp.argmax(choices, axis=-1)
    is_span = best == answers.SPAN - 1
    is_value = (best >= _FIXED) & (best < _FIXED + num_values)
    is_memory = best >= _FIXED + num_values
    kind = jnp.where(is_value, answers.VALUE, jnp.where(is_memory, answers.MEMORY, best + 1))

    # What the choice points to: a value or a memory by its number, from 1; a span by its tokens.
    # The best span is computed for every slot, as shapes are fixed, and used where SPAN is chosen.
    segments = batch["encoder_segments"]
    begin, end, of_span = heads.best_spans(
      scores["starts"], scores["ends"], segments, self.longest_span
    )
    number = jnp.where(is_value, best - _FIXED + 1, 0)
    number = jnp.where(is_memory, best - _FIXED - num_values + 1, number)
    first, last = jnp.where(is_span, begin, number), jnp.where(is_span, end, 0)

    # The choice SPAN has the probability of any span: times that of the span itself.
    log_probability = jnp.max(choices, axis=-1) + jnp.where(is_span, of_span, 0.0)
    keep, requested = jnp.exp(choices[..., 0]), jax.nn.sigmoid(scores["requested"])
    shares = map(millionths, (jnp.exp(log_probability), keep, requested))
    slots = jnp.stack([kind, first, last, *shares], axis=-1)  # [B, S, 6]
    slots = jnp.where((batch["slots"] > 0)[..., None], slots, 0)  # of padding all zeros

    # A row that is not packed has one frame, whose intents are the first.
    intents = scores["intents"][:, 0]
    intent = jnp.stack(
      [jnp.argmax(intents, axis=-1), millionths(jnp.exp(jnp.max(intents, axis=-1)))], axis=-1
    )
    return jnp.concatenate([intent, slots.reshape(len(slots), -1)], axis=-1).astype(jnp.int32)

  def accuracies(self, scores: Mapping[str, Array], batch: Batch) -> Metrics:
    """Returns fractions of slots whose most probable choice is right: all, and those to change."""
    slot, kind, first, _ = target_rows(batch)
    num_slots = batch["slots"].shape[1]
    start = jnp.where(kind == answers.VALUE, _FIXED, _FIXED + batch["values"].shape[1])
    choice = jnp.where(kind <= answers.SPAN, kind - 1, start + first - 1)
    best = jnp.argmax(scores["choices"], axis=-1)  # [B, S]
    # [B, R, S]: which rows are answers for which slots.
    is_answer = slot[..., None] == jnp.arange(1, num_slots + 1)
    is_answer &= ((kind >= answers.KEEP) & (kind <= answers.MEMORY))[..., None]
    is_right = (is_answer & (choice[..., None] == best[:, None])).any(axis=1)
    has_answers, is_slot = is_answer.any(axis=1), batch["slots"] > 0
    is_right = jnp.where(has_answers, is_right, best == 0) & is_slot  # without a row it is KEEP
    changes = (is_answer & (kind != answers.KEEP)[..., None]).any(axis=1) & is_slot
    of_changes = share(is_right & changes, changes)
    return {"accuracy": share(is_right, is_slot), "accuracy_of_changes": of_changes}

  def num_examples(self, batch: Batch) -> Array:
    """Returns the number of frames in a batch."""
    return jnp.sum(jnp.max(batch["encoder_frames"], axis=-1))


def _of_rows(scores, batch: Batch, slot: Array, kind: Array, first: Array, last: Array) -> Array:
  """Returns log probabilities of rows of targets, `[B, R]`; at most `CLOSED` if not counted."""
  choices, length = scores["choices"], scores["starts"].shape[-1]
  num_values, num_memory = batch["values"].shape[1], batch["memory"].shape[1]
  choice, fits = kind - 1, (kind >= answers.KEEP) & (kind <= answers.SPAN)
  for pointing, start, num_options in (
    (answers.VALUE, _FIXED, num_values),
    (answers.MEMORY, _FIXED + num_values, num_memory),
  ):
    choice = jnp.where(kind == pointing, start + first - 1, choice)
    fits |= (kind == pointing) & (first >= 1) & (first <= num_options)
  is_span = kind == answers.SPAN
  inside = (first >= 0) & (first <= last) & (last < length)
  fits &= (slot >= 1) & (slot <= choices.shape[1]) & (~is_span | inside)
  # Rows that do not fit read index 0, which always exists, and are closed at the end.
  row = jnp.where(fits, slot - 1, 0)
  log_probability = _take(choices, row * choices.shape[-1] + jnp.where(fits, choice, 0))
  for name, token in (("starts", first), ("ends", last)):
    token = row * length + jnp.where(fits & is_span, token, 0)
    log_probability += jnp.where(is_span, _take(scores[name], token), 0.0)
  return jnp.where(fits, log_probability, heads.CLOSED)


def _take(x: Array, flat: Array) -> Array:
  """Returns entries of `[B, ., .]` at flat indices `[B, R]`."""
  return jnp.take_along_axis(x.reshape(len(x), -1), flat, axis=1)
