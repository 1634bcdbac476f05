"""The values of train's states, to distinguish memorised names from made-up ones."""

import contextlib
import json
import re

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.papers.checkdst.metrics_factuality import normalised

_TRAIN = "train"
_KEY = b'"slot_values"'
_STATE = re.compile(_KEY + rb":\s*(\{[^{}]*\})")


class TrainValues:
  """Values of train's states, in lower case; train is read when the first value is looked up."""

  def __init__(self, corpus: Corpus):
    """Args: corpus, the original one; of train, only the dialogues are read."""
    self._corpus = corpus
    self._values: frozenset[str] | None = None

  @property
  def known(self) -> bool:
    """Whether the corpus has dialogues of train."""
    return _TRAIN in self._corpus.splits and bool(self._corpus.dialogue_files(_TRAIN))

  def __contains__(self, value: str) -> bool:
    if self._values is None:
      self._values = frozenset(normalised(value) for value in _read(self._corpus))
    return normalised(value) in self._values


def _read(corpus: Corpus) -> set[str]:
  values: set[str] = set()
  for name in corpus.dialogue_files(_TRAIN):
    content, origin = corpus.source.read(name), f"{corpus.origin}: {name}"
    states = _STATE.findall(content)
    if len(states) == content.count(_KEY):
      # SGD's train has 376 MB; its states are a small part of it, most of them repeated.
      with contextlib.suppress(ValueError, TypeError):
        for state in map(json.loads, set(states)):
          values.update(value for found in state.values() for value in found)
        continue
    # A brace in a value, or values that are no texts: the error says where.
    for dialogue in read_dialogues(content, origin):
      for _, frame in dialogue.user_frames():
        for found in frame.state.slot_values.values() if frame.state else ():
          values.update(found)
  return values
