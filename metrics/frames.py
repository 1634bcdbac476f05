"""Scores per frame: what all aggregates, tables and tests of a run are made from.

A *frame* is (dialogue, user turn, service): the unit of the official scorer.
"""

import dataclasses
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from sgdx_t5x.dialogue import Dialogue, frame_id
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.goals import GOAL_METRICS, goal_scores
from sgdx_t5x.schema import Schema

# frame id -> slot -> values, with the original names of services and slots.
States = Mapping[str, Mapping[str, Sequence[str]]]


@dataclasses.dataclass(frozen=True, slots=True)
class GoldFrame:
  """What a frame is scored against; no text, so memory grows with frames.

  Attributes:
    frame_id: as the official scorer names it, "1_00000-002-Banks_2".
    dialogue_id: unique in the split.
    turn: index over all turns of the dialogue.
    service: original name.
    slot_values: the gold state, slot -> acceptable values.
    utterance_crc: CRC-32 of the user's utterance, to notice predictions of another split.
  """

  frame_id: str
  dialogue_id: str
  turn: int
  service: str
  slot_values: Mapping[str, tuple[str, ...]]
  utterance_crc: int


@dataclasses.dataclass(frozen=True)
class FrameScores:
  """Metrics per frame, in the order of the corpus; F is the number of frames.

  Attributes:
    frame_ids: [F] str.
    dialogue_ids: [F] str: the unit to resample for intervals.
    services: [F] str, original names.
    seen: [F] bool, whether the service is also in train's schema.
    metrics: official key -> [F] float64 from 0 to 1; nan where the official scorer has "NA".
  """

  frame_ids: np.ndarray
  dialogue_ids: np.ndarray
  services: np.ndarray
  seen: np.ndarray
  metrics: Mapping[str, np.ndarray]

  def __len__(self) -> int:
    return len(self.frame_ids)

  def take(self, frames: np.ndarray) -> "FrameScores":
    """Returns the frames of a mask [F] bool, or of positions [any] int, in that order."""
    return FrameScores(
      self.frame_ids[frames],
      self.dialogue_ids[frames],
      self.services[frames],
      self.seen[frames],
      {key: values[frames] for key, values in self.metrics.items()},
    )


def gold_frames(dialogues: Iterable[Dialogue]) -> list[GoldFrame]:
  """Returns the frames of dialogues (original names) that are to be scored, in order.

  Raises:
    SgdxError: a dialogue, or a service within a turn, occurs twice.
  """
  frames: dict[str, GoldFrame] = {}
  for dialogue in dialogues:
    for turn, frame in dialogue.user_frames():
      key = frame_id(dialogue.dialogue_id, turn, frame.service)
      if key in frames:
        raise SgdxError(
          f"frame {key} occurs twice in the corpus",
          expected="each dialogue id once in a split, each service once in a turn",
          fix="remove the file or the dialogue that repeats it",
        )
      crc = zlib.crc32(dialogue.turns[turn].utterance.encode())
      values = frame.state.slot_values if frame.state else {}
      frames[key] = GoldFrame(key, dialogue.dialogue_id, turn, frame.service, values, crc)
  return list(frames.values())


def score_frames(
  gold: Sequence[GoldFrame],
  predicted: States,
  schema: Schema,
  seen_services: Collection[str],
  backend: str = "difflib",
) -> FrameScores:
  """Scores predicted states frame by frame.

  Args:
    gold: frames of a split. Those absent from `predicted` are left out, not counted
      as wrong; `predictions.read_predictions` refuses absent ones unless told otherwise.
    predicted: states by frame id; {} is the state in which no slot has a value.
    schema: the split's original schema.
    seen_services: names of services that are in train too.
    backend: see `fuzzy.match`.
  """
  gold = [frame for frame in gold if frame.frame_id in predicted]
  scores = [
    goal_scores(schema[frame.service], frame.slot_values, predicted[frame.frame_id], backend)
    for frame in gold
  ]
  return FrameScores(
    frame_ids=np.array([frame.frame_id for frame in gold], dtype=str),
    dialogue_ids=np.array([frame.dialogue_id for frame in gold], dtype=str),
    services=np.array([frame.service for frame in gold], dtype=str),
    seen=np.array([frame.service in seen_services for frame in gold], dtype=bool),
    metrics={
      key: np.array([score[key] for score in scores], dtype=np.float64) for key in GOAL_METRICS
    },
  )


def predict_nothing(gold: Iterable[GoldFrame]) -> dict[str, dict[str, list[str]]]:
  """Returns the states of a tracker that never gives a slot a value: the floor to beat."""
  return {frame.frame_id: {} for frame in gold}


def common_frames(scores: Mapping[str, FrameScores]) -> dict[str, FrameScores]:
  """Keeps the frames that all variants have, in one order, so that they can be compared.

  Args:
    scores: variant -> its scores; which frames they have may differ.

  Returns:
    variant -> scores of the same frames, in the order of the first variant.
  """
  ids = [s.frame_ids for s in scores.values()]
  if not ids or all(np.array_equal(ids[0], other) for other in ids[1:]):
    return dict(scores)
  shared = set(ids[0].tolist()).intersection(*(other.tolist() for other in ids[1:]))
  order = [i for i in ids[0].tolist() if i in shared]
  result = {}
  for variant, score in scores.items():
    position = {key: i for i, key in enumerate(score.frame_ids.tolist())}
    result[variant] = score.take(np.array([position[key] for key in order], dtype=np.intp))
  return result
