"""Records -> examples of any prompt format, by its Python functions inside tf.data.

A format's `examples` calls `text_examples`. Parts of a prompt are tokenised separately and
concatenated: pieces of T5's SentencePiece never cross white space, so the result equals tokenising
the joined text (tested).
"""

import array
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, State
from sgdx_t5x.corpus.example_id import FRAME, SLOT, ExampleId
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import as_text
from sgdx_t5x.prompts.protocol import (
  History,
  Prompt,
  PromptFormat,
  Schemas,
  ServicePair,
  prompts_without_history,
  service_pairs,
)
from sgdx_t5x.records.source import flat_fields, rows_of_fields, split_of

_BLANK = "\u2581"  # how SentencePiece writes a space
_LEAD = 0.1  # score margin of a word's best split; above the rounding error of 10,000 pieces
_SCALARS = ("frame_id", "service_index", "active_intent")
_LISTS = ("utterances", "gold_slot", "gold_value", "requested_slots")
_TOKEN = np.dtype(np.int32)
_TYPES = {
  "record": tf.int32,
  "inputs": tf.int32,
  "targets": tf.int32,
  "inputs_pretokenized": tf.string,
  "targets_pretokenized": tf.string,
  "example_id_pretokenized": tf.string,
  "gold": tf.string,
  "num_slots": tf.int32,
  "categorical": tf.bool,
}
_TOKENS = ("inputs", "targets")
_RAGGED = (*_TOKENS, "gold")
_OF_A_SLOT = ("gold", "num_slots", "categorical")
_GOLD_OF_A_FRAME = ("gold_slot", "gold_value", "active_intent", "requested_slots")


def text_examples(
  prompt_format: PromptFormat,
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: Schemas,
  variants: Sequence[str],
) -> tf.data.Dataset:
  """Turns records into examples of a format; see `protocol.PromptFormat.examples`.

  The oldest turns are cut to fit, never the rest of a prompt.

  Returns:
    Batches of examples, by record and then by variant: {inputs, targets: int32 [length],
    inputs_pretokenized, targets_pretokenized, example_id_pretokenized: string, seen: bool}, and
    the gold data for `seqio_steps.read_back`: if the unit is "slot", {gold: string
    [values], num_slots: int32, categorical: bool}; if it is "frame", {gold_slot: int32 [values],
    gold_value: string [values], active_intent: string, requested_slots: string [slots]}.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split)
  pairs = {name: service_pairs(original, schemas.get(split, name)) for name in variants}
  tokens = Tokens(output_features["inputs"].vocabulary)
  target_tokens = Tokens(output_features["targets"].vocabulary)
  limit = (sequence_length or {}).get("inputs")
  if limit is not None:
    check_fits(prompt_format, split, pairs, tokens, limit)

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """Returns the examples of a batch of records as arrays; called from the graph."""
    examples: dict[str, list] = {key: [] for key in ("prompt", *_TYPES)}
    for i, (frame_id, service, state, history) in enumerate(_frames(arrays, original.services)):
      for variant in variants:
        frame = ExampleId(variant, split, frame_id)
        num_before = len(examples["prompt"])
        _add_frame(examples, prompt_format, frame, pairs[variant][service.name], history, state)
        # The graph takes from the record what its examples have in common.
        examples["record"] += [i] * (len(examples["prompt"]) - num_before)
    prompts = examples.pop("prompt")
    examples["inputs"] = input_tokens(prompts, tokens, limit)
    examples["inputs_pretokenized"] = [prompt.text for prompt in prompts]
    examples["targets"] = [*map(target_tokens.once, examples["targets_pretokenized"])]
    return list(_flat(examples, types))

  types = {k: t for k, t in _TYPES.items() if prompt_format.unit == SLOT or k not in _OF_A_SLOT}
  one_each = prompt_format.unit == FRAME and len(variants) == 1
  # Python makes the next batch while TensorFlow works on this one.
  return batches.map(_graph(columns, types, one_each)).prefetch(1)


def _add_frame(
  examples: Mapping[str, list],
  prompt_format: PromptFormat,
  frame: ExampleId,
  pair: ServicePair,
  history: History,
  state: State,
) -> None:
  """Appends the examples of a frame in one variant, before they are tokenised."""
  slots = prompt_format.asked(pair.original)
  prompts = prompt_format.prompts(frame, pair, history)
  targets = prompt_format.targets(frame, pair, state)
  for slot, prompt, target in zip(slots, prompts, targets, strict=True):
    examples["prompt"].append(prompt)
    examples["targets_pretokenized"].append(target)
    examples["example_id_pretokenized"].append(str(frame.with_slot(slot)))
    if slot is not None:
      examples["gold"].append(state.slot_values.get(slot, ()))
      examples["num_slots"].append(len(slots))
      examples["categorical"].append(slot in pair.original.categorical_values)


def _graph(
  columns: Callable[..., list[np.ndarray]], types: Mapping[str, tf.DType], one_each: bool
) -> Callable[[Any], dict[str, Any]]:
  """Returns the function from a batch of records to the batch of their examples.

  Args: columns, from arrays of records to those of `types`; one_each, one example per record.
  """
  column_types: list[tf.DType] = []
  for key, type_ in types.items():
    column_types += [type_, tf.int64] if key in _RAGGED else [type_]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def make(batch: Mapping[str, Any]) -> dict[str, Any]:
    arrays = flat_fields(batch, _SCALARS, _LISTS)
    columns_of_batch = tf.numpy_function(columns, arrays, column_types)
    for column in columns_of_batch:  # the graph does not know what Python returns
      column.set_shape([None])
    remaining = iter(columns_of_batch)
    example = {}
    for key in types:
      example[key] = next(remaining)
      if key in _RAGGED:  # the lengths of its rows follow
        example[key] = tf.RaggedTensor.from_row_lengths(
          example[key], next(remaining), validate=False
        )
    record = example.pop("record")
    of_records = ("seen",) if "gold" in types else ("seen", *_GOLD_OF_A_FRAME)
    for key in of_records:
      example[key] = batch[key] if one_each else tf.gather(batch[key], record)
    return example

  return make


def _frames(
  arrays: Sequence[np.ndarray], services: Sequence[Service]
) -> Iterator[tuple[str, Service, State, History]]:
  """Yields (frame id, original service, gold state, history) of a batch of records."""
  for fields in rows_of_fields(arrays, len(_SCALARS)):
    frame_id, index, intent, utterances, slots, values, requested = fields
    service = services[index]
    state: dict[str, tuple[str, ...]] = {}
    for slot, value in zip(slots, values, strict=True):
      name = service.slots[slot].name
      state[name] = (*state.get(name, ()), value.decode())
    gold = State(intent.decode(), tuple(map(bytes.decode, requested)), state)
    # Records hold no speakers: the user begins, and they alternate.
    history = tuple(zip(itertools.cycle((USER, SYSTEM)), map(bytes.decode, utterances)))
    yield frame_id.decode(), service, gold, history


def _flat(columns: Mapping[str, list], types: Mapping[str, tf.DType]) -> Iterator[np.ndarray]:
  """Yields the columns as arrays; ragged ones as their values, then the lengths of their rows."""
  for key, type_ in types.items():
    column, kind = columns[key], np.dtype(object) if type_ == tf.string else type_.as_numpy_dtype
    if key not in _RAGGED:
      yield np.array(column, kind)
      continue
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    if key in _TOKENS:  # as bytes
      yield np.frombuffer(b"".join(column), _TOKEN)
      yield lengths // _TOKEN.itemsize
    else:
      yield np.array([*itertools.chain.from_iterable(column)], kind)
      yield lengths


class Tokens:
  """Text -> its tokens as bytes of `_TOKEN`, which are fastest to join and count.

  Most texts recur (a turn in the next frame, a slot in the next prompt), and so do most words of
  those that do not.

  Attributes:
    cached: returns the tokens of a text, like `once`, with a cache.
  """

  def __init__(self, vocabulary: seqio.Vocabulary):
    self.cached = functools.lru_cache(maxsize=100_000)(self.once)
    self._vocabulary = vocabulary
    self._scores = _scores(vocabulary)
    self._word = functools.lru_cache(maxsize=100_000)(self._of_word)

  def once(self, text: str) -> bytes:
    """Returns the tokens of a text that does not recur: it is not cached."""
    # Normalisation can turn other characters into spaces, or merge them with their neighbours.
    if self._scores and text.isascii():
      words = [*map(self._word, text.split(" "))]
      if None not in words:  # a word whose tokens its neighbours may change
        return b"".join(filter(None, words))
    return array.array(_TOKEN.char, self._vocabulary.encode(as_text(text))).tobytes()

  def _of_word(self, word: str) -> bytes | None:
    """Returns a word's tokens, the same in any text; None if preceding text may change them.

    Scores of a text are float32 sums: between equally good splits of a word ("mm", "m" and "m",
    "mm"), rounding decides.
    """
    ways = self._vocabulary.tokenizer.NBestEncodeAsIds(word, nbest_size=2)
    scores = [sum(map(self._scores.__getitem__, way)) for way in ways]
    if math.isnan(sum(scores)) or (len(ways) > 1 and scores[0] - scores[1] < _LEAD):
      return None
    return array.array(_TOKEN.char, ways[0]).tobytes()


def _scores(vocabulary: seqio.Vocabulary) -> list[float]:
  """Returns each piece's score, NaN for unknown and bytes; [] if texts are not split at spaces.

  They are if words begin with a mark that occurs nowhere else in a piece.
  """
  if not isinstance(vocabulary, seqio.SentencePieceVocabulary):
    return []
  proto: Any = sentencepiece_model_pb2  # its classes are created at import
  model = proto.ModelProto.FromString(vocabulary.sp_model)
  rules, pieces = model.normalizer_spec, {piece.piece for piece in model.pieces}
  if not (
    model.trainer_spec.model_type == model.trainer_spec.UNIGRAM
    and not model.trainer_spec.treat_whitespace_as_suffix
    and rules.add_dummy_prefix
    and rules.remove_extra_whitespaces
    and rules.escape_whitespaces
    and _BLANK in pieces
    and not any(_BLANK in piece[1:] or " " in piece for piece in pieces)  # across words
  ):
    return []
  kind = model.SentencePiece
  # SentencePiece prefers user-defined pieces to any others.
  special = {kind.UNKNOWN: math.nan, kind.BYTE: math.nan, kind.USER_DEFINED: 1000.0}
  return [special.get(piece.type, piece.score) for piece in model.pieces]


def input_tokens(prompts: Sequence[Prompt], tokens: Tokens, limit: int | None) -> list[bytes]:
  """Returns the tokens of prompts as bytes of int32, without EOS.

  A prompt of more tokens than `limit`, with EOS, loses its oldest turns; None cuts nothing.
  """
  return [_input_tokens(prompt, tokens.cached, limit) for prompt in prompts]


def _input_tokens(prompt: Prompt, tokens_of: Callable[[str], bytes], limit: int | None) -> bytes:
  """Returns the tokens of a prompt, with only as many of its newest turns as fit beside EOS.

  If not even the newest turn fits, its end is kept.
  """
  before, after = b"".join(map(tokens_of, prompt.before)), tokens_of(prompt.after)
  turns = [*map(tokens_of, prompt.turns)]
  if limit is not None:
    room = (limit - 1) * _TOKEN.itemsize - len(before) - len(after)
    newest, length = turns[-1:], sum(map(len, turns))
    while turns and length > room:
      length -= len(turns.pop(0))
    if not turns and newest:
      turns = [newest[0][max(0, len(newest[0]) - room) :] if room > 0 else b""]
  return b"".join((before, *turns, after))


def check_fits(
  prompt_format: PromptFormat,
  split: str,
  pairs: Mapping[str, Mapping[str, ServicePair]],
  tokens: Tokens,
  limit: int,
) -> None:
  """Raises SgdxError for services whose prompts leave no room for a dialogue.

  Args: pairs, services by variant; limit, the maximum length of an input with EOS.
  """
  longest, text = 0, ""
  for variant, services in pairs.items():
    for prompt in prompts_without_history(prompt_format, split, variant, services):
      length = len(_input_tokens(prompt, tokens.cached, None)) // _TOKEN.itemsize
      if length > longest:
        longest, text = length, prompt.text
  if longest + 2 > limit:  # EOS, and a token of the newest turn
    raise SgdxError(
      f"prompt of {longest} tokens without history: {text[:80]!r}",
      expected=f"a prompt that fits into {limit} input tokens with some history and </s>",
      fix=f"give inputs a length of {longest + 64} or more: in gin TASK_FEATURE_LENGTHS, or "
      f"`sgdx track --lengths inputs={longest + 64}`",
    )
