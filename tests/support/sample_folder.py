"""The sample corpus with few of its dialogues, in memory or as files in the official layout."""

import functools
import itertools
import pathlib
from collections.abc import Mapping

import pytest

from sgdx_t5x.corpus import sample
from sgdx_t5x.corpus.dialogue import write_dialogues

_SOURCE = sample.SampleSource()
# Instead of 4,000, which take seconds to make, to read and to store.
FEW_IN_TRAIN = 400
# Code that runs `sgdx` in a child process on a sample of fewer dialogues.
SGDX_WITH_FEW = f"""
import sys
from sgdx_t5x import sample
from sgdx_t5x.cli import main
sample.DIALOGUES = {{**sample.DIALOGUES, "train": {FEW_IN_TRAIN}}}
sys.exit(main(sys.argv[1:]))
"""


def few_in_train(monkeypatch: pytest.MonkeyPatch) -> None:
  """Reduces the train split of the corpus "sample" to FEW_IN_TRAIN dialogues."""
  monkeypatch.setattr(sample, "DIALOGUES", {**sample.DIALOGUES, "train": FEW_IN_TRAIN})
  for name in ("_dialogue_text", "_files"):  # with empty caches
    monkeypatch.setattr(sample, name, functools.cache(getattr(sample, name).__wrapped__))


def write_sample(root: pathlib.Path, dialogues: Mapping[str, int] | None = None) -> pathlib.Path:
  """Writes the sample's files below a folder; returns the folder.

  Args:
    root: the folder. Its last part is the name of the corpus: "sample" for the sample's tasks.
    dialogues: split -> number of dialogues to keep, from the start; 0 omits the file. Splits not
      given are kept whole; train has 4,000 dialogues, which take seconds to make.
  """
  few = {f"{split}/dialogues_001.json": (split, n) for split, n in (dialogues or {}).items()}
  for name in _SOURCE.names():
    split, number = few.get(name, ("", None))
    if number == 0:
      continue
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    if number is None:
      (root / name).write_bytes(_SOURCE.read(name))
    else:
      text = write_dialogues(itertools.islice(sample.dialogues(split), number))
      (root / name).write_text(text, "utf-8")
  return root
