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

  result: dict[str, Any] = {}
  right_slots: dict[str, list[frozenset[str]]] = {}  # per frame, for all sources
  for variant in scores:
    right_slots[variant] = []
    for frame in gold:
      state = states[variant][frame.frame_id]
      right_slots[variant].append(
        metrics.right_slots(schema[frame.service], frame.slot_values, state, settings.fuzzy)
      )
  for part, only_new in (("values", False), ("entering", True)):
    result[part] = {}
    for source in SOURCES:
      places = _places(gold, source, only_new)
      if not places:
        continue
      numbers = np.array([number for number, _ in places], dtype=np.intp)
      values = {}  # variant -> scores of values in place of frames
      for variant, frames in scores.items():
        slots = right_slots[variant]
        is_right = np.array([slot in slots[number] for number, slot in places], dtype=np.float64)
        per_value = frames.take(numbers)
        values[variant] = dataclasses.replace(per_value, metrics={SLOT_ACCURACY: is_right})
      result[part][source] = rows(values, SLOT_ACCURACY, SLOT_ACCURACY)
  kinds = np.array([frame_kind(frame.origins) for frame in gold], dtype=str)
  result["frames"] = {}
  for kind in FRAME_KINDS:
    if kind in kinds:
      of_kind = {variant: frames.take(kinds == kind) for variant, frames in scores.items()}
      result["frames"][kind] = rows(of_kind, metrics.JOINT_GOAL, "jga")
  return result


def frame_kind(origins: Mapping[str, Origin]) -> str:
  """Returns the kind of a frame, one of `FRAME_KINDS`, from the origins of its gold state."""
  sources = {origin.source for origin in origins.values()}
  return CARRIED if CARRIED in sources else ACCEPTED if ACCEPTED in sources else NEITHER


def _places(gold: Sequence[GoldFrame], source: str, only_new: bool) -> list[tuple[int, str]]:
  """Returns (frame index, slot) of a source's values; with `only_new`, where they enter only."""
  places = []
  for number, frame in enumerate(gold):
    for slot, origin in frame.origins.items():
      # A value stays in the state for later turns, which `origins` repeats.
      if origin.source == source and (origin.turn == frame.turn or not only_new):
        places.append((number, slot))
  return places
