"""Factuality: whether a predicted name has been mentioned in the dialogue so far.

Cho et al. 2022 (CheckDST) define it as 1 - hallucinated / predicted named entities. Here a value is
factual if an utterance up to and including the frame's turn contains it as whole words, ignoring
case and differences in whitespace. CheckDST's code is both laxer and stricter: any substring of the
text counts, but it must match exactly (`metrics.checkdst`).
"""

from collections.abc import Sequence


class History:
  """The utterances of one dialogue, to search for values."""

  def __init__(self, utterances: Sequence[str]):
    """Args: utterances of user and system, from the first turn on."""
    self._utterances = utterances
    self._normal = [normalised(text) for text in utterances]
    self._found: dict[str, int] = {}
    self._found_as_is: dict[str, int] = {}

  def has(self, value: str, turn: int) -> bool:
    """Whether an utterance up to and including a turn has the value as whole words, in any case."""
    if value not in self._found:
      self._found[value] = _first(normalised(value), self._normal)
    return self._found[value] <= turn

  def has_part(self, value: str, turn: int) -> bool:
    """Whether an utterance up to and including a turn has the value as a substring (CheckDST)."""
    if value not in self._found_as_is:
      texts = (i for i, text in enumerate(self._utterances) if value in text)
      self._found_as_is[value] = next(texts, len(self._utterances))
    return self._found_as_is[value] <= turn


def normalised(text: str) -> str:
  """Returns a text in lower case, with whitespace collapsed to single spaces."""
  return " ".join(text.lower().split())


def _first(value: str, texts: Sequence[str]) -> int:
  """Returns the index of the first text with a value as whole words, or else `len(texts)`.

  The empty value is in no text.
  """
  for number, text in enumerate(texts):
    start = text.find(value) if value else -1
    while start >= 0:
      end = start + len(value)
      if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
        return number
      start = text.find(value, start + 1)
  return len(texts)


def _is_word(character: str) -> bool:
  """Whether a character is part of a word; "" (at the ends of a text) is not."""
  return character.isalnum() or character == "_"
