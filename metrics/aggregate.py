"""Official aggregation: means over frames, for all services, seen, unseen, each and domain.

Keys and rules of the official scorer (google-research, schema_guided_dst/evaluate.py): every
frame weighs the same, whatever its service or dialogue, and "NA" is skipped.
"""

import numpy as np

from sgdx_t5x.metrics.frames import FrameScores

ALL_SERVICES = "#ALL_SERVICES"
SEEN_SERVICES = "#SEEN_SERVICES"
UNSEEN_SERVICES = "#UNSEEN_SERVICES"


def frame_groups(scores: FrameScores) -> dict[str, np.ndarray]:
  """Returns the official key -> [F] bool, the frames it averages over; no key is empty.

  A domain is a service's name before the first underscore ("Banks" of "Banks_2").
  """
  names = sorted(set(scores.services.tolist()))
  groups = {
    ALL_SERVICES: np.ones(len(scores), dtype=bool),
    SEEN_SERVICES: scores.seen,
    UNSEEN_SERVICES: ~scores.seen,
  }
  for name in names:
    mask = scores.services == name
    domain = name.split("_")[0]
    groups[domain] = groups.get(domain, False) | mask
    groups[name] = groups.get(name, False) | mask
  return {key: mask for key, mask in groups.items() if mask.any()}


def official_scores(scores: FrameScores) -> dict[str, dict[str, float]]:
  """Returns official group -> official metric -> mean over frames.

  A metric that is NA in every frame of a group is nan; the official scorer leaves it out.
  """
  return {
    group: {key: mean(values[mask]) for key, values in scores.metrics.items()}
    for group, mask in frame_groups(scores).items()
  }


def mean(values: np.ndarray) -> float:
  """Returns the mean of [F] float without nan; nan if nothing is left."""
  values = values[~np.isnan(values)]
  return float(values.mean()) if values.size else float("nan")
