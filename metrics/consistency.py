"""cJGA: right under both of two wordings of a schema, or under all of them.

CheckDST (Cho et al. 2022) defines it between a test set and a perturbed one, as the mean over
pairs of 1[both right]; here the perturbation is the wording of the schema. Unlike schema
sensitivity it has no 0/0, and it cannot be raised by being wrong everywhere.
"""

import numpy as np

from sgdx_t5x.metrics.aggregate import mean


def consistent_jga(scores: np.ndarray) -> float:
  """Returns the share of frames that are wholly right in every row of [K, F] JGA, 0 to 1.

  Right is a JGA of 1: a value that only nearly matches is not. nan if there is no row or no
  frame; frames with nan in a row are left out.
  """
  return mean(frame_consistency(scores))


def frame_consistency(scores: np.ndarray) -> np.ndarray:
  """Returns 1.0 or 0.0 per frame, nan where a row has no score: [K, F] -> [F]; [0, 0] -> [0]."""
  return np.where(np.isnan(scores).any(axis=0), np.nan, (scores >= 1.0).all(axis=0))
