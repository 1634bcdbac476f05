"""Reads the folder of `prepare.py`, for the engines of `measure.py`; NumPy only."""

from __future__ import annotations

import pathlib
import types
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

EOS = 1
LONGEST = 512  # tokens of a prompt
T5_TOKENS = ("encoder_input_tokens", "decoder_target_tokens")
_BATCHES = 4  # distinct batches, used in turn


def batches(path: pathlib.Path, rows: int) -> list[dict[str, np.ndarray]]:
  """Returns a few batches of packed rows: {feature: `[rows, L]`}."""
  with np.load(path) as file:
    features = dict(file)
  stored = len(next(iter(features.values())))
  starts = range(0, min(_BATCHES, max(stored // rows, 1)) * rows, rows)
  # Rows are repeated where a batch needs more than there are.
  places = [np.arange(start, start + rows) % stored for start in starts]
  return [{name: x[place] for name, x in features.items()} for place in places]


def about(batches: Sequence[Mapping[str, np.ndarray]], names: Sequence[str]) -> dict[str, object]:
  """Returns what is to be known of batches: tokens without padding, rows, lengths of features."""
  tokens = [sum(int((batch[name] > 0).sum()) for name in names) for batch in batches]
  rows, lengths = len(batches[0][names[0]]), [batches[0][name].shape[1] for name in names]
  return {"tokens_per_step": float(np.mean(tokens)), "rows": rows, "lengths": lengths}


def prompts(path: str) -> list[np.ndarray]:
  """Returns the token ids of each prompt."""
  with np.load(path) as file:
    tokens, lengths = file["tokens"], file["lengths"]
  return np.split(tokens, np.cumsum(lengths)[:-1])


def until_end(ids: Sequence[int]) -> list[int]:
  """Returns an answer up to its end; what an engine writes after it differs."""
  ids = list(ids)
  ids = ids[: ids.index(EOS) + 1] if EOS in ids else ids
  return ids[: ids.index(0)] if 0 in ids else ids


class Examples:
  """Examples as `utils.get_infer_fn` reads them: what it needs of an enumerated `tf.data.Dataset`.

  Args:
    rows: features of each example.
    lengths: padded length of each feature; those that an example lacks are zeros.
  """

  def __init__(self, rows: Sequence[Mapping[str, np.ndarray]], lengths: Mapping[str, int]):
    self._rows, self._lengths = rows, lengths
    dtype = types.SimpleNamespace(as_numpy_dtype=np.int32)
    specs = {x: types.SimpleNamespace(shape=(n,), dtype=dtype) for x, n in lengths.items()}
    self.element_spec = (None, specs)

  def __iter__(self) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    for number, row in enumerate(self._rows):
      example = {name: np.zeros(length, np.int32) for name, length in self._lengths.items()}
      for name, values in row.items():
        example[name][: len(values)] = values
      yield number, example
