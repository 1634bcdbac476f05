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

  def has(self, value: str, turn: int) -> bool:
    """Whether an utterance up to and including a turn has the value as whole words, in any case."""
    return bool(value.strip()) and is_said(value, "\n".join(self._normal[: turn + 1]))

  def has_part(self, value: str, turn: int) -> bool:
    """Whether an utterance up to and including a turn has the value as a substring (CheckDST)."""
    return any(value in text for text in self._utterances[: turn + 1])
