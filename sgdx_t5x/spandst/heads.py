"""Heads on an encoder's hidden states: classification, spans, and scoring of options.

Shape letters: B batch, L length, E width, S slots, N options.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen.partitioning import param_with_axes

from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.encoder import UNDIVIDED, Dense

Array = jax.Array
CLOSED = -1e9  # logit of a choice that is not allowed
_PARTS = answers.OTHER_SERVICES  # of a frame
_TEXTS = 160  # of a frame, with distinct embeddings


def at(hidden: Array, positions: Array) -> Array:
  """Hidden states `[B, L, E]` at positions `[B, N]` -> `[B, N, E]`; zero where out of range."""
  inside = (positions >= 0) & (positions < hidden.shape[1])
  states = jnp.take_along_axis(hidden, jnp.where(inside, positions, 0)[..., None], axis=1)
  return jnp.where(inside[..., None], states, 0)


def log_softmax(logits: Array, opened: Array) -> Array:
  """Returns float32 log probabilities over allowed choices, else `CLOSED`; shapes broadcast."""
  opened = jnp.broadcast_to(opened, jnp.broadcast_shapes(opened.shape, logits.shape))
  logits = jnp.where(opened, logits.astype(jnp.float32), CLOSED)
  return jnp.where(opened, jax.nn.log_softmax(logits, axis=-1), CLOSED)


class ClassHead(nn.Module):
  """Class logits from one hidden layer."""

  classes: int

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """`[..., E]` -> float32 `[..., classes]`."""
    x = nn.gelu(Dense(x.shape[-1], kernel_axes=("embed", "mlp"), name="hidden")(x))
    return Dense(self.classes, kernel_axes=("mlp", UNDIVIDED), name="logits")(x)


class OptionHead(nn.Module):
  """A logit for each option, from the states of the option and of its owner."""

  @nn.compact
  def __call__(self, options: Array, owners: Array) -> Array:
    """Two of `[B, N, E]` -> float32 `[B, N]`."""
    axes = ("embed", "mlp")
    x = Dense(options.shape[-1], kernel_axes=axes, name="option")(options)
    x = nn.gelu(x + Dense(options.shape[-1], kernel_axes=axes, name="owner")(owners))
    return Dense(1, kernel_axes=("mlp", UNDIVIDED), name="logits")(x)[..., 0]


class PointerHead(nn.Module):
  """A logit for each position that a query may point to: a scaled dot product."""

  project_keys: bool = False

  @nn.compact
  def __call__(self, queries: Array, keys: Array) -> Array:
    """`[B, S, E]` and `[B, N, E]` -> float32 `[B, S, N]`."""
    width, axes = queries.shape[-1], ("embed", "mlp")
    queries = Dense(width, kernel_axes=axes, name="query")(queries)
    if self.project_keys:
      keys = Dense(width, kernel_axes=axes, name="key")(keys)
    logits = jnp.einsum(
      "bse,bne->bsn", queries.astype(keys.dtype), keys, preferred_element_type=jnp.float32
    )
    return logits / jnp.sqrt(jnp.float32(width))


class BitEmbedding(nn.Module):
  """Sums the embeddings of the set bits of each number, at the number's position."""

  bits: int
  width: int

  @nn.compact
  def __call__(self, numbers: Array, positions: Array, length: int) -> Array:
    """Int `[B, N]` and their positions `[B, N]` (0 for none) -> `[B, length, width]`."""
    table = _table("embedding", self.bits, self.width)
    is_set = (numbers[..., None] >> jnp.arange(self.bits)) & 1
    vectors = is_set.astype(table.dtype) @ table
    places = jax.nn.one_hot(positions, length, dtype=table.dtype) * (positions > 0)[..., None]
    return jnp.einsum("bnl,bne->ble", places, vectors)


class TokenMarks(nn.Module):
  """Embeds the parts of a frame, plus lexical features for an encoder without pretraining.

  Attributes:
    width: E.
    lexical: also embed in which parts of the frame a token occurs elsewhere and which schema text
      it belongs to; and add to each marker the scaled sum of its text's tokens.
  """

  width: int
  lexical: bool

  @nn.compact
  def __call__(
    self, tokens: Array, segments: Array, frames: Array, markers: Array, words: Array
  ) -> Array:
    """Returns the vectors to add to the embeddings, float32 `[B, L, E]`.

    Args:
      tokens: int `[B, L]`.
      segments: parts of the frame, `answers.SYSTEM_UTTERANCE` and so on, `[B, L]`.
      frames: number of each token's frame in its row, `[B, L]`.
      markers: where a text or a frame begins, bool `[B, L]`.
      words: embeddings of the tokens, `[B, L, E]`.
    """
    marks = segments[..., None] == jnp.arange(1, _PARTS + 1)
    if not self.lexical:
      return self._embed("embedding", marks)
    equal_tokens = (tokens[:, :, None] == tokens[:, None]) & (frames[:, :, None] == frames[:, None])
    equal_tokens &= ~jnp.eye(tokens.shape[1], dtype=bool)
    times = equal_tokens.astype(jnp.float32) @ marks.astype(jnp.float32)  # count per part
    added = self._embed("embedding", jnp.concatenate([marks, times > 0], axis=-1))
    texts = numbers_in_frames(segments, frames, markers)
    of_texts = jnp.take(_table("texts", _TEXTS, self.width), texts - 1, axis=0, mode="clip")
    added += jnp.where(((texts > 0) & (texts <= _TEXTS))[..., None], of_texts, 0)
    mine = words_of_texts(segments, markers)
    number = jnp.maximum(mine.sum(axis=-1, keepdims=True), 1)
    # Divided by the root: the mean of many would be small next to the marker's own embedding.
    return added + mine.astype(jnp.float32) @ (words + added) / jnp.sqrt(number)

  def _embed(self, name: str, bits: Array) -> Array:
    return bits.astype(jnp.float32) @ _table(name, bits.shape[-1], self.width)


def _table(name: str, rows: int, width: int) -> Array:
  """Creates an embedding table, `[rows, width]`, as a parameter of the calling module."""
  init = nn.initializers.truncated_normal(stddev=0.02)
  return param_with_axes(name, init, (rows, width), jnp.float32, axes=(UNDIVIDED, "embed"))


def words_of_texts(segments: Array, markers: Array) -> Array:
  """Returns the other tokens (last axis) of the text that begins at a marker, bool `[B, L, L]`.

  Args:
    segments: parts of the frame, `[B, L]`; texts are those of the schema and of other services.
    markers: where a text or a frame begins, bool `[B, L]`.
  """
  texts = jnp.cumsum(markers, axis=1) * (segments >= answers.SCHEMA)
  mine = markers[:, :, None] & ~markers[:, None] & (texts > 0)[:, :, None]
  return mine & (texts[:, :, None] == texts[:, None])


def numbers_in_frames(segments: Array, frames: Array, markers: Array) -> Array:
  """Returns the number, within its frame, of each token's text; 0 for none: int `[B, L]`.

  Frames packed in a row, as in training, have the same numbers as unpacked ones.

  Args:
    segments: see `words_of_texts`.
    frames: number of each token's frame in its row, `[B, L]`.
    markers: see `words_of_texts`.
  """
  number = jnp.cumsum(markers, axis=1)
  # A frame begins with a marker, [CLS]; the texts of earlier frames in the row are subtracted.
  begins = jnp.pad(frames[:, 1:] != frames[:, :-1], ((0, 0), (1, 0)))
  of_earlier_frames = jax.lax.cummax(jnp.where(begins, number - 1, 0), axis=1)
  return (number - of_earlier_frames) * (segments >= answers.SCHEMA)


def placed(length: int, *positions: Array) -> Array:
  """Returns which tokens are in any of the position lists, int `[B, N]`: bool `[B, length]`."""
  listed = jnp.concatenate(positions, axis=1)
  return ((listed[..., None] == jnp.arange(length)) & (listed > 0)[..., None]).any(axis=1)


def best_spans(
  starts: Array, ends: Array, utterances: Array, longest: int
) -> tuple[Array, Array, Array]:
  """Finds the most probable span of each slot.

  Args:
    starts: log probabilities of first tokens, `[B, S, L]`.
    ends: same for last tokens.
    utterances: number of each token's utterance, `[B, L]`; a span lies within one.
    longest: maximum tokens in a span.

  Returns:
    (first token, last token, log probability of the pair), each `[B, S]`.
  """
  length = starts.shape[-1]
  longest = min(longest, length)
  padding = ((0, 0), (0, 0), (0, longest - 1))  # padded once: a copy for each length takes 2.7 x
  ends = jnp.pad(ends, padding, constant_values=CLOSED)
  padded = jnp.pad(utterances, padding[1:], constant_values=-1)
  best_score, extras = jnp.full_like(starts, 4 * CLOSED), jnp.zeros(starts.shape, jnp.int32)
  for extra in range(longest):  # the best last token for each first one
    in_utterances = (padded[:, extra : extra + length] == utterances)[:, None]
    scores = jnp.where(in_utterances, starts + ends[..., extra : extra + length], 4 * CLOSED)
    is_better = scores > best_score
    best_score = jnp.where(is_better, scores, best_score)
    extras = jnp.where(is_better, extra, extras)
  first = jnp.argmax(best_score, axis=-1)
  place = first[..., None]
  extra = jnp.take_along_axis(extras, place, axis=-1)[..., 0]
  return first, first + extra, jnp.take_along_axis(best_score, place, axis=-1)[..., 0]
