"""WordPiece by BERT's rules, in Python, with offsets into the original text.

The rules are those of BERT's BasicTokenizer and WordpieceTokenizer (Devlin et al. 2019; released
with the paper): control characters are dropped; an uncased vocabulary lower-cases and strips
accents (canonical decomposition without its non-spacing marks); each CJK ideograph and each
punctuation mark is a word; a word is cut greedily into the longest pieces, those after the first
marked `##`, or is `[UNK]`. Text never makes a special piece: "[SEP]" is three words. The library
`tokenizers` gives the same pieces, more slowly: benchmarks/history.md.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

UNKNOWN = "[UNK]"
_LONGEST_WORD = 100  # characters; longer ones are [UNK]
_CJK = (
  (0x4E00, 0x9FFF),
  (0x3400, 0x4DBF),
  (0x20000, 0x2A6DF),
  (0x2A700, 0x2B73F),
  (0x2B740, 0x2B81F),
  (0x2B820, 0x2CEAF),
  (0xF900, 0xFAFF),
  (0x2F800, 0x2FA1F),
)
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")  # for printable ASCII: by far most texts
_SPACE, _ALONE, _DROPPED, _PART = range(4)


@dataclasses.dataclass(frozen=True)
class Pieces:
  """Pieces of a text.

  Attributes:
    ids: of the pieces.
    starts: character offset in the text of the start of each piece.
    ends: offset of its end (exclusive).
  """

  ids: tuple[int, ...]
  starts: tuple[int, ...]
  ends: tuple[int, ...]


class WordPiece:
  """Cuts text into pieces.

  Args:
    pieces: {piece: id}.
    lower_case: lower-case and strip accents (for uncased vocabularies).
  """

  def __init__(self, pieces: Mapping[str, int], lower_case: bool):
    self._pieces, self._lower_case = dict(pieces), lower_case
    self._unknown = self._pieces[UNKNOWN]
    self._kinds: dict[str, tuple[int, str]] = {}  # character -> kind, what it becomes
    self._words: dict[str, tuple[tuple[int, int, int], ...]] = {}  # word -> (id, start, end)

  def cut(self, text: str) -> Pieces:
    """Returns the pieces of a text."""
    ids, starts, ends = [], [], []
    if _is_plain(text):  # for speed alone: the words are those of `split`
      for match in self._plain_words(text):
        at = match.start()
        for piece, start, end in self._words.get(match[0]) or self._pieces_of(match[0]):
          ids.append(piece)
          starts.append(at + start)
          ends.append(at + end)
      return Pieces(tuple(ids), tuple(starts), tuple(ends))
    for word, places in self.split(text):
      for piece, start, end in self._pieces_of(word):
        ids.append(piece)
        starts.append(places[start])
        end_in_text = places[end - 1] + 1
        # A cased vocabulary keeps combining marks, as characters of a word.
        ends.append(after_marks(text, end_in_text) if self._lower_case else end_in_text)
    return Pieces(tuple(ids), tuple(starts), tuple(ends))

  def split(self, text: str) -> list[tuple[str, Sequence[int]]]:
    """Returns the words, each with the offsets of its characters in the text."""
    if _is_plain(text):
      return [(match[0], range(*match.span())) for match in self._plain_words(text)]
    words: list[tuple[str, Sequence[int]]] = []
    word: list[str] = []
    places: list[int] = []

    def end_word() -> None:
      nonlocal word, places
      if word:
        words.append(("".join(word), places))
        word, places = [], []

    for i, character in enumerate(text):
      cached = self._kinds.get(character)
      if cached is None:
        cached = self._kinds[character] = self._kind(character)
      kind, becomes = cached
      if kind == _PART:
        word.append(becomes)
        places.extend([i] * len(becomes))
        continue
      if kind == _DROPPED:
        continue
      end_word()
      if kind == _ALONE:
        words.append((becomes, [i] * len(becomes)))
    end_word()
    return words

  def _plain_words(self, text: str) -> Iterator[re.Match[str]]:
    return _ASCII_WORD.finditer(text.lower() if self._lower_case else text)

  def _kind(self, character: str) -> tuple[int, str]:
    category, code = unicodedata.category(character), ord(character)
    if character in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
      return _SPACE, ""
    # Control characters, and what stands for bytes that could not be decoded.
    if category in ("Cc", "Cf", "Co", "Cs") or code == 0xFFFD:
      return _DROPPED, ""
    becomes = character
    if self._lower_case:
      decomposed = unicodedata.normalize("NFD", character.lower())
      becomes = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
      if not becomes:
        return _DROPPED, ""
    if any(low <= code <= high for low, high in _CJK):
      return _ALONE, becomes
    return _ALONE if _is_punctuation(becomes) else _PART, becomes

  def _pieces_of(self, word: str) -> tuple[tuple[int, int, int], ...]:
    """Returns (id, start, end) of each piece of a word."""
    cached = self._words.get(word)
    if cached is None:
      if len(self._words) >= 1_000_000:  # bounds the memory
        self._words.clear()
      cached = self._words[word] = self._cut_word(word)
    return cached

  def _cut_word(self, word: str) -> tuple[tuple[int, int, int], ...]:
    pieces, start = [], 0
    while start < len(word) <= _LONGEST_WORD:
      # The longest piece of the vocabulary that the rest of the word begins with.
      prefix = "##" if start else ""
      for end in range(len(word), start, -1):
        piece = self._pieces.get(prefix + word[start:end])
        if piece is not None:
          break
      else:
        break
      pieces.append((piece, start, end))
      start = end
    return tuple(pieces) if start == len(word) else ((self._unknown, 0, len(word)),)


def after_marks(text: str, end: int) -> int:
  """Returns the end of a character whose combining marks are the text's next characters."""
  while end < len(text) and unicodedata.category(text[end]) == "Mn":
    end += 1
  return end


def _is_punctuation(text: str) -> bool:
  """Whether it is a punctuation mark, or a sign of ASCII; after stripping, "\u2260" is "="."""
  if len(text) != 1:
    return False
  is_sign = 33 <= ord(text) <= 126 and not text.isalnum()
  return is_sign or unicodedata.category(text)[0] == "P"


def _is_plain(text: str) -> bool:
  """Whether a text is printable ASCII, which keeps its offsets when lower-cased."""
  return text.isascii() and text.isprintable()


def words_of(text: str, lower_case: bool) -> list[str]:
  """Returns the words of a text, before they are cut into pieces."""
  return [word for word, _ in WordPiece({UNKNOWN: 0}, lower_case).split(text)]
