"""Factuality: whether a predicted name has been mentioned in the dialogue so far.

Cho et al. 2022 (CheckDST) define it as 1 - hallucinated / predicted named entities. Here a value is
factual if an utterance up to and including the frame's turn contains it as whole words, ignoring
case and differences in whitespace. CheckDST's code is both laxer and stricter: any substring of the
text counts, but it must match exactly (`metrics.checkdst`).
"""

from collections.abc import Sequence

from sgdx_t5x.papers.checkdst.texts import is_said, normalised


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
      texts = (i for i, text in enumerate(self._normal) if value.strip() and is_said(value, text))
      self._found[value] = next(texts, len(self._normal))
    return self._found[value] <= turn

  def has_part(self, value: str, turn: int) -> bool:
    """Whether an utterance up to and including a turn has the value as a substring (CheckDST)."""
    if value not in self._found_as_is:
      texts = (i for i, text in enumerate(self._utterances) if value in text)
      self._found_as_is[value] = next(texts, len(self._utterances))
    return self._found_as_is[value] <= turn
