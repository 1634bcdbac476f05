"""Tables of a report that compare two runs: all frames, services, flipped slots."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.metrics.bootstrap import BootstrapSamples
from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.metrics.frames import FrameScores
from sgdx_t5x.scoring import compare
from sgdx_t5x.scoring.columns import Columns, columns
from sgdx_t5x.scoring.compare import Comparison
from sgdx_t5x.scoring.summaries import group_masks
from sgdx_t5x.tables import Cell, Number, Table, count, p_value, points


def tables(name_a: str, name_b: str, compared: Comparison) -> list[Table]:
  """Returns the tables of B against A: all frames, per service, and flipped slots."""
  samples = BootstrapSamples.draw(compared.frames.dialogue_ids)
  title = f"{name_b} minus {name_a}"
  result = [_overall(title, compared, samples), _services(title, compared, samples)]
  flipped = _slots(title, compared)
  return [*result, flipped] if flipped else result


def worst_and_best(table: Table) -> Sequence[str]:
  """Returns a line on the services that lost and gained most, from the table of `_services`."""
  # By the mean over variants, or by the original if that is all there is.
  column = 2 if any(row[2].value is not None for row in table.rows) else 1
  rows = [row for row in table.rows if row[column].value is not None]
  number = min(3, len(rows) // 2)  # no service is in both lists
  if not number:
    return []
  worst = ", ".join(f"{row[0]} {row[column]}" for row in rows[:number])
  best = ", ".join(f"{row[0]} {row[column]}" for row in rows[: -number - 1 : -1])
  return [f"Least {table.header[column]}: {worst}. Most: {best}."]


# --- differences ---------------------------------------------------------------------------


def _jga(compared: Comparison) -> Columns:
  return columns("jga", tuple(compared.scores[0]))


def _overall(title: str, compared: Comparison, samples: BootstrapSamples) -> Table:
  header, rows = [""], []
  for group, mask in group_masks(compared.frames.seen).items():
    if mask.any():
      header += [group, f"p ({group})"]
      rows.append(compare.row(compared, mask, samples))
  lines = []
  for column in _jga(compared).compared:
    differences = [row["differences"].get(column.key) for row in rows]
    if any(differences):  # those that no group has are left out
      cells: list[Cell] = [column.heading]
      for difference in differences:
        p = difference["p"] if difference else None
        cells += [_difference(difference), p_value(p, len(samples.weights))]
      lines.append(tuple(cells))
  return Table(f"Differences: {title} (points)", tuple(header), tuple(lines))


def _services(title: str, compared: Comparison, samples: BootstrapSamples) -> Table:
  """Services from the worst difference to the best, by the mean over variants if there is one."""
  services, jga = compared.frames.services, _jga(compared)
  rows = {x: compare.row(compared, services == x, samples) for x in sorted({*services.tolist()})}
  # Without v1 to v5, the original counts, or else the first variant, which is shown then.
  basis = jga.mean
  for column in (jga.mean, *jga.compared):
    if any(row["differences"].get(column.key) for row in rows.values()):
      basis = column
      break
  # The original has a column anyway.
  middle = jga.mean if basis is jga.original else basis
  lines = []
  for service, row in rows.items():
    differences = row["differences"]
    if not differences.get(basis.key):  # a service without slots has no JGA
      continue
    flips: Counter[str] = Counter()
    for of_variant in row["flips"].values():
      flips.update(of_variant)
    cells = (
      service,
      _difference(differences.get(jga.original.key)),
      _difference(differences.get(middle.key)),
      p_value(differences[basis.key]["p"], len(samples.weights)),
      _difference(differences.get(jga.sensitivity.key)),
      *(count(flips["broken"]), count(flips["fixed"])),
      count(row["num_frames"] * len(row["flips"])),
      count(row["num_dialogues"]),
    )
    lines.append((differences[basis.key]["difference"], cells))
  lines.sort(key=lambda line: line[0])
  header = (
    *("", jga.original.heading, middle.heading),
    *("p" if basis is jga.mean else f"p ({basis.heading})", jga.sensitivity.heading),
    *("broken", "fixed", "frames x variants", "dialogues"),
  )
  title = f"Services: {title} (points), worst first"
  return Table(title, header, tuple(cells for _, cells in lines))


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
  # Of each slot, how often it fails in B alone, and in A alone.
  broken = Counter(b[key] for key in b.keys() - a.keys())
  fixed = Counter(a[key] for key in a.keys() - b.keys())
  names = sorted(broken | fixed, key=lambda name: (-broken[name] - fixed[name], name))
  if not names:
    return None
  rows = []
  for name in names:
    net = fixed[name] - broken[name]
    numbers = (count(broken[name]), count(fixed[name]), Number(net, f"{net:+,}"))
    rows.append((" ".join(name), *numbers))
  header = ("", "broken", "fixed", "fixed - broken")
  return Table(f"Slots that flipped: {title} (frames x variants), most first", header, tuple(rows))


def _failing(
  failures: Mapping[str, Sequence[Failure]], scores: Mapping[str, FrameScores]
) -> Iterator[tuple[tuple[str, str, str], tuple[str, str]]]:
  """Yields ((frame, slot, variant), (service, slot)) of failures in the compared frames."""
  for key, _, _, service, _ in next(iter(scores.values())).places():
    for failure in failures.get(key, ()):
      for variant in failure.kinds:
        if variant in scores:
          yield (key, failure.slot, variant), (service, failure.slot)
