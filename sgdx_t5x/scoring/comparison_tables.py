"""Tables of `sgdx diff`: two systems' numbers and differences, with paired intervals."""

from collections.abc import Mapping
from typing import Any

from sgdx_t5x.scoring.columns import columns, short_name
from sgdx_t5x.tables import Number, Table, count, interval, interval_names, p_value, percent, points


def layout(report: Mapping[str, Any], split_intervals: bool = False) -> list[Table]:
  """Returns the tables of `sgdx diff`, one per group of frames.

  Args:
    report: from `compare.comparison_report`.
    split_intervals: whether the ends of an interval get a column each, as in CSV.
  """
  metric = report["metric"]
  header = ("", "A", "B", "B-A", *interval_names(split_intervals), "p", "broken", "fixed")
  tables = []
  for group, row in report["rows"].items():
    lines = []
    for column in columns(short_name(metric), tuple(report["variants"])).compared:
      if difference := row["differences"].get(column.key):
        broken = fixed = Number(None, "")
        if flips := row["flips"].get(column.variant):  # frames flip under one variant
          broken, fixed = count(flips["broken"]), count(flips["fixed"])
        cells = (
          *(percent(difference["a"]), percent(difference["b"]), points(difference["difference"])),
          *interval(difference["ci95"], split_intervals),
          p_value(difference["p"], report["resamples"]),
          *(broken, fixed),
        )
        lines.append((column.plain, *cells))
    size = f"{row['num_frames']:,} frames, {row['num_dialogues']:,} dialogues"
    tables.append(Table(f"{group}: {metric} (%), {size}", header, tuple(lines)))
  return tables


def notes(report: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns the lines below the tables of `sgdx diff`."""
  return (
    "broken: regressions, correct (1) in A, not in B; fixed: improvements.",
    "For SS, lost and spread, lower is better.",
    method_note(report),
  )


def method_note(report: Mapping[str, Any]) -> str:
  """Says how the intervals of a comparison were computed."""
  samples = f"{report['resamples']:,} paired bootstrap samples of dialogues"
  return f"95% interval, two-sided p of B-A: {samples}."


def texts(report: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what is above the tables of a comparison and its signatures, for `document`."""
  a, b = report["a"], report["b"]
  return {
    "warnings": report["warnings"],
    "heading": (*report["notes"], f"A {a['file']}", f"B {b['file']}"),
    "signatures": {"A": a["signature"], "B": b["signature"]},
  }
