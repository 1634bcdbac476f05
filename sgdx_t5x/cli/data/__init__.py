"""`sgdx data`: check a corpus, write it as records for training, or as files of its variants."""

import argparse
from typing import Any

from sgdx_t5x.cli.data import export, prepare, stats, verify, vocabulary

_EPILOG = """\
examples:
  sgdx data prepare --sample --data-dir data
  sgdx data prepare --archive dstc8-schema-guided-dialogue-master.zip --data-dir data
  sgdx data prepare --archive FILE --dialogues dev=100 test=300 --data-dir small
  sgdx data prepare --download --data-dir data     # fetches the official archive, 37 MB
  sgdx data verify --archive unpacked/folder
  sgdx data stats --corpus sample
  sgdx data export --corpus unpacked/folder --variant v3 --split test --out sgdx

Records lie in DIR/sgd/...; give the same DIR to t5x as --tfds_data_dir (default: TFDS_DATA_DIR,
or ~/tensorflow_datasets).
"""


def add_parser(subparsers: Any) -> None:
  """Adds `data prepare`, `verify`, `export`, `stats` and `vocabulary`."""
  text = {"epilog": _EPILOG, "formatter_class": argparse.RawDescriptionHelpFormatter}
  parser = subparsers.add_parser(
    "data", help="check a corpus, write it as records or files", description=__doc__, **text
  )
  parser.set_defaults(run=lambda args: parser.print_help() or 0)
  verbs = parser.add_subparsers(metavar="VERB")

  prepare.add_verb(verbs, text)
  verify.add_verb(verbs, text)
  export.add_verb(verbs)
  stats.add_verb(verbs)
  vocabulary.add_verb(verbs)
