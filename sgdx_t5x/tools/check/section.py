"""The section of a report on a check of tools of one's own, beside the services of SGD-X."""

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sgdx_t5x.files.reading import converted, decode_json, read_input
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.columns import JGA
from sgdx_t5x.tables import Number, Table, count

_CHECK = "tools_check"  # in the report of the first run: what `--tools-check` names
_EXPECTED = "what `sgdx tools check --json` writes"


@dataclasses.dataclass
class _Printed:
  """What a check prints."""

  lines: list[str]
  tables: list[Table]


@dataclasses.dataclass
class _Check:
  """A file of `sgdx tools check --json`, as far as it is shown."""

  format: Literal["sgdx-tools-check/1"]
  printed: _Printed
  retained: dict[Literal["kinds", "tools"], list[Any]]


def read(runs: Sequence[Run], args: argparse.Namespace) -> Sequence[Run]:
  """Returns the runs, the first with the check of `--tools-check`. Raises SgdxError: bad file."""
  if not args.tools_check:
    return runs
  path, (first_run, *further_runs) = args.tools_check, runs
  data = decode_json(read_input(path, _EXPECTED), path, _EXPECTED)
  check = converted(data, _Check, path, _EXPECTED, "run the check again, with --json")
  return [dataclasses.replace(first_run, report={**first_run.report, _CHECK: check}), *further_runs]


def sections(runs: Sequence[Run]) -> Iterator[Section]:
  """What a check prints, and, if it is of rewordings, the same of SGD-X's services."""
  if check := runs[0].report.get(_CHECK):
    of_calls = [run for run in runs if run.report.get("calls")]
    services = filter(None, map(_services, of_calls)) if check.retained["tools"] else ()
    lines = (*check.printed.lines, *map(_floor, of_calls))
    tables = (*map(_with_numbers, check.printed.tables), *services)
    yield Section("tools", "Tools of your own", lines, tables, (), signed=False)


def _with_numbers(table: Table) -> Table:
  """Returns a table from JSON, where numbers are lists."""
  rows = []
  for row in table.rows:
    rows.append(tuple(Number(*cell) if isinstance(cell, list) else cell for cell in row))
  return dataclasses.replace(table, rows=tuple(rows))


def _services(run: Run) -> Table | None:
  """Returns what of its correct frames a model keeps in SGD-X's wordings, by service."""
  key = JGA.retained.key
  services = [service for service in run.rows.services.items() if service[1].has(key)]
  services.sort(key=lambda service: service[1].percent(key))
  rows = []
  for name, row in services:
    rows.append((name, count(row.num_frames), *map(row.cell, ("jga_orig", key, "worst"))))
  title = f"SGD-X's services with {run.name}: states right before and still right (JGA, %)"
  header = ("", "frames", "before", "still right", "worst wording")
  return Table(title, header, tuple(rows)) if rows else None


def _floor(run: Run) -> str:
  """Says whether a model is better than predicting nothing: if not, it shows nothing."""
  jga, nothing = (rows.groups["all"].percent("jga_orig") for rows in (run.rows, run.floor))
  text = f"SGD-X with {run.name}: JGA_orig {jga:.1f}, where predicting nothing has {nothing:.1f}"
  return text if jga > nothing else f"{text}: a model this weak shows nothing about wording"
