"""Worst and spread: how bad the worst variant is, and how far apart the variants are.

With x_k the mean of a metric over frames under variant k of K:

  worst  = min_k x_k             0 to 1, higher is better: what a reworded schema can cost
  spread = max_k x_k - min_k x_k 0 to 1, lower is more robust

The original schema is not among the variants. Which variant is the worst may differ between groups
of frames, and between bootstrap samples. Chance alone makes spread greater than 0.
"""

import numpy as np

from sgdx_t5x.metrics.means import whole_frames


def worst(scores: np.ndarray) -> float:
  """Returns the lowest variant mean over frames.

  Args:
    scores: [K, F] float, a metric per variant and frame. Frames with nan in a row are excluded.

  Returns:
    0 to 1; nan if there is no variant or no frame. In `summarise`, it is nan unless all of v1 to v5
    are given: the lowest of fewer is not a bound for the others.
  """
  return float(extremes(_means(scores))[0])


def spread(scores: np.ndarray) -> float:
  """Returns the highest variant mean over frames minus the lowest.

  Args: see `worst`.

  Returns:
    0 to 1; nan as for `worst`. A tracker that is always wrong has 0: read it together with `worst`.
  """
  return float(extremes(_means(scores))[1])


def extremes(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns (worst, spread) of the variants' means: [K, ...] -> two [...], nan where one is nan."""
  if not len(means):
    return np.full(means.shape[1:], np.nan), np.full(means.shape[1:], np.nan)
  lowest = means.min(axis=0)
  return lowest, means.max(axis=0) - lowest


def _means(scores: np.ndarray) -> np.ndarray:
  """[K, F] -> [K], nan without frames."""
  complete = whole_frames(scores)
  return complete.mean(axis=1) if complete.size else np.full(len(scores), np.nan)
