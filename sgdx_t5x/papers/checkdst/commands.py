"""`sgdx checkdst`: perturbed dialogues, and what a tracker does on them (Cho et al., 2022)."""

from typing import Any

from sgdx_t5x.cli.options import add_group
from sgdx_t5x.papers.checkdst import check_command, diff_command, perturb_command, verify_command

_EPILOG = """\
examples:
  sgdx checkdst perturb ned --corpus sgd.zip --out perturbed/ned
  sgdx checkdst check --corpus sgd.zip --perturbed ned=perturbed/ned \\
    --predictions original=preds/original ned=preds/ned --json check.json

docs/papers/checkdst.md
"""


def add_parser(subparsers: Any) -> None:
  """Adds `sgdx checkdst` and its subcommands."""
  verbs = add_group(subparsers, "checkdst", __doc__, _EPILOG)
  for command in (perturb_command, verify_command, check_command, diff_command):
    command.add_parser(verbs)
