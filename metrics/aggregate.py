"""Official aggregation: means over the frames of all, seen and unseen services, services, domains.

Follows keys and rules of the official scorer (google-research, schema_guided_dst/evaluate.py): all
frames have the same weight, regardless of service and dialogue, and "NA" is skipped.
"""

from collections.abc import Mapping

import numpy as np

from sgdx_t5x.metrics.frames import OFFICIAL_METRICS, FrameScores
from sgdx_t5x.metrics.goals import JOINT_METRICS
from sgdx_t5x.metrics.means import mean


def frame_groups(scores: FrameScores) -> dict[str, np.ndarray]:
  """Returns official key -> [F] bool, the frames averaged under it; no group is empty.

  The domain is the part of a service name before the first underscore ("Banks" in "Banks_2").
  """
  groups = {
    "#ALL_SERVICES": np.ones(len(scores), dtype=bool),
    "#SEEN_SERVICES": scores.seen,
    "#UNSEEN_SERVICES": ~scores.seen,
  }
  for service in sorted(set(scores.services.tolist())):
    mask = scores.services == service
    for key in (service.split("_")[0], service):
      groups[key] = groups.get(key, False) | mask  # a domain may have several services
  return {key: mask for key, mask in groups.items() if mask.any()}


def official_scores(scores: FrameScores, across_turn: bool = False) -> dict[str, dict[str, float]]:
  """Returns official group -> official metric -> mean over frames.

  Args:
    scores: scores of one variant.
    across_turn: multiply the joint metrics over the frames of a turn first (the official
      `joint_acc_across_turn`, for MultiWOZ) and average over turns. In each group, a turn has only
      its frames of that group.

  Returns:
    A metric that is NA in every frame of a group is nan; the official scorer omits it.
  """
  means: dict[str, dict[str, float]] = {}
  for group, mask in frame_groups(scores).items():
    means[group] = {}
    for metric in scores.metrics:
      if metric in OFFICIAL_METRICS:  # a prompt format may have its own
        values, _ = unit_values(scores, metric, mask, across_turn)
        means[group][metric] = mean(values)
  return means


def values_by_variant(
  scores: Mapping[str, FrameScores], metric: str, mask: np.ndarray, across_turn: bool = False
) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Returns variant -> `unit_values`, and the frame of each, the same for all variants.

  Args:
    scores: variant -> scores, all of the same frames in the same order.
    metric, mask, across_turn: see `unit_values`.
  """
  values, units = {}, np.zeros(0, dtype=np.intp)
  for variant, frames in scores.items():
    values[variant], units = unit_values(frames, metric, mask, across_turn)
  return values, units


def unit_values(
  scores: FrameScores, metric: str, mask: np.ndarray, across_turn: bool = False
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the values that a metric averages over, and the frame of each.

  Args:
    scores: scores of one variant.
    metric: a key of `scores.metrics`.
    mask: [F] bool, the frames to use.
    across_turn: see `official_scores`; only affects joint metrics.

  Returns:
    ([U] float, [U] int): values and frames of the U units: frames, or turns (their first frame).
  """
  frames = np.flatnonzero(mask)
  values = scores.metrics[metric]
  if not across_turn or metric not in JOINT_METRICS or not frames.size:
    return values[frames], frames
  # `reduceat` multiplies neighbours, and a corpus may have the frames of a turn in any order.
  frames = frames[np.lexsort((scores.turns[frames], scores.dialogue_ids[frames]))]
  dialogues, turns, values = scores.dialogue_ids[frames], scores.turns[frames], values[frames]
  is_new_turn = (dialogues[1:] != dialogues[:-1]) | (turns[1:] != turns[:-1])
  starts = np.flatnonzero(np.concatenate(([True], is_new_turn)))
  # A frame without a score is left out of its turn, as the official scorer skips "NA".
  products = np.multiply.reduceat(np.where(np.isnan(values), 1.0, values), starts)
  has_score = np.logical_or.reduceat(~np.isnan(values), starts)
  return np.where(has_score, products, np.nan), frames[starts]
