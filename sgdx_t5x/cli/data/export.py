"""`sgdx data export`: writes SGD-X dialogues as the official converter does."""

import argparse
import itertools
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus, add_splits, add_variants
from sgdx_t5x.cli.output import splits_table
from sgdx_t5x.cli.paths import add_output, check_no_inputs
from sgdx_t5x.cli.progress import track
from sgdx_t5x.files.locks import lock
from sgdx_t5x.tables import Table, count

_FORMAT = "sgdx-export/1"  # of `--format json`; raise the number when a reader must change
_EPILOG = """\
examples:
  sgdx data export --corpus sgd.zip --variant v3 --out sgdx
  sgdx data export --corpus sgd.zip --variant all --split all --out x  # 2.4 GB
  sgdx data export --corpus sample --variant v1 v5 --split dev test --out mine

A variant is v1 ... v5, bt_zh, bt_ja, bt_ko or para_1 ... para_15 (back-translations
and paraphrases of SGD's train split ship with this package), corrupt_SEED,
NAME=DIR for schemas of your own in DIR/SPLIT/schema.json, or all: every variant of
the corpus.

Files are OUT/VARIANT/SPLIT/dialogues_*.json, byte for byte as
generate_sgdx_dialogues.py of the dstc8 repository writes them (as fixed in
2023-08), and schema.json as in the corpus. Existing files are replaced, but those
of another corpus in a split's folder make the command fail. After an
interruption, no file is partial; the same command writes all of them again.
"""


def add_verb(verbs: Any) -> None:
  """Adds `export` to `sgdx data`. Args: verbs is what `add_subparsers` returned."""
  parser = add_command(
    verbs, "export", __doc__, _EPILOG, "write dialogues with the names of SGD-X variants"
  )
  add_corpus(parser)
  add_variants(parser, "variants to write, see below")
  add_splits(parser)
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write to", folder=True)
  parser.add_argument(
    "--processes",
    type=int,
    default=os.cpu_count() or 1,
    metavar="N",
    help="number of processes (default: one per core)",
  )
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the files, prints what was written. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.options import check_least, parse_variants
  from sgdx_t5x.corpus.export import choose, export
  from sgdx_t5x.corpus.opening import open_corpus

  fix = "omit --processes to use one per core"
  check_least(args, "processes", 1, fix, "at least 1 process")
  corpus = open_corpus(args.corpus)
  variants, schemas = parse_variants(args.variant, corpus)
  chosen = choose(corpus, variants, args.split, schemas.get)
  total = sum(len(corpus.dialogue_files(split)) for split, names in chosen.items() if names)
  files: dict[str, int] = dict.fromkeys(chosen, 0)
  dialogues: dict[str, int] = dict.fromkeys(chosen, 0)
  with lock(args.out):
    for split, names in chosen.items():
      files_of_split = [f"{split}/schema.json", *corpus.dialogue_files(split)]
      replaced = itertools.product([args.out], names, files_of_split)
      check_no_inputs(args, [pathlib.Path(*parts) for parts in replaced])
    exported = export(corpus, chosen, args.out, args.processes)
    for written in track(exported, "writing", "files", total):
      files[written.split] += 1
      dialogues[written.split] += written.dialogues
  report = {
    split: {
      "files": files[split],
      "dialogues": dialogues[split],
      "variants": list(variants),
      "complete": corpus.is_complete(split, dialogues[split]),
    }
    for split, variants in chosen.items()
  }
  output.show(
    args.format,
    [_layout(report, corpus.name == "sgd")],
    {"format": _FORMAT, "corpus": corpus.name, "out": args.out, "splits": report},
    notes=[f"written: {args.out}"],
  )
  return 0


def _layout(report: Mapping[str, Mapping[str, Any]], of_sgd: bool) -> Table:
  rows = {
    split: (count(x["files"]), count(x["dialogues"]), ", ".join(x["variants"]) or "none")
    for split, x in report.items()
  }
  partial = [split for split, x in report.items() if not x["complete"]]
  return splits_table(("files", "dialogues", "variants"), rows, partial, of_sgd)
