"""Trains the sample's uncased WordPiece vocabulary, the same bytes on every machine.

  python -m sgdx_t5x.papers.simulator.sample.train_wordpiece  # half a minute

The text is that of the SentencePiece vocabulary beside it. Pieces are those of byte-pair encoding
(Sennrich et al. 2016, arXiv:1508.07909): the most frequent pair of adjacent pieces is merged into
one, repeatedly.
"""

import collections
import itertools
import pathlib
import string
from collections.abc import Iterable

from sgdx_t5x.corpus import sample
from sgdx_t5x.spandst.vocab_file import MARKERS, SPECIAL
from sgdx_t5x.spandst.wordpiece import words_of
from sgdx_t5x.t5.sample_vocabulary import sample_lines

VOCABULARY = pathlib.Path(sample.__file__).with_name("vocab.txt")
NUM_PIECES = 1024
Word = tuple[str, ...]  # its pieces


def train_wordpiece(text: Iterable[str], num_pieces: int) -> list[str]:
  """Returns the pieces, special ones first. Args: lines to train on; how many pieces to make."""
  counts: collections.Counter[str] = collections.Counter()
  for line in text:
    counts.update(words_of(line, lower_case=True))
  words = [(_letters(word), count) for word, count in counts.items()]
  # Characters that users may type even if they are not in the text.
  letters = string.ascii_lowercase + string.digits
  characters = {*letters, *(f"##{letter}" for letter in letters), *string.punctuation}
  characters.update(*(word for word, _ in words))
  pieces = [*SPECIAL, *(f"[unused{i}]" for i in range(1, MARKERS + 1)), *sorted(characters)]
  while len(pieces) < num_pieces:
    pairs: collections.Counter[Word] = collections.Counter()
    for word, count in words:
      for pair in itertools.pairwise(word):
        pairs[pair] += count
    pair = min(pairs, key=lambda pair: (-pairs[pair], pair))  # ties: the first by letters
    joined = pair[0] + pair[1].removeprefix("##")
    words = [(_with_pair_joined(word, pair, joined), count) for word, count in words]
    if joined not in pieces:
      pieces.append(joined)
  return pieces


def _letters(word: str) -> Word:
  return (word[0], *(f"##{letter}" for letter in word[1:]))


def _with_pair_joined(word: Word, pair: Word, joined: str) -> Word:
  pieces, i = [], 0
  while i < len(word):
    is_pair = word[i : i + 2] == pair
    pieces.append(joined if is_pair else word[i])
    i += 2 if is_pair else 1
  return tuple(pieces)


if __name__ == "__main__":
  VOCABULARY.write_text("\n".join(train_wordpiece(sample_lines(), NUM_PIECES)) + "\n", "utf-8")
  print(f"{VOCABULARY}: {NUM_PIECES} pieces")
