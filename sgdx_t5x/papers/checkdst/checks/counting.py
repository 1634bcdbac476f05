"""Counts the frames of one set, see `metrics.perturbed`."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.metrics import FrameScores, GoldFrame
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.ratios import Counts
from sgdx_t5x.papers.checkdst.checks.counterfactual import Spoken, edit_of
from sgdx_t5x.papers.checkdst.checks.sets import Gold, Original, TestSet, changes_of, is_changed
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.metrics_counterfactual import goal_counts
from sgdx_t5x.papers.checkdst.metrics_factuality import History
from sgdx_t5x.papers.checkdst.metrics_perturbed import COUNTS, Around, Before, frame_counts
from sgdx_t5x.papers.checkdst.train_values import TrainValues
from sgdx_t5x.scoring.score import Scored


@dataclasses.dataclass(frozen=True)
class Known:
  """Predictions for the original set: frame id -> state, and JGA."""

  states: Mapping[str, State]
  jga: Mapping[str, float]

  @classmethod
  def of(cls, scored: Scored, variant: str) -> "Known":
    """Takes the predictions for a variant."""
    frames = scored.frames[variant]
    jga = frames.metrics[metrics.JOINT_GOAL].tolist()
    by_id = dict(zip(frames.frame_ids.tolist(), jga, strict=True))
    return cls(scored.states[variant], by_id)


class Counter:
  """Counts frames of one set."""

  def __init__(
    self,
    test_set: TestSet,
    split: str,
    entities: Slots,
    original: Original,
    gold: Gold,
    train: TrainValues,
    fuzzy: str,
  ):
    """Args: see `check.check`; `original` is what the set is compared with."""
    self._set, self._gold, self._fuzzy = test_set, gold, fuzzy
    self._schema = test_set.corpus.schema(split)
    self._entities, self._replaced = entities, test_set.replaced(entities)
    self._changes = changes_of(test_set, split, original, gold)
    self._by_id = {frame.frame_id: frame for frame in gold.frames}
    self._in_train = train.__contains__ if train.known else None
    self._changed = {
      key: is_changed(test_set.kinds, original.frames[old], frame)
      for key, frame in self._by_id.items()
      if (old := self._original_id(frame)) in original.frames
    }
    for key, frame in self._by_id.items() if test_set.of_goals else ():
      self._changed[key] = self._changes.goals[frame.dialogue_id]["service"] == frame.service

  def counts(self, frames: FrameScores, states: Mapping[str, State], known: Known | None) -> Counts:
    """Returns the counts of the scored frames, in the same order.

    Args:
      frames: their scores.
      states: frame id -> predicted state.
      known: predictions for the original set to compare with, or None.
    """
    values = np.zeros((len(frames), len(COUNTS)))
    position = {name: i for i, name in enumerate(COUNTS)}
    dialogue, history = "", History(())
    jga = frames.metrics[metrics.JOINT_GOAL].tolist()
    for row, (key, score) in enumerate(zip(frames.frame_ids.tolist(), jga, strict=True)):
      gold = self._by_id[key]
      if gold.dialogue_id != dialogue:
        dialogue, history = gold.dialogue_id, History(self._gold.utterances[gold.dialogue_id])
      found = frame_counts(
        self._schema[gold.service],
        gold,
        states[key],
        score,
        self._before(gold, known),
        self._around(gold, history),
        self._fuzzy,
      )
      for name, number in (found | self._goal(gold, states[key])).items():
        values[row, position[name]] = number
    return Counts(COUNTS, values.T, self.dialogues(frames))

  def dialogues(self, frames: FrameScores) -> np.ndarray:
    """Returns the ids of the frames' original dialogues: [F] str."""
    of = self._set.original_dialogue
    return np.array([of(name) for name in frames.dialogue_ids.tolist()], dtype=str)

  def spoken(self) -> Spoken | None:
    """Returns the last utterances of a counterfactual set; None for other sets."""
    if not self._set.of_goals:
      return None
    before = {key: line["utterance"] for key, line in self._changes.goals.items()}
    after = {key: texts[-1] for key, texts in self._gold.utterances.items() if key in before}
    return Spoken(before, after)

  def _original_id(self, frame: GoldFrame) -> str:
    return frame_id(self._set.original_dialogue(frame.dialogue_id), frame.turn, frame.service)

  def _goal(self, gold: GoldFrame, state: State) -> dict[str, float]:
    line = self._changes.goals.get(gold.dialogue_id)
    if line is None or line["service"] != gold.service:
      return {}
    service = self._schema[gold.service]
    return goal_counts(service, gold.slot_values, state, edit_of(line), self._fuzzy)

  def _before(self, gold: GoldFrame, known: Known | None) -> Before | None:
    key = self._original_id(gold)
    if known is None or key not in known.jga or gold.frame_id not in self._changed:
      return None
    names = self._changes.names.get(gold.dialogue_id, {}) if self._set.replaces_names else None
    choices = {
      slot: replaced
      for (service, slot), replaced in self._changes.choices.get(gold.dialogue_id, {}).items()
      if service == gold.service
    }
    goal = self._changes.goals.get(gold.dialogue_id)
    return Before(
      known.states[key],
      known.jga[key],
      self._changed[gold.frame_id],
      names,
      choices,
      same_goal=goal is None or edit_of(goal).is_empty,
    )

  def _around(self, gold: GoldFrame, history: History) -> Around:
    repairs = self._changes.repairs.get((gold.dialogue_id, gold.turn), {})
    nothing: frozenset[str] = frozenset()
    return Around(
      history,
      self._entities.get(gold.service, nothing),
      self._replaced.get(gold.service, nothing),
      gold.is_sticky,
      {slot: value for (service, slot), value in repairs.items() if service == gold.service},
      self._in_train,
    )
