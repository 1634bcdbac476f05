"""Rows of scores from per-frame scores: all, seen and unseen services, domains and services."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.metrics import FrameScores
from sgdx_t5x.scoring.rows import GROUPS, Row, Rows
from sgdx_t5x.scoring.settings import Settings


def summaries(
  frames: Mapping[str, FrameScores],
  metric: str,
  name: str,
  settings: Settings,
  samples: metrics.BootstrapSamples | None,
  on_row: Callable[[int], None] = lambda rows: None,
  per_service: bool = True,
  agreement: np.ndarray | None = None,
) -> Rows:
  """Returns the rows of the paper's Table 2, and one per domain and service.

  Args:
    frames: variant -> scores, all of the same frames in the same order.
    metric: official key to summarise.
    name: see `metrics.summarise`.
    settings: see `Settings`.
    samples: bootstrap samples of the frames' dialogues; None for no intervals.
    on_row: called with 1 after each row.
    per_service: whether to add the rows of domains and services.
    agreement: [F] float, of the same frames; None leaves it out. It is always per frame, even
      if scores are per turn.
  """
  reference = next(iter(frames.values()))  # for what is the same in all variants
  dialogue_ids = reference.dialogue_ids
  # A sum is nan if any variant's score is.
  frames_with_score = ~np.isnan(sum(scores.metrics[metric] for scores in frames.values()))

  def row(mask: np.ndarray) -> Row:
    values, units = metrics.values_by_variant(frames, metric, mask, settings.across_turn)
    numbers = metrics.summarise(values, settings.zero_mean, name)
    intervals: dict[str, tuple[float, float]] = {}
    if samples is not None:
      intervals = metrics.summary_intervals(
        values, dialogue_ids[units], samples, settings.zero_mean, name
      )
    if agreement is not None:
      numbers["agreement"] = metrics.mean(agreement[mask])
      if samples is not None:
        intervals["agreement"] = metrics.mean_interval(agreement[mask], dialogue_ids[mask], samples)
    scored = mask & frames_with_score
    return Row(
      null_for_nan(numbers),
      int(scored.sum()),
      len(np.unique(dialogue_ids[scored])),
      {key: None if math.isnan(ends[0]) else ends for key, ends in intervals.items()},
    )

  def rows(masks: Mapping[str, np.ndarray]) -> dict[str, Row]:
    result = {}
    for label, mask in masks.items():
      result[label] = row(mask)
      on_row(1)
    return result

  groups = rows(group_masks(reference.seen))
  return Rows(groups, *map(rows, service_masks(reference.services) if per_service else ()))


def group_masks(seen: np.ndarray) -> dict[str, np.ndarray]:
  """Returns group of services -> its frames, [F] bool. Args: seen, [F] bool."""
  return dict(zip(GROUPS, (np.ones(len(seen), dtype=bool), seen, ~seen), strict=True))


def service_masks(services: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """Returns domain -> its frames, and service -> its frames, [F] bool. Args: services, [F] str."""
  masks = {name: services == name for name in np.unique(services).tolist()}
  domains: dict[str, np.ndarray] = {}
  for service, mask in masks.items():
    domain = service.split("_")[0]
    domains[domain] = domains.get(domain, False) | mask
  return domains, masks


def null_for_nan(numbers: Mapping[str, float]) -> dict[str, float | None]:
  """Replaces nan, which JSON lacks, by None (null)."""
  return {key: None if math.isnan(value) else value for key, value in numbers.items()}
