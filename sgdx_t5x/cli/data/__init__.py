"""`sgdx data`: checks a corpus and writes it as records or files."""

from typing import Any

from sgdx_t5x.cli.data import export, prepare, stats, verify, vocabulary
from sgdx_t5x.cli.options import add_command

_EPILOG = """\
examples:
  sgdx data prepare --corpus sample --data-dir data
  sgdx data verify --corpus sgd.zip
  sgdx data stats --corpus sample
  sgdx data export --corpus sgd.zip --variant v3 --split test --out sgdx
  sgdx data vocabulary --corpus sgd.zip --out sgd.model

`sgdx data VERB --help` has more examples.
"""


def add_parser(subparsers: Any) -> None:
  """Adds `data prepare`, `verify`, `export`, `stats` and `vocabulary`."""
  summary = "check a corpus, write it as records or files"
  parser = add_command(subparsers, "data", __doc__, _EPILOG, summary)
  parser.set_defaults(run=lambda args: parser.print_help() or 0)  # type: ignore[func-returns-value]
  verbs = parser.add_subparsers(metavar="VERB")
  for verb in (prepare, verify, export, stats, vocabulary):
    verb.add_verb(verbs)
