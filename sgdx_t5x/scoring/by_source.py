"""Scores by the source of state values: what a tracker loses, and under which variant.

Three breakdowns by source (`corpus.provenance`):
  values    the share of values in gold states that are predicted correctly; a value counts in
            every frame whose state contains it
  entering  the same, counting a value only in the frame in which it enters the state
  frames    JGA of the frames with a carried value, of other frames with an accepted value, and of
            the rest
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.provenance import ACCEPTED, CARRIED, SOURCES, Origin
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.metrics import FrameScores, GoldFrame
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.scoring.settings import Settings
from sgdx_t5x.scoring.summaries import summaries

SLOT_ACCURACY = "slot_accuracy"
NEITHER = "neither"
FRAME_KINDS = (CARRIED, ACCEPTED, NEITHER)


def source_rows(
  scores: Mapping[str, FrameScores],
  gold: Sequence[GoldFrame],
  states: Mapping[str, Mapping[str, State]],
  schema: Schema,
  settings: Settings,
  samples: metrics.BootstrapSamples | None,
) -> dict[str, Any]:
  """Returns the "provenance" section of a report, see docs/score-json.md.

  Args:
    scores: variant -> scores, all of the same frames.
    gold: those frames, with origins.
    states: variant -> frame id -> predicted state, in original names.
    schema: the split's original schema.
    settings: see `Settings`.
    samples: bootstrap samples of the frames' dialogues; None for no intervals.

  Returns:
    "values", "entering" -> source -> rows of slot accuracy, which count values instead of frames;
    "frames" -> one of `FRAME_KINDS` -> rows of JGA. Sources without values are left out.
  """
  # Values have no turns, and a turn can have frames of several kinds.
  settings = dataclasses.replace(settings, across_turn=False)

  def rows(frames: Mapping[str, FrameScores], metric: str, name: str) -> dict[str, Any]:
    return summaries(frames, metric, name, settings, samples, per_service=False).to_json()

  sources, enters = [], []  # per value: its source, whether it is new
  for frame in gold:
    for origin in frame.origins.values():
      sources.append(origin.source)
      # A value stays in the state for later turns, which `origins` repeats.
      enters.append(origin.turn == frame.turn)
  source_of = np.array(sources, dtype=str)
  values = _value_scores(scores, gold, states, schema, settings)
  result: dict[str, Any] = {}
  for part, counted in (("values", True), ("entering", np.array(enters, dtype=bool))):
    result[part] = {}
    for source in SOURCES:
      mask = (source_of == source) & counted
      if mask.any():
        of_source = {variant: per_value.take(mask) for variant, per_value in values.items()}
        result[part][source] = rows(of_source, SLOT_ACCURACY, SLOT_ACCURACY)
  kinds = np.array([frame_kind(frame.origins) for frame in gold], dtype=str)
  result["frames"] = {}
  for kind in FRAME_KINDS:
    if kind in kinds:
      of_kind = {variant: frames.take(kinds == kind) for variant, frames in scores.items()}
      result["frames"][kind] = rows(of_kind, metrics.JOINT_GOAL, "jga")
  return result


def _value_scores(
  scores: Mapping[str, FrameScores],
  gold: Sequence[GoldFrame],
  states: Mapping[str, Mapping[str, State]],
  schema: Schema,
  settings: Settings,
) -> dict[str, FrameScores]:
  """Returns variant -> scores with values, in the order of `origins`, in place of frames."""
  values = {}
  for variant, frames in scores.items():
    numbers, is_right = [], []  # per value: of its frame, whether it is predicted
    for number, frame in enumerate(gold):
      state, service = states[variant][frame.frame_id], schema[frame.service]
      right_slots = metrics.right_slots(service, frame.slot_values, state, settings.fuzzy)
      for slot in frame.origins:
        numbers.append(number)
        is_right.append(float(slot in right_slots))
    per_value = frames.take(np.array(numbers, dtype=np.intp))
    accuracy = np.array(is_right, dtype=np.float64)
    values[variant] = dataclasses.replace(per_value, metrics={SLOT_ACCURACY: accuracy})
  return values


def frame_kind(origins: Mapping[str, Origin]) -> str:
  """Returns the kind of a frame, one of `FRAME_KINDS`, from the origins of its gold state."""
  sources = {origin.source for origin in origins.values()}
  return CARRIED if CARRIED in sources else ACCEPTED if ACCEPTED in sources else NEITHER
