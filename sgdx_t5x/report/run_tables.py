"""Tables of a report: the paper's Tables 2 and 3 for any runs, and services, slots and errors."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.metrics import KINDS
from sgdx_t5x.report.browser import kind_counts, slot_counts
from sgdx_t5x.report.plot_numbers import jga_columns, mean_of, shares_of_kinds
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.columns import JGA, defined
from sgdx_t5x.scoring.rows import GROUPS, Row
from sgdx_t5x.scoring.score_tables import rows_table
from sgdx_t5x.tables import Cell, Number, Table, count, percent, points


def sources(runs: Sequence[Run]) -> Table:
  """Returns the table of the runs: their source, checkpoint, variants and size."""
  rows = []
  for run in runs:
    row = run.rows.groups["all"]
    sizes = (count(row.num_frames), count(row.num_dialogues))
    state = "complete" if run.report["complete"] else "PARTIAL"
    rows.append((run.name, run.origin, count(run.step), "+".join(run.variants), *sizes, state))
  header = ("", "from", "step", "variants", "frames", "dialogues", "")
  return Table("Runs", header, tuple(rows), left=2)


def summary(runs: Sequence[Run]) -> Table:
  """Returns the paper's Table 2, and Table 3 if the runs are augmentations, with intervals."""
  jga = jga_columns(runs)
  columns = (jga.original, *jga.summary, jga.consistent_all, jga.all_wrong)
  return rows_table("Summary (%)", columns, _group_rows(runs), Row.cell_with_interval)


def robustness(runs: Sequence[Run]) -> Table | None:
  """Returns the robustness to rewording, with intervals; None if no run has such scores."""
  rows = list(_group_rows(runs))
  columns = defined(JGA.robustness, (row for _, row in rows))
  if not columns:
    return None
  return rows_table("Robustness (%)", columns, rows, Row.cell_with_interval)


def variants(runs: Sequence[Run]) -> Table:
  """Returns JGA per schema variant, as in the paper's Figure 4."""
  jga = jga_columns(runs)
  columns = (*jga.per_variant, *jga.summary)
  return rows_table("JGA by schema variant (%)", columns, _group_rows(runs))


def systems(runs: Sequence[Run]) -> dict[str, list[Run]]:
  """Returns system -> its runs, of those named SYSTEM#SEED."""
  by_system: dict[str, list[Run]] = {}
  for run in runs:
    system, sign, _ = run.name.rpartition("#")
    if sign:
      by_system.setdefault(system, []).append(run)
  return by_system


def seeds(runs: Sequence[Run]) -> Table | None:
  """Returns means over the runs of a system, named SYSTEM#SEED, with their standard deviations.

  The deviation (n - 1) is the variation between trainings; intervals are about that of dialogues.
  """
  if max(map(len, systems(runs).values()), default=0) < 2:
    return None
  robustness = defined(JGA.robustness, (run.rows.groups["all"] for run in runs))
  jga, rows = jga_columns(runs), []
  columns = (jga.original, *jga.summary, *robustness)
  for system, seeded in systems(runs).items():
    for group in GROUPS:
      means, deviations = [], []
      for column in columns:
        numbers: list[Any] = [run.rows.groups[group].values.get(column.key) for run in seeded]
        # Of some of the seeds only, a mean could not be compared with those beside it.
        is_complete = None not in numbers
        means.append(percent(statistics.fmean(numbers) if is_complete else None))
        has_deviation = is_complete and len(numbers) > 1
        deviations.append(percent(statistics.stdev(numbers) if has_deviation else None))
      label = f"{system}, {group}"
      rows.append((label, *means, count(len(seeded))))
      rows.append((f"{label}, sd", *deviations, ""))
  header = ("", *(column.heading for column in columns), "seeds")
  return Table("Means over seeds (%)", header, tuple(rows))


def services(run: Run) -> Table:
  """Returns a run's scores per service."""
  is_seen, jga, rows = run.seen, jga_columns([run]), []
  for service, row in run.rows.services.items():
    label = service if is_seen.get(service, True) else f"{service} (unseen)"
    rows.append((label, row))
  return rows_table(f"Services: {run.name} (%)", (*jga.per_variant, *jga.summary), rows)


def checkpoints(run: Run) -> Table:
  """Returns a run's scores by training step."""
  robustness = defined((JGA.retained, JGA.worst, JGA.spread), (row for _, row in run.steps))
  jga = jga_columns([run])
  columns = (jga.original, jga.mean, jga.sensitivity, *robustness)
  rows = ((count(step), row) for step, row in run.steps)
  return rows_table(f"Checkpoints: {run.name} (%)", columns, rows, first="step")


def slots(run: Run) -> Table | None:
  """Returns a run's slots with errors: in how many frames each is right, and errors by kind."""
  counts = slot_counts(run)
  if not counts:
    return None
  sgdx_variants = [variant for variant in run.variants if variant in SGDX_VARIANTS]
  lines: list[tuple[int, tuple[Any, ...]]] = []  # (errors, cells)
  for (service, slot), errors in counts.items():
    frames = run.rows.services[service].num_frames
    if not frames:
      continue
    # Two counters: a variant of one's own may be called "missed".
    by_variant: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    for (variant, kind), number in errors.items():
      by_variant[variant] += number
      by_kind[kind] += number
    accuracy = {variant: 1 - by_variant[variant] / frames for variant in run.variants}
    means = []
    if sgdx_variants:
      mean = sum(accuracy[variant] for variant in sgdx_variants) / len(sgdx_variants)
      change = mean - accuracy[ORIGINAL] if ORIGINAL in accuracy else None
      means = [percent(mean), points(change)]
    kinds = (count(by_kind[kind]) for kind in KINDS)
    numbers = (*map(percent, accuracy.values()), *means, *kinds, count(frames))
    lines.append((by_kind.total(), (f"{service} {slot}", *numbers)))
  lines.sort(key=lambda line: -line[0])
  name = mean_of(sgdx_variants)
  headings = [name, f"{name} - orig"] if sgdx_variants else []
  header = ("", *run.variants, *headings, *KINDS, "frames")
  title = f"Slots: {run.name} (frames right, %; errors), most errors first"
  return Table(title, header, tuple(cells for _, cells in lines))


def errors(run: Run) -> Table | None:
  """Returns how often slots fail in a run, per variant and kind, with the shares over v1-v5."""
  counts, frames = kind_counts(run), run.rows.groups["all"].num_frames
  if not counts or not frames:  # none, if no service has slots
    return None
  variants, shares = shares_of_kinds(counts)
  has_errors = any(shares.values())
  lines: list[tuple[Cell, ...]] = []
  for kind in (*KINDS, "all"):
    rates = []
    for by_kind in counts.values():
      number = sum(by_kind.values()) if kind == "all" else by_kind[kind]
      rates.append(Number(number / frames, f"{100 * number / frames:.1f}"))
    share = 1.0 if kind == "all" else shares.get(kind, 0.0)
    lines.append((kind, *rates, percent(share if has_errors else None)))
  header = ("", *counts, f"% of {variants}")
  return Table(f"Slot errors per 100 frames: {run.name}", header, tuple(lines))


def _group_rows(runs: Sequence[Run]) -> Iterator[tuple[str, Row]]:
  """Yields (label, row) of the groups that have frames, run by run, "all" first."""
  for run in runs:
    for group, row in run.rows.groups.items():
      if row.num_frames:
        yield group if len(runs) == 1 else f"{run.name}, {group}", row
