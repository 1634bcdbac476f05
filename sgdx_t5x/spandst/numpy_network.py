"""SpanDST's network in NumPy, for tracking without JAX: what `span_model` computes, unpadded.

The tokens of several frames lie one after another, so that every linear layer is one matrix product
for all of them; attention and heads go frame by frame. Answers equal `span_model.SpanModel`'s up to
rounding. Shape letters: T tokens of all frames, L of one frame, E width, H heads, D head size, S
slots, V values, M values of other services.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from sgdx_t5x.spandst import answers

Array = np.ndarray
Features = Mapping[str, Sequence[int]]  # of a frame: see README.md
_CLOSED = np.float32(-1e9)  # log probability of what is not allowed
_TOKENS_AT_ONCE = 1024  # fewer make products slow, more leave cores idle at the end
_ROWS_IN_CACHE = 64  # of the GELU, whose twenty passes would else read memory
_FIXED = answers.SPAN  # choices that every slot has: kinds 1 to 5
# BLAS has one limit per process: a call within another would restore the other's limit for good.
_USING_BLAS = threading.Lock()


class _Frame(NamedTuple):
  """A frame's features as arrays, and what follows from them."""

  tokens: Array  # [L]
  segments: Array  # [L]
  lists: Mapping[str, Array]  # the other features by name
  numbers: Array  # [L]: the number of each token's text, from 1; 0 in utterances
  words: Array  # [L, L]: at a marker, the other tokens of its text: bool


class FrameStates(NamedTuple):
  """What `act_reader` reads of a frame.

  Attributes:
    slots: hidden states of the slots' markers, `[S, E]`.
    user: of the pieces of the user's utterance, `[L, E]`.
    values: logits of the possible values, `[V]`.
  """

  slots: Array
  user: Array
  values: Array


class SpanNetwork:
  """The network with its weights.

  Args:
    arrays: name -> float32 array, as in a checkpoint of `t5x.train`: "encoder/layers_0/wi/kernel".
    num_heads: H.
    epsilon: added to the variance in layer norms.
    lexical: see `span_model.SpanTracker`; its gin files in gin/ set both.
    pooled: see `span_model.SpanTracker`.
    longest_span: maximum tokens in a span.
  """

  def __init__(
    self,
    arrays: Mapping[str, Array],
    num_heads: int,
    epsilon: float = 1e-12,
    lexical: bool = True,
    pooled: bool = True,
    longest_span: int = 14,
  ):
    self._arrays, self._heads, self._epsilon = dict(arrays), num_heads, np.float32(epsilon)
    self._lexical, self._pooled, self._longest = lexical, pooled, longest_span
    width = arrays["encoder/embedding_layer_norm/scale"].shape[0]
    scale = np.float32(1 / math.sqrt(width / num_heads))
    self._num_layers = 0
    while (layer := f"encoder/layers_{self._num_layers}") + "/query/kernel" in arrays:
      # One product gives queries, keys and values; queries are scaled beforehand.
      for part in ("kernel", "bias"):
        query = arrays[f"{layer}/query/{part}"] * scale
        keys_and_values = arrays[f"{layer}/key/{part}"], arrays[f"{layer}/value/{part}"]
        joined = np.concatenate([query, *keys_and_values], axis=-1)
        self._arrays[f"{layer}/joined/{part}"] = joined
      self._num_layers += 1
    self._blas = threadpoolctl.ThreadpoolController()

  def answer(self, features: Sequence[Features]) -> list[list[int]]:
    """Returns the answer for each frame, in the numbers that README.md describes."""
    return self._encoded(features, self._read)

  def states(self, features: Sequence[Features]) -> list[FrameStates]:
    """Returns the hidden states of each frame."""
    return self._encoded(features, self._states)

  def _encoded(self, features: Sequence[Features], head: Callable[[_Frame, Array], Any]) -> list:
    """Returns what `head` makes of each frame and its hidden states, `[L, E]`."""
    outputs: list = []

    def run(batch: Sequence[Features]) -> list:
      frames = [_frame(x) for x in batch]
      return list(map(head, frames, self._encode(frames)))

    # A thread for each core, all of them in NumPy at once: they also share what is no matrix
    # product, while threads of BLAS wait for each other after every small product.
    with (
      _USING_BLAS,
      self._blas.limit(limits=1, user_api="blas"),
      concurrent.futures.ThreadPoolExecutor(_num_cores()) as threads,
    ):
      for batch in threads.map(run, _batches(features)):
        outputs += batch
    return outputs

  # --- encoder -------------------------------------------------------------------------------

  def _encode(self, frames: Sequence[_Frame]) -> list[Array]:
    """Returns the hidden states of each frame, `[L, E]`."""
    bounds = [0, *itertools.accumulate(len(frame.tokens) for frame in frames)]
    spans = list(itertools.pairwise(bounds))
    x = np.concatenate([self._embed(frame) for frame in frames])
    x = self._norm("encoder/embedding_layer_norm", x)
    for number in range(self._num_layers):
      layer = f"encoder/layers_{number}"
      joined = self._dense(f"{layer}/joined", x)
      y = np.empty_like(x)
      for start, stop in spans:
        y[start:stop] = self._attend(joined[start:stop])
      x = self._norm(f"{layer}/attention_layer_norm", x + self._dense(f"{layer}/out", y))
      y = self._dense(f"{layer}/wo", _gelu(self._dense(f"{layer}/wi", x)))
      x = self._norm(f"{layer}/mlp_layer_norm", x + y)
    hidden = []
    for frame, (start, stop) in zip(frames, spans, strict=True):
      states = x[start:stop]
      if self._pooled:  # a marker then stands for the words of its text, too
        num_words = np.maximum(frame.words.sum(axis=-1, keepdims=True), 1)
        states = states + (frame.words / num_words).astype(np.float32) @ states
      hidden.append(states)
    return hidden

  def _embed(self, frame: _Frame) -> Array:
    """Returns the sum of all embeddings of a frame's tokens, `[L, E]`."""
    words = self._arrays["encoder/token_embedder/embedding"][frame.tokens]
    x = words + self._arrays["encoder/position_embedder/embedding"][: len(words)]
    types = self._arrays["encoder/type_embedder/embedding"]  # [2, E]: of the dialogue, the schema
    x += types[(frame.segments >= answers.SCHEMA).astype(int)]
    x += self._marks(frame, words)
    for places, bits in (("slots", "slot_context"), ("intents", "intent_context")):
      table = self._arrays[f"{bits}/embedding"]  # a row for each bit
      is_set = (frame.lists[bits][:, None] >> np.arange(len(table))) & 1
      x[frame.lists[places]] += is_set.astype(np.float32) @ table
    return x

  def _marks(self, frame: _Frame, words: Array) -> Array:
    """Returns what `heads.TokenMarks` adds, `[L, E]`."""
    kinds = np.arange(1, answers.OTHER_SERVICES + 1)
    marks = frame.segments[:, None] == kinds
    table = self._arrays["marks/embedding"]
    if not self._lexical:
      return marks.astype(np.float32) @ table
    # In which parts of the frame the same token occurs elsewhere.
    _, token_numbers = np.unique(frame.tokens, return_inverse=True)
    counts = np.zeros((token_numbers.max() + 1, len(kinds)), int)
    np.add.at(counts, token_numbers, marks)
    elsewhere = counts[token_numbers] - marks > 0
    added = np.concatenate([marks, elsewhere], axis=-1).astype(np.float32) @ table
    texts, numbers = self._arrays["marks/texts"], frame.numbers
    numbered = (numbers > 0) & (numbers <= len(texts))
    added[numbered] += texts[numbers[numbered] - 1]
    # Divided by the root: the mean of many would be small next to the marker's own embedding.
    root = np.sqrt(np.maximum(frame.words.sum(axis=-1, keepdims=True), 1), dtype=np.float32)
    return added + frame.words.astype(np.float32) @ (words + added) / root

  def _attend(self, joined: Array) -> Array:
    """Self-attention in a frame: queries, keys and values side by side, `[L, 3 E]` -> `[L, E]`."""
    length, width = len(joined), joined.shape[1] // 3
    split = joined.reshape(length, 3, self._heads, width // self._heads).transpose(1, 2, 0, 3)
    queries, keys, values = np.ascontiguousarray(split)  # each [H, L, D]
    weights = queries @ keys.transpose(0, 2, 1)
    weights -= weights.max(axis=-1, keepdims=True)  # exp of the largest is 1: it cannot overflow
    np.exp(weights, out=weights)
    y = weights @ values
    y /= weights.sum(axis=-1, keepdims=True)
    return y.transpose(1, 0, 2).reshape(length, width)

  def _dense(self, name: str, x: Array) -> Array:
    y = x @ self._arrays[f"{name}/kernel"]
    y += self._arrays[f"{name}/bias"]
    return y

  def _norm(self, name: str, x: Array) -> Array:
    """Layer norm over the last axis; overwrites `x`."""
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("te,te->t", x, x) / np.float32(x.shape[-1])
    x *= (1 / np.sqrt(variance + self._epsilon))[:, None]
    x *= self._arrays[f"{name}/scale"]
    x += self._arrays[f"{name}/bias"]
    return x

  # --- heads ---------------------------------------------------------------------------------

  def _read(self, frame: _Frame, hidden: Array) -> list[int]:
    """Returns a frame's answer from its hidden states, `[L, E]`."""
    lists = frame.lists
    slots = hidden[lists["slots"]]
    in_system = frame.segments == answers.SYSTEM_UTTERANCE
    in_utterances = in_system | (frame.segments == answers.USER_UTTERANCE)
    starts = _log_softmax(self._point("starts", slots, hidden), in_utterances)
    ends = _log_softmax(self._point("ends", slots, hidden), in_utterances)
    choices = self._choices(frame, hidden, slots, bool(in_utterances.any()))
    requested = 1 / (1 + np.exp(-self._classify("requested", slots)[:, 0]))
    begins, stops, of_span = best_spans(starts, ends, frame.segments, self._longest)
    best, best_scores = choices.argmax(axis=-1), choices.max(axis=-1, initial=_CLOSED)
    num_values = len(lists["values"])
    pooled = np.tanh(self._dense("encoder/pooler", hidden[:1]))
    none = self._classify("no_intent", pooled)[:, 0]
    intent_logits = self._classify("intents", hidden[lists["intents"]])[:, 0]
    intents = _log_softmax(np.concatenate([none, intent_logits])[None], np.array([True]))[0]
    vector = [int(intents.argmax()), _millionths(np.exp(intents.max()))]
    # A slot's choices are in this order: the kinds KEEP to SPAN, the values, then the memory.
    for i, choice in enumerate(best.tolist()):
      kind, first, last, log_probability = choice + 1, 0, 0, best_scores[i]
      if choice >= _FIXED + num_values:
        kind, first = answers.MEMORY, choice - _FIXED - num_values + 1
      elif choice >= _FIXED:
        kind, first = answers.VALUE, choice - _FIXED + 1
      elif kind == answers.SPAN:  # of which `choices` has the probability of any span
        first, last = int(begins[i]), int(stops[i])
        log_probability += of_span[i]
      shares = (np.exp(log_probability), np.exp(choices[i, 0]), requested[i])
      vector += [kind, first, last, *map(_millionths, shares)]
    return vector

  def _states(self, frame: _Frame, hidden: Array) -> FrameStates:
    slots = hidden[frame.lists["slots"]]
    user = hidden[frame.segments == answers.USER_UTTERANCE]
    return FrameStates(slots, user, self._value_logits(frame, hidden, slots))

  def _choices(self, frame: _Frame, hidden: Array, slots: Array, may_point: bool) -> Array:
    """Returns log probabilities of the choices for each slot, `[S, 5 + V + M]`."""
    lists, context = frame.lists, frame.lists["slot_context"]
    fillable = (context & answers.FILLABLE) > 0
    fixed = [
      np.ones_like(fillable),
      fillable,
      fillable & ((context & answers.CLEAR_OPEN) > 0),
      fillable & ((context & answers.SYSTEM_OPEN) > 0),
      fillable & ((context & answers.SPAN_OPEN) > 0) & may_point,
    ]
    owners = lists["value_slots"] - 1  # index of each value's slot
    values_open = (owners == np.arange(len(slots))[:, None]) & fillable[:, None]
    memory_open = (fillable & ((context & answers.MEMORY_OPEN) > 0))[:, None]
    memory_open = np.repeat(memory_open, len(lists["memory"]), axis=1)
    memory = self._dense("memory/key", hidden[lists["memory"]])
    logits = [
      self._classify("kinds", slots),
      np.broadcast_to(self._value_logits(frame, hidden, slots), values_open.shape),
      self._point("memory", slots, memory),
    ]
    is_open = np.concatenate([np.stack(fixed, axis=-1), values_open, memory_open], axis=-1)
    return _log_softmax(np.concatenate(logits, axis=-1), is_open)

  def _value_logits(self, frame: _Frame, hidden: Array, slots: Array) -> Array:
    options = self._dense("values/option", hidden[frame.lists["values"]])
    options += self._dense("values/owner", slots[frame.lists["value_slots"] - 1])
    return self._dense("values/logits", _gelu_by_tanh(options))[:, 0]

  def _classify(self, name: str, x: Array) -> Array:
    """A class head: `[N, E]` -> logits `[N, classes]`."""
    return self._dense(f"{name}/logits", _gelu_by_tanh(self._dense(f"{name}/hidden", x)))

  def _point(self, name: str, slots: Array, keys: Array) -> Array:
    """A pointer head: `[S, E]`, `[N, E]` -> logits `[S, N]`."""
    return self._dense(f"{name}/query", slots) @ keys.T / np.float32(math.sqrt(slots.shape[-1]))


def _num_cores() -> int:
  """Returns the number of cores that this process may use."""
  if hasattr(os, "sched_getaffinity"):  # not on macOS
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def _batches(features: Sequence[Features]) -> Iterator[list[Features]]:
  """Yields frames that are encoded together, in their order."""
  batch, num_tokens = [], 0
  for frame in features:
    batch.append(frame)
    num_tokens += len(frame["inputs"])
    if num_tokens >= _TOKENS_AT_ONCE:
      yield batch
      batch, num_tokens = [], 0
  if batch:
    yield batch


def _frame(features: Features) -> _Frame:
  tokens = np.asarray(features["inputs"], np.int64)
  segments = np.asarray(features["segments"], np.int64)
  lists = {x: np.asarray(features.get(x, ()), np.int64) for x in answers.FEATURES[2:-1]}
  markers = np.zeros(len(tokens), bool)  # where a text begins, and [CLS]
  markers[0] = True
  for name in ("slots", "values", "memory", "intents"):
    markers[lists[name]] = True
  numbers = np.cumsum(markers) * (segments >= answers.SCHEMA)
  # A row for each token: at a marker, the tokens of the same text but for markers; else nothing.
  words = markers[:, None] & ~markers & (numbers > 0)[:, None] & (numbers[:, None] == numbers)
  return _Frame(tokens, segments, lists, numbers, words)


def _log_softmax(logits: Array, is_open: Array) -> Array:
  """Returns log probabilities over the open choices, else `_CLOSED`."""
  is_open = np.broadcast_to(is_open, logits.shape)
  logits = np.where(is_open, logits, _CLOSED)
  logits = logits - logits.max(axis=-1, keepdims=True, initial=_CLOSED)
  logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
  return np.where(is_open, logits, _CLOSED)


def best_spans(
  starts: Array, ends: Array, segments: Array, longest: int
) -> tuple[Array, Array, Array]:
  """Returns first and last token of each slot's most probable span, and its log probability.

  Args:
    starts: log probabilities of first tokens, `[S, L]`.
    ends: same for last tokens.
    segments: a span lies within one, `[L]`.
    longest: maximum tokens in a span.
  """
  length = starts.shape[-1]
  best_scores = np.full_like(starts, 4 * _CLOSED)
  extras = np.zeros(starts.shape, int)
  for extra in range(min(longest, length)):  # the best last token for each first one
    stop = length - extra
    scores = starts[:, :stop] + ends[:, extra:]
    is_better = (segments[:stop] == segments[extra:]) & (scores > best_scores[:, :stop])
    best_scores[:, :stop][is_better] = scores[is_better]
    extras[:, :stop][is_better] = extra
  begins = best_scores.argmax(axis=-1)
  rows = np.arange(len(starts))
  return begins, begins + extras[rows, begins], best_scores[rows, begins]


def _gelu(x: Array) -> Array:
  """The exact GELU, x (1 + erf(x / sqrt 2)) / 2; overwrites `x`, `[T, N]`.

  erf by Abramowitz and Stegun (1964), 7.1.26: an error of at most 1.5e-7, float32's own size.
  """
  for start in range(0, len(x), _ROWS_IN_CACHE):
    rows = x[start : start + _ROWS_IN_CACHE]
    magnitude = np.abs(rows)
    t = magnitude * np.float32(0.3275911 * math.sqrt(0.5))
    t += 1
    np.reciprocal(t, out=t)
    tail = t * np.float32(1.061405429 / 2)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
      tail += np.float32(coefficient / 2)
      tail *= t
    np.multiply(rows, rows, out=t)
    t *= np.float32(-0.5)
    tail *= np.exp(t, out=t)  # (1 - erf(|x| / sqrt 2)) / 2
    tail *= magnitude
    np.maximum(rows, 0, out=rows)
    rows -= tail
  return x


def _gelu_by_tanh(x: Array) -> Array:
  """The GELU of `flax.linen.gelu`, by tanh."""
  inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)
  return np.float32(0.5) * x * (1 + np.tanh(inner))


def _millionths(probability: float) -> int:
  return round(float(probability) * answers.MILLION)
