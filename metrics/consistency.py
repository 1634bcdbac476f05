"""Consistent JGA (cJGA): share of frames that are correct under two schema variants, or under all.

CheckDST (Cho et al. 2022) defines it for a test set and a perturbed one, as the mean over pairs of
1[both correct]; here the perturbation is the schema variant. Unlike schema sensitivity, it has no
0/0 and does not reward a tracker that is wrong everywhere.
"""

import numpy as np


def frame_consistency(scores: np.ndarray) -> np.ndarray:
  """Returns 1.0 or 0.0 per frame, nan where a row has no score: [K, F] -> [F]; [0, 0] -> [0]."""
  # Below 1 is wrong here, also a partial fuzzy match.
  return np.where(np.isnan(scores).any(axis=0), np.nan, (scores >= 1.0).all(axis=0))
