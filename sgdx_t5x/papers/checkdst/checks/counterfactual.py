"""Counterfactual turns in a check, compared with originals and control."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet
from sgdx_t5x.papers.checkdst.checks.columns import GOALS
from sgdx_t5x.papers.checkdst.checks.sets import CONTROLS
from sgdx_t5x.papers.checkdst.ratios import Counts, Ratio, ratio_intervals, ratios, share
from sgdx_t5x.scoring.summaries import null_for_nan
from sgdx_t5x.tables import Table, count, percent

_THREE = ("original", "control", "counterfactual")
_STATISTICS: dict[str, Ratio] = {
  **{name: share(name, "turns") for name in _THREE},
  "cjga": share("both", "turns"),
  "cjga_control": share("control_both", "turns"),
}


def counterfactual_report(
  sets: Mapping[str, CheckedSet], samples: metrics.BootstrapSamples | None
) -> dict[str, dict[str, Any]]:
  """Returns label -> numbers, for the counterfactual sets that are compared with the original.

  Args:
    sets: label -> set.
    samples: bootstrap samples of the original dialogues; None for no intervals.
  """
  reports = {}
  for label, edited_set in sets.items():
    if edited_set.kind in CONTROLS and edited_set.compared_with:
      control = next((key for key, x in sets.items() if _is_control(edited_set, x)), None)
      original, control_set = sets[edited_set.compared_with], sets[control] if control else None
      numbers = _of_set(edited_set, original, control_set, samples)
      reports[label] = {"control_set": control, **numbers}
  return reports


def _is_control(edited_set: CheckedSet, candidate: CheckedSet) -> bool:
  if candidate.kind != CONTROLS[edited_set.kind] or candidate.variant != edited_set.variant:
    return False
  mine, its = edited_set.source["steps"][-1], candidate.source["steps"][-1]
  return (mine["options"], mine["seed"]) == (its["options"], its["seed"])


def _of_set(
  edited_set: CheckedSet,
  original: CheckedSet,
  control: CheckedSet | None,
  samples: metrics.BootstrapSamples | None,
) -> dict[str, Any]:
  original_jga, new_jga = jga_by_frame(original), jga_by_frame(edited_set)
  edited_jga = jga_by_frame(edited_set, "changed")
  ids = original_ids(edited_set)
  replaced = {ids[key]: value for key, value in new_jga.items() if ids[key] in original_jga}
  report: dict[str, Any] = {
    "original_all": _mean(original_jga),
    "with_fallback": _mean({**original_jga, **replaced}),
  }
  control_jga = jga_by_frame(control) if control else {}
  # The three are compared on the turns that all of them have.
  keys = [key for key in edited_jga if not control or key in control_jga]
  jga = [(original_jga[ids[key]], control_jga.get(key, 0.0), new_jga[key]) for key in keys]
  right = np.array(jga).reshape(-1, 3).T >= 1
  before, as_control, after = right
  turns = np.ones(len(keys), dtype=bool)
  values = np.array([turns, *right, before & after, as_control & after], dtype=float)
  dialogues = np.array([ids[key].rsplit("-", 2)[0] for key in keys], dtype=str)
  table = Counts(("turns", *_THREE, "both", "control_both"), values, dialogues)
  statistics = {k: v for k, v in _STATISTICS.items() if control or "control" not in k}
  report |= {"num_frames": len(keys), **null_for_nan(ratios(statistics, table))}
  if samples is not None and keys:
    ends = ratio_intervals(statistics, table, samples)
    report["intervals"] = {k: None if math.isnan(v[0]) else list(v) for k, v in ends.items()}
  return report


def jga_by_frame(checked_set: CheckedSet, selection: str = "scored") -> dict[str, float]:
  """Returns frame id -> JGA of a set's frames; "changed": only of those whose goal was edited."""
  names = checked_set.counts.names
  selected, jga = (checked_set.counts.values[names.index(name)] for name in (selection, "jga"))
  rows = zip(checked_set.frames.frame_ids.tolist(), selected.tolist(), jga.tolist(), strict=True)
  return {key: value for key, is_selected, value in rows if is_selected}


def original_ids(checked_set: CheckedSet) -> dict[str, str]:
  """Returns frame id of a `check.CheckedSet` -> id of the original frame, in the set's order."""
  # Dialogue ids of a checked set are already those of the original.
  places = checked_set.frames.places()
  return {key: frame_id(dialogue, turn, service) for key, dialogue, turn, service, _ in places}


def _mean(scores: Mapping[str, float]) -> float | None:
  return math.fsum(scores.values()) / len(scores) if scores else None


# --- tables ----------------------------------------------------------------------------------


def counterfactual_tables(report: Mapping[str, Any]) -> Iterator[Table]:
  """Yields the tables of the counterfactual sets in a report, in percent."""
  sets = report["counterfactual"]
  header = ("", *_THREE, "cJGA", "turns", "all frames", "with fallback")
  turns, slots = [], []
  for label, numbers in sets.items():
    shares = [percent(numbers.get(key)) for key in (*_THREE, "cjga")]
    overall = [percent(numbers.get(key)) for key in ("original_all", "with_fallback")]
    turns.append((label, *shares, count(numbers["num_frames"]), *overall))
    of_slots = report["sets"][label]["rows"]["all"]
    slots.append((label, *(percent(of_slots.get(key)) for key in GOALS)))
  yield Table("counterfactual turns, right before, as control, after (%)", header, tuple(turns))
  title = "slots of all counterfactual turns: right, by what became of the goal (%)"
  yield Table(title, ("", *GOALS.values()), tuple(slots))


def notes(report: Mapping[str, Any]) -> Iterator[str]:
  """Yields what a reader of the tables should know."""
  for label, x in report["counterfactual"].items():
    if x["control_set"] is None:
      control = CONTROLS.get(report["sets"][label]["kinds"][0], "unknown")
      yield (
        f"{label}: without its control set (kind {control}, written alongside), the effect of the "
        "new goal cannot be separated from that of the generator's style"
      )
    yield (
      f'{label}: "with fallback" is computed as in CoCo: over all frames, where frames without a '
      "counterfactual keep their original score"
    )
