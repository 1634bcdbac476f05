"""Compares two checks on the same sets: `sgdx checkdst diff`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import difference_of, least_p
from sgdx_t5x.metrics.ratios import Counts, Ratio, frames_with, ratio_samples, ratios
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet
from sgdx_t5x.papers.checkdst.checks.columns import ALL
from sgdx_t5x.papers.checkdst.checks.files import CheckTable
from sgdx_t5x.papers.checkdst.checks.report import statistics_of
from sgdx_t5x.scoring.summaries import group_masks
from sgdx_t5x.signature import Signature, differences
from sgdx_t5x.tables import Table, interval, interval_names, p_value, percent, points

FORMAT = "sgdx-check-diff/1"


def compare(
  a: CheckTable,
  b: CheckTable,
  bootstrap_samples: int = metrics.bootstrap.NUM_BOOTSTRAP_SAMPLES,
  seed: int = 0,
  allow_missing: bool = False,
) -> dict[str, Any]:
  """Returns the differences B-A of all numbers of the sets that both checks have.

  Args:
    a: the first check, see `files.read_check`.
    b: the second check.
    bootstrap_samples: number of bootstrap samples of dialogues, shared by both and all sets.
    seed: random seed of the bootstrap.
    allow_missing: leave out frames that one of the two lacks, instead of raising an error.

  Raises:
    SgdxError: different corpora or scoring rules, a set that was perturbed differently, or
      frames that one of the two lacks, unless allowed.
  """
  _check_comparable(a, b)
  labels = [label for label in a.sets if label in b.sets]
  if not labels:
    raise SgdxError(
      "the two checks have no set in common",
      expected="checks of the same sets",
      available=f"A: {', '.join(a.sets)}; B: {', '.join(b.sets)}",
      fix="use the same names for the sets in both checks",
    )
  warnings = [
    f"{x}: {line}" for x, t in zip("AB", (a, b), strict=True) for line in t.report["warnings"]
  ]
  notes = [
    f"{label} is only in {x}"
    for x, table, other in (("A", a, b), ("B", b, a))
    for label in table.sets
    if label not in other.sets
  ]
  pairs = {}
  for label in labels:
    pairs[label], missing = _same_frames(label, a.sets[label], b.sets[label], allow_missing)
    warnings += missing
  dialogues = np.concatenate([first.dialogue_ids for first, _, _ in pairs.values()])
  samples = BootstrapSamples.draw(dialogues, bootstrap_samples, seed)
  like_checkdst = a.report["like_checkdst"] and b.report["like_checkdst"]

  def rows(label: str) -> dict[str, dict[str, Any]]:
    first, second, seen = pairs[label]
    found = a.sets[label] if not a.sets[label].before else b.sets[label]
    statistics = statistics_of(found, like_checkdst)
    return {
      group: _row(first.take(mask), second.take(mask), statistics, samples)
      for group, mask in group_masks(seen).items()
    }

  return {
    "format": FORMAT,
    "a": {"file": str(a.path), "signature": a.signature},
    "b": {"file": str(b.path), "signature": b.signature},
    "resamples": bootstrap_samples,
    "seed": seed,
    "warnings": warnings,
    "notes": notes,
    "sets": {label: rows(label) for label in pairs},
  }


def layout(report: Mapping[str, Any], split_intervals: bool = False) -> list[Table]:
  """Returns a table per set, over all services; arguments as in `comparison_tables.layout`."""
  header = ("", "A", "B", "B-A", *interval_names(split_intervals), "p")
  tables = []
  for label, groups in report["sets"].items():
    row = groups["all"]
    cells = []
    for column in ALL:
      found = row["differences"].get(column.key)
      if found is None or found["difference"] is None:
        continue
      ends = interval(found["ci95"], split_intervals)
      change = percent(found["a"]), percent(found["b"]), points(found["difference"])
      cells.append((column.row_label, *change, *ends, p_value(found["p"], report["resamples"])))
    title = f"{label} (%), {row['num_frames']:,} frames, {row['num_changed']:,} changed"
    tables.append(Table(title, header, tuple(cells)))
  return tables


# --- parts ---------------------------------------------------------------------------------


def _check_comparable(a: CheckTable, b: CheckTable) -> None:
  other = differences(Signature.parse(a.signature), Signature.parse(b.signature))
  if other:
    shown = "; ".join(f"{name}: A {x}, B {y}" for name, (x, y) in other.items())
    raise SgdxError(
      f"the two checks cannot be compared: {shown}",
      expected="checks with the same corpus, split and settings",
      fix="run `sgdx checkdst check` again with the same corpus and options",
    )
  for label in a.sets:
    if label in b.sets and a.sets[label].about["checksum"] != b.sets[label].about["checksum"]:
      raise SgdxError(
        f"{label}: different corpora, {a.sets[label].about['checksum']} and "
        f"{b.sets[label].about['checksum']}",
        expected="the same perturbed corpus in both checks",
        fix="choose one of them, and predict and check it with both trackers",
      )


def _same_frames(
  label: str, a: CheckedSet, b: CheckedSet, allow_missing: bool
) -> tuple[tuple[Counts, Counts, np.ndarray], list[str]]:
  """Returns the counts of the shared frames, whether they are seen, and a warning if any lack."""
  ids = [x.frames.frame_ids.tolist() for x in (a, b)]
  places = [{key: i for i, key in enumerate(found)} for found in ids]
  shared = [key for key in ids[0] if key in places[1]]
  lacking = [len(found) - len(shared) for found in ids]
  if not shared or (any(lacking) and not allow_missing):
    raise SgdxError(
      f"{label}: {lacking[0]:,} frames are only in A, {lacking[1]:,} only in B",
      expected="the same frames in both",
      available=f"{len(shared):,} frames in both",
      fix="complete the predictions, or use --allow-missing to compare the shared frames",
    )
  first, second = (
    x.counts.take(np.array([place[key] for key in shared], dtype=np.intp))
    for x, place in zip((a, b), places, strict=True)
  )
  seen = a.frames.seen[np.array([places[0][key] for key in shared], dtype=np.intp)]
  # Whether a frame counts as changed depends on its original's prediction too.
  changed = [x.values[x.names.index("changed")] > 0 for x in (first, second)]
  alike = changed[0] == changed[1]
  if not alike.all() and not allow_missing:
    raise SgdxError(
      f"{label}: {(~alike).sum():,} frames whose original only one of A and B has",
      expected="the same frames in both",
      available=f"{alike.sum():,} frames in both",
      fix="complete the predictions, or use --allow-missing to compare the shared frames",
    )
  number = int(alike.sum())
  warnings = [f"{label}: only {number:,} frames are in both"] if number < max(map(len, ids)) else []
  return (first.take(alike), second.take(alike), seen[alike]), warnings


def _row(
  first: Counts, second: Counts, statistics: Mapping[str, Ratio], samples: BootstrapSamples
) -> dict[str, Any]:
  x, y = ratios(statistics, first), ratios(statistics, second)
  xs = ratio_samples(statistics, first, samples)
  ys = ratio_samples(statistics, second, samples)
  defined = [frames_with(statistics, counts) for counts in (first, second)]
  found = {}
  for key in statistics:
    least = least_p(first.dialogue_ids[defined[0][key] | defined[1][key]])
    diff = difference_of(x[key], y[key], xs[key], ys[key], least)
    found[key] = {
      "a": _number(diff.a),
      "b": _number(diff.b),
      "difference": _number(diff.difference),
      "ci95": None if math.isnan(diff.low) else [diff.low, diff.high],
      "p": _number(diff.p),
    }
  return {
    "num_frames": int(first.sums()["scored"]),
    "num_changed": int(first.sums()["changed"]),
    "num_dialogues": len(np.unique(first.dialogue_ids)),
    "differences": found,
  }


def _number(value: float) -> float | None:
  return None if math.isnan(value) else value
