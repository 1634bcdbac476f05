"""SeqIO tasks and mixtures of the SGD paper's zero-shot baseline.

Their metrics cover single turns; `sgdx track` gives the joint goal accuracy of whole dialogues.
Importing this module registers them.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import seqio

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgd_baseline.baseline_features import (
  FEATURES,
  LENGTHS,
  BaselineReader,
  BaselineStyle,
  right_answers,
  table_texts,
  targets,
)
from sgdx_t5x.papers.sgd_baseline.schema_table import SchemaTable, read_table
from sgdx_t5x.records.frame_examples import Make
from sgdx_t5x.records.turns import FrameContext, Gold, States
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.tasks.registration import register_encoder_task, register_mixtures
from sgdx_t5x.tasks.spandst import turn_accuracies
from sgdx_t5x.tasks.vocabularies import encoder_vocabulary_later, sample_encoder_vocabulary
from sgdx_t5x.variants.variant_schemas import VariantSchemas

TABLE = "SGDX_SCHEMA_EMBEDDINGS"  # environment variable


def schema_embeddings() -> SchemaTable:
  """The table of schema embeddings that SGDX_SCHEMA_EMBEDDINGS names.

  Raises:
    SgdxError: it is not set, or there is no such file.
  """
  path = os.environ.get(TABLE, "")
  if not path:
    raise SgdxError(
      f"{TABLE} is not set",
      expected="a table of schema embeddings, which the baseline reads instead of schemas",
      fix="sgdx schema-embeddings --encoder FOLDER --corpus CORPUS --out FILE.npz; "
      f"{TABLE}=FILE.npz python -m t5x.train ...",
    )
  return _read(path, os.stat(path).st_mtime_ns if os.path.isfile(path) else 0)


@functools.lru_cache(maxsize=2)
def _read(path: str, changed: int) -> SchemaTable:
  del changed  # part of the cache key: a changed file is read again
  return read_table(path)


@functools.cache
def sample_schema_embeddings() -> SchemaTable:
  """The sample's schema elements, in all variants; their vectors are from a random encoder."""
  corpus = open_corpus(SAMPLE)
  texts = table_texts(VariantSchemas(corpus), corpus.splits)
  return SchemaTable(
    texts,
    origin="the sample's table of schema embeddings",
    # No command makes another one: its vectors are those of random weights.
    fix="track the sample; for schemas of your own, train on a pretrained encoder: "
    "gin/papers/sgd_baseline/baseline.gin",
  )


def baseline_examples(
  split: str,
  original: Sequence[Service],
  shown: Mapping[str, Schema],
  vocabulary: WordPieceFile,
  lengths: Mapping[str, int],
  *,
  style: BaselineStyle,
  table: Callable[[], SchemaTable],
) -> Make:
  """Returns what makes the examples of a frame, one per variant.

  Args:
    split: of the records.
    original: services of the split's original schema.
    shown: variant -> its schema.
    vocabulary: tokenizes the texts.
    lengths: of features; missing ones default to `baseline_features.LENGTHS`.
    style: of the input.
    table: returns the model's table of schema embeddings.
  """
  row, lengths = table().row, {**LENGTHS, **lengths}
  readers = {v: BaselineReader(x, vocabulary, row, style, lengths) for v, x in shown.items()}
  for reader in readers.values():
    reader.check()  # here, as tf.data turns what is raised below into an error of its own

  def make(
    context: FrameContext, states: States, gold: Gold
  ) -> Iterator[tuple[str, dict[str, list[int]]]]:
    state = states.get(context.service)
    previous, service = state.values if state else {}, original[context.service]
    gold_answers = right_answers(service, context, gold, previous)
    for variant, reader in readers.items():
      example = reader.example(context)
      example.features["targets"] = targets(example, gold_answers, gold, lengths["targets"])
      yield str(ExampleId(variant, split, context.frame_id)), example.features

  return make


def register_baseline_family(
  prefix: str,
  *,
  data: str,
  vocabulary: Callable[[], seqio.Vocabulary],
  table: Callable[[], SchemaTable] = schema_embeddings,
) -> None:
  """Registers the tasks and mixtures of one data set, named like those of prompt formats.

  Args:
    prefix: of their names, "" or "sample_".
    data, vocabulary: see `registration.register_encoder_task`.
    table: returns the table of schema embeddings; gin must give the model the same one.
  """
  task = functools.partial(
    register_encoder_task,
    tracker="the SGD baseline",
    format="baseline",
    vocabulary=vocabulary,
    features=FEATURES,
    examples=baseline_examples,
    metric=turn_accuracies,
    needs=("spans",),
    style=BaselineStyle(),
    table=table,
  )
  register_mixtures(f"{prefix}baseline", data, task)


register_baseline_family("", data="full", vocabulary=encoder_vocabulary_later)
register_baseline_family(
  "sample_",
  data="sample",
  vocabulary=sample_encoder_vocabulary,
  table=sample_schema_embeddings,
)
