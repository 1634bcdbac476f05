"""Scores of a tracker that is given as a function, walked through dialogues without gold."""

from sgdx_t5x.metrics.frames import PredictedFrame, gold_frames, score_frames
from sgdx_t5x.trackers.walk import walk


def walked_scores(dialogues, schema, predict, seen):
  """Returns the scores of the states that `walk` finds; intents and requests are not looked at."""
  predicted = {}
  for turn in walk(dialogues, schema, predict):
    for name, one in turn.items():
      service = schema[name.split("-", 2)[2]]
      slots = {service.slots[i].name: values for i, values in one.values.items()}
      predicted[name] = PredictedFrame(slots)
  return score_frames(gold_frames(dialogues), predicted, schema, frozenset(seen))
