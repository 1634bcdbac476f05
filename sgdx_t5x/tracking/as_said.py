"""Gives an uncased answer the spelling that it has in the dialogue."""

import unicodedata
from collections.abc import Sequence

from sgdx_t5x.spandst.wordpiece import after_marks


def as_said(value: str, utterances: Sequence[str]) -> str:
  """Returns a value as the latest utterance that has it spells it; unchanged if none has it.

  Case, accents and spaces do not count: an uncased vocabulary answers "7 : 30 pm" for "7:30 PM".

  Args:
    value: of an answer.
    utterances: of the dialogue so far.
  """
  words = _folded(value)
  for utterance in reversed(utterances) if words else ():
    folded, places = "", []  # the folded text, and for each of its characters the one it is from
    for place, character in enumerate(utterance):
      added = _folded(character)
      folded += added
      places += [place] * len(added)
    start = folded.find(words)
    while start >= 0:
      first, end = places[start], after_marks(utterance, places[start + len(words) - 1] + 1)
      if not (_is_inside_a_word(utterance, first) or _is_inside_a_word(utterance, end)):
        return utterance[first:end]
      start = folded.find(words, start + 1)
  return value


def _is_inside_a_word(text: str, place: int) -> bool:
  """Whether a place between two characters is within a word: "4" is not said in "14"."""
  if not 0 < place < len(text) or not text[place].isalnum():
    return False
  return text[place - 1].isalnum() or unicodedata.category(text[place - 1]) == "Mn"


def _folded(text: str) -> str:
  """Returns a text in lower case, without accents (category Mn once decomposed) and spaces."""
  decomposed = unicodedata.normalize("NFD", text).lower()
  return "".join(c for c in decomposed if not c.isspace() and unicodedata.category(c) != "Mn")
