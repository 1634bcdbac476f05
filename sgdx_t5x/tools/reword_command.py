"""`sgdx tools reword`: writes rewordings of a suite's tools, of a model's paraphrases or yours.

examples:
  By a model, which sees nothing but the definitions, a tool at a time:
    sgdx tools reword suite --endpoint http://localhost:8000/v1 --model NAME

  By hand: a file to fill in, then the rewordings:
    sgdx tools reword suite --init texts.jsonl
    sgdx tools reword suite --paraphrases texts.jsonl

SUITE/rewordings.jsonl gets rewordings v1 ... vK, each farther from the tools
as they are: of an element's paraphrases, sorted by distance, vk takes the
k-th. Names keep the style of the tools' names. Read the file before you
commit it; `sgdx tools check --reword K` asks cases in its words.
"""

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, check_least
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.tools.endpoint_options import add_service, say_costs

if TYPE_CHECKING:
  from sgdx_t5x.tools.suite.composing import Paraphrases
  from sgdx_t5x.tools.suite.toolset import ToolSet

_VARIANTS = 5  # as in SGD-X


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "reword", __doc__)
  add_input(parser, "suite", metavar="SUITE", help="folder of `sgdx tools import`")
  source = parser.add_mutually_exclusive_group(required=True)
  text = "http://HOST:PORT/v1 of an OpenAI-compatible API, whose model writes the paraphrases"
  source.add_argument("--endpoint", metavar="URL", help=text)
  add_input(source, "--paraphrases", metavar="FILE", help="paraphrases that --init began")
  add_output(source, "--init", metavar="FILE", help="write a line per text, to fill in")
  parser.add_argument("--model", metavar="NAME", help="model to ask")
  text = "number of rewordings (default: 5)"
  parser.add_argument("--variants", type=int, default=_VARIANTS, metavar="K", help=text)
  add_service(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the rewordings. Returns 0, 130 (Ctrl-C) or 143 (SIGTERM). Raises SgdxError."""
  from sgdx_t5x.files.writing import atomic_write, json_line
  from sgdx_t5x.tools.suite.rewording import REWORDINGS
  from sgdx_t5x.tools.suite.toolset import read_suite

  check_least(args, "variants", 1, "omit it to use 5, as in SGD-X")
  if args.dry_run and not args.endpoint:
    raise UsageError(
      "--dry-run without --endpoint",
      expected="a model, whose requests are counted",
      fix="leave it out, or add --endpoint URL --model NAME",
    )
  tools = read_suite(args.suite)
  path = pathlib.Path(args.init or pathlib.Path(args.suite) / REWORDINGS)
  if path.exists():  # somebody has read or written it
    raise SgdxError(
      f"{path} exists", expected="a new file", fix="remove it, if it is to be written anew"
    )
  try:
    rows = list(_blank_lines(tools)) if args.init else _rewordings(args, tools)
  except KeyboardInterrupt as stop:
    return ended(stop, "run the same command again to resume")
  if not args.dry_run:
    with atomic_write(path, "--init" if args.init else "SUITE") as file:
      file.writelines(map(json_line, rows))
    output.say_written(str(path))
  return 0


def _blank_lines(tools: "ToolSet") -> Iterator[dict[str, Any]]:
  """Yields a line per text, to fill in."""
  from sgdx_t5x.tools.suite.rewording import elements

  for tool in tools.tools:
    for pointer, text in elements(tool).items():
      yield {"element": pointer, "original": text, "paraphrases": []}


def _rewordings(args: argparse.Namespace, tools: "ToolSet") -> list[dict[str, Any]]:
  """Returns the lines of the rewordings; says what is left out."""
  from sgdx_t5x.tools.suite.composing import compose, read_paraphrases

  if args.paraphrases:
    paraphrases = read_paraphrases(args.paraphrases, tools)
  else:
    paraphrases = _written_by_model(args, tools)
  if args.dry_run:
    return []
  if not any(paraphrases.values()):
    raise SgdxError(
      "no paraphrase of any text",
      expected="a model that answers with a JSON object, or lines that are filled in",
      fix="pass another --model, or sgdx tools reword SUITE --init FILE, and fill it in",
    )
  rewordings, left_out = compose(tools, paraphrases, args.variants)
  for line in left_out:
    print(f"left out: {line}", file=sys.stderr)
  total = len(list(_blank_lines(tools)))
  number = sum(map(bool, paraphrases.values()))
  print(f"texts with a paraphrase: {number:,} of {total:,}", file=sys.stderr)
  return list(map(dataclasses.asdict, rewordings))


def _written_by_model(args: argparse.Namespace, tools: "ToolSet") -> "Paraphrases":
  """Asks for the paraphrases of each tool; answers are kept in SUITE/answers.jsonl."""
  if not args.model:
    raise UsageError("--endpoint without --model", expected="both", fix="add --model NAME")
  from sgdx_t5x.tools.check.asking import asker_of_suite
  from sgdx_t5x.tools.suite.composing import paraphrases_in, prompt

  prompts = {tool.name: prompt(tool, args.variants) for tool in tools.tools}
  paraphrases: dict[str, Any] = {}
  with asker_of_suite(args, tools) as asker:
    say_costs(args, asker.missing(prompts=prompts), f"{len(prompts):,} tools")
    if args.dry_run:
      return {}
    for name, text in asker.texts(prompts).items():
      of_tool = paraphrases_in(text, tools.by_name[name])
      if not of_tool:
        print(f"no paraphrases in the answer for {name}", file=sys.stderr)
      paraphrases |= of_tool
  return paraphrases
