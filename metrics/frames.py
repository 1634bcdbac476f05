"""Per-frame scores, the basis of all aggregates, tables and significance tests.

A *frame* is (dialogue, user turn, service): the unit of the official scorer.
"""

import dataclasses
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.dialogue import EMPTY_STATE, USER, Dialogue, frame_id
from sgdx_t5x.corpus.provenance import Origin
from sgdx_t5x.corpus.schema import NO_INTENT, Schema, Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.f1 import REQUESTED_METRICS, TAGGING_METRICS, multiset_f1
from sgdx_t5x.metrics.goals import GOAL_METRICS, goal_scores
from sgdx_t5x.metrics.intents import INTENT_METRICS, intent_score
from sgdx_t5x.metrics.predicted_frame import PredictedFrame

OFFICIAL_METRICS = (*INTENT_METRICS, *REQUESTED_METRICS, *TAGGING_METRICS, *GOAL_METRICS)


@dataclasses.dataclass(frozen=True, slots=True)
class GoldFrame:
  """The gold annotation of a frame; holds no utterances, to save memory.

  Attributes:
    frame_id: in the official scorer's format, "1_00000-002-Banks_2".
    dialogue_id: unique in the split.
    turn: index over all turns of the dialogue.
    service: original name.
    slot_values: the gold state, slot -> acceptable values.
    utterance_crc: CRC-32 of the user's utterance, to detect predictions for another split.
    active_intent: its name, or "NONE".
    requested_slots: names.
    spans: (slot, text) of the slot spans in the utterance.
    services: original names of the services in the dialogue's user turns up to this one.
    origins: slot of the gold state -> where its value comes from; empty unless requested.
    is_sticky: whether this or an earlier frame of the dialogue has a carried value; False unless
      origins are requested.
  """

  frame_id: str
  dialogue_id: str
  turn: int
  service: str
  slot_values: Mapping[str, tuple[str, ...]]
  utterance_crc: int
  active_intent: str = NO_INTENT
  requested_slots: tuple[str, ...] = ()
  spans: tuple[tuple[str, str], ...] = ()
  services: frozenset[str] = frozenset()
  origins: Mapping[str, Origin] = dataclasses.field(default_factory=dict)
  is_sticky: bool = False


Place = tuple[str, str, int, str, bool]  # frame id, dialogue id, turn, service, whether it is seen
_PLACE_TYPES = (str, str, np.int32, str, bool)


@dataclasses.dataclass(frozen=True)
class FrameScores:
  """Metrics per frame, in the order of the corpus; F is the number of frames.

  Attributes:
    frame_ids: [F] str.
    dialogue_ids: [F] str, the bootstrap's resampling unit.
    turns: [F] int32, index over all turns of the dialogue.
    services: [F] str, original names.
    seen: [F] bool, whether the service is also in the train schema.
    metrics: official key -> [F] float64 from 0 to 1; nan where the official scorer has "NA". An
      annex's prompt format may add others.
  """

  frame_ids: np.ndarray
  dialogue_ids: np.ndarray
  turns: np.ndarray
  services: np.ndarray
  seen: np.ndarray
  metrics: Mapping[str, np.ndarray]

  def __len__(self) -> int:
    return len(self.frame_ids)

  @classmethod
  def of(cls, places: Iterable[Place], metrics: Mapping[str, np.ndarray]) -> "FrameScores":
    """Builds the scores of frames at these places. Args: metrics, [F] each, in the same order."""
    columns = [*zip(*places, strict=True)] or [()] * len(_PLACE_TYPES)
    ids, dialogue_ids, turns, services, seen = map(np.array, columns, _PLACE_TYPES)
    return cls(ids, dialogue_ids, turns, services, seen, metrics)

  def places(self) -> Iterator[Place]:
    """Yields the place of each frame."""
    return zip(*map(np.ndarray.tolist, self._columns), strict=True)

  @property
  def _columns(self) -> tuple[np.ndarray, ...]:
    return self.frame_ids, self.dialogue_ids, self.turns, self.services, self.seen

  def positions(self, frame_ids: Iterable[str]) -> np.ndarray:
    """Returns where these frames are, for `take`: [any] int."""
    position = {key: i for i, key in enumerate(self.frame_ids.tolist())}
    return np.array([position[key] for key in frame_ids], dtype=np.intp)

  def column(self, by_frame: Mapping[str, float]) -> np.ndarray:
    """Returns each frame's number, nan where there is none: [F]. Args: by_frame, by frame id."""
    return np.array([by_frame.get(key, np.nan) for key in self.frame_ids.tolist()], dtype=float)

  def with_metrics(self, further: Mapping[str, Mapping[str, float]]) -> "FrameScores":
    """Adds metrics that only some trackers have. Args: further, key -> frame id -> score."""
    columns = {key: self.column(by_frame) for key, by_frame in further.items()}
    return dataclasses.replace(self, metrics={**self.metrics, **columns})

  def take(self, frames: np.ndarray) -> "FrameScores":
    """Selects frames by a mask [F] bool, or by positions [any] int, in that order."""
    metrics = {key: values[frames] for key, values in self.metrics.items()}
    ids, dialogue_ids, turns, services, seen = (column[frames] for column in self._columns)
    return FrameScores(ids, dialogue_ids, turns, services, seen, metrics)


def utterance_crc(text: str) -> int:
  """CRC-32 of an utterance's words, whatever white space is between and around them.

  JSON may contain lone surrogates, which are not valid Unicode.
  """
  return zlib.crc32(" ".join(text.split()).encode("utf-8", "surrogatepass"))


def gold_frames(dialogues: Iterable[Dialogue], with_origins: bool = False) -> list[GoldFrame]:
  """Returns the frames to score, in order, of dialogues in original names.

  Args:
    dialogues: dialogues of a split.
    with_origins: whether to trace where the values of states come from, see `provenance.trace`.

  Raises:
    SgdxError: a dialogue, or a service within a turn, occurs twice.
  """
  frames: dict[str, GoldFrame] = {}
  for dialogue in dialogues:
    services = _services_so_far(dialogue)
    without_origins = ((turn, frame, {}, False) for turn, frame in dialogue.user_frames())
    traced = provenance.trace_sticky(dialogue) if with_origins else without_origins
    for turn, frame, origins, is_sticky in traced:
      key = frame_id(dialogue.dialogue_id, turn, frame.service)
      if key in frames:
        raise SgdxError(
          f"frame {key} occurs twice in the corpus",
          expected="unique dialogue ids in a split, unique services in a turn",
          fix="remove the duplicate file or dialogue",
        )
      utterance, state = dialogue.turns[turn].utterance, frame.state or EMPTY_STATE
      spans = [(s["slot"], utterance[s["start"] : s["exclusive_end"]]) for s in frame.slots or ()]
      frames[key] = GoldFrame(
        key,
        dialogue.dialogue_id,
        turn,
        frame.service,
        state.slot_values,
        utterance_crc(utterance),
        state.active_intent,
        state.requested_slots,
        tuple(spans),
        services[turn],
        origins,
        is_sticky,
      )
  return list(frames.values())


def _services_so_far(dialogue: Dialogue) -> list[frozenset[str]]:
  """Returns the services of the user turns up to each turn, whether these are scored or not."""
  services_by_turn, services = [], frozenset[str]()
  for turn in dialogue.turns:
    for frame in turn.frames if turn.speaker == USER else ():
      if frame.service not in services:  # otherwise the turns share a set, to save memory
        services |= {frame.service}
    services_by_turn.append(services)
  return services_by_turn


def score_frames(
  gold: Sequence[GoldFrame],
  predicted: Mapping[str, PredictedFrame],
  schema: Schema,
  seen_services: Collection[str],
  backend: str = "difflib",
) -> FrameScores:
  """Scores predictions frame by frame.

  Args:
    gold: frames of a split. Frames missing from `predicted` are skipped, not counted as wrong;
      by default, `predictions.read_predictions` rejects missing frames.
    predicted: frame id -> prediction for the frame.
    schema: the split's original schema.
    seen_services: names of services that are also in train.
    backend: see `fuzzy.match`.
  """
  places: list[Place] = []
  rows: list[tuple[float, ...]] = []
  for frame in gold:
    prediction = predicted.get(frame.frame_id)
    if prediction is None:
      continue
    is_seen = frame.service in seen_services
    places.append((frame.frame_id, frame.dialogue_id, frame.turn, frame.service, is_seen))
    rows.append(_frame_row(schema[frame.service], frame, prediction, backend))
  columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(OFFICIAL_METRICS)).T
  return FrameScores.of(places, dict(zip(OFFICIAL_METRICS, columns, strict=True)))


def _frame_row(
  service: Service, gold: GoldFrame, predicted: PredictedFrame, backend: str
) -> tuple[float, ...]:
  """Returns the scores of one frame, in the order of `OFFICIAL_METRICS`."""
  goals = goal_scores(service, gold.slot_values, predicted.slot_values, backend)
  # Slot tagging is of non-categorical slots, as in the official scorer; others may be tagged too.
  spans = predicted.spans
  if spans is not None:
    spans = _of_noncategorical(spans, service)
  return (
    intent_score(gold.active_intent, predicted.active_intent),
    *multiset_f1(gold.requested_slots, predicted.requested_slots),
    *multiset_f1(_of_noncategorical(gold.spans, service), spans),
    *goals.values(),
  )


def _of_noncategorical(
  spans: Sequence[tuple[str, str]], service: Service
) -> tuple[tuple[str, str], ...]:
  names = service.noncategorical_slots
  return tuple(span for span in spans if span[0] in names)


def predict_nothing(gold: Iterable[GoldFrame]) -> dict[str, PredictedFrame]:
  """Returns the predictions of the trivial baseline that never predicts a value."""
  nothing = PredictedFrame({}, NO_INTENT, (), ())
  return dict.fromkeys((frame.frame_id for frame in gold), nothing)


def common_frames(scores: Mapping[str, FrameScores]) -> dict[str, FrameScores]:
  """Keeps the frames that all variants share, in the same order, so that they are comparable.

  Args:
    scores: variant -> its scores, possibly of different frames.

  Returns:
    variant -> scores of the same frames, in the order of the first variant.
  """
  if not scores:
    return {}
  first_ids, *other_ids = [scored.frame_ids for scored in scores.values()]
  if all(np.array_equal(ids, first_ids) for ids in other_ids):
    return dict(scores)  # as a rule; nothing is copied
  shared_ids = set(first_ids.tolist()).intersection(*map(np.ndarray.tolist, other_ids))
  order = [key for key in first_ids.tolist() if key in shared_ids]
  return {variant: scored.take(scored.positions(order)) for variant, scored in scores.items()}


def sharing_columns(scores: FrameScores, by_variant: Mapping[str, FrameScores]) -> FrameScores:
  """Replaces ids and services by those of another variant of the same frames, to save memory."""
  for scored in by_variant.values():
    if np.array_equal(scored.frame_ids, scores.frame_ids):
      return dataclasses.replace(scored, metrics=scores.metrics)
  return scores
