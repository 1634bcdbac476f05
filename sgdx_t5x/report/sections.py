"""The sections of a report: tables, plots and remarks."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.report import browser, comparison, plot_numbers, plots, run_tables, runs
from sgdx_t5x.report.page import Plot, Section
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring import compare, score_tables
from sgdx_t5x.tables import Table, percent


def make_sections(
  scored: Sequence[Run], lacks: Sequence[str], on_progress: OnProgress
) -> tuple[Section, ...]:
  """Returns the sections of a report of runs; their plots have figures, but no SVG yet.

  Args:
    scored: the runs; the others are compared with the first.
    lacks: what is missing for a full report, a line each.
    on_progress: called with (task, done, total, unit).
  """
  makers: tuple[Callable[[Sequence[Run]], Iterable[Section]], ...] = (
    functools.partial(_overview, lacks),
    _steps,
    *(annex.sections for annex in annex_sections()),
    _provenance,
    _comparisons,
    _services,
    _errors,
  )
  sections: list[Section] = []
  for number, make in enumerate(makers, start=1):
    on_progress("making sections", number, 1 + len(makers), "parts")
    sections += make(scored)
  on_progress("making sections", 1 + len(makers), 1 + len(makers), "parts")
  return tuple(sections)


def annex_sections() -> tuple[Any, ...]:
  """Returns the modules of the annexes' sections.

  Each has `sections(runs)`, which yields sections. An annex with options of `sgdx report` also has
  `read(runs, args)`, which returns the runs with what the options name, and
  `read_texts(runs, corpus, args)`, which returns an `browser.Texts`.
  """
  return tuple(map(annexes.load, annexes.table("REPORT_SECTIONS").values()))


def lines_of(scored: Sequence[Run], lines: Callable[[Run], Iterable[str]]) -> list[str]:
  """Returns remarks on runs, merged as "a, b: ..." if several share one."""
  return [f"{names}: {line}" for names, line in runs.by_line(scored, lines)]


def _overview(lacks: Sequence[str], scored: Sequence[Run]) -> Iterator[Section]:
  notes = lines_of(scored, lambda run: [*run.report["notes"], *score_tables.absent(run.report)])
  tables = (
    run_tables.sources(scored),
    run_tables.summary(scored),
    run_tables.robustness(scored),
    run_tables.variants(scored),
    run_tables.seeds(scored),
  )
  caption = _caption(scored)
  placed = (
    *_plot("jga_by_variant", "JGA by schema variant", plots.jga_by_variant(scored), caption),
    *_plot("jga_by_augmentation", "JGA by run", plots.jga_by_augmentation(scored), caption),
  )
  yield Section("overview", "Overview", (*lacks, *notes), tuple(filter(None, tables)), placed)


def _provenance(scored: Sequence[Run]) -> Iterator[Section]:
  """Scores by provenance, for runs scored with --provenance."""
  tables: list[Table] = []
  for run in scored:
    for table in score_tables.provenance_tables(run.report):
      tables.append(dataclasses.replace(table, title=f"{run.name}: {table.title}"))
  if tables:
    lines = (
      "informed: stated by the user; accepted: mentioned earlier by the system; carried: carried "
      "over from another service (coreference).",
    )
    yield Section("provenance", "Provenance of values", lines, tuple(tables), ())


def _steps(scored: Sequence[Run]) -> Iterator[Section]:
  of_steps = [run for run in scored if plot_numbers.num_points(run) > 1]  # a curve needs two
  if of_steps:
    title = "JGA and SS against training step"
    placed = _plot("by_step", title, plots.by_step(scored), _caption(scored))
    # The best checkpoint on the original schemas need not be the most robust one (CheckDST).
    lines = tuple(map(plot_numbers.best_in_words, of_steps))
    tables = tuple(map(run_tables.checkpoints, of_steps))
    yield Section("checkpoints", "Checkpoints", lines, tables, placed)


def _comparisons(scored: Sequence[Run]) -> Iterator[Section]:
  baseline, *other_runs = scored
  for number, run in enumerate(other_runs):
    title = f"{run.name} against {baseline.name}"
    yield Section(f"comparison-{number + 1}", title, *_comparison(baseline, run))


def _comparison(baseline: Run, run: Run) -> tuple[tuple[str, ...], tuple[Table, ...]]:
  if baseline.table is None or run.table is None:
    names = ", ".join(x.name for x in (baseline, run) if x.table is None)
    return (f"no paired comparison: {names} without per-frame scores",), ()
  names = f"A is {baseline.name}, B is {run.name}"
  try:
    # The page shows what can be compared; what cannot is among the warnings.
    compared = compare.compare(baseline.table, run.table, allow_missing=True)
  except SgdxError as e:
    return (f"no paired comparison: {e.found} ({names})",), ()
  # What makes the runs themselves PARTIAL is already at the top of the page.
  at_the_top = {f"A: {line}" for line in baseline.report["warnings"]}
  at_the_top |= {f"B: {line}" for line in run.report["warnings"]}
  notes = [f"{line} ({names})" for line in compared.notes]
  for line in compared.warnings:
    if line not in at_the_top:
      notes.append(f"PARTIAL: {line} ({names})")
  tables = comparison.tables(baseline.name, run.name, compared)
  lines = (
    f"Differences are {run.name} minus {baseline.name} in percentage points, with 95% intervals "
    "from a paired bootstrap over dialogues (1,000 samples, seed 0, whatever those of the runs); "
    "higher is better, except for SS, lost and spread. p is two-sided (in the table of services "
    "for JGA_v1-5, unless it names another number), at least 2 / 2^D for D dialogues, and not "
    "corrected for multiple comparisons. Broken: regressions, frames correct (JGA 1) with "
    f"{baseline.name} and wrong with {run.name}, counted per schema variant; fixed: improvements, "
    "the reverse.",
    *notes,
    *comparison.worst_and_best(tables[1]),
  )
  return lines, tuple(tables)


def _services(scored: Sequence[Run]) -> Iterator[Section]:
  figure = plots.sensitivity_by_service(scored)
  title = "Schema sensitivity and JGA_v1-5 per service"
  placed = _plot("sensitivity_by_service", title, figure, _caption(scored))
  yield Section("services", "Services", (), tuple(map(run_tables.services, scored)), placed)


def _errors(scored: Sequence[Run]) -> Iterator[Section]:
  sizes: dict[str, int] = {}
  counts: dict[str, dict[str, dict[str, int]]] = {}
  tables: list[Table | None] = []
  for run in scored:
    if run.failures is None:
      continue
    sizes[run.name] = run.rows.groups["all"].num_frames or 0
    counts[run.name] = browser.kind_counts(run)
    tables += run_tables.errors(run), run_tables.slots(run)
  if not counts:
    return
  lines = (
    "A slot of a frame is an error if its official score is below 1. Its kind is the first of "
    "these that applies. missed: the gold state has the slot, the predicted state does not. value "
    "of another slot: the predicted value belongs to another slot in the gold state of the frame. "
    "spurious: the gold state does not have the slot. wrong categorical choice, wrong value: the "
    "gold state has another value.",
    *itertools.starmap(_most, counts.items()),
  )
  figure, caption = plots.error_kinds(counts, sizes), _caption(scored, intervals=False)
  placed = _plot("error_kinds", "Kinds of slot errors", figure, caption)
  yield Section("errors", "Errors", lines, tuple(filter(None, tables)), placed)


def _most(name: str, counts: Mapping[str, Mapping[str, int]]) -> str:
  """The most frequent kind of error; in the paper, most errors are slots not predicted."""
  counted, shares = plot_numbers.shares_of_kinds(counts)
  if not any(shares.values()):
    return f"{name}: no errors"
  kind = max(shares, key=shares.__getitem__)
  phrase = ", ".join(f"{kind} {percent(share)}%" for kind, share in shares.items())
  return f"{name}: the most frequent kind is {kind} (% of errors, {counted}: {phrase})"


def _plot(name: str, title: str, figure: Any, caption: str) -> tuple[Plot, ...]:
  """Returns the plot, or nothing if there was nothing to draw (the figure is None)."""
  return () if figure is None else (Plot(name, title, caption, figure=figure),)


def _caption(scored: Sequence[Run], intervals: bool = True) -> str:
  """n, the kind of intervals if there are any, and the signatures; one per run if they differ."""
  sizes, has_intervals = set(), False
  for run in scored:
    row = run.rows.groups["all"]
    sizes.add(f"n = {row.num_frames:,} frames of {row.num_dialogues:,} dialogues")
    has_intervals = has_intervals or bool(row.intervals)
  kind = " 95% intervals: bootstrap over dialogues." if intervals and has_intervals else ""
  signatures = " ".join(runs.signatures(scored).values())
  return f"{'; '.join(sorted(sizes))}.{kind} Signature: {signatures}"
