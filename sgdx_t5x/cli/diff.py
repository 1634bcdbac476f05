"""`sgdx diff`: do two systems differ by more than chance, and in which frames?

examples:
  Score two systems, with scores per frame, and compare them:
    sgdx score --corpus sgd.zip --predictions all=base/eval --json base.json \\
      --per-frame base.jsonl
    sgdx score --corpus sgd.zip --predictions all=ours/eval --json ours.json \\
      --per-frame ours.jsonl
    sgdx diff base.json ours.json --flips flips.jsonl

  With two seeds of each:
    sgdx diff base.json ours.json --more-a base_1.json --more-b ours_1.json

The 95% interval and the two-sided p are for B-A, from a paired bootstrap over
dialogues. They account for the choice of test dialogues, not for randomness in
training: another seed of the same model differs as well. With --more-a and
--more-b, differences are of the means over the runs of each system, of which
each has as many. broken: regressions, frames that are correct (score 1) in A
and wrong in B; fixed: improvements, the reverse.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tables import Table

_JOINT_GOAL = "joint_goal_accuracy"


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "compare two systems: differences, intervals, flipped frames"
  parser = add_command(subparsers, "diff", __doc__, help=summary)
  kind = "JSON of `sgdx score --json --per-frame`, or its file of scores per frame"
  add_input(parser, "a", metavar="A", help=kind)
  add_input(parser, "b", metavar="B", help="the same for the other system")
  for x in ("a", "b"):
    text = f"other runs of {x.upper()}, with other seeds"
    add_input(parser, f"--more-{x}", several=True, metavar="FILE", help=text)
  text = f"official metric per frame (default: {_JOINT_GOAL})"
  parser.add_argument("--metric", default=_JOINT_GOAL, help=text)
  add_output(parser, "--flips", metavar="OUT", help="write every flipped frame to this JSONL file")
  add_sampling(parser)
  parser.set_defaults(run=run)


def add_sampling(parser: argparse.ArgumentParser) -> None:
  """Adds what every comparison takes: which frames, the bootstrap, outputs."""
  text = "if some frames are in one system only: compare the others and mark the result PARTIAL"
  parser.add_argument("--allow-missing", action="store_true", help=text)
  text = "number of bootstrap samples of dialogues (default: 1000)"
  parser.add_argument("--bootstrap-samples", type=int, default=1000, metavar="N", help=text)
  add_output(parser, "--json", metavar="OUT", help="also write all numbers to this JSON file")
  output.add_format(parser)


def run(args: argparse.Namespace) -> int:
  """Compares, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.scoring import compare, comparison_tables
  from sgdx_t5x.scoring.frame_table import pooled
  from sgdx_t5x.scoring.score_files import read_frames

  # A mean over more runs varies less, whatever the system.
  if len(args.more_a) != len(args.more_b):
    raise UsageError(
      f"{1 + len(args.more_a)} runs of A and {1 + len(args.more_b)} of B",
      expected="as many runs of A as of B",
      fix="leave some out, or compare each pair of runs",
    )
  a = pooled([read_frames(path, [args.metric]) for path in (args.a, *args.more_a)])
  b = pooled([read_frames(path, [args.metric]) for path in (args.b, *args.more_b)])
  compared = compare.compare(a, b, args.metric, args.allow_missing)
  report = compare.comparison_report(compared, args.bootstrap_samples)
  if args.flips:
    with atomic_write(args.flips, "--flips") as file:
      file.writelines(f"{json.dumps(flip)}\n" for flip in compare.flips(compared))
  return finish(args, report, comparison_tables.layout, *comparison_tables.notes(report))


def finish(
  args: argparse.Namespace,
  report: Mapping[str, Any],
  layout: Callable[..., Sequence[Table]],
  *notes: str,
) -> int:
  """Writes a comparison to `--json` and prints it. Returns 0.

  Args:
    args: of the command.
    report: of the comparison.
    layout: makes tables of it.
    notes: printed below them.
  """
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.scoring.comparison_tables import texts

  if args.json:
    with atomic_write(args.json, "--json") as file:
      file.write(output.as_json(report))
  tables = layout(report, split_intervals=args.format == "csv")
  output.show(args.format, tables, report, **texts(report), notes=notes)
  output.say_written(args.json, getattr(args, "flips", None))
  return 0
