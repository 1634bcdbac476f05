"""Tables comparing two systems: differences with paired intervals, services, flipped slots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.metrics.bootstrap import NUM_BOOTSTRAP_SAMPLES, BootstrapSamples
from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.metrics.frames import FrameScores
from sgdx_t5x.scoring import compare
from sgdx_t5x.scoring.columns import JGA, Column, Columns, columns
from sgdx_t5x.scoring.compare import Comparison
from sgdx_t5x.scoring.summaries import group_masks
from sgdx_t5x.tables import (
  Cell,
  Number,
  Table,
  count,
  interval,
  interval_names,
  p_value,
  percent,
  points,
)

_Row = Mapping[str, Any]  # of `compare.row`


def layout(report: Mapping[str, Any], split_intervals: bool = False) -> list[Table]:
  """Returns the tables of `sgdx diff`, one per group of frames.

  Args:
    report: from `compare.comparison_report`.
    split_intervals: whether the ends of an interval get a column each, as in CSV.
  """

  def cells(row: _Row, column: Column) -> list[Cell]:
    difference = row["differences"][column.key]
    flips = row["flips"].get(column.variant, {})
    return [
      *(percent(difference["a"]), percent(difference["b"]), points(difference["difference"])),
      *(
        *interval(difference["ci95"], split_intervals),
        p_value(difference["p"], report["resamples"]),
      ),
      *(count(flips[x]) if flips else Number(None, "") for x in ("broken", "fixed")),
    ]

  metric = report["metric"]
  lines = [(x, x.plain) for x in _compared(columns(compare.short_name(metric)))]
  header = ("", "A", "B", "B-A", *interval_names(split_intervals), "p", "broken", "fixed")
  tables = []
  for group, row in report["rows"].items():
    size = f"{row['num_frames']:,} frames, {row['num_dialogues']:,} dialogues"
    tables.append(_table(f"{group}: {metric} (%), {size}", header, [row], lines, cells))
  return tables


def tables(
  name_a: str, name_b: str, compared: Comparison, bootstrap_samples: int = NUM_BOOTSTRAP_SAMPLES
) -> list[Table]:
  """Returns the tables of B against A: all frames, per service, and flipped slots."""
  samples = BootstrapSamples.draw(compared.frames.dialogue_ids, bootstrap_samples, seed=0)
  title = f"{name_b} minus {name_a}"
  result = [_overall(title, compared, samples), _services(title, compared, samples)]
  flipped = _slots(title, compared)
  return [*result, flipped] if flipped else result


def worst_and_best(table: Table, number: int = 3) -> Sequence[str]:
  """Returns a line on the services that lost and gained most, from the table of `_services`."""
  column = 2 if any(row[2].value is not None for row in table.rows) else 1

  def names(rows: Sequence[tuple[Cell, ...]]) -> str:
    return ", ".join(f"{row[0]} {row[column]}" for row in rows)

  rows = [row for row in table.rows if row[column].value is not None]
  if len(rows) < 2:
    return []
  number, heading = min(number, len(rows) // 2), table.header[column]
  return [f"Least {heading}: {names(rows[:number])}. Most: {names(rows[: -number - 1 : -1])}."]


# --- differences ---------------------------------------------------------------------------


def _compared(metric: Columns) -> tuple[Column, ...]:
  return (*metric.per_variant, *metric.summary, metric.consistent_all, *metric.robustness)


def _table(
  title: str,
  header: tuple[str, ...],
  rows: Sequence[_Row],
  lines: Iterable[tuple[Column, str]],
  cells: Callable[[_Row, Column], Sequence[Cell]],
) -> Table:
  """Returns a table of differences, a line per number that is defined for at least one row.

  Args:
    title: title of the table.
    header: its header.
    rows: rows of `compare.row`, shown side by side.
    lines: (number, label).
    cells: returns the cells for a row and a number.
  """
  body = tuple(
    (name, *(cell for row in rows for cell in cells(row, column)))
    for column, name in lines
    if any(row["differences"].get(column.key) for row in rows)
  )
  return Table(title, header, body)


def _overall(title: str, compared: Comparison, samples: BootstrapSamples) -> Table:
  def cells(row: _Row, column: Column) -> tuple[Cell, Cell]:
    difference = row["differences"].get(column.key)
    return _difference(difference), p_value(
      difference["p"] if difference else None, len(samples.weights)
    )

  masks = group_masks(compared.frames.seen).items()
  rows = {group: compare.row(compared, mask, samples) for group, mask in masks if mask.any()}
  header = ("", *(name for group in rows for name in (group, f"p ({group})")))
  lines = [(x, x.heading) for x in _compared(JGA)]
  return _table(f"Differences: {title} (points)", header, [*rows.values()], lines, cells)


def _services(title: str, compared: Comparison, samples: BootstrapSamples) -> Table:
  """Services from the worst difference to the best, by the mean over v1 to v5 if there is one."""
  frames, lines, num_variants = compared.frames, [], len(compared.scores[0])
  num_samples = len(samples.weights)
  names = sorted(set(frames.services.tolist()))
  rows_by_service = {x: compare.row(compared, frames.services == x, samples) for x in names}
  # Without v1 to v5, the original counts, or else the first variant, which is shown then.
  bases = [x for x in (JGA.mean, *_compared(JGA)) if any(map(_has(x), rows_by_service.values()))]
  basis = bases[0] if bases else JGA.mean
  middle = JGA.mean if basis is JGA.original else basis
  for service, row in rows_by_service.items():
    differences = row["differences"]
    if not _has(basis)(row):  # a service without slots has no JGA
      continue
    shares = (differences.get(x.key) for x in (JGA.original, middle, JGA.sensitivity))
    original, mean, sensitivity = map(_difference, shares)
    flips = (sum(n[kind] for n in row["flips"].values()) for kind in ("broken", "fixed"))
    sizes = (row["num_frames"] * num_variants, row["num_dialogues"])
    cells = (
      service,
      original,
      mean,
      p_value(differences[basis.key]["p"], num_samples),
      sensitivity,
    )
    lines.append((differences[basis.key]["difference"], (*cells, *map(count, (*flips, *sizes)))))
  lines.sort(key=lambda line: line[0])
  header = (
    *("", JGA.original.heading, middle.heading),
    *("p" if basis is JGA.mean else f"p ({basis.heading})", JGA.sensitivity.heading),
    *("broken", "fixed", "frames x variants", "dialogues"),
  )
  rows = tuple(cells for _, cells in lines)
  return Table(f"Services: {title} (points), worst first", header, rows)


def _has(column: Column) -> Callable[[_Row], bool]:
  return lambda row: bool(row["differences"].get(column.key))


def _difference(difference: Mapping[str, Any] | None) -> Number:
  if not difference:
    return Number(None, "-")
  text = points(difference["difference"])
  if not difference["ci95"]:
    return text
  low, high = difference["ci95"]
  return Number(text.value, f"{text} [{points(low)}, {points(high)}]", (low, high))


# --- slots ---------------------------------------------------------------------------------


def _slots(title: str, compared: Comparison) -> Table | None:
  """Slots that fail in only one of the two systems, most frequent first."""
  failing = []
  for table, scores in zip(compared.tables, compared.scores, strict=True):
    if table.failures is None:
      return None
    failing.append(dict(_failing(table.failures, scores)))
  a, b = failing
  broken = Counter(b[key] for key in b.keys() - a.keys())
  fixed = Counter(a[key] for key in a.keys() - b.keys())
  names = sorted(broken | fixed, key=lambda name: (-broken[name] - fixed[name], name))
  if not names:
    return None
  rows: tuple[tuple[Cell, ...], ...] = tuple(
    (
      " ".join(name),
      count(broken[name]),
      count(fixed[name]),
      Number(fixed[name] - broken[name], f"{fixed[name] - broken[name]:+,}"),
    )
    for name in names
  )
  header = ("", "broken", "fixed", "fixed - broken")
  return Table(f"Slots that flipped: {title} (frames x variants), most first", header, rows)


def _failing(
  failures: Mapping[str, Sequence[Failure]], scores: Mapping[str, FrameScores]
) -> Iterator[tuple[tuple[str, str, str], tuple[str, str]]]:
  """Yields ((frame, slot, variant), (service, slot)) of failures in the compared frames."""
  first = next(iter(scores.values()))
  for key, service in zip(first.frame_ids.tolist(), first.services.tolist(), strict=True):
    for failure in failures.get(key, ()):
      for variant in failure.kinds:
        if variant in scores:
          yield (key, failure.slot, variant), (service, failure.slot)
