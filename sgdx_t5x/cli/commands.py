"""All subcommands of `sgdx`: their parsers, and what all of their runs share.

examples:
  sgdx data prepare --corpus sample --data-dir data
  sgdx data verify --corpus sgd.zip
  sgdx data stats --corpus sgd.zip
  sgdx ls tasks
  sgdx show 1_00000 --corpus sample --variant v3
  sgdx score --corpus sample --predictions all=eval/inference_eval
  sgdx diff scores_a.json scores_b.json
  sgdx report scores_a.json scores_b.json --out report
  sgdx prompts --corpus sample --variant v3 --out prompts.jsonl
  sgdx stats --corpus sgd.zip
  sgdx compose --corpus sgd.zip --init texts.jsonl
  sgdx track runs/spandst --corpus sgd.zip --variant original v1 --out tracked
  sgdx weights import --hf flan-t5-base --out weights/flan-t5-base

sgd.zip is the official archive of SGD and SGD-X:
  github.com/google-research-datasets/dstc8-schema-guided-dialogue

exit codes: 0 success, 1 failure, 2 wrong usage.
`sgdx COMMAND --help` has more examples.
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence

from sgdx_t5x import annexes
from sgdx_t5x.cli import (
  compose,
  data,
  diff,
  ls,
  prompts,
  report,
  score,
  show,
  stats,
  track,
  weights,
)
from sgdx_t5x.cli.options import HELP_WIDTH
from sgdx_t5x.cli.paths import check_paths
from sgdx_t5x.cli.terminal import escaped_streams
from sgdx_t5x.errors import SgdxError, UsageError, nearest, with_document_paths
from sgdx_t5x.files.writing import NO_ROOM
from sgdx_t5x.signature import package_version

_COMMANDS = (data, ls, show, prompts, score, diff, report, stats, compose, track, weights)


class _Parser(argparse.ArgumentParser):
  """Shows where documentation files are; so do its subcommands' parsers."""

  def format_help(self) -> str:
    blocks = with_document_paths(super().format_help()).split("\n\n")
    return "\n\n".join(map(_folded, blocks))


def _folded(block: str) -> str:
  """Rewraps a paragraph if the path of a document has made a line too long; keeps words whole."""
  lines = block.splitlines()
  if any(line.startswith(" ") for line in lines) or max(map(len, lines), default=0) <= HELP_WIDTH:
    return block
  lines = textwrap.wrap(" ".join(lines), HELP_WIDTH, break_long_words=False, break_on_hyphens=False)
  return "\n".join(lines) + ("\n" if block.endswith("\n") else "")


def make_parser() -> argparse.ArgumentParser:
  """Returns the parser of `sgdx`, whose results have the subcommand's `run` and `parser`."""
  parser = _Parser(
    prog="sgdx",
    description="Robustness of schema-guided dialogue state tracking: data, scores, reports.",
    epilog=_annex_list() + __doc__.partition("\n\n")[2],
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  # argparse's own action would look the version up for every command.
  text = "show program's version number and exit"
  parser.add_argument("--version", action="store_true", help=text)
  parser.add_argument("--debug", action="store_true", help="show tracebacks and library messages")
  subparsers = parser.add_subparsers(metavar="COMMAND")
  for command in _COMMANDS:
    command.add_parser(subparsers)
  for module in annexes.table("COMMANDS").values():
    annexes.load(module).add_parser(subparsers)
  return parser


def _check_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
  """Raises UsageError for a command that there is not, or an option that a command does not have.

  argparse would list all commands, print the usage of `sgdx` alone, or what else is missing.
  """
  for word in words:
    groups = [x for x in parser._actions if isinstance(x, argparse._SubParsersAction)]
    if word == "--":
      return
    if word.startswith("--"):
      kind, name = "option", word.partition("=")[0]
      names = [x for x in parser._option_string_actions if x.startswith("--")]
      is_there = any(option.startswith(name) for option in names)  # options can be abbreviated
    elif groups and not word.startswith("-"):
      kind, name, names = "command", word, list(groups[0].choices)
      is_there = word in names
    else:  # a value, or an option of one letter
      continue
    if not is_there:
      parser.print_usage(sys.stderr)
      raise UsageError(
        f"{parser.prog} has no {kind} {name}",
        expected=f"one of its {kind}s",
        available=nearest(name, names),
        fix=f"correct it; `{parser.prog} --help` describes them",
      )
    if kind == "command":
      parser = groups[0].choices[word]


def _annex_list() -> str:
  """The annexes' commands, which argparse does not list: see `options.add_command`."""
  lines = [f"  {name:24}{text}" for name, text in annexes.table("SUMMARIES").items()]
  return "\n".join(["commands of annexes:", *lines, "", ""]) if lines else ""


@escaped_streams()
def run(argv: Sequence[str] | None = None) -> int:
  """Runs the command line. Returns the exit code; raises KeyboardInterrupt."""
  parser, debug = make_parser(), False
  try:
    _check_options(parser, sys.argv[1:] if argv is None else argv)
    args = parser.parse_args(argv)
    debug = args.debug
    if args.version:
      print(f"sgdx_t5x {package_version()}")
      return 0
    if not hasattr(args, "run"):
      parser.print_help()
      return 0
    if not debug:
      os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    check_paths(args)
    code = args.run(args)
    sys.stdout.flush()  # a full disk is noticed here
    return code
  except BrokenPipeError:  # `sgdx ... | head`
    sys.stderr.close()
    return 0
  except (SgdxError, MemoryError, OSError) as e:
    if debug:
      raise
    error = e if isinstance(e, SgdxError) else _of_machine(e)
    print(f"sgdx: {error}", file=sys.stderr)
    return error.exit_code


def _of_machine(error: MemoryError | OSError) -> SgdxError:
  """Returns the error for what the machine lacks or refuses."""
  if isinstance(error, MemoryError):
    return SgdxError(
      f"out of memory: {error}".removesuffix(": "),
      expected="memory for what the command reads and computes",
      fix="use fewer bootstrap samples, a part of the data, or a machine with more memory; "
      "--debug shows the traceback",
    )
  full = error.errno in NO_ROOM
  return SgdxError(
    f"{error.filename or ('standard output' if full else 'a file')}: {error.strerror or error}",
    expected="a file that can be read or written",
    fix=("free some space" if full else "check the path and its permissions")
    + "; --debug shows the traceback",
  )
