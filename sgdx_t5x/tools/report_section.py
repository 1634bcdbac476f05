"""The sections of a report on tool calls, and on a check of tools of one's own."""

import argparse
import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from sgdx_t5x.cli.paths import add_input
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.files.reading import converted, decode_json, read_input
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.plot_numbers import mean_of
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.columns import JGA
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.tables import Cell, Number, Table, count, percent
from sgdx_t5x.tools.call_shares import RATE_HEADINGS, rate_value, tables

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


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the option of `sgdx report` that names a check."""
  group = parser.add_argument_group("tools of your own")
  text = "JSON of `sgdx tools check`, to show beside the services of SGD-X"
  add_input(group, "--tools-check", metavar="FILE", help=text)


def read(runs: Sequence[Run], args: argparse.Namespace) -> Sequence[Run]:
  """Returns the runs, the first with the check of `--tools-check`. Raises SgdxError: bad file."""
  if not args.tools_check:
    return runs
  path, (first, *others) = args.tools_check, runs
  data = decode_json(read_input(path, _EXPECTED), path, _EXPECTED)
  check = converted(data, _Check, path, _EXPECTED, "run the check again, with --json")
  return [dataclasses.replace(first, report={**first.report, _CHECK: check}), *others]


def sections(runs: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  """Tool-call rates, for runs whose predictions are tool calls."""
  del figures  # there are only tables
  if shown := call_tables(runs):
    lines = (
      "Calls are counted as the model made them, correct or not. Wrong: calls a tool of a service "
      "that has not occurred in the dialogue; unknown: calls a tool of no service. Invented and "
      "mistyped are shares of the arguments, intent is a share of the frames with an active "
      "intent. Abstained: no call where no tool fits, which is correct; missed: no call where one "
      "fits. In text: a call that the server left in the text, which does not count. Cut off: by a "
      "limit of tokens. Trackers without tool calls are not in these tables.",
    )
    yield Section("calls", "Tool calls", lines, shown, ())
  if check := runs[0].report.get(_CHECK):
    of_services = filter(None, map(_fragile_services, runs)) if check.retained["tools"] else ()
    lines = (*check.printed.lines, *(_floor(run) for run in runs if run.report.get("calls")))
    checked = (*map(_with_numbers, check.printed.tables), *of_services)
    yield Section("tools", "Tools of your own", lines, checked, (), signed=False)


def _with_numbers(table: Table) -> Table:
  """Returns a table from JSON, where numbers are lists."""
  rows = []
  for row in table.rows:
    rows.append(tuple(Number(*cell) if isinstance(cell, list) else cell for cell in row))
  return dataclasses.replace(table, rows=tuple(rows))


def _fragile_services(run: Run) -> Table | None:
  """Returns what of its correct frames a model keeps in SGD-X's wordings, by service."""
  key = JGA.retained.key
  services = [x for x in run.rows.services.items() if run.report.get("calls") and x[1].has(key)]
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


def call_tables(runs: Sequence[Run]) -> tuple[Table, ...]:
  """Returns tables of tool-call rates: of all runs side by side, then of each run."""
  rows: list[tuple[Cell, ...]] = []
  each: list[Table] = []
  for run in runs:
    if not (found := run.report.get("calls")):
      continue
    delivery = run.signature.fields.get("delivery", "")
    reworded = [variant for variant in found if variant in SGDX_VARIANTS]
    versions = {ORIGINAL: [v for v in found if v == ORIGINAL], mean_of(reworded): reworded}
    for group in GROUPS:
      for shown, of in versions.items():
        shares = [[rate_value(found[v][group], name) for v in of] for name in RATE_HEADINGS]
        rates = list(map(_mean, shares))
        if any(rate is not None for rate in rates):
          rows.append((f"{run.name}, {group}, {shown}", delivery, *map(percent, rates)))
    titled = (dataclasses.replace(t, title=f"{run.name}: {t.title}") for t in tables(found))
    each += titled
  header = ("", "delivery", *RATE_HEADINGS.values())
  return (Table("Tool calls (%)", header, tuple(rows), left=2), *each) if rows else ()


def _mean(values: Iterable[float | None]) -> float | None:
  known = [value for value in values if value is not None]
  return statistics.fmean(known) if known else None
