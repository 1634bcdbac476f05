"""Writes a report: the page, and its plots, tables and examples as files beside it."""

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import atomic_folder, check_folder, list_files
from sgdx_t5x.report import browser, plot_numbers, plots, run_tables, runs
from sgdx_t5x.report.page import Page, Plot, Section, render, table_files
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring import compare, comparison_tables, score_files, score_tables
from sgdx_t5x.signature import package_version
from sgdx_t5x.tables import Table, count, document, percent

PAGE = "report.html"
FILES = "files.txt"  # of a report: a report is replaced, and what is not in the list never
_CORPUS = "dialogues and wordings are not shown: give the corpus with --corpus"


@dataclasses.dataclass(frozen=True)
class Content:
  """What a report says, before it is written.

  Attributes:
    title: of the page.
    runs: in order, the first is what others are compared with.
    marks: what makes the runs incomparable, if they are shown side by side all the same.
    warnings: what makes them PARTIAL, a line each.
    sections: of the page; plots without their drawings.
    figures: name of a plot -> matplotlib figure.
    texts: of the corpus.
    lacks: what is missing for a whole report, and how to get it, a line each.
  """

  title: str
  runs: tuple[Run, ...]
  marks: tuple[str, ...]
  warnings: tuple[str, ...]
  sections: tuple[Section, ...]
  figures: Mapping[str, Any]
  texts: browser.Texts
  lacks: tuple[str, ...]


def make(title: str, found: Sequence[Run], corpus: Corpus | None, force: bool = False) -> Content:
  """Makes a report of runs.

  Args:
    title: of the page.
    found: the runs, at least one.
    corpus: that they were scored with, for dialogues and the wordings of slots, if it is at hand.
    force: show runs side by side that were scored on other data or by other rules.

  Raises:
    SgdxError: such runs, without `force`; a corpus that is not theirs.
  """
  marks = _refuse_unlike(found, force)
  texts, lacks = _texts(found, corpus)
  lacks = [*(line for run in found for line in run.lacks), *lacks]
  warnings = _lines(found, lambda run: run.report["warnings"])
  figures: dict[str, Any] = {}
  sections = (
    _overview(found, lacks, figures),
    *_steps(found, figures),
    *_comparisons(found),
    _services(found, figures),
    *_failures(found, figures),
  )
  return Content(
    title, tuple(found), marks, tuple(warnings), sections, figures, texts, tuple(lacks)
  )


def write(content: Content, out: pathlib.Path, examples: int = browser.EXAMPLES) -> pathlib.Path:
  """Writes a report into a folder, whole or not at all; returns the path of the page.

  Args:
    content: from `make`.
    out: the folder; a report that is there is replaced.
    examples: frames to embed in the page per run, service, slot, version and kind; 0: no browser
      of errors, so nothing of the corpus but names.

  Raises:
    SgdxError: something else is in the folder, or it cannot be written.
  """
  check_out(out)
  words = [
    *(["NOT COMPARABLE"] if content.marks else []),
    *(["PARTIAL"] if content.warnings else []),
  ]
  with atomic_folder(out, "--out") as folder:
    folder.mkdir()
    (folder / "plots").mkdir()
    for name, figure in content.figures.items():
      if words:
        plots.stamp(figure, ", ".join(words))
      plots.save(figure, folder / "plots", name)
    _write_tables(content, folder / "tables")
    examples_of = _write_runs(content, folder)
    browsed = examples and any(r.table and r.table.failures is not None for r in content.runs)
    data = browser.embed(content.runs, content.texts, examples_of, examples) if browsed else None
    page = Page(
      content.title,
      (*content.marks, *(f"PARTIAL: {line}" for line in content.warnings)),
      tuple(_drawn(section, content) for section in content.sections),
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


# --- what it says --------------------------------------------------------------------------


def _refuse_unlike(found: Sequence[Run], force: bool) -> tuple[str, ...]:
  unlike = list(runs.differences(found))
  if unlike and not force:
    raise SgdxError(
      "the runs were not scored alike: " + "; ".join(unlike),
      expected="the same corpus, split and frames, scored by the same rules",
      fix="score them alike, or report them one by one; --force shows them all the same, marked",
    )
  return tuple(f"NOT COMPARABLE: {line}" for line in unlike)


def _texts(found: Sequence[Run], corpus: Corpus | None) -> tuple[browser.Texts, list[str]]:
  if corpus is None:
    has_failures = any(run.table and run.table.failures for run in found)
    return browser.Texts(), [_CORPUS] if has_failures else []
  if all(runs.corpus_of(run)[1] != corpus.checksum() for run in found):
    raise SgdxError(
      f"{corpus.origin} is not the corpus of {found[0].name}",
      expected=f"checksum {runs.corpus_of(found[0])[1]}, as its signature says",
      available=f"checksum {corpus.checksum()}",
      fix="give --corpus what `sgdx score` was given, or leave it out: the page has less then",
    )
  data = {(runs.corpus_of(run)[1], runs.split_of(run)) for run in found}
  if len(data) > 1:  # ids of dialogues are the same in other corpora and splits
    return browser.Texts(), ["dialogues and wordings are not shown: the runs are of different data"]
  return browser.read_texts(corpus, runs.split_of(found[0]), found), []


def _overview(found: Sequence[Run], lacks: Sequence[str], figures: dict[str, Any]) -> Section:
  lines = [
    *lacks,
    *_lines(found, lambda run: [*run.report["notes"], *score_tables.absent(run.report)]),
  ]
  means = run_tables.seeds(found)
  shown = [run_tables.sources(found), run_tables.summary(found), run_tables.versions(found)]
  shown += [means] if means else []
  drawn = {
    "jga_by_variant": ("JGA by schema version", plots.jga_by_variant(found)),
    "jga_by_augmentation": ("JGA by run", plots.jga_by_augmentation(found)),
  }
  return Section(
    "overview", "Overview", tuple(lines), tuple(shown), _plots(drawn, _caption(found), figures)
  )


def _lines(found: Sequence[Run], lines: Callable[[Run], Iterable[str]]) -> list[str]:
  return [f"{names}: {line}" for names, line in runs.said(found, lines)]


def _steps(found: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  shown, lines = [], []
  for run in found:
    if plot_numbers.num_points(run) > 1:
      keys = {"jga_orig": "JGA_orig", "jga_v1_5": "JGA_v1-5", "ss_jga": "SS_JGA"}
      rows = tuple(
        (count(step), *(percent(row.get(key)) for key in keys), count(row.get("num_frames")))
        for step, row in run.steps
      )
      title = f"Checkpoints{', as logged' if run.steps_note else ''}: {run.name} (%)"
      shown.append(Table(title, ("step", *keys.values(), "frames"), rows))
      lines += [f"{run.name}: {run.steps_note}"] if run.steps_note else []
      lines.append(_best_steps(run))
  if shown:
    drawn = {"by_step": ("JGA and SS against training step", plots.by_step(found))}
    notes = [f"{run.name}: {run.steps_note}." for run in found if run.steps_note]
    caption = " ".join(notes) if notes else _caption(found)
    placed = _plots(drawn, caption, figures)
    lines, shown = tuple(lines), tuple(shown)
    yield Section("checkpoints", "Checkpoints", lines, shown, placed, signed=not notes)


def _best_steps(run: Run) -> str:
  """The best checkpoint on the original schemas need not be the most robust one (CheckDST)."""
  best = plot_numbers.best_checkpoints(run).items()
  said = (f"best {plot_numbers.NAMES[key]} at step {step:,}" for key, (step, _) in best)
  return f"{run.name}: {', '.join(said)}"


def _comparisons(found: Sequence[Run]) -> Iterator[Section]:
  first, *others = found
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
  said = (*compared.notes, *(f"PARTIAL: {line}" for line in compared.warnings))
  shown = comparison_tables.tables(first.name, run.name, compared)
  lines = (
    f"Differences are {run.name} minus {first.name} in percentage points, with 95% intervals by "
    "paired resampling of dialogues; more is better, except that less SS is. p is two-sided, of "
    "JGA_v1-5 in the table of services, at least 2 / 2^D of D dialogues, and not corrected for how "
    f"many numbers are looked at. Broken: frames right (JGA 1) with {first.name} and wrong with "
    f"{run.name}, counted per schema version; fixed: the reverse.",
    *((f"{line} ({names})") for line in said),
    *comparison_tables.worst_and_best(shown[1]),
  )
  return lines, tuple(shown)


def _services(found: Sequence[Run], figures: dict[str, Any]) -> Section:
  drawn = {
    "sensitivity_by_service": (
      "Schema sensitivity and JGA_v1-5 per service",
      plots.sensitivity_by_service(found),
    )
  }
  shown = tuple(run_tables.services(run) for run in found)
  return Section("services", "Services", (), shown, _plots(drawn, _caption(found), figures))


def _failures(found: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  known = [run for run in found if run.table and run.table.failures is not None]
  if not known:
    return
  sizes = {run.name: run.report["sgdx"]["all"]["num_frames"] for run in known}
  counts = {run.name: browser.kind_counts(run) for run in known}
  drawn = {"failure_kinds": ("How slots fail", plots.failure_kinds(counts, sizes))}
  shown = [table for run in known for table in (run_tables.failures(run), run_tables.slots(run))]
  lines = (
    "A slot of a frame fails if its official score is below 1. The first of these that fits is the "
    "kind. missed: the gold state has the slot, the predicted one not. value of another slot: the "
    "predicted value is another slot's in the gold state of the frame. spurious: the gold state "
    "does not have the slot. wrong categorical choice, wrong value: it has another value.",
    *(_most(run.name, counts[run.name]) for run in known),
  )
  yield Section(
    "failures",
    "Failures",
    lines,
    tuple(table for table in shown if table),
    _plots(drawn, _caption(found), figures),
  )


def _most(name: str, counts: Mapping[str, Mapping[str, int]]) -> str:
  """The paper's observation, or that it does not hold: most errors are slots not predicted."""
  of, shares = plot_numbers.shares_of_kinds(counts)
  if not any(shares.values()):
    return f"{name}: no slot fails"
  shown = ", ".join(f"{kind} {percent(share)}%" for kind, share in shares.items())
  kind = max(shares, key=lambda kind: shares[kind])
  return f"{name}: the most frequent kind is {kind} ({of}: {shown})"


def _plots(
  drawn: Mapping[str, tuple[str, Any]], caption: str, figures: dict[str, Any]
) -> tuple[Plot, ...]:
  """Keeps the figures that there are, and returns their places in the page."""
  kept = {name: item for name, item in drawn.items() if item[1] is not None}
  figures.update({name: figure for name, (_, figure) in kept.items()})
  return tuple(Plot(name, title, caption, "") for name, (title, _) in kept.items())


def _caption(found: Sequence[Run]) -> str:
  """n, what the intervals are, and the signature: of each run if they differ."""
  rows = {run.name: run.report["sgdx"]["all"] for run in found}
  sizes = {
    f"n = {row['num_frames']:,} frames of {row['num_dialogues']:,} dialogues"
    for row in rows.values()
  }
  signatures = runs.signatures(found).values()
  intervals = (
    " 95% intervals by resampling dialogues." if any("ci95" in r for r in rows.values()) else ""
  )
  return f"{'; '.join(sorted(sizes))}.{intervals} Signature: {' '.join(signatures)}"


# --- files ---------------------------------------------------------------------------------


def _drawn(section: Section, content: Content) -> Section:
  """Puts the drawings into a section's plots."""
  filled = tuple(
    dataclasses.replace(plot, svg=plots.inline_svg(content.figures[plot.name]))
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
      _write_scores(run, folder / "scores", stem)
    if run.table and run.table.failures is not None:
      (folder / "errors").mkdir(exist_ok=True)
      written.append(f"errors/{stem}.jsonl")
      first = content.runs[0] if number > 1 else None
      with (folder / written[-1]).open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{line}\n" for line in browser.jsonl_lines(run, content.texts, first))
  return written


def _write_scores(run: Run, folder: pathlib.Path, stem: str) -> None:
  folder.mkdir(exist_ok=True)
  frames = folder / f"{stem}.frames.jsonl"
  checksum = score_files.write_frames(
    frames, run.report["signature"], run.table.scores, run.table.failures
  )
  report = {**run.report, "per_frame": {"file": frames.name, "checksum": checksum}}
  text = json.dumps(report, indent=2, allow_nan=False) + "\n"
  (folder / f"{stem}.json").write_text(text, encoding="utf-8")
