"""The numbers of a check, by group of services, with intervals: its JSON."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.metrics.ratios import Counts, Ratio, ratio_intervals, ratios
from sgdx_t5x.papers.checkdst.checks.check import Checked, CheckedSet
from sgdx_t5x.papers.checkdst.checks.counterfactual import counterfactual_report
from sgdx_t5x.papers.checkdst.checks.sets import is_of_goals
from sgdx_t5x.papers.checkdst.metrics_counterfactual import COUNTERFACTUAL
from sgdx_t5x.papers.checkdst.metrics_perturbed import ALONE, LIKE_CHECKDST, PAIRED
from sgdx_t5x.scoring.rows import Row, Rows
from sgdx_t5x.scoring.summaries import group_masks, null_for_nan, service_masks

FORMAT = "sgdx-check/1"  # raise the number when a reader must change
SHOWN_COUNTS = {  # key in a row -> count; these are what its numbers are over
  "num_changed": "changed",
  "num_entities": "entities",
  "num_changed_entities": "changed_entities",
  "num_repairs": "repairs",
  "num_coref_frames": "coref_frames",
  "num_carried": "carried",
  "num_carried_new": "carried_new",
  "num_accepted_frames": "accepted_frames",
}


def check_report(
  checked: Checked,
  like_checkdst: bool = False,
  per_service: bool = False,
) -> dict[str, Any]:
  """Returns what `sgdx checkdst check --json` writes; docs/score-json.md describes it.

  Args:
    checked: the sets.
    like_checkdst: also report CheckDST's own definitions, where they differ.
    per_service: whether to add rows of domains and services.
  """
  samples = draw(checked.sets, checked.settings.bootstrap_samples, checked.settings.seed)
  return {
    "format": FORMAT,
    "signature": checked.signature,
    "complete": checked.complete,
    "warnings": list(checked.warnings),
    "notes": list(checked.notes),
    "per_frame": None,  # see `files.save`
    "like_checkdst": like_checkdst,
    "names": {service: sorted(slots) for service, slots in sorted(checked.entities.items())},
    "counterfactual": counterfactual_report(checked.sets, samples),
    "sets": {
      label: {
        "set": found.name,
        "variant": found.variant,
        "kinds": list(found.kinds),
        "compared_with": found.before or None,
        **found.about,
        "rows": rows(found, statistics_of(found, like_checkdst), samples, per_service).to_json(),
      }
      for label, found in checked.sets.items()
    },
  }


def draw(sets: Mapping[str, CheckedSet], number: int, seed: int) -> metrics.BootstrapSamples | None:
  """Draws bootstrap samples of dialogues, shared by all sets; None if `number` is 0."""
  if not number:
    return None
  dialogues = np.concatenate([found.counts.dialogue_ids for found in sets.values()])
  return metrics.BootstrapSamples.draw(dialogues, number, seed)


def statistics_of(found: CheckedSet, like_checkdst: bool) -> dict[str, Ratio]:
  """Returns a set's statistics; those of changed frames only if the set is compared.

  Args:
    found: the set.
    like_checkdst: see `check_report`.
  """
  of_goals = COUNTERFACTUAL if is_of_goals(found.kinds) else {}
  like = LIKE_CHECKDST if like_checkdst else {}
  return {**(PAIRED if found.before else {}), **ALONE, **like, **of_goals}


def rows(
  found: CheckedSet,
  statistics: Mapping[str, Ratio],
  samples: metrics.BootstrapSamples | None,
  per_service: bool = False,
) -> Rows:
  """Returns the numbers of a set by group of services.

  Args:
    found: the set.
    statistics: name -> ratio.
    samples: bootstrap samples of its dialogues; None for no intervals.
    per_service: whether to add rows of domains and services.
  """
  parts = (group_masks(found.frames.seen), *service_masks(found.frames.services))
  return Rows(
    *(
      {key: _row(found.counts.take(mask), statistics, samples) for key, mask in part.items()}
      for part in (parts if per_service else parts[:1])
    )
  )


def _row(
  counts: Counts, statistics: Mapping[str, Ratio], samples: metrics.BootstrapSamples | None
) -> Row:
  values = null_for_nan(ratios(statistics, counts))
  sums = counts.sums()
  numbers = {key: int(sums[name]) for key, name in SHOWN_COUNTS.items()}
  numbers["num_hallucinated"] = int(sums["entities"] - sums["factual"])
  intervals: dict[str, tuple[float, float] | None] = {}
  if samples is not None:
    found = ratio_intervals(statistics, counts, samples)
    intervals = {key: None if math.isnan(ends[0]) else ends for key, ends in found.items()}
  num_frames, num_dialogues = int(sums["scored"]), len(np.unique(counts.dialogue_ids))
  return Row({**values, **numbers}, num_frames, num_dialogues, intervals)
