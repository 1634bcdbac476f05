"""The section of a report on tool calls."""

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.plot_numbers import mean_of
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.tables import Cell, Table, percent
from sgdx_t5x.tools.call_shares import RATES, rate_value, tables


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
        shares = [[rate_value(found[v][group], name) for v in of] for name in RATES]
        rates = list(map(_mean, shares))
        if any(rate is not None for rate in rates):
          rows.append((f"{run.name}, {group}, {shown}", delivery, *map(percent, rates)))
    titled = (dataclasses.replace(t, title=f"{run.name}: {t.title}") for t in tables(found))
    each += titled
  header = ("", "delivery", *(heading for _, heading in RATES.values()))
  return (Table("Tool calls (%)", header, tuple(rows), left=2), *each) if rows else ()


def _mean(values: Iterable[float | None]) -> float | None:
  known = [value for value in values if value is not None]
  return statistics.fmean(known) if known else None
