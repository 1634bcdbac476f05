"""Compares two checks on the same sets: `sgdx checkdst diff`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.arguments import check_bootstrap
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import difference_of, least_p
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet
from sgdx_t5x.papers.checkdst.checks.columns import ALL, row_label
from sgdx_t5x.papers.checkdst.checks.files import CheckTable
from sgdx_t5x.papers.checkdst.checks.report import statistics_of
from sgdx_t5x.papers.checkdst.ratios import Counts, Ratio, frames_with, ratio_samples, ratios
from sgdx_t5x.scoring.summaries import group_masks, null_for_nan
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
  check_bootstrap(bootstrap_samples, seed)
  _check_comparable(a, b)
  labels = [label for label in a.sets if label in b.sets]
  warnings: list[str] = []
  notes: list[str] = []
  for name, table, other_table in (("A", a, b), ("B", b, a)):
    warnings += [f"{name}: {line}" for line in table.report["warnings"]]
    notes += [f"{label} is only in {name}" for label in table.sets if label not in other_table.sets]
  pairs = {}
  for label in labels:
    pairs[label], missing = _same_frames(label, a.sets[label], b.sets[label], allow_missing)
    warnings += missing
  dialogues = np.concatenate([counts.dialogue_ids for counts, _, _ in pairs.values()])
  samples = BootstrapSamples.draw(dialogues, bootstrap_samples, seed)

  def rows(label: str) -> dict[str, dict[str, Any]]:
    counts_a, counts_b, is_seen = pairs[label]
    compared_set = a.sets[label] if not a.sets[label].compared_with else b.sets[label]
    statistics = statistics_of(compared_set)
    return {
      group: _row(counts_a.take(mask), counts_b.take(mask), statistics, samples)
      for group, mask in group_masks(is_seen).items()
    }

  return {
    "format": FORMAT,
    "a": {"file": str(a.path), "signature": a.report["signature"]},
    "b": {"file": str(b.path), "signature": b.report["signature"]},
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
    for key in ALL:
      difference = row["differences"].get(key)
      if difference is None or difference["difference"] is None:
        continue
      ends = interval(difference["ci95"], split_intervals)
      change = percent(difference["a"]), percent(difference["b"]), points(difference["difference"])
      cells.append((row_label(key), *change, *ends, p_value(difference["p"], report["resamples"])))
    title = f"{label} (%), {row['num_frames']:,} frames, {row['num_changed']:,} changed"
    tables.append(Table(title, header, tuple(cells)))
  return tables


# --- parts ---------------------------------------------------------------------------------


def _check_comparable(a: CheckTable, b: CheckTable) -> None:
  signature_a, signature_b = (Signature.parse(x.report["signature"]) for x in (a, b))
  changes = differences(signature_a, signature_b)
  problems = [f"{name}: A {x}, B {y}" for name, (x, y) in changes.items()]
  problems += [
    f"{label}: different corpora"
    for label in a.sets
    if label in b.sets and a.sets[label].source["checksum"] != b.sets[label].source["checksum"]
  ]
  if a.sets.keys().isdisjoint(b.sets):
    problems.append(f"no set in common: A {', '.join(a.sets)}, B {', '.join(b.sets)}")
  if problems:
    raise SgdxError(
      f"the two checks cannot be compared: {'; '.join(problems)}",
      expected="checks of the same sets, with the same corpus, split and settings",
      fix="run `sgdx checkdst check` again with the same corpora and options",
    )


def _same_frames(
  label: str, a: CheckedSet, b: CheckedSet, allow_missing: bool
) -> tuple[tuple[Counts, Counts, np.ndarray], list[str]]:
  """Returns the counts of the shared frames, whether they are seen, and a warning if any lack."""
  ids = [dict.fromkeys(x.frames.frame_ids.tolist()) for x in (a, b)]  # sets, in order
  shared = [key for key in ids[0] if key in ids[1]]
  positions = [x.frames.positions(shared) for x in (a, b)]
  counts_a, counts_b = (x.counts.take(frames) for x, frames in zip((a, b), positions, strict=True))
  # Whether a frame counts as changed depends on its original's prediction too.
  changed = [x.values[x.names.index("changed")] > 0 for x in (counts_a, counts_b)]
  alike = changed[0] == changed[1]
  number, largest = int(alike.sum()), max(map(len, ids))
  if not number or (number < largest and not allow_missing):
    without = ", or use --allow-missing to compare the shared frames" if number else ""
    raise SgdxError(
      f"{label}: only {number:,} of {largest:,} frames, with their originals, are in both",
      expected="the same frames in both",
      fix=f"complete the predictions{without}",
    )
  warnings = [f"{label}: only {number:,} frames are in both"] if number < largest else []
  return (counts_a.take(alike), counts_b.take(alike), a.frames.seen[positions[0]][alike]), warnings


def _row(
  counts_a: Counts, counts_b: Counts, statistics: Mapping[str, Ratio], samples: BootstrapSamples
) -> dict[str, Any]:
  x, y = ratios(statistics, counts_a), ratios(statistics, counts_b)
  xs = ratio_samples(statistics, counts_a, samples)
  ys = ratio_samples(statistics, counts_b, samples)
  defined = [frames_with(statistics, counts) for counts in (counts_a, counts_b)]
  differences = {}
  for key in statistics:
    smallest_p = least_p(counts_a.dialogue_ids[defined[0][key] | defined[1][key]])
    diff = difference_of(x[key], y[key], xs[key], ys[key], smallest_p)
    numbers = {"a": diff.a, "b": diff.b, "difference": diff.difference, "p": diff.p}
    ends = None if math.isnan(diff.low) else [diff.low, diff.high]
    differences[key] = {**null_for_nan(numbers), "ci95": ends}
  return {
    "num_frames": int(counts_a.sums()["scored"]),
    "num_changed": int(counts_a.sums()["changed"]),
    "num_dialogues": len(np.unique(counts_a.dialogue_ids)),
    "differences": differences,
  }
