"""Converts SeqIO task features to the span model's features, one frame per row or packed.

README.md of this folder describes the task features. A packed row concatenates those of several
frames: positions and numbers in them are relative to the row, and parallel `..._frames` lists say
which frame (1, 2, ...) an entry belongs to.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.padded import PaddedFeatureConverter, padded, specs

MAX_FRAMES = 8  # per row
_WINDOW = 256  # frames that are considered together for packing
Frame = Mapping[str, np.ndarray]

TASK_FEATURES = answers.FEATURES
_SAME = TASK_FEATURES[2:]  # also features of the model
_FRAMES = {"slot_frames": "slots", "memory_frames": "memory", "intent_frames": "intents"}
# Model feature -> task feature of the same length; `target_frames` has a number per row of targets.
_LENGTH_OF = {
  "encoder_input_tokens": "inputs",
  "encoder_segments": "segments",
  "encoder_frames": "inputs",
  "encoder_positions": "inputs",
  **dict(zip(_SAME, _SAME, strict=True)),
  **_FRAMES,
}
MODEL_FEATURES = (*_LENGTH_OF, "target_frames")


def numbers() -> seqio.PassThroughVocabulary:
  """Returns the pass-through vocabulary of all features except the inputs.

  Tasks and models must both use this function: SeqIO compares sizes.
  """
  return seqio.PassThroughVocabulary(size=2**31 - 1)


class SpanFeatureConverter(PaddedFeatureConverter):
  """Pads frames, or packs several into a row (`DatasetConfig.pack`).

  Features named `encoder_...` may be truncated to the longest example of a batch.
  """

  FEATURES = _LENGTH_OF
  TASK_FEATURES = specs(*TASK_FEATURES)  # SeqIO's name
  MODEL_FEATURES = specs(*MODEL_FEATURES)
  PACKING_FEATURE_DTYPES = {}  # noqa: RUF012

  def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each model feature."""
    lengths = super().get_model_feature_lengths(task_feature_lengths)
    return {**lengths, "target_frames": task_feature_lengths["targets"] // answers.ROW}

  def _convert_features(
    self, ds: tf.data.Dataset, task_feature_lengths: Mapping[str, int]
  ) -> tf.data.Dataset:
    lengths = self.get_model_feature_lengths(task_feature_lengths)
    ds = ds.map(lambda example: {name: example[name] for name in TASK_FEATURES})
    if not self.pack:
      return padded(ds, lengths, _alone)
    ds = ds.ragged_batch(_WINDOW)
    return ds.map(lambda window: _pack_ragged(window, lengths), tf.data.AUTOTUNE).unbatch()


# --- one frame a row -----------------------------------------------------------------------


def _alone(batch: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.RaggedTensor]:
  tokens = batch["inputs"]
  rows = {
    "encoder_input_tokens": tokens,
    "encoder_segments": batch["segments"],
    "encoder_frames": tf.ones_like(tokens),
    "encoder_positions": tf.ragged.range(tf.cast(tokens.row_lengths(), tf.int32)),
    "target_frames": tf.ones_like(batch["targets"][:, :: answers.ROW]),
  }
  for name, source in _FRAMES.items():
    rows[name] = tf.ones_like(batch[source])  # all entries are of the row's only frame
  for name in _SAME:
    rows[name] = batch[name]
  return rows


# --- several frames a row ------------------------------------------------------------------


def rows_of(frames: Sequence[Frame], lengths: Mapping[str, int]) -> list[list[int]]:
  """Assigns frames to rows by first-fit decreasing (Johnson 1973).

  Args:
    frames: the features of each frame.
    lengths: of the model's features.

  Returns:
    Indices into `frames` for each row. A row starts with its longest frame; rows are ordered by
    their smallest index.
  """
  # A frame fits if all of its lists do, not its tokens alone; it takes one of MAX_FRAMES, too.
  limits = [lengths["encoder_input_tokens"], *(lengths[name] for name in _SAME), MAX_FRAMES]
  capacity = np.array(limits)
  sizes = np.ones((len(frames), len(capacity)), int)
  for number, frame in enumerate(frames):
    sizes[number, :-1] = [len(frame[name]) for name in ("inputs", *_SAME)]
  # What is longer than a row is cut to its length by `pack`.
  sizes = np.minimum(sizes, capacity)
  room = np.tile(capacity, (len(frames), 1))
  rows: list[list[int]] = []
  for number in np.argsort(-sizes[:, 0], kind="stable"):
    fits = (room[: len(rows)] >= sizes[number]).all(axis=1)
    row = int(np.argmax(fits)) if fits.any() else len(rows)
    if row == len(rows):
      rows.append([])
    rows[row].append(int(number))
    room[row] -= sizes[number]
  return sorted(rows, key=min)


def pack(frames: Sequence[Frame], lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
  """Packs frames into one row.

  Args:
    frames: the features of each frame; together they fit.
    lengths: of the model's features.

  Returns:
    Int32 model features, padded with zeros.
  """
  arrays: dict[str, list[np.ndarray]] = collections.defaultdict(list)  # feature -> frames' arrays
  # Positions count from the row's start, numbers from the first of the row's slots or values.
  starts = dict.fromkeys(("inputs", "slots", "values", "memory", "intents"), 0)
  for number, frame in enumerate(frames, start=1):
    tokens = frame["inputs"]
    features = {
      "encoder_input_tokens": tokens,
      "encoder_segments": frame["segments"],
      "encoder_frames": np.full(len(tokens), number),
      "encoder_positions": np.arange(len(tokens)),
      "value_slots": frame["value_slots"] + starts["slots"],
      "slot_context": frame["slot_context"],
      "intent_context": frame["intent_context"],
      "targets": _moved(frame["targets"], starts),
      "target_frames": np.full(len(frame["targets"]) // answers.ROW, number),
    }
    for name in ("slots", "values", "memory", "intents"):
      features[name] = frame[name] + starts["inputs"]
    for name, source in _FRAMES.items():
      features[name] = np.full(len(frame[source]), number)
    for name, array in features.items():
      arrays[name].append(array)
    for name in starts:
      starts[name] += len(frame[name])
  row = {}
  for name, length in lengths.items():
    joined = np.concatenate(arrays[name])[:length]
    row[name] = np.pad(joined, (0, length - len(joined))).astype(np.int32)
  return row


def _moved(targets: np.ndarray, starts: Mapping[str, int]) -> np.ndarray:
  """Returns a frame's `targets`, shifted for lists that start at `starts` in the row.

  What slot, first and last count from depends on the kind of answer: see README.md.
  """
  rows = np.array(targets).reshape(-1, answers.ROW)  # a copy, which is changed through its columns
  slot, kind, first, last = rows.T
  slot[(kind > 0) & (kind != answers.INTENT)] += starts["slots"]
  first[kind == answers.SPAN] += starts["inputs"]
  last[kind == answers.SPAN] += starts["inputs"]
  first[kind == answers.VALUE] += starts["values"]
  first[kind == answers.MEMORY] += starts["memory"]
  first[(kind == answers.INTENT) & (first > 0)] += starts["intents"]
  return rows.reshape(-1)


def _pack_ragged(window, lengths: Mapping[str, int]) -> dict[str, tf.Tensor]:
  """Packs a window of frames: {feature: RaggedTensor} -> {feature: `[rows, length]`}."""

  def pack_all(*arrays: np.ndarray) -> list[np.ndarray]:
    # Two arrays per feature: its values of all frames, and where those of each frame begin and end.
    num_frames = len(arrays[1]) - 1
    frames: list[dict[str, np.ndarray]] = [{} for _ in range(num_frames)]
    for name, values, splits in zip(TASK_FEATURES, arrays[0::2], arrays[1::2], strict=True):
      for frame, array in zip(frames, np.split(values, splits[1:-1]), strict=True):
        frame[name] = array
    columns = collections.defaultdict(list)
    for numbers in rows_of(frames, lengths):
      row = pack([frames[number] for number in numbers], lengths)
      for name, values in row.items():
        columns[name].append(values)
    return [np.stack(rows) for rows in columns.values()]

  inputs = []
  for name in TASK_FEATURES:
    x = window[name]  # a dense tensor where the task's shapes are fixed
    x = x if isinstance(x, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(x)
    inputs += [x.flat_values, x.row_splits]
  columns = tf.numpy_function(pack_all, inputs, [tf.int32] * len(lengths))
  packed = {}
  for (name, length), column in zip(lengths.items(), columns, strict=True):
    packed[name] = tf.ensure_shape(column, [None, length])  # which numpy_function does not know
  return packed
