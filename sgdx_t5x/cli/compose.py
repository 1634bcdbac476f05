"""`sgdx compose`: composes variant schemas from paraphrases, as SGD-X was made.

examples:
  A file that lists every name and description, to fill in:
    sgdx compose --corpus sgd.zip --init texts.jsonl

  Five variants of all splits, and their distances from the original:
    sgdx compose --corpus sgd.zip --paraphrases texts.jsonl --out mine
    sgdx stats --corpus sgd.zip --schemas mine

Each line of FILE gives an element and its paraphrases, in any order; names are
written as words:
  {"element": "Banks_1/slot/account_type/name", "paraphrases": ["kind", "type"]}

Paraphrases are sorted by distance to the original, and variant k takes the
k-th. DIR will contain v1/SPLIT/schema.json ... and paraphrases.jsonl, which
says where every paraphrase went. The file and the rules: docs/compose.md
"""

import argparse
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus, check_least
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import SgdxError, UsageError

if TYPE_CHECKING:
  from sgdx_t5x.variants.compose import Composition

_VARIANTS = 5  # as in SGD-X


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "compose variant schemas from paraphrases"
  parser = add_command(subparsers, "compose", __doc__, help=summary)
  add_corpus(parser)
  action = parser.add_mutually_exclusive_group(required=True)
  add_input(action, "--paraphrases", metavar="FILE", help="JSONL, see below")
  add_output(action, "--init", metavar="FILE", help="write FILE with every element, to fill in")
  add_output(parser, "--out", metavar="DIR", help="folder to write to, new or empty", folder=True)
  text = "train, dev, test (default: all splits of the corpus)"
  parser.add_argument("--split", nargs="+", metavar="NAME", help=text)
  text = "number of variants (default: 5)"
  parser.add_argument("--variants", type=int, default=_VARIANTS, metavar="K", help=text)
  text = (
    "if there are too few paraphrases, repeat the farthest; if there are none, keep the original"
  )
  parser.add_argument("--fill", action="store_true", help=text)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Composes and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.variants import compose
  from sgdx_t5x.variants.wording import wording

  check_least(args, "variants", 1, "omit it to use 5, as in SGD-X")
  if args.init is not None:
    return _init(args)
  if not args.out:
    raise UsageError("no --out", expected="a folder to write to", fix="add --out DIR")
  compose.check_out(args.out)
  corpus = open_corpus(args.corpus)
  originals = {split: corpus.schema(split) for split in args.split or corpus.splits}
  schema = compose.union(list(originals.values()), f"{'+'.join(originals)} of {corpus.origin}")
  # An element of a split that is not composed is no mistake, only not used.
  everything = [corpus.schema(split) for split in corpus.splits]
  paraphrases = compose.read_paraphrases(args.paraphrases, everything)
  elements = wording(schema)
  used = {element: texts for element, texts in paraphrases.items() if element in elements}
  with progress("elements") as update:
    composition = compose.compose(schema, used, args.variants, fill=args.fill, on_progress=update)
  header = {
    "corpus": corpus.name,
    "checksum": corpus.checksum(),
    "splits": list(originals),
    "variants": args.variants,
    "distances": {"name": "Levenshtein, edits", "description": "Jaccard, lemmas"},
  }
  compose.write_variants(composition, originals, args.out, header)
  _print_summary(args, composition, len(schema), len(paraphrases) - len(used))
  return 0


def _init(args: argparse.Namespace) -> int:
  """Writes the elements to paraphrase. Returns 0."""
  from sgdx_t5x.cli.output import folded_command
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.variants import compose

  if args.out or args.fill:
    option = "--out" if args.out else "--fill"
    raise UsageError(
      f"--init together with {option}",
      expected="--init FILE, and optionally --split",
      fix="write the file first, then compose its paraphrases in a second command",
    )
  if pathlib.Path(args.init).exists():  # hours of work may be in it
    raise SgdxError(
      f"--init {args.init} already exists",
      expected="a new file, since paraphrases already filled in would be lost",
      fix="choose another file, or remove this one",
    )
  corpus = open_corpus(args.corpus)
  schemas = [corpus.schema(split) for split in args.split or corpus.splits]
  lines = list(compose.blank_lines(compose.union(schemas, corpus.origin)))
  with atomic_write(args.init, "--init") as file:
    file.writelines(lines)
  print(f"written: {args.init}, {len(lines):,} elements", file=sys.stderr)
  command = ["sgdx", "compose", "--corpus", args.corpus, "--paraphrases", args.init]
  command += ["--split", *args.split] if args.split else []
  command += ["--variants", str(args.variants)] if args.variants != _VARIANTS else []
  print("next:    fill in the lists of paraphrases, then run", file=sys.stderr)
  command += ["--out", "DIR"]
  print(folded_command(command, "  "), file=sys.stderr)
  return 0


def _print_summary(
  args: argparse.Namespace, composition: "Composition", num_services: int, num_other: int
) -> None:
  from sgdx_t5x.cli.output import folded_command
  from sgdx_t5x.variants.compose import PLACEMENT_RULES

  variants = len(composition.variants)
  lines = [f"written: {args.out}, {variants} variants of {num_services} services"]
  for rule, meaning in PLACEMENT_RULES.items():
    if number := sum(rule in placement.rules for placement in composition.placements):
      lines.append(f"{number:,} {rule}: {meaning}")
  if num_other:
    lines.append(f"not used: {num_other:,} elements of the file that belong to other splits")
  command = ["sgdx", "stats", "--corpus", args.corpus, "--schemas", args.out]
  lines.append(folded_command(command, "next:    "))
  print("\n".join(lines), file=sys.stderr)
