"""`sgdx ls`: lists tasks and mixtures to train and evaluate on."""

import argparse
import fnmatch
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.errors import UsageError, nearest, require
from sgdx_t5x.tables import Table, count

_EPILOG = """\
examples:
  sgdx ls tasks
  sgdx ls tasks 'd3st_*' '*_backtrans'
  sgdx ls tasks 'mine_*' --module my_project.tasks  # also those of your module
  sgdx ls tasks --format json  # name, kind, format, data, variants

Use a name in t5x: --gin.MIXTURE_OR_TASK_NAME="'t5dst_sgdx_v3'".
tasks/README.md shows how to add tasks; your own folder of schemas needs one
function call.
"""
_FAMILY = re.compile(r"(?:(?:sample|tiny|sim)_)*[^_]+")  # "sample_t5dst" of "sample_t5dst_sgdx_v3"


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "ls", __doc__, _EPILOG, "list tasks and mixtures")
  parser.add_argument(
    "what", nargs="?", default="tasks", choices=("tasks",), help="what to list (default: tasks)"
  )
  text = "names to list, such as 'd3st_*' (default: all)"
  parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=text)
  parser.add_argument(
    "--module",
    action="append",
    default=[],
    metavar="NAME",
    help="Python module to import first",
  )
  output.add_format(parser)
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Lists tasks and mixtures. Returns 0."""
  from sgdx_t5x.cli.progress import native_stderr_hidden

  with native_stderr_hidden(args.debug):
    require("seqio", extra="train", why="tasks and mixtures")
    from sgdx_t5x.tasks import REGISTERED
  for name in args.module:
    _import(name)
  patterns = args.patterns or ["*"]
  chosen = [n for n in REGISTERED if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
  if not chosen:
    raise UsageError(
      f"no task or mixture is named {' or '.join(patterns)}",
      expected="names, in which * stands for any characters",
      available=nearest(patterns[0], REGISTERED),
      fix="omit the names to list all",
    )
  entries: list[dict[str, Any]] = [
    {
      "name": entry.name,
      "kind": "mixture" if entry.mixture else "task",
      "format": entry.format,
      "data": entry.data,
      "variants": list(entry.variants),
    }
    for entry in (REGISTERED[name] for name in chosen)
  ]
  header = ("name", "kind", "format", "data", "schema variants")
  rows = tuple((*(x[key] for key in header[:4]), ", ".join(x["variants"])) for x in entries)
  tables = [Table("tasks and mixtures", header, rows, left=len(header))]
  if args.format == "text" and not args.patterns:
    tables.append(_families(entries))  # last, because a terminal shows the end of a long list
  output.show(args.format, tables, {"format": "sgdx-tasks/1", "tasks": entries})
  return 0


def _families(entries: Sequence[dict[str, Any]]) -> Table:
  """Counts tasks and mixtures by the beginning of their names, which is a PATTERN."""
  families: dict[str, list[str]] = {}
  for entry in entries:
    family = _FAMILY.match(entry["name"])
    families.setdefault(f"{family[0] if family else ''}*", []).append(entry["kind"])
  numbers = ((family, x.count("task"), x.count("mixture")) for family, x in families.items())
  rows = tuple((family, *map(count, counts)) for family, *counts in numbers)
  return Table(
    "to list some of them: sgdx ls tasks 'PATTERN'", ("pattern", "tasks", "mixtures"), rows
  )


def _import(name: str) -> None:
  sys.path.insert(0, os.getcwd())  # as `python -m t5x.train` finds it
  try:
    if not name or name.startswith("."):  # for which Python has other exceptions
      raise ImportError("not the full name of a module")
    importlib.import_module(name)
  except (ImportError, SyntaxError) as e:
    raise UsageError(
      f"--module {name}: {e}",
      expected="a Python module that can be imported from here",
      fix="install it, or set PYTHONPATH to the folder that contains it",
    ) from None
