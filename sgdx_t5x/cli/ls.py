"""`sgdx ls`: lists tasks and mixtures to train and evaluate on."""

import argparse
import fnmatch
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import HELP_WIDTH, add_command
from sgdx_t5x.errors import UsageError, nearest, require
from sgdx_t5x.tables import Table, count

_EPILOG = """\
examples:
  sgdx ls tasks                          # a summary
  sgdx ls tasks 'd3st_*' '*_backtrans'   # names, data and schema variants
  sgdx ls tasks 'mine_*' --module my_project.tasks  # also those of your module
  sgdx ls tasks --format json  # name, kind, format, data, variants

Use a name in t5x: --gin.MIXTURE_OR_TASK_NAME="'t5dst_sgdx_v3'".
tasks/README.md shows how to add tasks; your own folder of schemas needs one
function call.
"""
_NUMBER = re.compile(r"(?<=_)\d+$|(?<=_v)\d+$")
# "sample_t5dst" of "sample_t5dst_sgdx_v3"
_FAMILY = re.compile(r"(?:(?:sample|tiny|sim|plain)_)*[^_]+")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "ls", __doc__, _EPILOG, "list tasks and mixtures")
  parser.add_argument(
    "what", nargs="?", default="tasks", choices=("tasks",), help="what to list (default: tasks)"
  )
  text = "names to list, such as 'd3st_*' (default: a summary of all)"
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
  data = {"format": "sgdx-tasks/1", "tasks": entries}
  if args.format == "text" and not args.patterns:
    output.show("text", [_families(entries)], data, notes=_suffixes(entries))
    return 0
  header = ("name", "kind", "format", "data", "schema variants")
  rows = tuple((*(x[key] for key in header[:4]), ", ".join(x["variants"])) for x in entries)
  table = Table("tasks and mixtures", header, rows, left=len(header))
  output.show(args.format, [table], data)
  return 0


def _families(entries: Sequence[Mapping[str, Any]]) -> Table:
  """Returns a row per beginning of names, which is a PATTERN."""
  families: dict[str, list[Mapping[str, Any]]] = {}
  for entry in entries:
    families.setdefault(f"{_family(entry['name'])}*", []).append(entry)
  rows = []
  for pattern, of_family in families.items():
    kinds = [entry["kind"] for entry in of_family]
    about = ["+".join(dict.fromkeys(x[key] for x in of_family)) for key in ("format", "data")]
    rows.append((pattern, *about, count(kinds.count("task")), count(kinds.count("mixture"))))
  header = ("names", "format", "data", "tasks", "mixtures")
  return Table("tasks and mixtures", header, tuple(rows), left=3)


def _suffixes(entries: Sequence[Mapping[str, Any]]) -> list[str]:
  """Returns lines that list what follows a family in names."""
  lines = []
  for kind, plural in (("task", "tasks"), ("mixture", "mixtures")):
    names = [entry["name"] for entry in entries if entry["kind"] == kind]
    # Numbered ones once: _sgd_para_K.
    suffixes = dict.fromkeys(_NUMBER.sub("K", name.removeprefix(_family(name))) for name in names)
    text = f"{plural}: {' '.join(filter(None, suffixes))}"
    lines += textwrap.wrap(text, HELP_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
  return [*lines, "K is a number; to list some: sgdx ls tasks 't5dst_*'; all: sgdx ls tasks '*'"]


def _family(name: str) -> str:
  match = _FAMILY.match(name)
  return match[0] if match else ""


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
