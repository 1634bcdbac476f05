"""`sgdx tools`: schemas as tools of language models, from requests to scores.

examples:
  sgdx tools import tools.json --out suite
  sgdx tools cases suite --write 4
  sgdx tools check suite --endpoint http://localhost:8000/v1 --model NAME \\
    --against origin/main:suite/tools.json
  sgdx tools export --corpus sgd.zip --variant original v3 --out tools
  sgdx tools requests --corpus sgd.zip --variant original v3 --out r.jsonl
  sgdx tools run r.jsonl --endpoint http://localhost:8000/v1 --model NAME \\
    --out answers.jsonl
  sgdx tools score --corpus sgd.zip --predictions all=answers.jsonl

docs/tools/README.md
"""

import argparse
from typing import Any

from sgdx_t5x.cli.options import add_group
from sgdx_t5x.cli.paths import add_input
from sgdx_t5x.tools import (
  cases_command,
  definitions_command,
  frozen_command,
  import_command,
  requests_command,
  reword_command,
  run_command,
  score_command,
)
from sgdx_t5x.tools.check import command as check_command


def add_parser(subparsers: Any) -> None:
  """Adds `sgdx tools` and its subcommands."""
  verbs = add_group(subparsers, "tools", __doc__)
  for command in (
    definitions_command,
    requests_command,
    frozen_command,
    run_command,
    score_command,
    import_command,
    cases_command,
    reword_command,
    check_command,
  ):
    command.add_parser(verbs)


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the option of `sgdx report` that names a check, which `check.section` reads."""
  group = parser.add_argument_group("tools of your own")
  text = "JSON of `sgdx tools check`, to show beside the services of SGD-X"
  add_input(group, "--tools-check", metavar="FILE", help=text)
