"""Factuality: whether a predicted name has been said in the dialogue so far.

Cho et al. 2022 (CheckDST) define it as 1 - hallucinated / predicted named entities. Here a value is
factual if an utterance up to the frame's own turn contains it as whole words; letters are compared
in lower case, and any white space counts as one blank. CheckDST's code asks for less and for more:
any part of the text will do, but every letter must be as it is (`metrics.checkdst`).
"""

import functools
import re
from collections.abc import Sequence


class History:
  """The utterances of one dialogue, in which values are looked for."""

  def __init__(self, utterances: Sequence[str]):
    """Args: utterances, of user and system, from the first turn on."""
    self._utterances = utterances
    self._normal = [normalised(text) for text in utterances]
    self._found: dict[str, int] = {}
    self._found_as_is: dict[str, int] = {}

  def has(self, value: str, turn: int) -> bool:
    """Whether an utterance up to a turn has the value as whole words, in any letters."""
    if value not in self._found:
      self._found[value] = _first(_whole_words(normalised(value)), self._normal)
    return self._found[value] <= turn

  def has_part(self, value: str, turn: int) -> bool:
    """Whether an utterance up to a turn has the value, as it is, in any place: CheckDST's rule."""
    if value not in self._found_as_is:
      texts = (i for i, text in enumerate(self._utterances) if value in text)
      self._found_as_is[value] = next(texts, len(self._utterances))
    return self._found_as_is[value] <= turn


def normalised(text: str) -> str:
  """Returns a text in lower case, with one blank for any white space."""
  return " ".join(text.lower().split())


@functools.lru_cache(maxsize=1 << 14)
def _whole_words(value: str) -> tuple[str, re.Pattern[str]]:
  return value, re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


def _first(value: tuple[str, re.Pattern[str]], texts: Sequence[str]) -> int:
  """Returns the first text with the value, or how many there are; no text has the empty value."""
  text, pattern = value
  found = (i for i, said in enumerate(texts) if text and text in said and pattern.search(said))
  return next(found, len(texts))
