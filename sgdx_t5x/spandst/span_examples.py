"""SpanDST's examples of the records: one per frame and variant."""

import dataclasses
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.records.frame_examples import Make
from sgdx_t5x.records.turns import FrameContext, Gold, States
from sgdx_t5x.spandst.span_features import LENGTHS, SpanReader
from sgdx_t5x.spandst.span_targets import targets
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.spandst import right_choices
from sgdx_t5x.spandst.vocab_file import WordPieceFile


def span_examples(
  split: str,
  original: Sequence[Service],
  shown: Mapping[str, Schema],
  vocabulary: WordPieceFile,
  lengths: Mapping[str, int],
  *,
  style: SpanStyle,
) -> Make:
  """Returns what makes the examples of a frame, one per variant.

  The state before a turn is the gold one; `span_tracking` is inference without it.
  Slots, values and intents are in the schema's order, except for training; a share of training's
  frames (`SpanStyle.plain_text`) is read without acts.

  Args:
    split: of the records.
    original: services of the split's original schema.
    shown: variant -> its schema.
    vocabulary: tokenizes the texts.
    lengths: of features; missing ones default to `span_features.LENGTHS`. Examples fit them.
    style: of the input.
  """
  lengths = {**LENGTHS, **lengths}
  readers = {v: SpanReader(schema, vocabulary, style, lengths) for v, schema in shown.items()}
  for reader in readers.values():
    reader.check()  # here, as tf.data turns what is raised below into an error of its own
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

  return make
