"""Trains the sample's WordPiece vocabulary: `python -m sgdx_t5x.spandst.sample_wordpiece`.

It is uncased. The text is that of the SentencePiece vocabulary beside it.
"""

import argparse
import pathlib

from sgdx_t5x.corpus import sample
from sgdx_t5x.spandst.train_wordpiece import train_wordpiece
from sgdx_t5x.t5.sample_vocabulary import sample_lines

VOCABULARY = pathlib.Path(sample.__file__).with_name("vocab.txt")
NUM_PIECES = 1024


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, default=VOCABULARY)
  parser.add_argument("--pieces", type=int, default=NUM_PIECES)
  arguments = parser.parse_args()
  pieces = train_wordpiece(sample_lines(), arguments.pieces)
  arguments.out.write_text("\n".join(pieces) + "\n", encoding="utf-8")
  print(f"{arguments.out}: {len(pieces)} pieces")
