"""Worst and spread: how bad the worst variant is, and how far apart the variants are.

With x_k the mean of a metric over frames under variant k of K:

  worst  = min_k x_k             0 to 1, higher is better: what a reworded schema can cost
  spread = max_k x_k - min_k x_k 0 to 1, lower is more robust

The original schema is not among the variants. Which variant is the worst may differ between groups
of frames, and between bootstrap samples. Chance alone makes spread greater than 0.
"""

import numpy as np


def extremes(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns (worst, spread) of the variants' means: [K, ...] -> two [...], nan where one is nan.

  Both are from 0 to 1. A tracker that is always wrong has the spread 0: read it with the worst.
  """
  if not len(means):
    return np.full(means.shape[1:], np.nan), np.full(means.shape[1:], np.nan)
  lowest = means.min(axis=0)
  return lowest, means.max(axis=0) - lowest
