"""Records -> T5DST examples, in tf.data: a record becomes one example per slot asked for.

Utterances, slot prompts and values are tokenised separately and concatenated: pieces
of T5's SentencePiece never cross white space, so the result equals tokenising the joined
text (tested). The oldest turns are cut to fit, never the slot prompt.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import Schemas
from sgdx_t5x.prompts.t5dst import text
from sgdx_t5x.prompts.t5dst.text import PromptStyle
from sgdx_t5x.records.source import split_of

_KEY = "\x1f"  # joins the parts of a look-up key; occurs in no value
_TRACED: list[tuple[Any, seqio.Vocabulary, Any]] = []  # see `_traced`


@dataclasses.dataclass(frozen=True)
class SlotTable:
  """The prompts of each service of a split, in each variant of its schema.

  Row p of the arrays is one prompt. The i-th service in the v-th variant has the rows
  starts[g] to starts[g + 1], g = v * num_services + i.
  """

  num_services: int
  starts: np.ndarray  # [num_variants * num_services + 1] int64
  slot_index: np.ndarray  # [num_prompts] int32, position of the slot in its service
  names: tuple[str, ...]  # [num_prompts] the slot's original name
  texts: tuple[str, ...]  # [num_prompts] the slot prompt
  categorical: np.ndarray  # [num_prompts] bool
  targets: Mapping[str, str]  # "row, possible value" -> target

  @classmethod
  def build(cls, original: Schema, variants: Sequence[Schema], style: PromptStyle) -> "SlotTable":
    """Args: a split's original schema, the variants of it, the style."""
    starts, rows, targets = [0], [], {}
    for variant in variants:
      for service, reworded in zip(original, variant, strict=True):
        for i in text.slot_indices(service, style):
          slot = reworded.slots[i]
          for value in slot.possible_values:
            targets[f"{len(rows)}{_KEY}{value}"] = text.target_text(slot, [value], style)
          prompt = text.slot_text(reworded, slot, style)
          rows.append((i, service.slots[i].name, prompt, slot.is_categorical))
        starts.append(len(rows))
    index, names, texts, categorical = zip(*rows, strict=True)
    return cls(
      len(original),
      np.array(starts),
      np.array(index, np.int32),
      names,
      texts,
      np.array(categorical),
      targets,
    )


def t5dst_examples(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: Schemas,
  variants: Sequence[str],
  style: PromptStyle,
) -> tf.data.Dataset:
  """Turns records into examples: `text_examples.text_examples(T5DST(style), ...)` as a graph.

  Args:
    batches: of `sgd` records of one split (`RecordSource.batches`).
    sequence_length: maximum lengths of inputs and targets with EOS; None truncates nothing.
    output_features: features whose `inputs` vocabulary tokenises the texts.
    schemas: schemas of all variants.
    variants: names; every record gives examples for each.
    style: the prompt style.

  Returns:
    Batches of examples {inputs, targets: int32 [length], inputs_pretokenized,
    targets_pretokenized, example_id_pretokenized: string, gold: string [values], num_slots: int32,
    seen, categorical: bool}, in the records' order.
  """
  vocabulary = output_features["inputs"].vocabulary
  limit = (sequence_length or {}).get("inputs")
  split = split_of(batches)
  if split is None:
    return batches
  reworded = [schemas.get(split, variant) for variant in variants]
  table = SlotTable.build(schemas.get(split), reworded, style)
  # Many records at a time: the graph's cost is per operation, not per token.
  make = _example_maker(table, variants, style, vocabulary, limit, batches.element_spec)
  return batches.map(make, num_parallel_calls=tf.data.AUTOTUNE)


# As `str.strip` has it; tf.strings.strip removes ASCII's only.
_OUTER_SPACE = r"^[\t-\r\x1c-\x1f \x{85}\pZ]+|[\t-\r\x1c-\x1f \x{85}\pZ]+$"


@dataclasses.dataclass(frozen=True)
class _Histories:
  """The turns of a batch of records, as tokens and as text."""

  tokens: tf.Tensor  # [tokens of all records] int32
  ends: tf.Tensor  # [records] int32, where a record's tokens end in `tokens`
  suffixes: tf.RaggedTensor  # [records, turns] int32, tokens from the start of a turn to the end
  last_turn: tf.Tensor  # [records] int32, tokens of the newest turn
  text: tf.Tensor  # [records] string

  @classmethod
  def of(cls, utterances: tf.RaggedTensor, style: PromptStyle, vocabulary) -> "_Histories":
    position = tf.ragged.range(utterances.row_lengths()).flat_values
    stripped = tf.strings.regex_replace(utterances.flat_values, _OUTER_SPACE, "")
    turns = tf.where(position % 2 == 0, "[USER] ", "[SYSTEM] ") + stripped
    if style.lowercase:
      turns = tf.strings.lower(turns, encoding="utf-8")
    runs = vocabulary.encode_tf(turns)
    lengths = tf.cast(runs.row_lengths(), tf.int32)
    ends = tf.gather(tf.cumsum(lengths), utterances.row_limits() - 1)
    # From the start of a turn to the end of its record.
    suffixes = tf.gather(ends, utterances.value_rowids()) - tf.cumsum(lengths, exclusive=True)
    return cls(
      tf.cast(runs.flat_values, tf.int32),
      ends,
      utterances.with_flat_values(suffixes),
      tf.gather(lengths, utterances.row_limits() - 1),
      tf.strings.reduce_join(utterances.with_flat_values(turns), separator=" ", axis=-1),
    )

  def fitting(self, record, budget) -> tf.RaggedTensor:
    """Returns [examples, tokens]: as many of a record's newest turns as fit a token budget.

    If not even the newest turn fits, its end is kept.
    """
    suffixes = tf.gather(self.suffixes, record)
    total = tf.reduce_max(suffixes, axis=1)
    if budget is None:
      length = total
    else:
      # On the flat values: comparing a ragged tensor with a column takes half of the graph's time.
      flat, limits = suffixes.flat_values, tf.gather(budget, suffixes.value_rowids())
      fits = suffixes.with_flat_values(tf.where(flat <= limits, flat, 0))
      length = tf.reduce_max(fits, axis=1)
      length = tf.where(length > 0, length, tf.minimum(budget, tf.gather(self.last_turn, record)))
    end = tf.cast(tf.gather(self.ends, record), tf.int64)
    return tf.gather(self.tokens, tf.ragged.range(end - tf.cast(length, tf.int64), end))


class _Tables(NamedTuple):
  """What the graph reads of a `SlotTable`, as tensors of any length."""

  prompts: tf.RaggedTensor  # [num_prompts, tokens] int32
  starts: tf.Tensor
  slot_index: tf.Tensor
  names: tf.Tensor
  texts: tf.Tensor
  categorical: tf.Tensor
  offsets: tf.Tensor  # [num_variants] int32, added to a service's index
  prefixes: tf.Tensor  # [num_variants] string, of example ids

  @classmethod
  def of(cls, table: SlotTable, variants: Sequence[str], runs: Sequence[np.ndarray]) -> "_Tables":
    """Args: runs, the tokens of the prompts."""
    return cls(
      tf.RaggedTensor.from_row_lengths(np.concatenate(runs), [len(run) for run in runs]),
      tf.constant(table.starts),
      tf.constant(table.slot_index),
      tf.constant(table.names),
      tf.constant(table.texts),
      tf.constant(table.categorical),
      tf.constant(np.arange(len(variants), dtype=np.int32) * table.num_services),
      tf.constant([f"{variant}/" for variant in variants]),
    )

  def spec(self) -> "_Tables":
    """The types that `tf.function` traces for: no length is fixed."""
    prompts = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    rest = (tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in self[1:])
    return _Tables._make([prompts, *rest])


def _example_maker(table: SlotTable, variants, style, vocabulary, limit, spec):
  """Returns the function from a batch of records (their types: `spec`) to their examples."""
  runs = [np.array(vocabulary.encode(text), np.int32) for text in table.texts]
  if limit is not None:
    _check_fits(table, runs, limit)
  targets = list(table.targets.items()) or [("", "")]
  lookup = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(*map(tf.constant, zip(*targets, strict=True))), ""
  )
  tables = _Tables.of(table, variants, runs)
  make = _traced(style, limit, vocabulary, tables.spec(), tf.TensorSpec([], tf.resource), spec)

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def maker(batch):
    return make(tables, lookup.resource_handle, batch)  # keeps `lookup` alive, which owns the table

  return maker


def _traced(style: PromptStyle, limit, vocabulary, *signature):
  """Returns `_make_examples` as a traced function, shared by tasks that differ only in tables.

  Tracing takes longer than everything else that makes a task's data set. Tasks have different
  vocabulary objects, which compare equal.
  """
  key = style, limit, repr(signature)
  for other_key, other_vocabulary, function in _TRACED:
    if other_key == key and other_vocabulary == vocabulary:
      return function

  @tf.function(input_signature=signature, autograph=False)
  def traced(tables, lookup, batch):
    return _make_examples(tables, lookup, batch, style, vocabulary, limit)

  _TRACED.append((key, vocabulary, traced))
  return traced


def _make_examples(tables: _Tables, lookup, batch, style: PromptStyle, vocabulary, limit):
  """The graph: a batch of records -> their examples. Args: lookup, handle of the target table."""
  history = _Histories.of(batch["utterances"], style, vocabulary)
  # (record, variant) pairs, then one example per slot asked for in each.
  num_variants = tf.size(tables.offsets, tf.int64)
  group = tf.reshape(batch["service_index"][:, None] + tables.offsets, [-1])
  slots = tf.ragged.range(tf.gather(tables.starts, group), tf.gather(tables.starts, group + 1))
  rows, pair = slots.flat_values, slots.value_rowids()
  record = pair // num_variants
  slot = tf.gather(batch["gold_slot"], record)
  asked_slot = tf.gather(tables.slot_index, tf.gather(rows, slot.value_rowids()))
  matches = slot.with_flat_values(slot.flat_values == asked_slot)
  gold = tf.ragged.boolean_mask(tf.gather(batch["gold_value"], record), matches)
  pick = tf.gather(batch["pick"], record)
  targets = _target_texts(gold, rows, pick, lookup, style)
  prompt = tf.gather(tables.prompts, rows)
  budget = None if limit is None else limit - 1 - tf.cast(prompt.row_lengths(), tf.int32)  # EOS
  frame = tf.strings.join([batch["split"], batch["frame_id"]], separator="/")
  prefix = tf.gather(tables.prefixes, pair % num_variants) + tf.gather(frame, record)
  return {
    "inputs": tf.concat([history.fitting(record, budget), prompt], axis=1),
    "targets": tf.cast(vocabulary.encode_tf(targets), tf.int32),
    "inputs_pretokenized": tf.gather(history.text, record) + " " + tf.gather(tables.texts, rows),
    "targets_pretokenized": targets,
    "example_id_pretokenized": prefix + "/" + tf.gather(tables.names, rows),
    "gold": gold,
    "num_slots": tf.cast(tf.gather(slots.row_lengths(), pair), tf.int32),
    "seen": tf.gather(batch["seen"], record),
    "categorical": tf.gather(tables.categorical, rows),
  }


def _target_texts(gold: tf.RaggedTensor, rows, pick, lookup, style: PromptStyle):
  """The graph's `text.target_text`: gold string [examples, values] -> string [examples]."""
  keys = tf.strings.as_string(tf.gather(rows, gold.value_rowids())) + _KEY + gold.flat_values
  plain = gold.flat_values
  if style.lowercase:
    plain = tf.strings.lower(plain, encoding="utf-8")
  looked_up = tf.raw_ops.LookupTableFindV2(table_handle=lookup, keys=keys, default_value="")
  looked_up = tf.ensure_shape(looked_up, keys.shape)
  values = gold.with_flat_values(tf.where(looked_up == "", plain, looked_up))
  if style.target == "join":
    target = tf.strings.reduce_join(values, axis=-1, separator=text.JOIN)
  else:
    counts = tf.cast(tf.maximum(gold.row_lengths(), 1), tf.int32)
    nth = pick % counts if style.target == "sample" else tf.zeros_like(counts)
    padded = tf.concat([values, tf.fill([tf.size(nth), 1], "")], axis=1).to_tensor("")
    target = tf.gather(padded, nth, batch_dims=1)
  return tf.where(gold.row_lengths() > 0, target, text.NONE)


def _check_fits(table: SlotTable, runs: Sequence[np.ndarray], limit: int) -> None:
  longest = max(range(len(runs)), key=lambda i: len(runs[i]))
  if len(runs[longest]) + 2 > limit:
    raise SgdxError(
      f"slot prompt of {len(runs[longest])} tokens: {table.texts[longest][:80]!r}",
      expected=f"a prompt that fits into {limit} input tokens with some history and </s>",
      fix=f"set TASK_FEATURE_LENGTHS['inputs'] to {len(runs[longest]) + 64} or more",
    )
