"""`sgdx tools cases`: adds or writes cases for a suite, and says what they can compare.

examples:
  sgdx tools cases suite --add mine.jsonl
  sgdx tools cases suite --write 4
  sgdx tools cases suite --review ana

A case is a line of SUITE/cases.jsonl:
  {"id": "log-5", "messages": [{"role": "user", "content": "The last 5"}],
   "expect": [{"name": "git_log", "arguments": {"max_count": 5}}],
   "reviewed": "ana"}
"expect" is [] where no tool is due, and "ask" where a required value is
missing. --add also takes logs of chat completions, and BFCL's questions with
their possible answers.

--write first writes SUITE/purposes.jsonl, a line per tool, in which you say
what users ask it for. A second run draws values and puts them into these
sentences; with --endpoint and --model, a model says them in other words. It
never sees names or descriptions of tools, and what it says is kept if a second
reading gives the same call.

All are candidates until somebody has reviewed them, whom "reviewed" names.
docs/tools/README.md
"""

import argparse
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, check_least
from sgdx_t5x.cli.paths import add_input
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tables import Table, count
from sgdx_t5x.tools.endpoint_options import add_service, say_costs

if TYPE_CHECKING:
  from sgdx_t5x.tools.suite.cases import Case
  from sgdx_t5x.tools.suite.toolset import ToolSet
  from sgdx_t5x.tools.writing.purposes import Purpose

_MOST = 10  # leaks, or names, that are listed
_HOW = """\
say what users want of them in {path}, then run this again:
  {{"tool": "git_log",
   "purpose": "Commits of {{repo_path|a repository}}[, the last {{max_count}}]"}}
  {{...}} is a value; |... is said if it is missing, so that one has to ask back;
  [...] is said if its value is given; "values" are yours: lists, or said: meant
  of a boolean, the words around it are said: [, with hidden files{{all}}]"""


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "cases", __doc__)
  add_input(parser, "suite", metavar="SUITE", help="folder of `sgdx tools import`")
  text = "cases, logs, or BFCL's questions and answers, to add to cases.jsonl"
  add_input(parser, "--add", nargs="+", metavar="FILE", help=text)
  text = "write N cases for each tool that has no written ones"
  parser.add_argument("--write", type=int, metavar="N", help=text)
  parser.add_argument("--seed", type=int, default=0, help="of the values (default: 0)")
  text = "show the candidates one by one; NAME is noted in those that you accept"
  parser.add_argument("--review", metavar="NAME", help=text)
  group = parser.add_argument_group("a model that says the written cases in other words")
  text = "http://HOST:PORT/v1 of an OpenAI-compatible API"
  group.add_argument("--endpoint", metavar="URL", help=text)
  group.add_argument("--model", metavar="NAME", help="model to ask")
  add_service(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Adds, writes, shows for review, prints what the cases cover. Returns 0, 130 or 143."""
  check_least(args, "write", 1, "pass the number of cases per tool")
  if bool(args.endpoint) != bool(args.model) or (args.model and not args.write):
    raise UsageError(
      "only one or two of --write, --endpoint and --model",
      expected="--write N alone, or all three",
      fix="--write 4 --endpoint URL --model NAME",
    )
  if args.dry_run and (args.add or args.review or not args.write):
    raise UsageError(
      "--dry-run with --add or --review, or without --write",
      expected="--write N alone: only what it would do is counted",
      fix="leave --dry-run out, or everything but --write",
    )
  from sgdx_t5x.tools.suite.cases import CASES, read_cases
  from sgdx_t5x.tools.suite.review import review
  from sgdx_t5x.tools.suite.toolset import read_suite

  toolset, path = read_suite(args.suite), pathlib.Path(args.suite) / CASES
  begins = args.add or args.write  # only these may start without a file of cases
  cases = read_cases(path, toolset) if path.exists() or not begins else []
  notes: list[str] = []
  try:
    if args.add:
      notes += _add(args.add, path, cases, toolset)
    if args.write:
      notes += _write(args, path, cases, toolset)
    if args.review:
      review(path, toolset, args.review)
      cases = read_cases(path, toolset)
  except KeyboardInterrupt as stop:
    return ended(stop, "what was done is kept; run the same command again to go on")
  table, of_cases = _coverage(cases, toolset)
  lines = [*of_cases, *_leaks(args.suite, cases, toolset)] if cases else []
  output.show("text", [table] if cases else [], {}, notes=[*notes, *lines])
  return 0


def _add(
  sources: Sequence[str], path: pathlib.Path, cases: "list[Case]", toolset: "ToolSet"
) -> list[str]:
  """Appends the cases of files to those of a suite. Returns what was added, and what was not."""
  from sgdx_t5x.tools.suite.candidates import read_candidates

  located, refused = read_candidates(list(map(pathlib.Path, sources)), toolset)
  _append(path, cases, located, toolset)
  return [f"added: {len(located):,}", *(f"not added: {reason}" for reason in refused)]


def _append(
  path: pathlib.Path, cases: "list[Case]", located: "Sequence[tuple[str, Case]]", toolset: "ToolSet"
) -> None:
  """Adds cases to a suite's file and to `cases`."""
  from sgdx_t5x.tools.suite.cases import check_cases

  check_cases([*((str(path), case) for case in cases), *located], toolset)
  _append_rows(path, [case.row() for _, case in located])
  cases += [case for _, case in located]


def _append_rows(path: pathlib.Path, rows: "Sequence[Mapping[str, Any]]") -> None:
  """Adds lines to a file, whose lines stay as they are, or begins it."""
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.files.writing import atomic_write, json_line

  content = read_input(path, "JSON Lines").decode() if path.exists() else ""
  content += "\n" if content and not content.endswith("\n") else ""
  with atomic_write(path, "SUITE") as file:
    file.write(content + "".join(map(json_line, rows)))
  output.say_written(str(path))


# --- written cases -------------------------------------------------------------------------


def _write(
  args: argparse.Namespace, path: pathlib.Path, cases: "list[Case]", toolset: "ToolSet"
) -> list[str]:
  """Writes cases of the tools that have none yet. Returns what was written, and what was not."""
  from sgdx_t5x.tools.suite.leaks import same_requests
  from sgdx_t5x.tools.writing.drafts import NO_TOOL, WRITTEN, draft_cases

  purposes, notes = _purposes(args, toolset)
  drafts, reasons = draft_cases(purposes, toolset, args.write, args.seed)
  notes += reasons
  ids = {case.id for case in cases if WRITTEN in case.tags}
  covered = {id.rpartition("-")[0] for id in ids} - {NO_TOOL} | ids
  drafts = [x for x in drafts if not covered & {x.id, x.id.rpartition("-")[0]}]
  if ids:
    notes.append(f"written before, and left as they are: {len(ids):,}")
  written_cases = drafts
  if args.model and drafts:
    written_cases, lost = _by_model(args, purposes, drafts, toolset)
    notes += lost
  if args.dry_run:
    return [f"would be written: {len(drafts):,} cases", *notes]
  again: set[str] = set()  # of cases with one request, the first stays
  for ids_of_request in same_requests([*cases, *written_cases]):
    again.update(ids_of_request[1:])
  if left_out := [case.id for case in written_cases if case.id in again]:
    notes.append(f"left out, another case has the request: {', '.join(left_out)}")
  new_cases = [("written", case) for case in written_cases if case.id not in again]
  if new_cases:
    _append(path, cases, new_cases, toolset)
  return [f"written: {len(new_cases):,}, to be reviewed" if new_cases else "written: 0", *notes]


def _purposes(args: argparse.Namespace, toolset: "ToolSet") -> "tuple[list[Purpose], list[str]]":
  """Returns the purposes of a suite, and what to do; adds lines to fill in for further tools."""
  from sgdx_t5x.tools.writing.purposes import PURPOSES, form, read_purposes

  path = pathlib.Path(args.suite) / PURPOSES
  purposes = read_purposes(path, toolset) if path.exists() else []
  listed_tools = {purpose.tool for purpose in purposes}
  rows = [form(tool, toolset) for tool in toolset.tools if tool.name not in listed_tools]
  if rows and not args.dry_run:
    _append_rows(path, [*rows, *([] if listed_tools else [{"tool": None, "purpose": ""}])])
  empty = [purpose.tool for purpose in purposes if purpose.tool and not purpose.is_written]
  empty += [row["tool"] for row in rows]
  if not empty:
    return purposes, []
  names = ", ".join(empty[:_MOST]) + (f" and {len(empty) - _MOST:,} more" if empty[_MOST:] else "")
  return purposes, [f"tools without a purpose: {names}", *_HOW.format(path=path).splitlines()]


def _by_model(
  args: argparse.Namespace, purposes: "Sequence[Purpose]", drafts: "Sequence[Case]",
  toolset: "ToolSet",
) -> "tuple[list[Case], list[str]]":  # fmt: skip
  """Returns the drafts in a model's words, and what was lost."""
  from sgdx_t5x.tools.check.asking import asker_of_suite
  from sgdx_t5x.tools.suite.toolset import ToolSet
  from sgdx_t5x.tools.writing.model import neutral_cards, rewritten, size_of_rewriting

  names = {purpose.tool for purpose in purposes if purpose.is_written}
  base = ToolSet(tuple(tool for tool in toolset.tools if tool.name in names))
  cards = neutral_cards(purposes, base)
  with asker_of_suite(args, base) as asker:
    say_costs(args, size_of_rewriting(drafts, cards, asker), f"{len(drafts):,} cases")
    if args.dry_run:
      return [], []
    written_cases, ids_by_reason = rewritten(drafts, cards, asker)
  lost = []
  for reason, ids in ids_by_reason.items():
    if ids:
      lost.append(f"left out, {reason}: {len(ids):,} ({', '.join(ids[:_MOST])})")
  return written_cases, lost


# --- what the cases cover ------------------------------------------------------------------


def _coverage(cases: "list[Case]", toolset: "ToolSet") -> tuple[Table, list[str]]:
  from sgdx_t5x.tools.suite.leaks import coverage, same_requests

  covered = coverage(cases, toolset)
  rows, missing = [], []
  for name, number in covered.cases_of.items():
    unused = covered.unused.get(name, ()) if number else ()
    rows.append((name, ", ".join(unused), count(number)))
    missing += [] if number else [name]
  reviewed = sum(case.reviewed is not None for case in cases)
  title = f"{len(cases):,} cases, {reviewed:,} reviewed"
  table = Table(title, ("tool", "arguments that none gives", "cases"), tuple(rows), left=2)

  notes = [f"tools without a case: {', '.join(missing) or 'none'}"]
  notes.append(f"cases in which no call is due: {covered.no_call:,}")
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
