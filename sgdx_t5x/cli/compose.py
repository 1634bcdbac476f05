"""`sgdx compose`: variant schemas of paraphrases, each farther from the original, as SGD-X."""

import argparse
import collections
import shlex
import sys
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.errors import UsageError

if TYPE_CHECKING:
  from sgdx_t5x.augment.compose import Composition

_EPILOG = """\
examples:
  Five variants of all splits, and how far they are:
    sgdx compose --corpus sgd.zip --paraphrases texts.jsonl --out mine
    sgdx stats --corpus sgd.zip --schemas mine

  Three variants of train's services, where some elements have fewer paraphrases:
    sgdx compose --corpus sgd.zip --paraphrases texts.jsonl --out mine --split train \\
      --variants 3 --fill

A line of FILE holds an element and its paraphrases, in any order; names are written as words:
  {"element": "Banks_1/slot/account_type/name", "paraphrases": ["kind of account", "type"]}
  {"element": "Banks_1/intent/CheckBalance/description", "paraphrases": ["...", "..."]}
  {"element": "Banks_1/service/Banks_1/description", "paraphrases": ["...", "..."]}

Paraphrases are sorted by distance to the original, and variant k takes the k-th: names by edits
(Levenshtein), descriptions by Jaccard distance of lemmas without determiners; ties keep the order
of FILE. Of more than K the K nearest are used. Every name and description needs K, but names of
services, which need none. Services get the variant's digit, as in SGD-X: Banks_2 is Banks_21 in v1.

DIR gets v1/SPLIT/schema.json ... and paraphrases.jsonl, which says where every paraphrase went,
with its distance, and what was not taken as it is:
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  from sgdx_t5x.augment.compose import PLACEMENT_RULES

  rules = "".join(f"  {rule:10} {text}\n" for rule, text in PLACEMENT_RULES.items())
  summary = "make variant schemas of paraphrases"
  parser = add_command(subparsers, "compose", __doc__, _EPILOG + rules, summary)
  add_corpus(parser)
  parser.add_argument("--paraphrases", required=True, metavar="FILE", help="JSONL, see below")
  parser.add_argument("--out", required=True, metavar="DIR", help="folder to write, new or empty")
  parser.add_argument(
    "--split", nargs="+", metavar="NAME", help="train, dev, test (default: all of the corpus)"
  )
  parser.add_argument(
    "--variants", type=int, default=5, metavar="K", help="how many to make (default: 5)"
  )
  parser.add_argument(
    "--fill",
    action="store_true",
    help="where there are too few, repeat the farthest; where there is none, keep the original",
  )
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Composes and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.augment import compose
  from sgdx_t5x.corpora import open_corpus

  if args.variants < 1:
    raise UsageError(
      f"--variants {args.variants}", expected="1 or more", fix="leave it out for 5, as in SGD-X"
    )
  compose.check_out(args.out)
  corpus = open_corpus(args.corpus)
  originals = {split: corpus.schema(split) for split in args.split or corpus.splits}
  schema = compose.union(list(originals.values()), f"{'+'.join(originals)} of {corpus.origin}")
  everything = [corpus.schema(split) for split in corpus.splits]
  found = compose.read_paraphrases(args.paraphrases, everything)
  used = {element: texts for element, texts in found.items() if element.service in schema}
  made = compose.compose(schema, used, args.variants, fill=args.fill)
  header = {
    "corpus": corpus.name,
    "checksum": corpus.checksum(),
    "splits": list(originals),
    "variants": args.variants,
    "distances": {"name": "Levenshtein, edits", "description": "Jaccard, lemmas"},
  }
  compose.write_variants(made, originals, args.out, header)
  _print_summary(args, made, len(schema), len(found) - len(used))
  return 0


def _print_summary(
  args: argparse.Namespace, made: "Composition", num_services: int, num_other: int
) -> None:
  from sgdx_t5x.augment.compose import PLACEMENT_RULES

  means = []
  for field in ("name", "description"):
    distances = collections.defaultdict(list)
    for p in made.placements:
      if p.variant and p.element.field == field:
        distances[p.variant].append(p.distance)
    shown = " ".join(f"{sum(x) / len(x):.2f}" for _, x in sorted(distances.items()))
    means.append(f"{field}s {shown}")
  counts = collections.Counter(rule for p in made.placements for rule in p.rules)
  lines = [
    f"written: {args.out}, {len(made.variants)} variants of {num_services} services",
    f"mean distance from v1 on: {means[0]} edits; {means[1]}",
    *(f"{counts[rule]:,} {rule}: {text}" for rule, text in PLACEMENT_RULES.items() if counts[rule]),
  ]
  if num_other:
    lines.append(f"{num_other:,} elements of the file are of other splits: not used")
  command = ["sgdx", "stats", "--corpus", args.corpus, "--schemas", args.out]
  lines.append(f"next:    {shlex.join(command)}")
  print("\n".join(lines), file=sys.stderr)
