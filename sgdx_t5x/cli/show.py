"""`sgdx show`: prints a dialogue with its schema and states, in any variant's words.

examples:
  sgdx show 1_00000 --corpus sample
  sgdx show 1_00000 --corpus sgd.zip --variant v5
"""

import argparse
from typing import Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_split, parse_named
from sgdx_t5x.cli.paths import add_input, path_of_name


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "show", __doc__, help="print a dialogue and its states")
  parser.add_argument("dialogue", metavar="DIALOGUE", help="its id, such as 1_00000")
  add_corpus(parser)
  add_split(parser)
  text = "variant of the schema, as for `sgdx prompts` (default: original)"
  options: dict[str, Any] = {"dest": "words", "default": "original", "metavar": "NAME[=DIR]"}
  add_input(parser, "--variant", help=text, path=path_of_name, **options)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Prints the dialogue. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.variants.showing import show

  schemas = {}
  if "=" in args.words:
    schemas = parse_named(
      [args.words], "--variant", "NAME or NAME=DIR", "give both, or a NAME alone"
    )
  name = next(iter(schemas), args.words)
  print(show(open_corpus(args.corpus), args.dialogue, name, args.split, schemas))
  return 0
