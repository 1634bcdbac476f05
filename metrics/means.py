"""Means over frames of which some have no score."""

import numpy as np


def mean(values: np.ndarray) -> float:
  """Returns the mean of [F] float, ignoring nan; nan if no value is left."""
  values = values[~np.isnan(values)]
  return float(values.mean()) if values.size else float("nan")
