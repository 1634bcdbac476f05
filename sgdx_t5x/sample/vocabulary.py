"""Trains the sample's SentencePiece vocabulary: `python -m sgdx_t5x.sample.vocabulary`.

The text is that of the train dialogues and of all schemas of the sample, in all nine wordings:
like T5's public vocabulary, it knows the words of schemas that the model never saw.
"""

import argparse
import pathlib

from sgdx_t5x import sample
from sgdx_t5x.from_scratch.vocabulary import service_texts, train

VOCABULARY = pathlib.Path(__file__).with_name("vocabulary.model")
NUM_PIECES = 1000


def texts():
  """Yields the lines that the vocabulary is trained on."""
  for dialogue in sample.dialogues("train"):
    for turn in dialogue.turns:
      yield turn.utterance
  for split in sample.SPLITS:
    for version in sample.VERSIONS:
      for service in sample.schema(split, version):
        yield from service_texts(service)


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, default=VOCABULARY)
  parser.add_argument("--pieces", type=int, default=NUM_PIECES)
  arguments = parser.parse_args()
  arguments.out.write_bytes(train(texts(), arguments.pieces))
  print(f"{arguments.out}: {arguments.pieces} pieces")
