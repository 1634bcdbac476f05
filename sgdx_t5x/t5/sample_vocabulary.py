"""Trains the sample's SentencePiece vocabulary: `python -m sgdx_t5x.t5.sample_vocabulary`.

The text is that of the train dialogues and of all schemas of the sample, in all nine variants:
like T5's public vocabulary, it knows the words of schemas that the model never saw.
"""

import argparse
import pathlib
from collections.abc import Iterator

from sgdx_t5x.corpus import sample
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.t5.train_vocabulary import lines, train_vocabulary

VOCABULARY = pathlib.Path(sample.__file__).with_name("vocabulary.model")
NUM_PIECES = 1000


def sample_lines() -> Iterator[str]:
  """Yields the lines that the vocabulary is trained on."""
  services: list[Service] = []
  for split in sample.SPLITS:
    for variant in sample.VARIANTS:
      services += sample.schema(split, variant)
  return lines(open_corpus("sample").dialogues("train"), services)


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, default=VOCABULARY)
  parser.add_argument("--pieces", type=int, default=NUM_PIECES)
  arguments = parser.parse_args()
  arguments.out.write_bytes(train_vocabulary(sample_lines(), arguments.pieces))
  print(f"{arguments.out}: {arguments.pieces} pieces")
