"""`sgdx ls`: lists tasks and mixtures to train and evaluate on.

examples:
  sgdx ls tasks                          # a summary
  sgdx ls tasks 'd3st_*' '*_backtrans'   # names, data and schema variants
  sgdx ls tasks 'mine_*' --module my_project.tasks  # also those of your module

Use a name in t5x: --gin.MIXTURE_OR_TASK_NAME="'t5dst_sgdx_v3'".
tasks/README.md shows how to add tasks; your own folder of schemas needs one
function call.
"""

import argparse
import fnmatch
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import HELP_WIDTH, add_command
from sgdx_t5x.errors import UsageError, nearest, require
from sgdx_t5x.tables import Table, count

if TYPE_CHECKING:
  from sgdx_t5x.tasks.registration import Registered

_NUMBER = re.compile(r"(?<=_)\d+$|(?<=_v)\d+$")
# "sample_t5dst" of "sample_t5dst_sgdx_v3"
_FAMILY = re.compile(r"(?:(?:sample|tiny|sim|plain)_)*[^_]+")


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "ls", __doc__, help="list tasks and mixtures")
  parser.usage = "sgdx ls [-h] [tasks] [PATTERN ...] [--module NAME]"  # in this order
  text = "what to list (default: tasks)"
  parser.add_argument("what", nargs="?", default="tasks", choices=("tasks",), help=text)
  text = "names to list, such as 'd3st_*' (default: a summary of all)"
  parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=text)
  text = "Python module to import first"
  parser.add_argument("--module", action="append", default=[], metavar="NAME", help=text)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Lists tasks and mixtures. Returns 0."""
  from sgdx_t5x.cli.progress import native_stderr_hidden

  with native_stderr_hidden(args.debug):
    require("seqio", extra="train", why="tasks and mixtures")
    from sgdx_t5x.tasks import REGISTERED
  for name in args.module:
    _import(name)
  patterns = args.patterns or ["*"]
  entries = []
  for name, entry in REGISTERED.items():
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
      entries.append(entry)
  if not entries:
    raise UsageError(
      f"no task or mixture is named {' or '.join(patterns)}",
      expected="names, in which * stands for any characters",
      available=nearest(patterns[0], REGISTERED),
      fix="omit the names to list all",
    )
  if not args.patterns:
    output.show("text", [_families(entries)], {}, notes=_suffixes(entries))
    return 0
  header = ("name", "kind", "format", "data", "schema variants")
  rows = []
  for entry in entries:
    kind = "mixture" if entry.mixture else "task"
    rows.append((entry.name, kind, entry.format, entry.data, ", ".join(entry.variants)))
  output.show("text", [Table("tasks and mixtures", header, tuple(rows), left=len(header))], {})
  return 0


def _families(entries: "Sequence[Registered]") -> Table:
  """Returns a row per beginning of names, which is a PATTERN."""
  families: dict[str, list[Registered]] = {}
  for entry in entries:
    families.setdefault(f"{_family(entry.name)}*", []).append(entry)
  rows = []
  for pattern, of_family in families.items():
    formats = "+".join(dict.fromkeys(entry.format for entry in of_family))
    data = "+".join(dict.fromkeys(entry.data for entry in of_family))
    num_mixtures = sum(entry.mixture for entry in of_family)
    rows.append((pattern, formats, data, count(len(of_family) - num_mixtures), count(num_mixtures)))
  header = ("names", "format", "data", "tasks", "mixtures")
  return Table("tasks and mixtures", header, tuple(rows), left=3)


def _suffixes(entries: "Sequence[Registered]") -> list[str]:
  """Returns lines that list what follows a family in names."""
  lines = []
  for is_mixture, plural in ((False, "tasks"), (True, "mixtures")):
    suffixes: dict[str, None] = {}  # a dict for its order
    for entry in entries:
      if entry.mixture == is_mixture:
        suffix = entry.name.removeprefix(_family(entry.name))
        suffixes[_NUMBER.sub("K", suffix)] = None  # numbered ones once: _sgd_para_K
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
