"""Metrics of dialogue state tracking: per-frame scores and their aggregates. NumPy only."""

from sgdx_t5x.metrics.aggregate import official_scores, values_by_variant
from sgdx_t5x.metrics.agreement import frame_agreement
from sgdx_t5x.metrics.bootstrap import (
  BootstrapSamples,
  Difference,
  interval,
  mean_difference,
  mean_interval,
  paired_differences,
  summary_intervals,
)
from sgdx_t5x.metrics.f1 import multiset_f1
from sgdx_t5x.metrics.failures import KINDS, Failure, slot_failures
from sgdx_t5x.metrics.frames import (
  OFFICIAL_METRICS,
  FrameScores,
  GoldFrame,
  PredictedFrame,
  common_frames,
  gold_frames,
  predict_nothing,
  score_frames,
  sharing_columns,
)
from sgdx_t5x.metrics.fuzzy import BACKENDS, match
from sgdx_t5x.metrics.goals import GOAL_METRICS, JOINT_GOAL, goal_scores, slot_score
from sgdx_t5x.metrics.intents import intent_score
from sgdx_t5x.metrics.means import mean
from sgdx_t5x.metrics.retention import retained
from sgdx_t5x.metrics.sensitivity import (
  frame_cov,
  relative_difference,
  summarise,
)
from sgdx_t5x.metrics.slots import right_slots
