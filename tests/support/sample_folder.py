"""The sample corpus with few of its dialogues, in memory or as files in the official layout."""

import functools
import json
import pathlib
from collections.abc import Mapping

import pytest
from places import SUPPORT

from sgdx_t5x.corpus import sample

_SOURCE = sample.SampleSource()
_WHOLE_TEXT = sample._dialogue_text
# Instead of 4,000, which take seconds to store.
FEW_IN_TRAIN = 400
# Code that runs `sgdx` in a child process on a sample of fewer dialogues.
SGDX_WITH_FEW = f"""
import sys
sys.path.append({str(SUPPORT)!r})
from sample_folder import shorten_train
from sgdx_t5x.cli import main
shorten_train({FEW_IN_TRAIN})
sys.exit(main(sys.argv[1:]))
"""


@functools.cache
def _beginning(split: str, number: int) -> str:
  """The file of a split with its first dialogues only; no others are decoded."""
  text, end = _WHOLE_TEXT(split), 0
  for _ in range(number):
    _, end = json.JSONDecoder().raw_decode(text, text.index("{", end))
  return f"{text[:end]}\n]\n"


def shorten_train(number: int) -> None:
  """Reduces the train split of the corpus "sample", in this process."""
  kept = _beginning("train", number)
  sample.DIALOGUES = {**sample.DIALOGUES, "train": number}
  sample._dialogue_text = lambda split: kept if split == "train" else _WHOLE_TEXT(split)
  sample._files.cache_clear()


def few_in_train(monkeypatch: pytest.MonkeyPatch) -> None:
  """Reduces the train split of the corpus "sample" to FEW_IN_TRAIN dialogues."""
  for name in ("DIALOGUES", "_dialogue_text"):  # restored at the end
    monkeypatch.setattr(sample, name, getattr(sample, name))
  monkeypatch.setattr(sample, "_files", functools.cache(sample._files.__wrapped__))
  shorten_train(FEW_IN_TRAIN)


def write_sample(root: pathlib.Path, dialogues: Mapping[str, int] | None = None) -> pathlib.Path:
  """Writes the sample's files below a folder; returns the folder.

  Args:
    root: the folder. Its last part is the name of the corpus: "sample" for the sample's tasks.
    dialogues: split -> number of dialogues to keep, from the start; 0 omits the file. Splits not
      given are kept whole; train has 4,000 dialogues, which take seconds to read.
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
      (root / name).write_text(_beginning(split, number), "utf-8")
  return root
