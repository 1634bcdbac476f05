"""Tables of an `sgdx checkdst check` report, for its output and for the page of `sgdx report`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.papers.checkdst.checks import columns
from sgdx_t5x.papers.checkdst.checks.counterfactual import counterfactual_tables, notes
from sgdx_t5x.scoring.rows import GROUPS, Rows
from sgdx_t5x.tables import Number, Table, count

_Sets = Mapping[str, Rows]


def layout(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of a report of `checks.check_report`, in percent."""
  sets = sets_of(report)
  compared = [label for label, set_report in report["sets"].items() if set_report["compared_with"]]
  main = [*columns.JGA.items(), *columns.CHANGED.items(), ("num_changed", "frames")]
  names: list[tuple[str, str]] = []
  for share, size in columns.MEMORY.items():
    names += [(share, share), (size, "of")]
  *coreference, accepted = columns.COREFERENCE.items()
  slots = [*coreference, ("num_coref_frames", "frames"), accepted, *columns.SLOTS.items()]
  checkdst = [*columns.CHECKDST.items(), ("num_frames", "frames")]
  tables = [
    *(_table(f"{group} services (%)", sets, main, group, compared) for group in GROUPS),
    *counterfactual_tables(report),
    _table("names and repairs, all services (%)", sets, names),
    _table("coreference, and slots, all services (%)", sets, slots),
    _table("by CheckDST's definitions (%)", sets, checkdst),
  ]
  if any(rows.groups["all"].intervals for rows in sets.values()):
    tables += _intervals(sets)
  return [table for table in tables if table.rows]


def sets_of(report: Mapping[str, Any]) -> dict[str, Rows]:
  """Returns label -> rows of a report."""
  return {label: Rows.from_json(set_report["rows"]) for label, set_report in report["sets"].items()}


def _table(
  title: str,
  sets: _Sets,
  keys_and_headings: Sequence[tuple[str, str]],
  group: str = "all",
  compared: Collection[str] = (),
) -> Table:
  """Returns a table of a group of services. Args: compared, sets of which frames were changed."""
  cells = []
  for label, rows in sets.items():
    row = rows.groups[group]
    numbers: list[Number] = []
    for key, _ in keys_and_headings:
      if key == "num_frames" or (key == "num_changed" and label not in compared):
        numbers.append(count(row.num_frames))
      elif key.startswith("num_"):
        number = row.values[key]
        numbers.append(count(None if number is None else int(number)))
      else:
        numbers.append(row.cell(key))
    cells.append((label, *numbers))
  return Table(title, ("", *(heading for _, heading in keys_and_headings)), tuple(cells))


def _intervals(sets: _Sets) -> Iterator[Table]:
  """Yields tables of the numbers over all services with intervals, a column per set."""
  everything = [(label, rows.groups["all"]) for label, rows in sets.items()]
  for start in range(0, len(everything), 2):  # more do not fit in 80 columns
    pair = everything[start : start + 2]
    cells = []
    for key in columns.ALL:
      if any(row.has(key) for _, row in pair):
        cells.append((columns.row_label(key), *(row.cell_with_interval(key) for _, row in pair)))
    names = [label for label, _ in pair]
    title = f"95% intervals, all services: {', '.join(names)} (%)"
    yield Table(title, ("", *names), tuple(cells))


def _options(options: Mapping[str, Any]) -> str:
  texts = {k: ",".join(map(str, v)) if isinstance(v, list) else v for k, v in options.items()}
  return " ".join(f"{key}={value}" for key, value in texts.items())


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
  for label, set_report in report["sets"].items():
    if set_report["set"] != ORIGINAL and set_report["steps"]:
      steps = " then ".join(
        f"{x['kind']} {_options(x['options'])} seed={x['seed']}" for x in set_report["steps"]
      )
      lines.append(f"{label}: {steps}")
  return [*lines, *notes(report)]
