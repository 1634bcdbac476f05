"""Tables of a report: the paper's Tables 2 and 3 for any runs, per service, slot and failure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.metrics import KINDS
from sgdx_t5x.report.browser import kind_counts, slot_counts
from sgdx_t5x.report.plot_numbers import mean_of, seen_services
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.score_tables import GROUPS, with_interval
from sgdx_t5x.tables import Cell, Number, Table, count, percent, points

_MEANS = {"jga_v1_5": "JGA_v1-5", "diff_rel": "Diff_rel", "ss_jga": "SS_JGA"}
_SHARES = {"cjga_all": "cJGA_all", "zero_mean_share": "wrong in all"}
_VERSIONS = {
  f"jga_{'orig' if v == ORIGINAL else v}": "JGA_orig" if v == ORIGINAL else v
  for v in (ORIGINAL, *SGDX_VARIANTS)
}


def sources(runs: Sequence[Run]) -> Table:
  """Returns what each run is: where from, which checkpoint, how much."""
  rows = []
  for run in runs:
    row = run.report["sgdx"]["all"]
    sizes = (count(row["num_frames"]), count(row["num_dialogues"]))
    state = "complete" if run.report["complete"] else "PARTIAL"
    rows.append((run.name, run.origin, count(run.step), "+".join(run.versions), *sizes, state))
  header = ("", "from", "step", "versions", "frames", "dialogues", "")
  return Table("Runs", header, tuple(rows), left=2)


def summary(runs: Sequence[Run]) -> Table:
  """Returns the paper's Table 2, and Table 3 if the runs are augmentations, with intervals."""
  keys = {"jga_orig": "JGA_orig", **_MEANS, **_SHARES}
  rows = tuple(
    (label, *(with_interval(row, key) for key in keys), count(row["num_frames"]))
    for label, row in _group_rows(runs)
  )
  return Table("Summary (%)", ("", *keys.values(), "frames"), rows)


def versions(runs: Sequence[Run]) -> Table:
  """Returns JGA per schema version, as the paper's Figure 4 draws it."""
  keys = {**_VERSIONS, **_MEANS}
  rows = tuple(
    (label, *(percent(row.get(key)) for key in keys), count(row["num_frames"]))
    for label, row in _group_rows(runs)
  )
  return Table("JGA by schema version (%)", ("", *keys.values(), "frames"), rows)


def seeds(runs: Sequence[Run]) -> Table | None:
  """Returns means over the runs of a system, named SYSTEM#SEED, with their standard deviations.

  The deviation (n - 1) is that of training; intervals are about the choice of dialogues.
  """
  systems: dict[str, list[Run]] = {}
  for run in runs:
    system, sign, _ = run.name.rpartition("#")
    if sign:
      systems.setdefault(system, []).append(run)
  if all(len(found) < 2 for found in systems.values()):
    return None
  keys, rows = {"jga_orig": "JGA_orig", **_MEANS}, []
  for system, found in systems.items():
    for group in GROUPS:
      columns = [[run.report["sgdx"][group][key] for run in found] for key in keys]
      means = (statistics.fmean(c) if None not in c else None for c in columns)
      deviations = (statistics.stdev(c) if None not in c and len(c) > 1 else None for c in columns)
      label = f"{system}, {group}"
      rows.append((label, *map(percent, means), count(len(found))))
      rows.append((f"{label}, sd", *map(percent, deviations), ""))
  return Table("Means over seeds (%)", ("", *keys.values(), "seeds"), tuple(rows))


def services(run: Run) -> Table:
  """Returns a run's scores per service."""
  keys = {**_VERSIONS, **_MEANS}
  seen = seen_services(run)
  rows = tuple(
    (
      f"{name}{' (unseen)' if seen.get(name) == 'unseen' else ''}",
      *(percent(row[key]) for key in keys),
      count(row["num_frames"]),
    )
    for name, row in run.report["sgdx"]["services"].items()
  )
  return Table(f"Services: {run.name} (%)", ("", *keys.values(), "frames"), rows)


def slots(run: Run) -> Table | None:
  """Returns the slots of a run that fail: in how many frames each is right, and what it does."""
  counts = slot_counts(run)
  if not counts:
    return None
  sizes = {name: row["num_frames"] for name, row in run.report["sgdx"]["services"].items()}
  rewordings = [version for version in run.versions if version in SGDX_VARIANTS]

  def row(service: str, slot: str, found: Mapping[str, int]) -> tuple[Cell, ...]:
    frames = sizes[service]
    right = {version: 1 - found[version] / frames for version in run.versions}
    mean = sum(right[v] for v in rewordings) / len(rewordings) if rewordings else None
    fall = mean - right[ORIGINAL] if rewordings and ORIGINAL in right else None
    return (
      f"{service} {slot}",
      *(percent(right[version]) for version in run.versions),
      *([percent(mean), points(fall)] if rewordings else []),
      *(count(found[kind]) for kind in KINDS),
      count(frames),
    )

  rows = sorted(
    (row(service, slot, found) for (service, slot), found in counts.items()),
    key=lambda cells: -sum(cell.value for cell in cells[-1 - len(KINDS) : -1]),  # type: ignore
  )
  where = mean_of(rewordings)
  header = (
    "",
    *run.versions,
    *([where, f"{where} - orig"] if rewordings else []),
    *KINDS,
    "frames",
  )
  return Table(
    f"Slots: {run.name} (frames right, %; failures), most failures first", header, tuple(rows)
  )


def failures(run: Run) -> Table | None:
  """Returns how often slots fail in a run, per version and kind, with the shares over v1-v5."""
  counts = kind_counts(run)
  if not counts:
    return None
  frames = run.report["sgdx"]["all"]["num_frames"]
  rewordings = [version for version in counts if version in SGDX_VARIANTS] or list(counts)
  total = sum(sum(counts[version].values()) for version in rewordings)

  def row(label: str, kinds: Sequence[str]) -> tuple[Cell, ...]:
    found = {version: sum(counts[version][kind] for kind in kinds) for version in counts}
    share = sum(found[version] for version in rewordings) / total if total else None
    rates = (Number(n / frames, f"{100 * n / frames:.1f}") for n in found.values())
    return (label, *rates, percent(share))

  rows = (*(row(kind, [kind]) for kind in KINDS), row("all", KINDS))
  header = ("", *counts, f"% of {mean_of(rewordings)}")
  return Table(f"Failures of slots per 100 frames: {run.name}", header, rows)


def _group_rows(runs: Sequence[Run]) -> Iterator[tuple[str, Mapping[str, Any]]]:
  """Yields (label, row) of the groups that have frames: of each run, all first."""
  for run in runs:
    for group in GROUPS:
      row = run.report["sgdx"][group]
      if row["num_frames"]:
        yield group if len(runs) == 1 else f"{run.name}, {group}", row
