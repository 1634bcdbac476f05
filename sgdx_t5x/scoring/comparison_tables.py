"""Two runs against each other: differences with paired intervals, services, slots that flipped."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import NUM_SAMPLES
from sgdx_t5x.scoring import compare
from sgdx_t5x.scoring.compare import Comparison
from sgdx_t5x.scoring.score_files import FrameTable
from sgdx_t5x.scoring.score_tables import GROUPS
from sgdx_t5x.tables import Cell, Number, Table, count, points

_KEYS = {
  "jga_orig": "JGA_orig",
  **{f"jga_v{k}": f"v{k}" for k in range(1, 6)},
  "jga_v1_5": "JGA_v1-5",
  "diff_rel": "Diff_rel",
  "ss_jga": "SS_JGA",
  "cjga_all": "cJGA_all",
}


def tables(
  name_a: str, name_b: str, compared: Comparison, bootstrap_samples: int = NUM_SAMPLES
) -> list[Table]:
  """Returns the tables of B against A: of all frames, per service, and slots that flipped."""
  drawn = BootstrapSamples.draw(compared.frames.dialogue_ids, bootstrap_samples, seed=0)
  title = f"{name_b} minus {name_a}"
  found = [_overall(title, compared, drawn), _services(title, compared, drawn)]
  flipped = _slots(title, compared)
  return [*found, flipped] if flipped else found


def _overall(title: str, compared: Comparison, drawn: BootstrapSamples) -> Table:
  seen = compared.frames.seen
  masks = dict(zip(GROUPS, (seen | True, seen, ~seen), strict=True))
  rows = {group: compare.row(compared, mask, drawn) for group, mask in masks.items() if mask.any()}
  lines = tuple(
    (label, *(cell for row in rows.values() for cell in _tested(row["differences"].get(key))))
    for key, label in _KEYS.items()
    if any(row["differences"].get(key) for row in rows.values())
  )
  header = tuple(name for group in rows for name in (group, f"p ({group})"))
  return Table(f"Differences: {title} (points)", ("", *header), lines)


def _services(title: str, compared: Comparison, drawn: BootstrapSamples) -> Table:
  """Services from the worst difference to the best."""
  frames, lines, num_versions = compared.frames, [], len(compared.scores[0])
  for service in sorted(set(frames.services.tolist())):
    row = compare.row(compared, frames.services == service, drawn)
    found = row["differences"]
    key = next((key for key in ("jga_v1_5", *_KEYS) if found.get(key)), None)
    if key is None:  # a service without slots has no JGA
      continue
    lines.append(
      (
        service,
        _difference(found.get("jga_orig")),
        _difference(found.get("jga_v1_5")),
        _p(found[key]),
        _difference(found.get("ss_jga")),
        *(count(sum(n[kind] for n in row["flips"].values())) for kind in ("broken", "fixed")),
        count(row["num_frames"] * num_versions),
        count(row["num_dialogues"]),
        found[key]["difference"],
      )
    )
  lines.sort(key=lambda line: line[-1])
  header = ("", "JGA_orig", "JGA_v1-5", "p", "SS_JGA", "broken", "fixed", "frames x versions")
  header += ("dialogues",)
  rows = tuple(line[:-1] for line in lines)
  return Table(f"Services: {title} (points), worst first", header, rows)


def _slots(title: str, compared: Comparison) -> Table | None:
  """Slots that fail in one of the two only, those with the most first."""
  if any(table.failures is None for table in compared.tables):
    return None
  a, b = (
    dict(_failing(table, scores))
    for table, scores in zip(compared.tables, compared.scores, strict=True)
  )
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
  return Table(f"Slots that flipped: {title} (frames x versions), most first", header, rows)


def _failing(
  table: FrameTable, scores: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, str, str], tuple[str, str]]]:
  """Yields ((frame, slot, version), (service, slot)) of the frames and versions compared."""
  first = next(iter(scores.values()))
  for key, service in zip(first.frame_ids.tolist(), first.services.tolist(), strict=True):
    for failure in table.failures.get(key, ()):
      for version in failure.kinds:
        if version in scores:
          yield (key, failure.slot, version), (service, failure.slot)


def _difference(found: Mapping[str, Any] | None) -> Number:
  if not found:
    return Number(None, "-")
  shown = points(found["difference"])
  if not found["ci95"]:
    return shown
  low, high = (points(end) for end in found["ci95"])
  return Number(shown.value, f"{shown} [{low}, {high}]", (low.value, high.value))


def _tested(found: Mapping[str, Any] | None) -> tuple[Number, Number]:
  return _difference(found), _p(found) if found else Number(None, "-")


def _p(found: Mapping[str, Any]) -> Number:
  p = found["p"]
  return Number(p, "-" if p is None else f"{p:.3f}" if p >= 0.0005 else "<.001")


def worst_and_best(table: Table, number: int = 3) -> Sequence[str]:
  """Returns a line on the services that lost and gained most, of `_services`' table."""
  column = 2 if any(row[2].value is not None for row in table.rows) else 1

  def names(rows: Sequence[tuple[Cell, ...]]) -> str:
    return ", ".join(f"{row[0]} {row[column]}" for row in rows)

  known = [row for row in table.rows if row[column].value is not None]
  if len(known) < 2:
    return []
  number, what = min(number, len(known) // 2), table.header[column]
  return [f"Least {what}: {names(known[:number])}. Most: {names(known[: -number - 1 : -1])}."]
