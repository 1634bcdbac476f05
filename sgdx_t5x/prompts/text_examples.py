"""Records -> examples of any prompt format, by its Python functions inside tf.data.

A format's `examples` calls `text_examples`, unless it has a faster graph of its own. Parts of a
prompt are tokenised apart and joined as token runs: pieces of T5's SentencePiece never cross
white space, so the result equals tokenising the joined text (tested).
"""

import array
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.augment.variant_schemas import VariantSchemas
from sgdx_t5x.data.dialogue import SYSTEM, USER, State
from sgdx_t5x.data.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.data.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import (
  History,
  Prompt,
  PromptFormat,
  ServicePair,
  prompts_without_history,
  service_pairs,
)
from sgdx_t5x.records.source import split_of

_CACHED_TEXTS = 100_000  # turns and parts of prompts, about 40 MB
_SCALARS = ("frame_id", "service_index", "active_intent")
_LISTS = ("utterances", "gold_slot", "gold_value", "requested_slots")
_TOKEN = np.dtype(np.int32)
_PromptTokens = tuple[list[bytes], list[bytes], bytes]  # before the history, its turns, after it
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


def text_examples(
  prompt_format: PromptFormat,
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: VariantSchemas,
  variants: Sequence[str],
) -> tf.data.Dataset:
  """Turns records into examples of a format; see `protocol.PromptFormat.examples`.

  The oldest turns are cut to fit, never the rest of a prompt.

  Returns:
    Batches of examples in the records' order, of a record by variant, {inputs, targets: int32
    [length], inputs_pretokenized, targets_pretokenized, example_id_pretokenized: string, seen:
    bool}, and what `seqio_steps.read_back` takes for the gold: if the unit is "slot", {gold: string
    [values], num_slots: int32, categorical: bool}; if it is "frame", {gold_slot: int32 [values],
    gold_value: string [values], active_intent: string, requested_slots: string [slots]}.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split)
  pairs = {v: service_pairs(original, schemas.get(split, v)) for v in variants}
  tokens = _Tokens(output_features["inputs"].vocabulary)
  target_tokens = _Tokens(output_features["targets"].vocabulary)
  limit = (sequence_length or {}).get("inputs")
  if limit is not None:
    _check_fits(prompt_format, split, pairs, tokens, limit)

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """Returns what the graph takes out of Python: the examples of a batch of records."""
    rows = []
    for i, (frame_id, service, state, history) in enumerate(_frames(arrays, original.services)):
      for variant in variants:
        frame = ExampleId(variant, split, frame_id)
        pair = pairs[variant][service.name]
        for row in _frame_examples(prompt_format, frame, pair, history, state):
          row["record"] = i
          rows.append(row)
    prompts = [row["prompt"] for row in rows]
    targets = [row["targets_pretokenized"] for row in rows]
    found: dict[str, list] = {
      "inputs": [_fitting(parts, limit) for parts in _tokenised(prompts, tokens)],
      "targets": target_tokens.of(targets),
    }
    return list(_flat({k: found.get(k) or [row[k] for row in rows] for k in _TYPES}))

  make = _graph(columns, prompt_format.unit)
  return batches.map(make).prefetch(1)


def _frame_examples(
  prompt_format: PromptFormat,
  frame: ExampleId,
  pair: ServicePair,
  history: History,
  state: State,
) -> Iterator[dict[str, Any]]:
  """Yields the examples of a frame in one variant, before they are tokenised."""
  asked = prompt_format.asked(pair.original)
  prompts = prompt_format.prompts(frame, pair, history)
  targets = prompt_format.targets(frame, pair, state)
  for slot, prompt, target in zip(asked, prompts, targets, strict=True):
    index = pair.original.slot_index.get(slot)
    yield {
      "prompt": prompt,
      "inputs_pretokenized": prompt.text,
      "targets_pretokenized": target,
      "example_id_pretokenized": str(frame.with_slot(slot)),
      "gold": state.slot_values.get(slot, ()),
      "num_slots": len(asked),
      "categorical": index is not None and pair.original.slots[index].is_categorical,
    }


def _graph(columns: Callable[..., list[np.ndarray]], unit: Unit) -> Callable[[Any], dict[str, Any]]:
  """Returns the function from a batch of records to the batch of their examples."""
  types = []
  for key, kind in _TYPES.items():
    types += [kind, tf.int64] if key in _RAGGED else [kind]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def make(batch: Mapping[str, Any]) -> dict[str, Any]:
    lists = [part for key in _LISTS for part in (batch[key].flat_values, batch[key].row_lengths())]
    found = tf.numpy_function(columns, [*(batch[key] for key in _SCALARS), *lists], types)
    for column in found:
      column.set_shape([None])
    found = iter(found)
    example = {
      key: tf.RaggedTensor.from_row_lengths(next(found), next(found), validate=False)
      if key in _RAGGED
      else next(found)
      for key in _TYPES
    }
    record = example.pop("record")
    gold = ("gold_slot", "gold_value", "active_intent", "requested_slots")
    if unit == FRAME:
      example = {key: value for key, value in example.items() if key not in _OF_A_SLOT}
      example |= {key: tf.gather(batch[key], record) for key in gold}
    return {**example, "seen": tf.gather(batch["seen"], record)}

  return make


def _frames(
  arrays: Sequence[np.ndarray], services: Sequence[Service]
) -> Iterator[tuple[str, Service, State, History]]:
  """Yields (frame id, original service, gold state, history) of a batch of records."""
  scalars, lists = arrays[: len(_SCALARS)], arrays[len(_SCALARS) :]
  columns = [column.tolist() for column in scalars]
  columns += map(_rows, lists[::2], lists[1::2])
  for frame_id, index, intent, utterances, slots, values, requested in zip(*columns, strict=True):
    service, state = services[index], {}
    for slot, value in zip(slots, values, strict=True):
      state.setdefault(service.slots[slot].name, []).append(value.decode())
    gold = State(
      intent.decode(),
      tuple(name.decode() for name in requested),
      {slot: tuple(found) for slot, found in state.items()},
    )
    history = tuple(zip(itertools.cycle((USER, SYSTEM)), map(bytes.decode, utterances)))
    yield frame_id.decode(), service, gold, history


def _rows(values: np.ndarray, lengths: np.ndarray) -> Iterator[list]:
  values, ends = values.tolist(), itertools.accumulate(lengths.tolist(), initial=0)
  for start, end in itertools.pairwise(ends):
    yield values[start:end]


def _flat(columns: Mapping[str, list]) -> Iterator[np.ndarray]:
  """Yields the columns as arrays; ragged ones as their values, then the lengths of their rows."""
  for key, column in columns.items():
    kind = np.dtype(object) if _TYPES[key] == tf.string else _TYPES[key].as_numpy_dtype
    if key not in _RAGGED:
      yield np.array(column, kind)
      continue
    if key in _TOKENS:
      yield np.frombuffer(b"".join(column), _TOKEN)
      yield np.array([len(row) for row in column], np.int64) // _TOKEN.itemsize
      continue
    yield np.array(list(itertools.chain.from_iterable(column)), kind)
    yield np.array([len(row) for row in column], np.int64)


class _Tokens:
  """Tokens of texts, as bytes of `_TOKEN`, which are joined and counted fastest.

  Most texts come again (a turn in the next frame, a slot in the next prompt): each is tokenised
  once, many at a time.
  """

  def __init__(self, vocabulary: seqio.Vocabulary):
    self._known: dict[str, bytes] = {}
    if isinstance(vocabulary, seqio.SentencePieceVocabulary):
      self._encode = functools.partial(vocabulary.tokenizer.Encode, out_type=int, num_threads=1)
    else:
      self._encode = functools.partial(map, vocabulary.encode)

  def of(self, texts: Sequence[str]) -> list[bytes]:
    """Returns the tokens of each text."""
    if len(self._known) > _CACHED_TEXTS:
      self._known.clear()
    known = self._known
    if new := [text for text in dict.fromkeys(texts) if text not in known]:
      for text, ids in zip(new, self._encode(new), strict=True):
        known[text] = array.array(_TOKEN.char, ids).tobytes()
    return list(map(known.__getitem__, texts))


def _tokenised(prompts: Sequence[Prompt], tokens: _Tokens) -> Iterator[_PromptTokens]:
  """Yields the tokens of prompts."""
  parts = [_parts(prompt) for prompt in prompts]
  flat = iter(tokens.of(list(itertools.chain.from_iterable(parts))))
  for prompt, texts in zip(prompts, parts, strict=True):
    turns = len(texts) - 1 - len(prompt.turns), len(texts) - 1
    found = list(itertools.islice(flat, len(texts)))
    yield found[: turns[0]], found[slice(*turns)], found[-1]


def _parts(prompt: Prompt) -> tuple[str, ...]:
  return (*(prompt.before_parts or (prompt.before,)), *prompt.turns, prompt.after)


def _fitting(parts: _PromptTokens, limit: int | None) -> bytes:
  """Returns the tokens of a prompt, of whole newest turns within a limit, one kept for EOS.

  If not even the newest turn fits, its end does.
  """
  before, turns, after = parts
  if limit is not None:
    room = (limit - 1) * _TOKEN.itemsize - sum(map(len, before)) - len(after)
    newest, length = turns[-1:], sum(map(len, turns))
    while turns and length > room:
      length -= len(turns.pop(0))
    if not turns and newest:
      turns = [newest[0][max(0, len(newest[0]) - room) :] if room > 0 else b""]
  return b"".join([*before, *turns, after])


def _check_fits(
  prompt_format: PromptFormat,
  split: str,
  pairs: Mapping[str, Mapping[str, ServicePair]],
  tokens: _Tokens,
  limit: int,
) -> None:
  longest, text = 0, ""
  for variant, services in pairs.items():
    for prompt in prompts_without_history(prompt_format, split, variant, services):
      length = sum(map(len, tokens.of(_parts(prompt)))) // _TOKEN.itemsize
      if length > longest:
        longest, text = length, prompt.text
  if longest + 2 > limit:
    raise SgdxError(
      f"prompt of {longest} tokens without history: {text[:80]!r}",
      expected=f"room for it, some history and </s> in {limit} input tokens",
      fix=f"set TASK_FEATURE_LENGTHS['inputs'] to {longest + 64} or more",
    )
