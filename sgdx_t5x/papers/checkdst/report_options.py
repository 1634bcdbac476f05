"""What `sgdx report` takes to show checks; apart from the section, which imports NumPy."""

import argparse

from sgdx_t5x.cli.paths import add_input, named_path, path_of_name


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options that name checks and their corpora."""
  group = parser.add_argument_group("perturbed dialogues")
  add_input(
    group,
    "--check",
    action="append",
    default=[],
    metavar="[NAME=]FILE",
    help="output of `sgdx checkdst check --json` for a run; once per run",
    path=named_path,
  )
  add_input(
    group,
    "--perturbed",
    nargs="+",
    default=[],
    metavar="SET=DIR",
    help="perturbed corpora of the checks, to show their utterances",
    path=path_of_name,
  )
