"""`sgdx data vocabulary`: trains a small SentencePiece vocabulary on a corpus.

examples:
  sgdx data vocabulary --corpus sgd.zip --out sgd.model
  SGDX_VOCAB=sgd.model python -m t5x.train --gin_file=gin/t5dst.gin ...

The vocabulary is for models without pretraining. It is trained on the train
split: its dialogues and original schemas, nothing of dev, test or v1 to v5.
"""

import argparse
import sys
from typing import Any

from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.paths import add_output
from sgdx_t5x.errors import UsageError, require

_PIECES = 2000
_MOST_PIECES = 1_000_000  # with 2**31, SentencePiece runs for long and ignores SIGTERM


def add_verb(verbs: Any) -> None:
  """Adds `data vocabulary`."""
  parser = add_command(verbs, "vocabulary", __doc__, help="train a small vocabulary on a corpus")
  add_corpus(parser)
  add_output(parser, "--out", metavar="FILE", required=True, help="SentencePiece model to write")
  text = f"pieces to train; those of D3ST's and SDT's tags are added (default: {_PIECES:,})"
  parser.add_argument("--pieces", type=int, default=_PIECES, metavar="N", help=text)
  parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
  # SentencePiece is an optional dependency: scoring does not need it.
  require("sentencepiece", extra="train", why="vocabularies")
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.t5.train_vocabulary import corpus_lines, train_vocabulary

  if not 1 <= args.pieces <= _MOST_PIECES:
    raise _refused(args.pieces, f"expected 1 to {_MOST_PIECES:,}")
  if args.out.endswith((".gz", ".xz")):
    raise UsageError(
      f"--out {args.out}: a vocabulary is not compressed",
      expected="a name such as sgd.model: SentencePiece reads the file as it is",
      fix="leave out the ending",
    )
  corpus = open_corpus(args.corpus)
  try:
    with progress("dialogues") as update:
      lines = list(corpus_lines(corpus, update))
      update("training", 0, None, f"of {args.pieces:,} pieces")  # in one call, without a hook
      model = train_vocabulary(lines, args.pieces)
  except (RuntimeError, OSError) as e:  # SentencePiece says how many pieces the text would give
    raise _refused(args.pieces, str(e).splitlines()[-1].strip()) from e
  with atomic_write(args.out, "--out") as file:
    file.buffer.write(model)
  print(
    f"written: {args.out}: {args.pieces:,} pieces from {len(lines):,} lines of train, plus tags",
    file=sys.stderr,
  )
  return 0


def _refused(pieces: int, reason: str) -> UsageError:
  return UsageError(
    f"--pieces {pieces}: {reason}",
    expected="more pieces than distinct characters, and no more than the text supports",
    fix=f"pass another number, or omit it to use {_PIECES:,}, which suits SGD",
  )
