"""Counts the frames of one set, see `metrics.perturbed`."""

from collections.abc import Callable, Mapping

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.metrics import FrameScores, GoldFrame
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.papers.checkdst.checks.sets import OF_WORDS, Gold, TestSet, changes_of
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.metrics_counterfactual import goal_counts
from sgdx_t5x.papers.checkdst.metrics_factuality import History
from sgdx_t5x.papers.checkdst.metrics_perturbed import COUNTS, Before, FrameFacts, frame_counts
from sgdx_t5x.papers.checkdst.ratios import Counts

# Predictions for the original set: frame id -> state, and its JGA.
Baseline = Mapping[str, tuple[State, float]]


class Counter:
  """Counts frames of one set."""

  def __init__(
    self,
    test_set: TestSet,
    split: str,
    entities: Slots,
    original: Gold,
    gold: Gold,
    in_train: Callable[[str], bool] | None,
    fuzzy: str,
  ):
    """Args: see `check.check`; `original` is what the set is compared with."""
    self._set, self._gold, self._fuzzy = test_set, gold, fuzzy
    self._original, self._in_train = original, in_train
    self._schema = test_set.corpus.schema(split)
    self._entities, self._replaced = entities, test_set.replaced(entities)
    self._changes = changes_of(test_set, split, original, gold)

  def counts(self, frames: FrameScores, states: Mapping[str, State], baseline: Baseline) -> Counts:
    """Returns the counts of the scored frames, in the same order.

    Args:
      frames: their scores.
      states: frame id -> predicted state.
      baseline: predictions for the original set to compare with; empty if there are none.
    """
    values = np.zeros((len(COUNTS), len(frames)))
    dialogue, history = "", History(())
    jga = frames.metrics[metrics.JOINT_GOAL].tolist()
    for column, (key, score) in enumerate(zip(frames.frame_ids.tolist(), jga, strict=True)):
      gold = self._gold.by_id[key]
      if gold.dialogue_id != dialogue:
        dialogue, history = gold.dialogue_id, History(self._gold.utterances[gold.dialogue_id])
      counts = frame_counts(
        self._schema[gold.service],
        gold,
        states[key],
        score,
        self._before(gold, baseline),
        self._facts(gold, history),
        self._fuzzy,
      )
      counts |= self._goal(gold, states[key])
      values[:, column] = [counts.get(name, 0) for name in COUNTS]
    return Counts(COUNTS, values, self.dialogues(frames))

  def dialogues(self, frames: FrameScores) -> np.ndarray:
    """Returns the ids of the frames' original dialogues: [F] str."""
    original_of = self._set.original_dialogue
    return np.array([original_of(name) for name in frames.dialogue_ids.tolist()], dtype=str)

  def _goal(self, gold: GoldFrame, state: State) -> dict[str, float]:
    edit = self._changes.goals.get(gold.dialogue_id)
    if edit is None or edit.service != gold.service:
      return {}
    return goal_counts(self._schema[gold.service], gold.slot_values, state, edit, self._fuzzy)

  def _before(self, gold: GoldFrame, baseline: Baseline) -> Before | None:
    key = frame_id(self._set.original_dialogue(gold.dialogue_id), gold.turn, gold.service)
    original = self._original.by_id.get(key)
    if key not in baseline or original is None:
      return None
    edit = self._changes.goals[gold.dialogue_id] if self._set.of_goals else None
    if edit:
      is_changed = edit.service == gold.service
    elif self._set.kind in OF_WORDS:
      is_changed = original.utterance_crc != gold.utterance_crc
    else:
      is_changed = original.slot_values != gold.slot_values
    return Before(
      *baseline[key],
      is_changed,
      self._changes.names.get(gold.dialogue_id, {}) if self._set.replaces_names else None,
      self._changes.choices.get((gold.dialogue_id, gold.service), {}),
      same_goal=edit is None or edit.is_empty,
    )

  def _facts(self, gold: GoldFrame, history: History) -> FrameFacts:
    none: frozenset[str] = frozenset()
    return FrameFacts(
      history,
      self._entities.get(gold.service, none),
      self._replaced.get(gold.service, none),
      self._changes.repairs.get((gold.dialogue_id, gold.turn, gold.service), {}),
      self._in_train,
    )
