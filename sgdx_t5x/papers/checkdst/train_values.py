"""The values of train's states, to distinguish memorised names from made-up ones."""

import functools
from collections.abc import Callable

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.papers.checkdst.texts import normalised


def lookup_in_train(corpus: Corpus) -> Callable[[str], bool] | None:
  """Returns whether a value, in any case, occurs in a state of train; None without train.

  Args:
    corpus: the original one. Its dialogues of train are read when the first value is looked up.
  """
  files = corpus.dialogue_files("train") if "train" in corpus.splits else ()

  @functools.cache
  def train_values() -> frozenset[str]:
    values: set[str] = set()
    for name in files:
      for dialogue in read_dialogues(corpus.source.read(name), f"{corpus.origin}: {name}"):
        for _, frame in dialogue.user_frames():
          if frame.state:
            values.update(*frame.state.slot_values.values())
    return frozenset(map(normalised, values))

  return (lambda value: normalised(value) in train_values()) if files else None
