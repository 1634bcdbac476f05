"""The section of a report on tool calls."""

import dataclasses
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.plot_numbers import mean_of
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.tables import Cell, Table, percent
from sgdx_t5x.tools.call_shares import RATES, rate_value, tables


def sections(runs: Sequence[Run]) -> Iterator[Section]:
  """Tool-call rates, for runs whose predictions are tool calls."""
  if rate_tables := call_tables(runs):
    lines = (
      "Calls are counted as the model made them, correct or not. Wrong: calls a tool of a service "
      "that has not occurred in the dialogue; unknown: calls a tool of no service. Invented and "
      "mistyped are shares of the arguments, intent is a share of the frames with an active "
      "intent. Abstained: no call where no tool fits, which is correct; missed: no call where one "
      "fits. In text: a call that the server left in the text, which does not count. Cut off: by a "
      "limit of tokens. Trackers without tool calls are not in these tables.",
    )
    yield Section("calls", "Tool calls", lines, rate_tables, ())


def call_tables(runs: Sequence[Run]) -> tuple[Table, ...]:
  """Returns tables of tool-call rates: of all runs side by side, then of each run."""
  rows: list[tuple[Cell, ...]] = []
  run_tables: list[Table] = []
  for run in runs:
    if not (rates_by_variant := run.report.get("calls")):
      continue
    delivery = run.signature.fields.get("delivery", "")
    reworded = [variant for variant in rates_by_variant if variant in SGDX_VARIANTS]
    originals = [ORIGINAL] if ORIGINAL in rates_by_variant else []
    versions = ((ORIGINAL, originals), (mean_of(reworded), reworded))
    for group, (label, variants) in itertools.product(GROUPS, versions):
      groups = [rates_by_variant[variant][group] for variant in variants]
      rates = [_mean(groups, name) for name in RATES]
      if rates.count(None) < len(rates):
        rows.append((f"{run.name}, {group}, {label}", delivery, *map(percent, rates)))
    for table in tables(rates_by_variant):
      run_tables.append(dataclasses.replace(table, title=f"{run.name}: {table.title}"))
  header = ("", "delivery", *(heading for _, heading in RATES.values()))
  return (Table("Tool calls (%)", header, tuple(rows), left=2), *run_tables) if rows else ()


def _mean(groups: Sequence[Mapping[str, Any]], name: str) -> float | None:
  """Returns the mean of a rate over variants; None if none of them has it."""
  rates = [rate for group in groups if (rate := rate_value(group, name)) is not None]
  return statistics.fmean(rates) if rates else None
