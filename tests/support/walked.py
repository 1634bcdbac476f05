"""Scores of a tracker, given as a function, that tracks dialogues without gold states."""

from sgdx_t5x.metrics.frames import PredictedFrame, gold_frames, score_frames
from sgdx_t5x.spandst.walk import walk


def walked_scores(dialogues, schema, predict, seen):
  """Returns the scores of the states that `walk` finds, ignoring intents and requests."""
  predicted = {}
  for turn in walk(dialogues, schema, predict):
    for name, one in turn.items():
      service = schema[name.split("-", 2)[2]]
      slots = {service.slots[i].name: values for i, values in one.values.items()}
      predicted[name] = PredictedFrame(slots)
  return score_frames(gold_frames(dialogues), predicted, schema, frozenset(seen))
