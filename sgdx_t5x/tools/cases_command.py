"""`sgdx tools cases`: adds cases to a suite, and says whether they can compare wordings.

examples:
  sgdx tools cases suite --add mine.jsonl
  sgdx tools cases suite

A case is a line of SUITE/cases.jsonl:
  {"id": "log-5", "messages": [{"role": "user", "content": "The last 5"}],
   "expect": [{"name": "git_log", "arguments": {"max_count": 5}}],
   "reviewed": "ana"}
"expect" is [] where no tool is due, and "ask" where a required value is
missing. --add also takes logs of chat completions, as cases to review.

docs/tools/README.md
"""

import argparse
import pathlib
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.cli.paths import add_input
from sgdx_t5x.tables import Table, count

if TYPE_CHECKING:
  from sgdx_t5x.tools.suite.cases import Case
  from sgdx_t5x.tools.suite.toolset import ToolSet

_MOST = 10  # leaks that are listed


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "cases", __doc__)
  add_input(parser, "suite", metavar="SUITE", help="folder of `sgdx tools import`")
  add_input(parser, "--add", metavar="FILE", help="cases, or a log, to add to cases.jsonl")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Checks, adds, prints what the cases cover. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.tools.suite.cases import CASES, read_cases
  from sgdx_t5x.tools.suite.toolset import read_suite

  toolset, path = read_suite(args.suite), pathlib.Path(args.suite) / CASES
  cases = read_cases(path, toolset) if path.exists() or not args.add else []
  notes: list[str] = []
  if args.add:
    added, notes = _add(pathlib.Path(args.add), path, cases, toolset)
    cases += added
  table, of_cases = _coverage(cases, toolset)
  output.show("text", [table], {}, notes=[*notes, *of_cases, *_leaks(args.suite, cases, toolset)])
  if args.add:
    output.say_written(str(path))
  return 0


def _add(
  source: pathlib.Path, path: pathlib.Path, cases: "list[Case]", toolset: "ToolSet"
) -> "tuple[list[Case], list[str]]":
  """Appends the cases of a file to those of a suite. Returns them, and what was not added."""
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.files.writing import atomic_write, json_line
  from sgdx_t5x.tools.suite.candidates import read_candidates
  from sgdx_t5x.tools.suite.cases import check_cases

  located, refused = read_candidates(source, toolset)
  check_cases([*((str(path), case) for case in cases), *located], toolset)
  added = [case for _, case in located]
  before = read_input(path, "cases").decode() if path.exists() else ""
  before += "\n" if before and not before.endswith("\n") else ""
  with atomic_write(path, "SUITE") as file:
    file.write(before + "".join(json_line(case.row()) for case in added))
  return added, [f"added: {len(added):,}", *(f"not added: {what}" for what in refused)]


def _coverage(cases: "list[Case]", toolset: "ToolSet") -> tuple[Table, list[str]]:
  from sgdx_t5x.tools.suite.leaks import coverage, same_requests

  found = coverage(cases, toolset)
  rows = [
    (name, ", ".join(found.unused.get(name, ()) if number else ()), count(number))
    for name, number in found.cases_of.items()
  ]
  reviewed = sum(case.reviewed is not None for case in cases)
  title = f"{len(cases):,} cases, {reviewed:,} reviewed"
  table = Table(title, ("tool", "arguments that none gives", "cases"), tuple(rows), left=2)
  missing = [name for name, number in found.cases_of.items() if not number]
  notes = [f"without a case: {', '.join(missing) or 'no tool'}"]
  notes.append(f"cases in which no tool is due: {found.no_tool:,}")
  notes += [f"one request in several cases: {', '.join(ids)}" for ids in same_requests(cases)]
  return table, notes


def _leaks(suite: str, cases: "list[Case]", toolset: "ToolSet") -> list[str]:
  """Returns what to know of words that cases share with some wordings only."""
  from sgdx_t5x.tools.suite.leaks import find_leaks
  from sgdx_t5x.tools.suite.rewording import BASE, REWORDINGS, apply, read_rewordings

  path = pathlib.Path(suite) / REWORDINGS
  if not path.exists():
    return []
  wordings = {BASE.name: toolset}
  wordings |= {rewording.name: apply(toolset, rewording) for rewording in read_rewordings(path)}
  leaks = find_leaks(cases, wordings)
  lines = [f"  {leak.case}: {leak.word!r} in {', '.join(leak.wordings)}" for leak in leaks[:_MOST]]
  lines += [f"  and {len(leaks) - _MOST:,} more words"] if leaks[_MOST:] else []
  leaking = len({leak.case for leak in leaks})
  return [f"cases with words that only some wordings have: {leaking:,} of {len(cases):,}", *lines]
