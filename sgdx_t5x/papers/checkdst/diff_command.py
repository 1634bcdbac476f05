"""`sgdx checkdst diff`: do two trackers differ on perturbed dialogues by more than chance?"""

import argparse
from typing import Any

from sgdx_t5x.cli import diff
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.cli.paths import add_input

_EPILOG = """\
examples:
  Two trackers (`sgdx checkdst check --json --per-frame`):
    sgdx checkdst diff check_base.json check_ours.json

The 95% interval and the two-sided p are for B-A, from a paired bootstrap over
dialogues, which does not cover randomness in training.
"""


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx checkdst`."""
  parser = add_command(verbs, "diff", __doc__, _EPILOG, "compare two checks")
  text = "JSON of `sgdx checkdst check --json --per-frame`"
  add_input(parser, "a", metavar="A", help=text)
  add_input(parser, "b", metavar="B", help="the same for the other tracker")
  diff.add_sampling(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Compares, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.papers.checkdst.checks import compare, files

  diff.check_sampling(args)
  a, b = (files.read_check(path) for path in (args.a, args.b))
  report = compare.compare(a, b, args.bootstrap_samples, allow_missing=args.allow_missing)
  less = "For broken, reverted, from_train and repair_taken, lower is better."
  return diff.finish(args, report, compare.layout, diff.method_note(report), less)
