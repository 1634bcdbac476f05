"""`sgdx simulate`: simulates dialogues in SGD's format for any schema.

examples:
  Files for a schema of your own, to review and edit:
    sgdx simulate --init schema.json --out start

  Dialogues, as the train split of a corpus in SGD's layout:
    sgdx simulate --schema schema.json --tables start/tables \\
      --scenarios start/scenarios.json --templates start/templates.json \\
      --num-dialogues 1000 --seed 1 --out mine
    sgdx data verify --corpus mine

docs/papers/simulator.md describes the files. The same seed gives the same
dialogues.
"""

import argparse
import pathlib
import shlex
from typing import Any

from sgdx_t5x.cli.options import add_command, check_least
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import UsageError

_NEEDED = ("schema", "tables", "scenarios", "num_dialogues")


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "simulate", __doc__)
  text = "write tables, scenarios and templates for this schema"
  add_input(parser, "--init", metavar="SCHEMA", help=text)
  add_input(parser, "--schema", metavar="FILE", help="schema in SGD's format")
  add_input(parser, "--tables", metavar="DIR", help="folder with a table SERVICE.csv per service")
  text = "user goals and how they are linked across services"
  add_input(parser, "--scenarios", metavar="FILE", help=text)
  text = "phrases of the services (default: made from the schema)"
  add_input(parser, "--templates", metavar="FILE", help=text)
  parser.add_argument("--num-dialogues", type=int, metavar="N", help="number of dialogues")
  parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
  text = "folder of the corpus, or for the files of --init"
  add_output(parser, "--out", required=True, metavar="DIR", help=text, folder=True)
  parser.add_argument("--split", choices=SPLITS, help="split to write (default: train)")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes files to start from, or dialogues. Returns 0. Raises SgdxError for anything wrong."""
  present, missing = [], []  # options of a simulation
  for name in (*_NEEDED, "templates", "split"):
    option = f"--{name.replace('_', '-')}"
    if getattr(args, name) is not None:
      present.append(option)
    elif name in _NEEDED:
      missing.append(option)
  if present if args.init else missing:
    raise UsageError(
      f"--init together with {', '.join(present)}" if args.init else f"no {', '.join(missing)}",
      expected="--init SCHEMA, or --schema, --tables, --scenarios and --num-dialogues",
      fix="write the files with --init first, then simulate dialogues in a second command",
    )
  if not args.out:
    raise UsageError("--out is empty", expected="a folder", fix="pass --out DIR")
  return _init(args) if args.init else _simulate(args)


def _init(args: argparse.Namespace) -> int:
  from sgdx_t5x.corpus.schema import load_schema
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.papers.simulator import starting_point

  schema = load_schema(read_input(args.init, "a schema in SGD's format"), args.init)
  names = starting_point.write_starting_point(schema, args.out, args.seed)
  out = pathlib.Path(args.out)
  print(f"written: {out}: {len(names) - 2} tables, scenarios.json, templates.json")
  command = (
    f"sgdx simulate --schema {shlex.quote(args.init)} --tables {shlex.quote(str(out / 'tables'))}",
    f"  --scenarios {shlex.quote(str(out / 'scenarios.json'))}",
    f"  --templates {shlex.quote(str(out / 'templates.json'))}",
    "  --num-dialogues 1000 --seed 1 --out mine",
  )
  print("next: review them, then run\n  " + " \\\n  ".join(command))
  return 0


def _simulate(args: argparse.Namespace) -> int:
  from sgdx_t5x.papers.simulator.load import load_simulation
  from sgdx_t5x.papers.simulator.write import write_split

  check_least(args, "num-dialogues", 1, "pass a larger number")
  paths = {
    name: pathlib.Path(value)
    for name in ("schema", "tables", "scenarios", "templates")
    if (value := getattr(args, name)) is not None
  }
  simulation = load_simulation(**paths)
  folder = pathlib.Path(args.out) / (args.split or "train")
  with progress("dialogues") as update:
    totals = write_split(
      simulation,
      folder,
      num_dialogues=args.num_dialogues,
      seed=str(args.seed),
      on_progress=lambda number: update("simulating", number, args.num_dialogues),
    )
  count, turns, frames = (totals[key] for key in ("dialogues", "turns", "user_frames"))
  print(f"written: {folder}: {count:,} dialogues, {turns:,} turns, {frames:,} user frames")
  print(f"next: sgdx data verify --corpus {shlex.quote(args.out)}")
  return 0
