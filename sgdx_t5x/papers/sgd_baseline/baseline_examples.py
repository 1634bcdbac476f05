"""Records -> examples of the SGD paper's baseline, in tf.data: one per frame and variant."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import seqio
import tensorflow as tf

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.papers.sgd_baseline.baseline import BaselineStyle, right_answers
from sgdx_t5x.papers.sgd_baseline.baseline_features import (
  FEATURES,
  LENGTHS,
  BaselineReader,
  targets,
)
from sgdx_t5x.papers.sgd_baseline.schema_table import SchemaTable
from sgdx_t5x.records.frame_examples import frame_examples
from sgdx_t5x.records.source import split_of
from sgdx_t5x.records.turns import Gold, Known, States
from sgdx_t5x.variants.variant_schemas import VariantSchemas


def baseline_examples(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
  *,
  schemas: VariantSchemas,
  variants: Sequence[str],
  style: BaselineStyle,
  table: Callable[[], SchemaTable],
) -> tf.data.Dataset:
  """Turns batches of records into examples.

  Args:
    batches: from `RecordSource.batches`, version 1.1.0.
    sequence_length: feature lengths; missing ones default to `baseline_features.LENGTHS`.
    output_features: the `inputs` vocabulary tokenizes the texts.
    schemas: schemas of all variants.
    variants: each record yields one example per variant.
    style: of the input.
    table: returns the model's table of schema embeddings.

  Returns:
    Examples {each of `baseline_features.FEATURES`: int32 [any], example_id_pretokenized: string},
    the variants of a record one after the other.
  """
  split = split_of(batches)
  if split is None:
    return batches
  original = schemas.get(split).services
  vocabulary, lengths = output_features["inputs"].vocabulary, {**LENGTHS, **(sequence_length or {})}
  row = table().row
  readers = {
    v: BaselineReader(schemas.get(split, v), vocabulary, row, style, lengths) for v in variants
  }

  def make(known: Known, states: States, gold: Gold) -> Iterator[tuple[str, dict[str, list[int]]]]:
    state = states.get(known.service)
    right = right_answers(original[known.service], known, gold, state.values if state else {})
    for variant, reader in readers.items():
      example = reader.example(known, states)
      example.features["targets"] = targets(example, right, gold, lengths["targets"])
      yield str(ExampleId(variant, split, known.frame_id)), example.features

  return frame_examples(batches, original, FEATURES, make)
