"""Tables of an `sgdx score` report, for its output and for the page of `sgdx report`."""

import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.scoring.columns import Column, Columns, columns, defined
from sgdx_t5x.scoring.rows import GROUPS, Row, Rows
from sgdx_t5x.tables import Cell, Number, Table, count, percent


def summary(report: Mapping[str, Any]) -> list[Table]:
  """Returns the main tables of a report of `scoring.score_report`, and those asked for.

  The second has the intervals of retained and worst; without v1 to v5, also those of the variants.
  """
  tables = []
  for title, prefix, metric, rows in _metrics(report):
    tables.append(_variants_table(title, metric, rows))
    overall = [rows.groups["all"]]
    key_columns = defined((metric.retained, metric.worst), overall)
    if not metric.is_sgdx or not key_columns:
      key_columns = [*defined(metric.per_variant, overall), *key_columns]
    if key_columns and rows.groups["all"].intervals:
      lines = _interval_lines(key_columns, rows)
      tables.append(Table(f"{prefix}95% intervals (%)", ("", *GROUPS), lines))
  return [*tables, *provenance_tables(report), *_annex_tables(report)]


def layout(report: Mapping[str, Any]) -> list[Table]:
  """Returns all tables of a report of `scoring.score_report`, in percent."""
  tables, interval_tables = [], []
  for title, prefix, metric, rows in _metrics(report):
    tables.append(_variants_table(title, metric, rows))
    if robustness := defined(metric.robustness, [rows.groups["all"]]):
      tables.append(rows_table(f"{prefix}robustness (%)", robustness, rows.groups.items()))
    if not prefix:
      tables.append(_official_table(report["variants"]))
    # There may be no slots of a further metric's kind.
    if rows.groups["all"].intervals and (not prefix or rows.groups["all"].num_frames):
      interval_tables.append(_interval_table(f"{prefix}95% intervals", metric, rows))
  tables += [*provenance_tables(report), *_annex_tables(report), *interval_tables]
  floor = Rows.from_json(report["predict_nothing"])
  return [*tables, _variants_table("predict nothing", _columns("jga", report), floor)]


def absent(report: Mapping[str, Any]) -> Iterator[str]:
  """Yields which numbers the tables lack for all services, and what they require."""
  jga, row = _columns("jga", report), Row.from_json(report["sgdx"]["all"])
  if jga.is_sgdx and not row.has(jga.sensitivity.key):
    missing = ", ".join(x.heading for x in jga.per_variant if not row.has(x.key))
    yield f"JGA_v1-5, Diff_rel, SS_JGA and robustness require v1 to v5; missing: {missing}"
  elif not row.has(jga.original.key):
    yield "Diff_rel, retained, lost and gained require predictions for the original schemas"


def provenance_tables(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of scores by source from a report's "provenance"; none without it."""
  provenance = report.get("provenance")
  if provenance is None:
    return []
  breakdowns = (  # key, title, metric, unit
    ("values", "slot accuracy by provenance of the value", "slot_accuracy", "values"),
    ("entering", "slot accuracy by provenance, where values enter", "slot_accuracy", "values"),
    ("frames", "JGA by provenance of the frame's values", "jga", "frames"),
  )
  tables = []
  for key, title, name, unit in breakdowns:
    rows = {source: Rows.from_json(data).groups["all"] for source, data in provenance[key].items()}
    metric = _columns(name, report)
    numbers = (*metric.per_variant, metric.mean, metric.diff_rel, metric.retained)
    table_columns = defined(numbers, rows.values())
    # The title names the metric, and what is counted are not always frames.
    header = ("", *(x.plain for x in table_columns), unit)
    table = rows_table(f"{title} (%)", table_columns, rows.items())
    tables.append(dataclasses.replace(table, header=header))
  return tables


# --- parts ---------------------------------------------------------------------------------


def _metrics(report: Mapping[str, Any]) -> Iterator[tuple[str, str, Columns, Rows]]:
  """Yields (title, prefix of other titles, columns, rows): JGA's, without prefix, then others'."""
  yield "predictions", "", _columns("jga", report), Rows.from_json(report["sgdx"])
  for name, rows in report["metrics"].items():
    yield name, f"{name}, ", _columns(name, report), Rows.from_json(rows)


def _columns(name: str, report: Mapping[str, Any]) -> Columns:
  return columns(name, tuple(report["variants"]))


def _variants_table(title: str, metric: Columns, rows: Rows) -> Table:
  table_columns = (*metric.per_variant, *metric.summary)
  return rows_table(f"{title} (%)", table_columns, rows.groups.items())


def rows_table(
  title: str,
  table_columns: Sequence[Column],
  rows: Iterable[tuple[Cell, Row]],
  cell: Callable[[Row, str], Number] = Row.cell,
  first: str = "",
) -> Table:
  """Returns a table of (label, row): some numbers of each, and how many frames they are over.

  Args:
    title: of the table.
    table_columns: the numbers.
    rows: labels and rows.
    cell: returns the cell of a number of a row.
    first: heading of the labels.
  """
  lines = []
  for label, row in rows:
    lines.append((label, *(cell(row, x.key) for x in table_columns), count(row.num_frames)))
  header = (first, *(x.heading for x in table_columns), "frames")
  return Table(title, header, tuple(lines))


def _official_table(variants: Mapping[str, Any]) -> Table:
  """The official metrics over all services; metrics that no variant has are left out."""
  scores = {variant: groups["#ALL_SERVICES"] for variant, groups in variants.items()}
  rows = []
  for key in next(iter(scores.values())):
    means = [by_key[key] for by_key in scores.values()]
    if any(mean is not None for mean in means):
      rows.append((key, *map(percent, means)))
  return Table("official metrics, all services (%)", ("", *scores), tuple(rows))


def _interval_table(title: str, metric: Columns, rows: Rows) -> Table:
  groups = rows.groups.values()
  numbers = (
    *(metric.original, *metric.summary, metric.sensitivity_exclude, metric.all_wrong),
    *(*metric.consistent, metric.consistent_all, *metric.robustness),
  )
  table_columns = defined(numbers, groups)
  overall = rows.groups["all"]
  # The mean needs all of v1 to v5: show those given; and any of the user's own.
  if not metric.is_sgdx or not overall.has(metric.mean.key):
    table_columns += defined(metric.variants, [overall])
  counts = [count(row.num_dialogues) for row in groups]
  lines = (*_interval_lines(table_columns, rows), ("dialogues", *counts))
  return Table(f"{title} (%)", ("", *GROUPS), lines)


def _interval_lines(table_columns: Sequence[Column], rows: Rows) -> tuple[tuple[Cell, ...], ...]:
  """Returns a line per number: its name, and its value with interval for each group."""
  lines: list[tuple[Cell, ...]] = []
  for column in table_columns:
    cells = [row.cell_with_interval(column.key) for row in rows.groups.values()]
    lines.append((column.full, *cells))
  return tuple(lines)


# --- parts of annexes -----------------------------------------------------------------------


def _annex_tables(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of what annexes' prompt formats count beside states."""
  return [table for module, part in _annex_parts(report) for table in module.tables(part)]


def annex_notes(report: Mapping[str, Any]) -> list[str]:
  """Returns lines without which these parts would mislead. Args: report, or these parts of one."""
  return [line for module, part in _annex_parts(report) for line in module.notes(part)]


def check_annexes(report: Mapping[str, Any]) -> None:
  """Raises SgdxError if one of these parts says that its scores mean nothing."""
  for module, part in _annex_parts(report):
    if problem := module.problem(part):
      raise problem


def _annex_parts(report: Mapping[str, Any]) -> Iterator[tuple[types.ModuleType, Any]]:
  for key, module in annexes.table("SCORE_TABLES").items():
    if report.get(key):
      yield annexes.load(module), report[key]
