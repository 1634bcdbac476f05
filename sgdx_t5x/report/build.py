"""Writes a report: the page, and its plots, tables and examples as files beside it."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import atomic_folder, check_folder, list_files
from sgdx_t5x.report import browser, check_plots, plot_numbers, plot_style, plots, run_tables, runs
from sgdx_t5x.report.checks import read_said, section_lines, section_tables
from sgdx_t5x.report.page import Page, Plot, Section, render, table_files
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring import compare, comparison_tables, score_files, score_tables
from sgdx_t5x.scoring.progress import OnProgress
from sgdx_t5x.signature import package_version
from sgdx_t5x.tables import Table, document, percent

PAGE = "report.html"
FILES = "files.txt"  # lists the files of a report: they are replaced, other files never
_NOT_SHOWN = "dialogues and names of slots are not shown: "


@dataclasses.dataclass(frozen=True)
class Content:
  """What a report says, before it is written.

  Attributes:
    title: of the page.
    runs: in order, the first is what others are compared with.
    marks: what makes the runs incomparable, if they are shown side by side nevertheless.
    warnings: what makes them PARTIAL, a line each.
    sections: of the page; plots without their drawings.
    figures: name of a plot -> matplotlib figure.
    texts: of the corpus.
    lacks: what is missing for a full report, and how to get it, a line each.
  """

  title: str
  runs: tuple[Run, ...]
  marks: tuple[str, ...]
  warnings: tuple[str, ...]
  sections: tuple[Section, ...]
  figures: Mapping[str, Any]
  texts: browser.Texts
  lacks: tuple[str, ...]

  def __repr__(self) -> str:
    names = ", ".join(run.name for run in self.runs)
    return f"<Content {self.title!r} of {names}: {len(self.sections)} sections>"


def make(
  title: str,
  scored: Sequence[Run],
  corpus: Corpus | None,
  force: bool = False,
  on_progress: OnProgress = lambda *_: None,
  perturbed: Mapping[str, str] | None = None,
) -> Content:
  """Makes a report of runs.

  Args:
    title: of the page.
    scored: the runs, at least one.
    corpus: that they were scored with, for dialogues and descriptions of slots, if it is at hand.
    force: show runs side by side that were scored on other data or by other rules.
    on_progress: called with a task, how much of it is done, of how much, and a unit.
    perturbed: set of the runs' checks -> its corpus, for what is said there.

  Raises:
    SgdxError: such runs, without `force`; a corpus that is not theirs.
  """
  marks = _check_comparable(scored, force)
  on_progress("making sections", 0, 9, "parts")
  texts, lacks = _texts(scored, corpus)
  checks = [run.check for run in scored if run.check]
  said, edits, unsaid = read_said(corpus, scored[0].signature.split, checks, perturbed or {})
  texts = dataclasses.replace(texts, said=said, edits=edits)
  lacks = [*lacks, *(line for check in checks for line in check.lacks), *unsaid]
  lacks = [*(line for run in scored for line in run.lacks), *lacks]
  warnings = _lines(scored, _warnings)
  figures: dict[str, Any] = {}
  parts: tuple[Callable[[], Iterable[Section]], ...] = (
    lambda: [_overview(scored, lacks, figures)],
    lambda: _steps(scored, figures),
    lambda: _perturbed(scored, figures),
    lambda: _provenance(scored),
    lambda: _calls(scored),
    lambda: _comparisons(scored),
    lambda: [_services(scored, figures)],
    lambda: _errors(scored, figures),
  )
  made: list[Section] = []
  for done, part in enumerate(parts, start=1):
    on_progress("making sections", done, 1 + len(parts), "parts")
    made += part()
  on_progress("making sections", 1 + len(parts), 1 + len(parts), "parts")
  sections = tuple(made)
  return Content(
    title, tuple(scored), marks, tuple(warnings), sections, figures, texts, tuple(lacks)
  )


def write(
  content: Content,
  out: pathlib.Path,
  examples: int = browser.EXAMPLES,
  on_progress: OnProgress = lambda *_: None,
) -> pathlib.Path:
  """Writes a report into a folder atomically; returns the path of the page.

  Args:
    content: from `make`.
    out: the folder; a report in it is replaced.
    examples: frames to embed in the page per run, service, slot, variant and kind; 0: no browser
      of errors, so nothing of the corpus but names.
    on_progress: called with a task, how much of it is done, of how much, and a unit.

  Raises:
    SgdxError: the folder holds something else, or cannot be written.
  """
  check_out(out)
  words = [
    *(["NOT COMPARABLE"] if content.marks else []),
    *(["PARTIAL"] if content.warnings else []),
  ]
  with atomic_folder(out, "--out") as folder:
    folder.mkdir()
    (folder / "plots").mkdir()
    for done, (name, figure) in enumerate(content.figures.items()):
      on_progress("saving plots", done, len(content.figures), "plots")
      if words:
        plot_style.stamp(figure, ", ".join(words))
      plot_style.save(figure, folder / "plots", name)
    on_progress("saving plots", len(content.figures), len(content.figures), "plots")
    _write_tables(content, folder / "tables")
    examples_of = _write_runs(content, folder)
    data = None
    if examples and any(_has_errors(run) for run in content.runs):
      data = browser.embed(content.runs, content.texts, examples_of, examples)
    page = Page(
      content.title,
      (*content.marks, *(f"PARTIAL: {line}" for line in content.warnings)),
      tuple(_with_svg(section, content) for section in content.sections),
      tuple(runs.signatures(content.runs).items()),
      data,
      package_version(),
      ", ".join(words),
    )
    (folder / PAGE).write_text(render(page), encoding="utf-8")
    names = (*list_files(folder), FILES)
    (folder / FILES).write_text("".join(f"{name}\n" for name in names), "utf-8")
  return out / PAGE


def check_out(out: pathlib.Path) -> None:
  """Refuses a folder that holds anything but a report, file by file. Raises SgdxError."""
  listed = out / FILES
  ours = listed.read_text("utf-8").splitlines() if listed.is_file() else []
  check_folder(
    out,
    replace=True,
    ours=lambda path: path.as_posix() in ours,
    expected=f"a folder that is new or empty, or holds a report and nothing else: see its {FILES}",
  )


# --- sections ------------------------------------------------------------------------------


def _check_comparable(scored: Sequence[Run], force: bool) -> tuple[str, ...]:
  differences = list(runs.differences(scored))
  if differences and not force:
    raise SgdxError(
      "the runs were scored with different settings: " + "; ".join(differences),
      expected="the same corpus, split and frames, scored by the same rules",
      fix="score them with the same settings, or report them one by one; --force shows them "
      "side by side, marked",
    )
  return tuple(f"NOT COMPARABLE: {line}" for line in differences)


def _texts(scored: Sequence[Run], corpus: Corpus | None) -> tuple[browser.Texts, list[str]]:
  if corpus is None:
    has_errors = any(run.table and run.table.failures for run in scored)
    return browser.Texts(), [_NOT_SHOWN + "give the corpus with --corpus"] if has_errors else []
  if all(run.signature.checksum != corpus.checksum() for run in scored):
    raise SgdxError(
      f"{corpus.origin} is not the corpus of {scored[0].name}",
      expected=f"checksum {scored[0].signature.checksum}, as its signature says",
      available=f"checksum {corpus.checksum()}",
      fix="give --corpus what `sgdx score` was given, or leave it out: the page shows less then",
    )
  data = {(run.signature.checksum, run.signature.split) for run in scored}
  if len(data) > 1:  # ids of dialogues are the same in other corpora and splits
    return browser.Texts(), [_NOT_SHOWN + "the runs are of different data"]
  return browser.read_texts(corpus, scored[0].signature.split, scored), []


def _overview(scored: Sequence[Run], lacks: Sequence[str], figures: dict[str, Any]) -> Section:
  lines = [
    *lacks,
    *_lines(
      scored,
      lambda run: [*run.report["notes"], *score_tables.absent(run.rows.groups["all"])],
    ),
  ]
  made = (run_tables.sources, run_tables.summary, run_tables.robustness, run_tables.variants)
  shown = [table for make in (*made, run_tables.seeds) if (table := make(scored))]
  drawn = {
    "jga_by_variant": ("JGA by schema variant", plots.jga_by_variant(scored)),
    "jga_by_augmentation": ("JGA by run", plots.jga_by_augmentation(scored)),
  }
  return Section(
    "overview", "Overview", tuple(lines), tuple(shown), _plots(drawn, _caption(scored), figures)
  )


def _lines(scored: Sequence[Run], lines: Callable[[Run], Iterable[str]]) -> list[str]:
  return [f"{names}: {line}" for names, line in runs.by_line(scored, lines)]


def _warnings(run: Run) -> list[str]:
  checked = run.check.report["warnings"] if run.check else ()
  return list(dict.fromkeys((*run.report["warnings"], *checked)))


def _perturbed(scored: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  """What perturbed dialogues do to runs that were checked, see `sgdx check`."""
  for number, run in enumerate((run for run in scored if run.check), start=1):
    check, stem = run.check, f"perturbed-{number}"
    compared = {label: check.rows[label] for label in check.compared}
    title = f"Frames that a perturbation changed, before and after: {run.name}"
    changed = {f"{stem}-changed": (title, check_plots.before_and_after(compared))}
    title = f"All frames of each set: {run.name}"
    every = {f"{stem}-all": (title, check_plots.alone(check.rows))}
    plots_of = (
      *_plots(changed, check_plots.caption(compared, "num_changed"), figures),
      *_plots(every, check_plots.caption(check.rows), figures),
    )
    shown = tuple(section_tables(run.name, check))
    title = f"Perturbed dialogues: {run.name}"
    yield Section(stem, title, section_lines(check), shown, plots_of, signed=False)


def _provenance(scored: Sequence[Run]) -> Iterator[Section]:
  """Where runs lose what, of those scored with --provenance."""
  shown = [
    dataclasses.replace(table, title=f"{run.name}: {table.title}")
    for run in scored
    for table in score_tables.provenance_tables(run.report.get("provenance"))
  ]
  if shown:
    lines = (
      "informed: said by the user; accepted: said by the system before; carried: taken over from "
      "another service (coreference).",
    )
    yield Section("provenance", "Provenance of values", lines, tuple(shown), ())


def _calls(scored: Sequence[Run]) -> Iterator[Section]:
  """What runs that are tool calls do besides states."""
  if shown := run_tables.calls(scored):
    lines = (
      "Of calls as they were made, right or wrong. Wrong: a tool of a service that the dialogue "
      "has not had; unknown: of none. Invented and mistyped are shares of the arguments, intent of "
      "the frames with an active one. Abstained: no call where no tool fits, which is right; "
      "missed: no call where one fits. Trackers without calls are not in these tables.",
    )
    yield Section("calls", "Tool calls", lines, shown, ())


def _steps(scored: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  shown, lines = [], []
  for run in scored:
    if plot_numbers.num_points(run) > 1:
      shown.append(run_tables.checkpoints(run))
      lines += [f"{run.name}: {run.steps_note}"] if run.steps_note else []
      lines.append(_best_steps(run))
  if shown:
    drawn = {"by_step": ("JGA and SS against training step", plots.by_step(scored))}
    notes = [f"{run.name}: {run.steps_note}." for run in scored if run.steps_note]
    caption = " ".join(notes) if notes else _caption(scored)
    placed = _plots(drawn, caption, figures)
    lines, shown = tuple(lines), tuple(shown)
    yield Section("checkpoints", "Checkpoints", lines, shown, placed, signed=not notes)


def _best_steps(run: Run) -> str:
  """The best checkpoint on the original schemas need not be the most robust one (CheckDST)."""
  best = plot_numbers.best_checkpoints(run).items()
  words = (f"best {plot_numbers.NAMES[key]} at step {step:,}" for key, (step, _) in best)
  return f"{run.name}: {', '.join(words)}"


def _comparisons(scored: Sequence[Run]) -> Iterator[Section]:
  first, *others = scored
  for number, run in enumerate(others):
    title = f"{run.name} against {first.name}"
    yield Section(f"comparison-{number + 1}", title, *_comparison(first, run))


def _comparison(first: Run, run: Run) -> tuple[tuple[str, ...], tuple[Table, ...]]:
  lacking = [r.name for r in (first, run) if r.table is None]
  if lacking:
    return (f"no paired comparison: {', '.join(lacking)} without scores per frame",), ()
  names = f"A is {first.name}, B is {run.name}"
  try:
    compared = compare.compare(first.table, run.table, allow_missing=True)
  except SgdxError as e:
    return (f"no paired comparison: {e.found} ({names})",), ()
  # What makes the runs themselves PARTIAL is at the top of the page.
  above = {f"{x}: {line}" for x, r in (("A", first), ("B", run)) for line in r.report["warnings"]}
  new = (line for line in compared.warnings if line not in above)
  notes = (*compared.notes, *(f"PARTIAL: {line}" for line in new))
  shown = comparison_tables.tables(first.name, run.name, compared)
  lines = (
    f"Differences are {run.name} minus {first.name} in percentage points, with 95% intervals by "
    "paired resampling of dialogues; more is better, but less of SS, lost and spread. p is "
    "two-sided, of JGA_v1-5 in the table of services, at least 2 / 2^D of D dialogues, and not "
    "corrected for how many numbers are looked at. Broken: frames right (JGA 1) with "
    f"{first.name} and wrong with {run.name}, counted per schema variant; fixed: the reverse.",
    *((f"{line} ({names})") for line in notes),
    *comparison_tables.worst_and_best(shown[1]),
  )
  return lines, tuple(shown)


def _services(scored: Sequence[Run], figures: dict[str, Any]) -> Section:
  drawn = {
    "sensitivity_by_service": (
      "Schema sensitivity and JGA_v1-5 per service",
      plots.sensitivity_by_service(scored),
    )
  }
  shown = tuple(run_tables.services(run) for run in scored)
  return Section("services", "Services", (), shown, _plots(drawn, _caption(scored), figures))


def _has_errors(run: Run) -> bool:
  """Whether it is known which slots of a run are wrong, though there may be none."""
  return run.table is not None and run.table.failures is not None


def _errors(scored: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  listed = [run for run in scored if _has_errors(run)]
  if not listed:
    return
  sizes = {run.name: run.rows.groups["all"].num_frames for run in listed}
  counts = {run.name: browser.kind_counts(run) for run in listed}
  drawn = {"error_kinds": ("Kinds of slot errors", plots.error_kinds(counts, sizes))}
  shown = [table for run in listed for table in (run_tables.errors(run), run_tables.slots(run))]
  lines = (
    "A slot of a frame is an error if its official score is below 1. The first of these that fits "
    "is its kind. missed: the gold state has the slot, the predicted one not. value of another "
    "slot: the predicted value is another slot's in the gold state of the frame. spurious: the "
    "gold state does not have the slot. wrong categorical choice, wrong value: it has another "
    "value.",
    *(_most(run.name, counts[run.name]) for run in listed),
  )
  yield Section(
    "errors",
    "Errors",
    lines,
    tuple(table for table in shown if table),
    _plots(drawn, _caption(scored), figures),
  )


def _most(name: str, counts: Mapping[str, Mapping[str, int]]) -> str:
  """The paper's observation, or that it does not hold: most errors are slots not predicted."""
  of, shares = plot_numbers.shares_of_kinds(counts)
  if not any(shares.values()):
    return f"{name}: no errors"
  shown = ", ".join(f"{kind} {percent(share)}%" for kind, share in shares.items())
  kind = max(shares, key=lambda kind: shares[kind])
  return f"{name}: the most frequent kind is {kind} ({of}: {shown})"


def _plots(
  drawn: Mapping[str, tuple[str, Any]], caption: str, figures: dict[str, Any]
) -> tuple[Plot, ...]:
  """Keeps the figures that could be drawn, and returns their places in the page."""
  kept = {name: item for name, item in drawn.items() if item[1] is not None}
  figures.update({name: figure for name, (_, figure) in kept.items()})
  return tuple(Plot(name, title, caption, "") for name, (title, _) in kept.items())


def _caption(scored: Sequence[Run]) -> str:
  """n, what the intervals are, and the signature: of each run if they differ."""
  rows = [run.rows.groups["all"] for run in scored]
  sizes = {f"n = {row.num_frames:,} frames of {row.num_dialogues:,} dialogues" for row in rows}
  signatures = runs.signatures(scored).values()
  intervals = " 95% intervals by resampling dialogues." if any(r.intervals for r in rows) else ""
  return f"{'; '.join(sorted(sizes))}.{intervals} Signature: {' '.join(signatures)}"


# --- files ---------------------------------------------------------------------------------


def _with_svg(section: Section, content: Content) -> Section:
  """Puts the drawings into a section's plots."""
  filled = tuple(
    dataclasses.replace(plot, svg=plot_style.inline_svg(content.figures[plot.name]))
    for plot in section.plots
  )
  return dataclasses.replace(section, plots=filled)


def _write_tables(content: Content, folder: pathlib.Path) -> None:
  """Writes each table as Markdown, LaTeX and CSV, its marks and signatures with it."""
  folder.mkdir()
  signatures = runs.signatures(content.runs)
  names = table_files(content.sections)
  for section in content.sections:
    about = {"marks": content.marks, "warnings": content.warnings, "signatures": signatures}
    if not section.signed:
      about = {"marks": content.marks, "notes": section.lines}
    for table in section.tables:
      for form, ending in (("md", "md"), ("latex", "tex"), ("csv", "csv")):
        file = folder / f"{names[table.title]}.{ending}"
        file.write_text(document(form, [table], **about), "utf-8", "replace")


def _write_runs(content: Content, folder: pathlib.Path) -> list[str]:
  """Writes each run's examples, and its scores if they are in no file yet; returns the former."""
  written = []
  for number, run in enumerate(content.runs, start=1):
    stem = re.sub(r"[^\w.-]+", "-", run.name)[:60].strip(".") or "run"
    stem = stem if len(content.runs) == 1 else f"{number}-{stem}"
    if run.scored:
      scores = folder / "scores"
      scores.mkdir(exist_ok=True)
      score_files.save(
        run.report, run.table, scores / f"{stem}.json", scores / f"{stem}.frames.jsonl"
      )
    if _has_errors(run):
      (folder / "errors").mkdir(exist_ok=True)
      written.append(f"errors/{stem}.jsonl")
      first = content.runs[0] if number > 1 else None
      with (folder / written[-1]).open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{line}\n" for line in browser.jsonl_lines(run, content.texts, first))
  return written
