"""The numbers of a check, by group of services, with intervals: its JSON."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.papers.checkdst.checks.check import Checked, CheckedSet
from sgdx_t5x.papers.checkdst.checks.counterfactual import counterfactual_report
from sgdx_t5x.papers.checkdst.checks.sets import OF_GOALS
from sgdx_t5x.papers.checkdst.metrics_counterfactual import COUNTERFACTUAL
from sgdx_t5x.papers.checkdst.metrics_perturbed import ALONE, LIKE_CHECKDST, PAIRED
from sgdx_t5x.papers.checkdst.ratios import Counts, Ratio, ratio_intervals, ratios
from sgdx_t5x.scoring.rows import Row, Rows
from sgdx_t5x.scoring.summaries import group_masks, null_for_nan, service_masks

FORMAT = "sgdx-check/1"  # raise the number when a reader must change
_SHOWN = (  # counts that the numbers are over
  *("changed", "entities", "changed_entities", "repairs"),
  *("coref_frames", "carried", "carried_new", "accepted_frames"),
)


def check_report(checked: Checked, per_service: bool = False) -> dict[str, Any]:
  """Returns what `sgdx checkdst check --json` writes; docs/score-json.md describes it.

  Args:
    checked: the sets.
    per_service: whether to add rows of domains and services.
  """
  settings, samples = checked.settings, None
  if settings.bootstrap_samples:
    dialogues = np.concatenate([x.counts.dialogue_ids for x in checked.sets.values()])
    samples = metrics.BootstrapSamples.draw(dialogues, settings.bootstrap_samples, settings.seed)
  return {
    "format": FORMAT,
    "signature": checked.signature,
    "complete": not checked.warnings,
    "warnings": list(checked.warnings),
    "notes": list(checked.notes),
    "per_frame": None,  # see `files.save`
    "names": {service: sorted(slots) for service, slots in sorted(checked.entities.items())},
    "counterfactual": counterfactual_report(checked.sets, samples),
    "sets": {
      label: {
        "set": checked_set.name,
        "variant": checked_set.variant,
        "kinds": [checked_set.kind] if checked_set.kind else [],
        "compared_with": checked_set.compared_with or None,
        **checked_set.source,
        "rows": _rows(checked_set, samples, per_service).to_json(),
      }
      for label, checked_set in checked.sets.items()
    },
  }


def statistics_of(checked_set: CheckedSet) -> dict[str, Ratio]:
  """Returns a set's statistics; those of changed frames only if the set is compared."""
  of_goals = COUNTERFACTUAL if checked_set.kind in OF_GOALS else {}
  return {**(PAIRED if checked_set.compared_with else {}), **ALONE, **LIKE_CHECKDST, **of_goals}


def _rows(
  checked_set: CheckedSet, samples: metrics.BootstrapSamples | None, per_service: bool
) -> Rows:
  """Returns the numbers of a set by group of services."""
  statistics = statistics_of(checked_set)
  parts_of_split = [group_masks(checked_set.frames.seen)]
  parts_of_split += service_masks(checked_set.frames.services) if per_service else ()
  tables = []
  for masks in parts_of_split:
    counts = {key: checked_set.counts.take(mask) for key, mask in masks.items()}
    tables.append({key: _row(part, statistics, samples) for key, part in counts.items()})
  return Rows(*tables)


def _row(
  counts: Counts, statistics: Mapping[str, Ratio], samples: metrics.BootstrapSamples | None
) -> Row:
  values = null_for_nan(ratios(statistics, counts))
  sums = counts.sums()
  numbers = {f"num_{name}": int(sums[name]) for name in _SHOWN}
  numbers["num_hallucinated"] = int(sums["entities"] - sums["factual"])
  intervals: dict[str, tuple[float, float] | None] = {}
  if samples is not None:
    bounds = ratio_intervals(statistics, counts, samples)
    intervals = {key: None if math.isnan(ends[0]) else ends for key, ends in bounds.items()}
  num_frames, num_dialogues = int(sums["scored"]), len(np.unique(counts.dialogue_ids))
  return Row({**values, **numbers}, num_frames, num_dialogues, intervals)
