"""`sgdx data`: checks a corpus and writes it as records or files.

examples:
  sgdx data prepare --corpus sample --data-dir data
  sgdx data verify --corpus sgd.zip
  sgdx data stats --corpus sample
  sgdx data export --corpus sgd.zip --variant v3 --split test --out sgdx
  sgdx data vocabulary --corpus sgd.zip --out sgd.model
  sgdx data demos make --corpus sgd.zip --split train --out demos.jsonl

`sgdx data VERB --help` has more examples.
"""

from typing import Any

from sgdx_t5x.cli.data import demos, export, prepare, stats, verify, vocabulary
from sgdx_t5x.cli.options import add_group


def add_parser(subparsers: Any) -> None:
  """Adds `data prepare`, `verify`, `export`, `stats`, `vocabulary` and `demos`."""
  summary = "check a corpus, write it as records or files"
  verbs = add_group(subparsers, "data", __doc__, help=summary)
  for verb in (prepare, verify, export, stats, vocabulary, demos):
    verb.add_verb(verbs)
