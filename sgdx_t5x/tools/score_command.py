"""`sgdx tools score`: scores a language model's tool calls as states, and the calls themselves.

examples:
  sgdx tools score --corpus sgd.zip --predictions all=answers.jsonl

  Answers to a part of the requests, marked PARTIAL:
    sgdx tools score --corpus sgd.zip --predictions all=answers.jsonl \\
      --allow-missing --json scores.json

Answers are those to the requests of `sgdx tools requests`, in any of the forms
of docs/tools/README.md. All other options are those of `sgdx score`.
"""

import argparse
from typing import Any

from sgdx_t5x.cli import score
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.errors import UsageError

_HEADLINES = ("right_call", "right_tool")  # beside JGA, which does not see the tool


def add_parser(verbs: Any) -> argparse.ArgumentParser:
  """Adds the subcommand to those of `sgdx tools`. Returns its parser."""
  parser = add_command(verbs, "score", __doc__)
  score.add_options(parser)
  parser._option_string_actions["--prompt-style"].help = argparse.SUPPRESS  # `run` refuses it
  add_calls_from_text(parser)
  parser.set_defaults(run=run)
  return parser


def add_calls_from_text(parser: argparse.ArgumentParser) -> None:
  """Adds the option --calls-from-text."""
  parser.add_argument(
    "--calls-from-text",
    action="store_true",
    help="count calls in the text of answers without any: JSON, fenced or in tags, Python",
  )


def run(args: argparse.Namespace) -> int:
  """Scores, prints and writes. Returns 0.

  Raises SgdxError: bad input; after the tables, if no answer has a call.
  """
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.tools.format import calls_format

  if args.prompt_style:
    raise UsageError(
      "sgdx tools score with --prompt-style",
      expected="none, since the answer ids record what the requests showed",
      fix="omit --prompt-style",
    )
  sources = score.parse_sources(args, open_corpus(args.corpus))
  style = calls_format(sources, args.split, args.calls_from_text)
  args.metric = [*_HEADLINES, *args.metric]
  return score.run(args, style)
