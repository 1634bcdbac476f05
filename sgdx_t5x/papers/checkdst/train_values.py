"""The values of train's states, to distinguish memorised names from made-up ones."""

import functools

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.papers.checkdst.texts import normalised

_TRAIN = "train"


class TrainValues:
  """Values of train's states, in lower case; train is read when the first value is looked up."""

  def __init__(self, corpus: Corpus):
    """Args: corpus, the original one; of train, only the dialogues are read."""
    self._corpus = corpus

  @property
  def is_available(self) -> bool:
    """Whether the corpus has dialogues of train."""
    return _TRAIN in self._corpus.splits and bool(self._corpus.dialogue_files(_TRAIN))

  def __contains__(self, value: str) -> bool:
    return normalised(value) in self._values

  @functools.cached_property
  def _values(self) -> frozenset[str]:
    corpus, values = self._corpus, set[str]()
    for name in corpus.dialogue_files(_TRAIN):
      for dialogue in read_dialogues(corpus.source.read(name), f"{corpus.origin}: {name}"):
        for _, frame in dialogue.user_frames():
          if frame.state:
            values.update(*frame.state.slot_values.values())
    return frozenset(map(normalised, values))
