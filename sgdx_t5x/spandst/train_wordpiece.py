"""A small uncased WordPiece vocabulary, trained on lines of text.

For an encoder without pretraining, as `t5.train_vocabulary` is for T5. Pieces are those of
byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): the most frequent pair of adjacent
pieces is merged into one, repeatedly.
"""

from __future__ import annotations

import collections
import itertools
import string
from collections.abc import Iterable, Sequence

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.wordpiece import UNKNOWN, words_of

MARKERS = 16
SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
Word = tuple[str, ...]


def train_wordpiece(text: Iterable[str], num_pieces: int) -> tuple[str, ...]:
  """Returns the pieces, special ones first; the same on every machine.

  Args:
    text: lines to train on.
    num_pieces: maximum number of pieces; fewer if there is nothing left to merge.

  Raises:
    SgdxError: `num_pieces` is too small for all characters of the text.
  """
  counts = collections.Counter(word for line in text for word in words_of(line, lower_case=True))
  words = _Words([(_letters(word), count) for word, count in sorted(counts.items())])
  # Characters that users may type even if they are not in the text.
  letters = string.ascii_lowercase + string.digits
  characters = {*letters, *(f"##{letter}" for letter in letters), *string.punctuation}
  characters |= {piece for word, _ in words.words for piece in word}
  pieces = [*SPECIAL, *(f"[unused{i}]" for i in range(1, MARKERS + 1)), *sorted(characters)]
  if len(pieces) > num_pieces:
    raise SgdxError(
      f"{num_pieces} pieces",
      expected=f"at least {len(pieces)}: special ones, ASCII, and each character of the text",
      fix="request more",
    )
  known = set(pieces)
  while len(pieces) < num_pieces and words.pairs:
    joined = words.join()
    if joined not in known:
      known.add(joined)
      pieces.append(joined)
  return tuple(pieces)


class _Words:
  """Words split into pieces, and the counts of adjacent pairs of pieces.

  Args:
    words: (pieces, frequency) of each word.
  """

  def __init__(self, words: list[tuple[Word, int]]):
    self.words = words
    self.pairs: collections.Counter[tuple[str, str]] = collections.Counter()
    self._places: dict[tuple[str, str], set[int]] = collections.defaultdict(set)
    for place in range(len(words)):
      self._count(place, 1)

  def join(self) -> str:
    """Merges the most frequent pair (ties: lexicographically first). Returns the new piece."""
    pair = min(self.pairs, key=lambda pair: (-self.pairs[pair], pair))
    joined = pair[0] + pair[1].removeprefix("##")
    for place in sorted(self._places[pair]):
      self._count(place, -1)
      word, count = self.words[place]
      self.words[place] = _with_pair_joined(word, pair, joined), count
      self._count(place, 1)
    return joined

  def _count(self, place: int, sign: int) -> None:
    word, count = self.words[place]
    for pair in itertools.pairwise(word):
      self.pairs[pair] += sign * count
      if sign > 0:
        self._places[pair].add(place)
      else:
        self._places[pair].discard(place)
      if not self.pairs[pair]:
        del self.pairs[pair]


def _letters(word: str) -> Word:
  return (word[0], *(f"##{letter}" for letter in word[1:]))


def _with_pair_joined(word: Word, pair: Sequence[str], joined: str) -> Word:
  pieces, i = [], 0
  while i < len(word):
    if word[i : i + 2] == pair:
      pieces.append(joined)
      i += 2
    else:
      pieces.append(word[i])
      i += 1
  return tuple(pieces)
