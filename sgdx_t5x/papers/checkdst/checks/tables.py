"""Tables of an `sgdx checkdst check` report, for its output and for the page of `sgdx report`."""

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.papers.checkdst.checks.columns import (
  ALL,
  CHANGED,
  CHECKDST,
  COREFERENCE,
  JGA,
  MEMORY,
  SLOTS,
  CheckColumn,
)
from sgdx_t5x.papers.checkdst.checks.counterfactual import (
  counterfactual_rows,
  counterfactual_tables,
)
from sgdx_t5x.papers.checkdst.checks.counterfactual import notes as counterfactual_notes
from sgdx_t5x.scoring.rows import GROUPS, Rows
from sgdx_t5x.tables import Table, count

_Sets = Mapping[str, Rows]


def layout(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of a report of `checks.check_report`, in percent."""
  sets = sets_of(report)
  compared = {label: rows for label, rows in sets.items() if report["sets"][label]["compared_with"]}
  tables = [*main_tables(sets, compared), *counterfactual_tables(report)]
  tables += [names_table(sets), slots_table(sets)]
  if report["like_checkdst"]:
    tables.append(_table("by CheckDST's definitions (%)", sets, CHECKDST))
  if any(rows.groups["all"].intervals for rows in sets.values()):
    tables += _intervals(sets)
  return [table for table in tables if table.rows]


def sets_of(report: Mapping[str, Any]) -> dict[str, Rows]:
  """Returns label -> rows of a report."""
  return {label: Rows.from_json(found["rows"]) for label, found in report["sets"].items()}


def main_tables(sets: _Sets, compared: _Sets) -> list[Table]:
  """Returns tables of JGA and the numbers of changed frames, one per group of services.

  Args:
    sets: label -> rows.
    compared: the subset that is compared with the original.
  """
  shown = (JGA, *CHANGED)
  return [_table(f"{group} services (%)", sets, shown, group, compared) for group in GROUPS]


def names_table(sets: _Sets) -> Table:
  """Returns the table of factual, memorized and reverted names and of corrected values."""
  cells = []
  for label, rows in sets.items():
    row = rows.groups["all"]
    numbers = [
      cell
      for column in MEMORY
      for cell in (row.cell(column.key), count(int(row.values[column.counted])))
    ]
    cells.append((label, *numbers))
  header = ("", *(name for x in MEMORY for name in (x.heading, "of")))
  return Table("names and repairs, all services (%)", header, tuple(cells))


def slots_table(sets: _Sets) -> Table:
  """Returns the table of coreference by frame and slot, and slot precision, recall and F1."""
  cells = tuple(
    (
      label,
      *(row.cell(x.key) for x in COREFERENCE[:3]),
      count(int(row.values["num_coref_frames"])),
      row.cell(COREFERENCE[3].key),
      *(row.cell(x.key) for x in SLOTS),
    )
    for label, row in ((label, rows.groups["all"]) for label, rows in sets.items())
  )
  coref = ("coref JGA", "slots", "new", "frames")
  header = ("", *coref, "accepted JGA", *(x.heading for x in SLOTS))
  return Table("coreference, and slots, all services (%)", header, cells)


def long_csv(report: Mapping[str, Any]) -> str:
  """Returns all numbers as CSV, one per line: set, group, name, key, value, interval, signature."""
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  writer.writerow(("set", "group", "name", "key", "value", "ci95_low", "ci95_high", "signature"))
  for label, rows in sets_of(report).items():
    for cells in rows.csv_rows():
      writer.writerow((label, *cells, report["signature"]))
  for label, numbers in report["counterfactual"].items():
    for cells in counterfactual_rows(numbers):
      writer.writerow((label, "counterfactual", *cells, report["signature"]))
  return out.getvalue()


# --- parts ---------------------------------------------------------------------------------


def _table(
  title: str,
  sets: _Sets,
  columns: Sequence[CheckColumn],
  group: str = "all",
  compared: Collection[str] = (),
) -> Table:
  """Returns a table of a group of services. Args: compared, sets whose changed frames count."""
  cells = []
  for label, rows in sets.items():
    row = rows.groups[group]
    number = int(row.values["num_changed"]) if label in compared else row.num_frames
    cells.append((label, *(row.cell(x.key) for x in columns), count(number)))
  return Table(title, ("", *(x.heading for x in columns), "frames"), tuple(cells))


def _intervals(sets: _Sets) -> Iterator[Table]:
  """Yields tables of the numbers over all services with intervals, a column per set."""
  everything = [(label, rows.groups["all"]) for label, rows in sets.items()]
  for first in range(0, len(everything), 2):  # more do not fit in 80 columns
    some = everything[first : first + 2]
    shown = [x for x in ALL if any(row.has(x.key) for _, row in some)]
    cells = tuple((x.row_label, *(row.cell_with_interval(x.key) for _, row in some)) for x in shown)
    names = [label for label, _ in some]
    title = f"95% intervals, all services: {', '.join(names)} (%)"
    yield Table(title, ("", *names), cells)


def _options(options: Mapping[str, Any]) -> str:
  shown = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in options.items()}
  return " ".join(f"{key}={value}" for key, value in shown.items())


def legend(report: Mapping[str, Any]) -> list[str]:
  """Returns what the headings mean, and how each set was made."""
  lines = [
    "before ... drop: over the frames that a perturbation changed, whose number is given. before: "
    "correct before; perturbed: correct after; cJGA: both; broken: regressions, correct only "
    "before; fixed: improvements, correct only after.",
    "drop: (perturbed - before) / before. retained: of those correct before. agree: same predicted "
    "state.",
    "reverted: predicted names that had been replaced; repair_taken: values the user took back.",
    "coref: frames with a value carried over from another service; new: where it enters the state.",
  ]
  for label, found in report["sets"].items():
    if found["set"] != ORIGINAL and found["steps"]:
      steps = " then ".join(
        f"{x['kind']} {_options(x['options'])} seed={x['seed']}" for x in found["steps"]
      )
      lines.append(f"{label}: {steps}")
  return [*lines, *counterfactual_notes(report)]
