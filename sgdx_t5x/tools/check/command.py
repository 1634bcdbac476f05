"""`sgdx tools check`: whether an assistant breaks when its tools are reworded, and what hurts.

examples:
  The tools now against those of a branch; exit code 1 if something broke:
    sgdx tools check suite --endpoint http://localhost:8000/v1 --model NAME \\
      --against origin/main:suite/tools.json

  How fragile the tools are under five rewordings of suite/rewordings.jsonl:
    sgdx tools check suite --endpoint http://localhost:8000/v1 --model NAME \\
      --reword 5

SUITE has tools.json, cases.jsonl and, for --reword, rewordings.jsonl. Answers
are kept in SUITE/answers.jsonl: with all of them there, no endpoint is needed.
docs/tools/README.md says what the verdicts mean.
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, check_least
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.tools.endpoint_options import add_service, say_costs
from sgdx_t5x.tools.score_command import add_calls_from_text

if TYPE_CHECKING:
  from sgdx_t5x.tools.check.asking import Asker
  from sgdx_t5x.tools.check.differences import Differences
  from sgdx_t5x.tools.check.plan import Plan
  from sgdx_t5x.tools.check.report import Report
  from sgdx_t5x.tools.suite.toolset import ToolSet

_FAILING = ("broken", "cannot-tell", "same", "better")
_USUAL_CHURN = 0.03  # before any is measured
_REPORT = "report.md"
_OF_SUITE = ("tools.json", "cases.jsonl", "rewordings.jsonl", "answers.jsonl", _REPORT)


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "check", __doc__)
  add_input(parser, "suite", metavar="SUITE", help="folder with tools.json and cases.jsonl")
  text = "http://HOST:PORT/v1 of an OpenAI-compatible API"
  parser.add_argument("--endpoint", metavar="URL", help=text)
  parser.add_argument("--model", required=True, metavar="NAME", help="model to ask")
  words = parser.add_mutually_exclusive_group()
  text = "the tools before: a file, or one of a git revision"
  add_input(words, "--against", metavar="FILE|REVISION:FILE", help=text)
  text = "compare with the first K of SUITE/rewordings.jsonl"
  words.add_argument("--reword", type=int, metavar="K", help=text)
  text = "names that changed: JSON, pointer in the tools before -> new name"
  add_input(parser, "--renames", metavar="FILE", help=text)
  text = "ask each rewording also with its names alone, and with its texts alone"
  parser.add_argument("--by-kind", action="store_true", help=text)
  text = "ask every case N times; right is what is right in more than half (default: 1)"
  parser.add_argument("--repeat", type=int, default=1, metavar="N", help=text)
  text = "harmless changes that measure the noise: order, white space (default: 2)"
  parser.add_argument("--placebos", type=int, default=2, choices=range(3), help=text)
  text = "the largest drop that may go unseen (default: 20)"
  parser.add_argument("--largest-drop", type=float, default=20, metavar="POINTS", help=text)
  text = "broken cases whose cause is searched (default: 20; 0: none)"
  parser.add_argument("--bisect", type=int, default=20, metavar="N", help=text)
  text = f"exit with 1, as for NO CALLS: {', '.join(_FAILING)} (default: broken)"
  parser.add_argument(
    "--fail-on", nargs="+", default=["broken"], choices=_FAILING, metavar="VERDICT", help=text
  )
  add_calls_from_text(parser)
  add_output(parser, "--json", metavar="OUT", help="also write the result to this JSON file")
  add_output(parser, "--junit", metavar="OUT", help="also write a test report, a test per case")
  add_service(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Checks, and prints the report. Returns 0, 1 if it fails, 130 (Ctrl-C) or 143 (SIGTERM)."""
  _check_options(args)
  from sgdx_t5x.tools.check.asking import asker_of_suite
  from sgdx_t5x.tools.check.plan import plan_rewordings, plan_versions, with_noise
  from sgdx_t5x.tools.suite.toolset import read_suite

  folder = pathlib.Path(args.suite)
  tools = read_suite(folder)
  if differences := _differences(args, tools):
    plan, base = plan_versions(folder, differences), differences.base
  else:
    plan, base = plan_rewordings(folder, tools, args.reword or 0, args.by_kind), tools
  if not plan.cases:
    renamed = 'if tools were renamed: --renames FILE with {"/OLD": "NEW"}; or '
    raise SgdxError(
      f"{folder}: no cases to ask",
      expected="cases of tools that are in both versions",
      fix=f"{renamed if plan.new_cases else ''}sgdx tools cases {folder} --add FILE",
    )
  plan = with_noise(plan, args.placebos, args.repeat)
  with asker_of_suite(args, base) as asker:
    _say_costs(args, plan, asker)
    if args.dry_run:
      return 0
    try:
      report = _measure(args, plan, differences, asker)
    except KeyboardInterrupt as stop:
      path = asker.answers.path
      return ended(stop, f"run the same command again to resume: the answers are in {path}")
  return _show(args, report)


def _check_options(args: argparse.Namespace) -> None:
  """Refuses options that make no sense."""
  check_least(args, "reword", 1, "pass the number of rewordings to ask, or --against")
  for name, minimum in (("repeat", 1), ("bisect", 0)):
    check_least(args, name, minimum, "omit it to use the default")
  if not 0 < args.largest_drop <= 100:
    raise UsageError(
      f"--largest-drop {args.largest_drop:g}", expected="points above 0, up to 100", fix="omit it"
    )
  for option, needed in (("renames", "against"), ("by_kind", "reword")):
    if getattr(args, option) and getattr(args, needed) is None:
      name = option.replace("_", "-")
      raise UsageError(
        f"--{name} without --{needed}", expected="both, or neither", fix=f"add --{needed}"
      )
  suite = pathlib.Path(args.suite).resolve()
  for option in ("json", "junit"):
    path = pathlib.Path(getattr(args, option) or ".").resolve()
    if path.parent == suite and path.name in _OF_SUITE:
      raise UsageError(
        f"--{option} {path}: a file of the suite",
        expected="an output file that is not also an input",
        fix="name another file",
      )


# --- what is asked -------------------------------------------------------------------------


def _differences(args: argparse.Namespace, tools: "ToolSet") -> "Differences | None":
  """Returns the differences to the tools of --against; None without it."""
  if args.against is None:
    return None
  from sgdx_t5x.tools.check.differences import differences, read_renames
  from sgdx_t5x.tools.own_tools import decoded, read_tools, tools_of
  from sgdx_t5x.tools.suite.toolset import ToolSet

  path, renames = pathlib.Path(args.against), read_renames(args.renames) if args.renames else {}
  if path.exists() or ":" not in args.against:
    old_tools = read_tools(path)
  else:
    old_tools = tools_of(decoded(_of_revision(args.against), path), path)
  return differences(ToolSet(tuple(old_tools)), tools, renames)


def _of_revision(name: str) -> bytes:
  """Returns a file of a git revision. Args: name, REVISION:FILE, as `git show` takes it."""
  try:
    result = subprocess.run(["git", "show", "--end-of-options", name], capture_output=True)
    error = result.stderr.decode(errors="replace").strip() if result.returncode else ""
  except OSError as e:
    error = f"git: {e.strerror}"
  if not error:
    return result.stdout
  raise SgdxError(
    f"--against {name}: {error}",
    expected="a file, or REVISION:FILE with FILE relative to the repository's root",
    fix="git fetch the revision, or pass a file",
  )


def _say_costs(args: argparse.Namespace, plan: "Plan", asker: "Asker") -> None:
  """Prints what the cases can show and what they cost, before anything is asked."""
  from sgdx_t5x.tools.check.statistics import detectable_drop

  number, questions = len(plan.cases), plan.questions()
  none, usual = (100 * detectable_drop(number, churn) for churn in (0, _USUAL_CHURN))
  shows = f"they show a drop of {none:.0f} points, or of {usual:.0f} if "
  shows += f"{100 * _USUAL_CHURN:.0f}% flip each way by chance"
  shows = "too few to show any drop" if none == 100 else shows
  print(f"cases:    {number:,}; {shows}", file=sys.stderr)
  if not plan.after:
    text = "with the tools as they are alone: --against or --reword compares"
    print(f"          {text}", file=sys.stderr)
  size = asker.missing(questions)
  say_costs(args, size, f"{len(questions):,} questions")
  if size.requests and plan.after and args.bisect and args.against:
    text = "and a few requests per broken case, to find what broke it"
    print(f"          {text}", file=sys.stderr)


# --- asking --------------------------------------------------------------------------------


def _measure(
  args: argparse.Namespace, plan: "Plan", differences: "Differences | None", asker: "Asker"
) -> "Report":
  from sgdx_t5x.tools.check import fragility
  from sgdx_t5x.tools.check.blame import find_causes
  from sgdx_t5x.tools.check.measuring import Measurements
  from sgdx_t5x.tools.check.report import Report
  from sgdx_t5x.tools.check.verdict import worst

  measurements = Measurements(plan, asker.ask(plan.questions()))
  if not measurements.cases:
    raise SgdxError(
      "no case was answered in all wordings",
      expected="answers of the endpoint",
      fix="see why above, and run the same command again",
    )
  report = Report(args.model, measurements, differences)
  if silent := measurements.no_calls():
    return dataclasses.replace(report, decision=silent)
  comparisons = measurements.comparisons(args.largest_drop / 100)
  if comparisons:
    decision = worst(comparison.decision for comparison in comparisons)
    report = dataclasses.replace(report, decision=decision, comparisons=comparisons)
  if args.reword:
    kinds, tools = fragility.by_kind(measurements), fragility.by_tool(measurements)
    return dataclasses.replace(report, kinds=kinds, fragility=tools)
  if differences and args.bisect:
    findings = find_causes(differences, measurements, comparisons[0], asker, args.bisect)
    return dataclasses.replace(report, findings=findings)
  return report


def _show(args: argparse.Namespace, report: "Report") -> int:
  """Prints and writes the report. Returns the exit code."""
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.tools.check.verdict import exit_code

  path = pathlib.Path(args.suite) / _REPORT
  marks = [str(report.decision)] if report.decision else []
  output.show(
    "text", report.tables(), {}, heading=report.heading(), notes=[*report.notes(), *marks]
  )
  texts = {str(path): report.comment()}
  if args.json:
    texts[args.json] = output.as_json(report.data())
  if args.junit:
    texts[args.junit] = report.junit()
  for name, text in texts.items():
    with atomic_write(name, "SUITE" if name == str(path) else "--json") as file:
      file.write(text)
  output.say_written(*texts)
  return exit_code(report.decision.verdict if report.decision else None, args.fail_on)
