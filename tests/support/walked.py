"""Scores of a tracker, given as a function, that tracks dialogues without gold states."""

from sgdx_t5x.metrics.frames import PredictedFrame, gold_frames, score_frames
from sgdx_t5x.tracking.protocol import Shown, walked


def walked_scores(dialogues, schema, predict, seen):
  """Returns the scores of what `walk` finds with a function of its questions."""
  predicted = {}
  for portion in walked(dialogues, Shown("", "", schema, schema), predict):
    for name, one in portion.items():
      predicted[name] = PredictedFrame(one.slot_values, one.active_intent, one.requested_slots)
  return score_frames(gold_frames(dialogues), predicted, schema, frozenset(seen))
