"""`sgdx schema-embeddings`: embeds schemas once, for the SGD paper's baseline to read.

examples:
  sgdx schema-embeddings --encoder bert-base-cased --corpus sgd.zip \\
    --out schemas.npz
  sgdx schema-embeddings --encoder bert-base-cased --corpus sgd.zip \\
    --variant original mine=my_schemas --out mine.npz

A vector for each intent, slot and value: the last hidden state at [CLS] of the
encoder that training starts from. SGDX_SCHEMA_EMBEDDINGS=FILE.npz passes them to
tasks and gin files. NAME=DIR is a variant of your own, DIR/SPLIT/schema.json; by
default, all of the corpus, all that ship, and the corruptions that tasks use.
"""

import argparse
import pathlib
import shlex
from typing import Any

from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.paths import add_input, add_output, path_of_name
from sgdx_t5x.cli.progress import Update, native_stderr_hidden, progress


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "schema-embeddings", __doc__)
  add_input(
    parser,
    "--encoder",
    required=True,
    metavar="DIR",
    help="a BERT: config.json, safetensors, vocab.txt",
  )
  add_corpus(parser)
  add_input(
    parser,
    "--variant",
    nargs="+",
    default=[],
    metavar="NAME[=DIR]",
    help="variants of the schemas (default: all)",
    path=path_of_name,
  )
  parser.add_argument(
    "--descriptions-only",
    action="store_true",
    help="leave out the names of intents and slots (BaselineStyle(names=False))",
  )
  add_output(parser, "--out", required=True, metavar="FILE", help="npz to write")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the table. Returns 0. Raises SgdxError for bad input."""
  with progress("texts") as update, native_stderr_hidden(args.debug):
    number, width = _write(args, update)
  print(f"written: {args.out}")
  print(f"         {number:,} intents, slots and values; width {width}")
  print(
    "next:    train the baseline on the same encoder, as in "
    "gin/papers/sgd_baseline/baseline.gin, with"
  )
  if args.descriptions_only:
    print("         a task of your own that has BaselineStyle(names=False), and with")
  for name, value in (("SGDX_ENCODER", args.encoder), ("SGDX_SCHEMA_EMBEDDINGS", args.out)):
    print(f"  export {name}={shlex.quote(str(value))}")
  return 0


def _write(args: argparse.Namespace, update: Update) -> tuple[int, int]:
  """Writes the table. Returns how many vectors it has, and their width."""
  from sgdx_t5x.cli.options import parse_variants
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.sgd_baseline import schema_table
  from sgdx_t5x.papers.sgd_baseline.baseline_features import BaselineStyle, table_texts
  from sgdx_t5x.spandst import states
  from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

  corpus = open_corpus(args.corpus)
  variants, schemas = parse_variants(args.variant, corpus)
  for variant in variants:
    if not any(schemas.has(split, variant) for split in corpus.splits):
      schemas.get(corpus.splits[0], variant)  # says what there is
  style = BaselineStyle(names=not args.descriptions_only)
  texts = table_texts(schemas, corpus.splits, variants, style)
  vocabulary = WordPieceVocabulary(args.encoder)
  config, params = states.load(args.encoder)
  vocabulary.check_fits(config.vocab_size)
  vectors = schema_table.embed(
    texts, vocabulary, config, params, lambda count: update("embedding", count, len(texts))
  )
  schema_table.write_table(schema_table.SchemaTable(texts, vectors), pathlib.Path(args.out))
  return len(vectors), vectors.shape[1]
