"""`sgdx data export`: writes SGD-X dialogues as the official converter does.

examples:
  sgdx data export --corpus sgd.zip --variant v3 --out sgdx
  sgdx data export --corpus sgd.zip --variant all --split all --out x  # 2.4 GB

A variant is as for `sgdx prompts`, or all: every variant of the corpus
but the original, whose files the archive has.

Files are OUT/VARIANT/SPLIT/dialogues_*.json, byte for byte as
generate_sgdx_dialogues.py of the dstc8 repository writes them (as fixed in
2023-08), and schema.json as in the corpus. Existing files are replaced, but those
of another corpus in a split's folder make the command fail.
"""

import argparse
import itertools
import pathlib
from typing import Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_splits, add_variants
from sgdx_t5x.cli.paths import add_output, check_no_inputs


def add_verb(verbs: Any) -> None:
  """Adds `export` to `sgdx data`. Args: verbs is what `add_subparsers` returned."""
  parser = add_command(
    verbs, "export", __doc__, help="write dialogues with the names of SGD-X variants"
  )
  add_corpus(parser)
  add_variants(parser, "variants to write, see below")
  add_splits(parser)
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write to", folder=True)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the files, prints what was written. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.options import parse_variants
  from sgdx_t5x.cli.progress import track
  from sgdx_t5x.corpus.export import choose, export
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.locks import lock

  corpus = open_corpus(args.corpus)
  variants, schemas = parse_variants(args.variant, corpus)
  schemas_by_split = choose(corpus, variants, args.split, schemas.get)
  dialogues: dict[str, int] = dict.fromkeys(schemas_by_split, 0)
  total = 0
  with lock(args.out):
    for split, names in schemas_by_split.items():
      files_of_split = [f"{split}/schema.json", *corpus.dialogue_files(split)]
      total += len(corpus.dialogue_files(split)) if names else 0  # one step for all variants
      replaced = itertools.product([args.out], names, files_of_split)
      check_no_inputs(args, [pathlib.Path(*place) for place in replaced])
    for path in track(export(corpus, schemas_by_split, args.out), "writing", "files", total):
      dialogues[path.split] += path.dialogues
  for split, names in schemas_by_split.items():
    number, note = dialogues[split], ""
    if not corpus.is_complete(split, number):
      note = f"; PARTIAL: {corpus.part(split, number)}"
    print(f"{split}: {number:,} dialogues as {', '.join(names) or 'no variant'}{note}")
  print(f"written: {args.out}")
  return 0
