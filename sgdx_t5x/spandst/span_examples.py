"""Records -> SpanDST's examples, in tf.data: one per frame and variant."""

import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import seqio
import tensorflow as tf

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.records.frame_examples import frame_examples
from sgdx_t5x.records.source import split_of
from sgdx_t5x.records.turns import FrameContext, Gold, States
from sgdx_t5x.spandst.span_features import FEATURES, LENGTHS, SpanReader, targets
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.spandst import right_choices
from sgdx_t5x.variants.variant_schemas import VariantSchemas


def span_examples(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: VariantSchemas,
  variants: Sequence[str],
  style: SpanStyle,
) -> tf.data.Dataset:
  """Turns batches of records into examples.

  The state before a turn is the gold one; `span_tracking` is inference without it.
  Slots, values and intents are in the schema's order, except for training; a share of training's
  frames (`SpanStyle.plain_text`) is read without acts.

  Args:
    batches: from `RecordSource.batches`, version 1.1.0.
    sequence_length: feature lengths; missing ones default to `span_features.LENGTHS`.
    output_features: the `inputs` vocabulary tokenizes the texts.
    schemas: schemas of all variants.
    variants: each record yields one example per variant.
    style: of the input.

  Returns:
    Examples {each of `span_features.FEATURES`: int32 [any], example_id_pretokenized: string}, the
    variants of a record one after the other. They fit the lengths.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split).services
  vocabulary, lengths = output_features["inputs"].vocabulary, {**LENGTHS, **(sequence_length or {})}
  readers = {v: SpanReader(schemas.get(split, v), vocabulary, style, lengths) for v in variants}
  shuffled = style.shuffle and split == "train"
  plain_text = style.plain_text if split == "train" else 0.0

  def make(
    context: FrameContext, states: States, gold: Gold
  ) -> Iterator[tuple[str, dict[str, Any]]]:
    service, state = original[context.service], states.get(context.service)
    labels = None  # of the first variant for all: they are in the words of the dialogue
    # By the frame's id, so that all variants of a frame, and all runs, agree.
    if zlib.crc32(context.frame_id.encode()) < plain_text * 2**32:
      context = dataclasses.replace(context, acts=())
    for variant, reader in readers.items():
      name = str(ExampleId(variant, split, context.frame_id))
      example = reader.example(context, states, name if shuffled else None)
      if labels is None:
        values = state.values if state else {}
        labels = right_choices(service, context, gold, values, example.choices)
      example.features["targets"] = targets(example, labels, gold, lengths["targets"])
      yield name, example.features

  return frame_examples(batches, original, FEATURES, make)
