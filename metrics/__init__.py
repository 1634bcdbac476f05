"""Scores of dialogue state trackers: per frame first, aggregates after. NumPy only."""

from sgdx_t5x.metrics.aggregate import (
  ALL_SERVICES,
  SEEN_SERVICES,
  UNSEEN_SERVICES,
  frame_groups,
  official_scores,
)
from sgdx_t5x.metrics.frames import (
  FrameScores,
  GoldFrame,
  common_frames,
  gold_frames,
  predict_nothing,
  score_frames,
)
from sgdx_t5x.metrics.fuzzy import BACKENDS, match
from sgdx_t5x.metrics.goals import GOAL_METRICS, JOINT_GOAL, goal_scores, slot_score
from sgdx_t5x.metrics.sensitivity import (
  ZERO_MEAN_RULES,
  frame_cov,
  mean_over_variants,
  relative_difference,
  schema_sensitivity,
  summarise,
  zero_mean_share,
)

__all__ = [
  "ALL_SERVICES",
  "BACKENDS",
  "GOAL_METRICS",
  "JOINT_GOAL",
  "SEEN_SERVICES",
  "UNSEEN_SERVICES",
  "ZERO_MEAN_RULES",
  "FrameScores",
  "GoldFrame",
  "common_frames",
  "frame_cov",
  "frame_groups",
  "goal_scores",
  "gold_frames",
  "match",
  "mean_over_variants",
  "official_scores",
  "predict_nothing",
  "relative_difference",
  "schema_sensitivity",
  "score_frames",
  "slot_score",
  "summarise",
  "zero_mean_share",
]
