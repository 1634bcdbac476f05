"""Converts SeqIO task features to the span model's features, one frame per row or packed.

README.md of this folder describes the task features. A packed row concatenates those of several
frames: positions and numbers in them are relative to the row, and parallel `..._frames` lists say
which frame (1, 2, ...) an entry belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.padded import RowConverter, padded, specs

MAX_FRAMES = 8  # per row
_WINDOW = 256  # frames that are considered together for packing
Frame = Mapping[str, np.ndarray]

TASK_FEATURES = (
  "inputs",
  "segments",
  "slots",
  "slot_context",
  "values",
  "value_slots",
  "memory",
  "intents",
  "intent_context",
  "targets",
)
# Model feature -> task feature of the same length.
_ENCODER = {"encoder_input_tokens": "inputs", "encoder_segments": "segments"}
_ENCODER |= {"encoder_frames": "inputs", "encoder_positions": "inputs"}
_FRAMES = {"slot_frames": "slots", "memory_frames": "memory", "intent_frames": "intents"}
_SAME = TASK_FEATURES[2:]
MODEL_FEATURES = (*_ENCODER, *_SAME, *_FRAMES, "target_frames")


def numbers() -> seqio.PassThroughVocabulary:
  """Returns the pass-through vocabulary of all features except the inputs.

  Tasks and models must both use this function: SeqIO compares sizes.
  """
  return seqio.PassThroughVocabulary(size=2**31 - 1)


class SpanFeatureConverter(RowConverter):
  """Pads frames, or packs several into a row (`DatasetConfig.pack`).

  Features named `encoder_...` may be truncated to the longest example of a batch.

  Args:
    unchanged: fraction, in [0, 1], of the frames without slot changes (about half of SGD's) that
      are packed, chosen deterministically by their tokens.
  """

  TASK_FEATURES = specs(*TASK_FEATURES)  # SeqIO's name
  MODEL_FEATURES = specs(*MODEL_FEATURES)
  PACKING_FEATURE_DTYPES = {}  # noqa: RUF012

  def __init__(self, *args: Any, unchanged: float = 1.0, **options: Any):
    super().__init__(*args, **options)
    self._unchanged = unchanged

  def get_model_feature_lengths(self, task_feature_lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each model feature."""
    sources = {**_ENCODER, **{name: name for name in _SAME}, **_FRAMES}
    lengths = {name: task_feature_lengths[source] for name, source in sources.items()}
    return {**lengths, "target_frames": task_feature_lengths["targets"] // answers.ROW}

  def _convert_features(
    self, ds: tf.data.Dataset, task_feature_lengths: Mapping[str, int]
  ) -> tf.data.Dataset:
    lengths = self.get_model_feature_lengths(task_feature_lengths)
    ds = ds.map(lambda example: {name: example[name] for name in TASK_FEATURES})
    if not self.pack:
      return padded(ds, lengths, _alone)
    ds = ds.ragged_batch(_WINDOW)
    return ds.map(
      lambda batch: _pack_ragged(batch, lengths, self._unchanged), tf.data.AUTOTUNE
    ).unbatch()


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
  rows |= {name: tf.ones_like(batch[source]) for name, source in _FRAMES.items()}
  return rows | {name: batch[name] for name in _SAME}


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
  # A frame fits if all of its lists do, not its tokens alone.
  names = ("inputs", *_SAME)
  capacity = np.array([lengths.get(name, lengths["encoder_input_tokens"]) for name in names])
  sizes = np.array([[len(frame[name]) for name in names] for frame in frames])
  sizes = np.minimum(sizes, capacity)
  room = np.tile(capacity, (len(frames), 1))
  rows: list[list[int]] = []
  for number in np.argsort(-sizes[:, 0], kind="stable"):
    fits = (room[: len(rows)] >= sizes[number]).all(axis=1)
    fits &= np.array([len(row) < MAX_FRAMES for row in rows], bool)
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
  row: dict[str, list[np.ndarray]] = {name: [] for name in lengths}
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
    for name, part in features.items():
      row[name].append(part)
    for name in starts:
      starts[name] += len(frame[name])
  packed = {}
  for name, length in lengths.items():
    joined = np.concatenate(row[name])[:length]
    packed[name] = np.pad(joined, (0, length - len(joined))).astype(np.int32)
  return packed


def _moved(targets: np.ndarray, starts: Mapping[str, int]) -> np.ndarray:
  """Returns a frame's `targets`, shifted for lists that start at `starts` in the row."""
  rows = np.array(targets).reshape(-1, answers.ROW)
  slot, kind, first, last = rows.T
  slot[(kind > 0) & (kind != answers.INTENT)] += starts["slots"]
  first[kind == answers.SPAN] += starts["inputs"]
  last[kind == answers.SPAN] += starts["inputs"]
  first[kind == answers.VALUE] += starts["values"]
  first[kind == answers.MEMORY] += starts["memory"]
  first[(kind == answers.INTENT) & (first > 0)] += starts["intents"]
  return rows.reshape(-1)


def chosen(frames: Sequence[Frame], unchanged: float) -> list[Frame]:
  """Returns frames in which a slot changes and this fraction of the rest; if none, all frames."""

  def changes(frame: Frame) -> bool:
    slots, kinds = np.asarray(frame["targets"]).reshape(-1, answers.ROW)[:, :2].T
    # A slot whose right answers include KEEP need not change.
    kept_slots = slots[kinds == answers.KEEP]
    moved = slots[(kinds > answers.KEEP) & (kinds <= answers.MEMORY)]
    return not np.isin(moved, kept_slots).all()

  def drawn(frame: Frame) -> bool:
    # By its tokens: the same in every epoch and on every host, without a generator's state.
    return int(np.sum(frame["inputs"], dtype=np.int64)) % 1000 < 1000 * unchanged

  return [frame for frame in frames if drawn(frame) or changes(frame)] or list(frames)


def _pack_ragged(batch, lengths: Mapping[str, int], unchanged: float) -> dict[str, tf.Tensor]:
  """Packs a batch of frames: {feature: RaggedTensor} -> {feature: `[rows, length]`}."""
  names = list(lengths)

  def pack_all(*arrays: np.ndarray) -> list[np.ndarray]:
    values, splits = arrays[0::2], arrays[1::2]
    frames = [
      {name: v[s[i] : s[i + 1]] for name, v, s in zip(TASK_FEATURES, values, splits, strict=True)}
      for i in range(len(splits[0]) - 1)
    ]
    frames = chosen(frames, unchanged)
    rows = [pack([frames[i] for i in row], lengths) for row in rows_of(frames, lengths)]
    return [np.stack([row[name] for row in rows]) for name in names]

  inputs = []
  for name in TASK_FEATURES:
    x = batch[name]
    x = x if isinstance(x, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(x)
    inputs += [x.flat_values, x.row_splits]
  packed = tf.numpy_function(pack_all, inputs, [tf.int32] * len(names))
  return {
    name: tf.ensure_shape(x, [None, lengths[name]]) for name, x in zip(names, packed, strict=True)
  }
