"""Writes a report: the page, and its plots, tables and examples as separate files."""

import dataclasses
import itertools
import os
import pathlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sgdx_t5x.arguments import NUMBER, PATH, check_kind, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.writing import atomic_folder, check_folder, list_files
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.report import browser, plot_style, run_tables, runs
from sgdx_t5x.report.browser import Texts
from sgdx_t5x.report.page import Page, Section, render, table_files
from sgdx_t5x.report.runs import Run
from sgdx_t5x.report.sections import lines_of, make_sections
from sgdx_t5x.scoring import score_files
from sgdx_t5x.scoring.notes import schema_checksum
from sgdx_t5x.signature import package_version
from sgdx_t5x.tables import document
from sgdx_t5x.variants.variant_schemas import VariantSchemas

PAGE = "report.html"
FILES = "files.txt"  # lists the files of a report; only these may be replaced
_NOT_SHOWN = "dialogues and slot names are not shown: "


@dataclasses.dataclass(frozen=True)
class Content:
  """The content of a report, before it is written.

  Attributes:
    title: title of the page.
    runs: in order; the others are compared with the first.
    marks: what makes the runs incomparable, if they are shown side by side nevertheless.
    warnings: what makes them PARTIAL, a line each.
    sections: sections of the page; plots lack their SVG.
    texts: texts of the corpus.
    lacks: what is missing for a full report, and how to get it, a line each.
  """

  title: str
  runs: tuple[Run, ...]
  marks: tuple[str, ...]
  warnings: tuple[str, ...]
  sections: tuple[Section, ...]
  texts: Texts
  lacks: tuple[str, ...]

  def __repr__(self) -> str:
    names = ", ".join(run.name for run in self.runs)
    return f"<Content {self.title!r} of {names}: {len(self.sections)} sections>"


@checked_arguments(
  "make_report",
  title=str,
  scored=Collection,
  corpus=(Corpus, *PATH),
  force=bool,
  on_progress=Callable,
  others=Texts,
  schemas=Mapping,
)
def make(
  title: str,
  scored: Sequence[Run],
  corpus: Corpus | str | os.PathLike | None = None,
  force: bool = False,
  on_progress: OnProgress = lambda *_: None,
  others: Texts | None = None,
  schemas: Mapping[str, str] | None = None,
) -> Content:
  """Makes a report of runs.

  Args:
    title: title of the page.
    scored: runs with unique names.
    corpus: what they were scored with, for dialogues and slot descriptions.
    force: show incomparable runs side by side.
    on_progress: called with (task, done, total, unit).
    others: texts of `Run.others`: what they say, edit and lack.
    schemas: variant -> folder of its schemas, for variants of one's own.

  Raises:
    SgdxError: incomparable runs, without `force`; a corpus that they were not scored with.
  """
  scored = tuple(scored)  # not every collection has a first item
  if not scored:
    raise UsageError("no runs", expected="at least one", fix="pass [read_run(NAME, PATH), ...]")
  names: set[str] = set()
  for run in scored:
    check_kind(run, "make_report: an item of scored", Run)
    if run.name in names:  # which tables, files and examples are found by
      raise UsageError(
        f"two runs are named {run.name}",
        expected="unique names",
        fix="give one of them another name: read_run(NAME, PATH)",
      )
    names.add(run.name)
  if corpus is not None and not isinstance(corpus, Corpus):
    corpus = open_corpus(corpus)
  marks = _check_comparable(scored, force)
  on_progress("making sections", 0, 9, "parts")
  texts, others = _texts(scored, corpus, schemas or {}), others or Texts()
  lacks_of_runs, lacks_of_others = [], []
  for run in scored:
    lacks_of_runs += run.lacks
    lacks_of_others += run.others.lacks if run.others else ()
  for system, seeded in run_tables.systems(scored).items():
    for a, b in itertools.combinations(seeded, 2):
      # Not refused: of runs too short to learn anything, none predicts any value.
      if a.report["sgdx"] == b.report["sgdx"]:
        both = f"{a.origin} and {b.origin}"
        lacks_of_runs.append(f"{system}: {both} have equal scores: one run twice?")
  lacks = [*lacks_of_runs, *texts.lacks, *lacks_of_others, *others.lacks]
  texts = dataclasses.replace(texts, said=others.said, edits=others.edits)
  warnings = lines_of(scored, _warnings)
  sections = make_sections(scored, lacks, on_progress)
  return Content(title, scored, marks, tuple(warnings), sections, texts, tuple(lacks))


@checked_arguments("write_report", content=Content, out=PATH, examples=NUMBER, on_progress=Callable)
def write(
  content: Content,
  out: str | os.PathLike,
  examples: int = browser.EXAMPLES,
  on_progress: OnProgress = lambda *_: None,
) -> pathlib.Path:
  """Writes a report into a folder atomically; returns the path of the page.

  Args:
    content: from `make_report`.
    out: the folder; a report in it is replaced.
    examples: frames to embed per run, service, slot, variant and kind; 0: no error browser.
    on_progress: called with (task, done, total, unit).

  Raises:
    SgdxError: the folder holds something else, or cannot be written.
  """
  if examples < 0:
    raise UsageError(
      f"examples = {examples}", expected="0 or more", fix="omit it to use the default, 5"
    )
  out = pathlib.Path(out)
  check_out(out)
  caveats = {"NOT COMPARABLE": content.marks, "PARTIAL": content.warnings}
  mark = ", ".join(word for word, lines in caveats.items() if lines)
  with atomic_folder(out, "--out") as folder:
    folder.mkdir()
    (folder / "plots").mkdir()
    plots = [plot for section in content.sections for plot in section.plots]
    for number, plot in enumerate(plots):
      on_progress("saving plots", number, len(plots), "plots")
      if mark:
        plot_style.stamp(plot.figure, mark)
      plot_style.save(plot.figure, folder / "plots", plot.name)
    on_progress("saving plots", len(plots), len(plots), "plots")
    _write_tables(content, folder / "tables")
    # Examples and the page's browser show the same frames with errors, which are found once.
    baseline = content.runs[0]
    rows_of = []
    for run in content.runs:
      rows_of.append(list(browser.frame_rows(run, None if run is baseline else baseline)))
    examples_of = _write_runs(content, rows_of, folder)
    data = None
    if examples and any(run.failures is not None for run in content.runs):
      data = browser.embed(content.runs, rows_of, content.texts, examples_of, examples)
    (folder / PAGE).write_text(render(_page(content, data, mark)), encoding="utf-8")
    names = (*list_files(folder), FILES)
    (folder / FILES).write_text("".join(f"{name}\n" for name in names), "utf-8")
  return out / PAGE


def _page(content: Content, data: Mapping[str, Any] | None, mark: str) -> Page:
  """Returns the page. Args: data, of the error browser; mark, above every table and plot."""
  warnings = [f"PARTIAL: {line}" for line in content.warnings]
  sections = []
  for section in content.sections:
    placed = []
    for plot in section.plots:
      placed.append(dataclasses.replace(plot, svg=plot_style.inline_svg(plot.figure)))
    sections.append(dataclasses.replace(section, plots=tuple(placed)))
  return Page(
    content.title,
    (*content.marks, *warnings),
    tuple(sections),
    tuple(runs.signatures(content.runs).items()),
    data,
    package_version(),
    mark,
  )


def check_out(out: pathlib.Path) -> None:
  """Raises SgdxError if a folder contains any file that is not part of a report."""
  listed = out / FILES
  ours = listed.read_text("utf-8", errors="replace").splitlines() if listed.is_file() else []
  check_folder(
    out,
    replace=True,
    ours=lambda path: path.as_posix() in ours,
    expected=f"a new or empty folder, or one with only a report, whose files are listed in {FILES}",
  )


def _check_comparable(scored: Sequence[Run], force: bool) -> tuple[str, ...]:
  differences = list(runs.differences(scored))
  if differences and not force:
    raise SgdxError(
      "the runs were scored with different settings: " + "; ".join(differences),
      expected="runs with the same corpus, split, frames and scoring settings",
      fix="score them with the same settings, or report them separately; --force shows them "
      "side by side, marked NOT COMPARABLE",
    )
  return tuple(f"NOT COMPARABLE: {line}" for line in differences)


def _texts(scored: Sequence[Run], corpus: Corpus | None, schemas: Mapping[str, str]) -> Texts:
  if corpus is None:
    to_show = any(run.failures for run in scored)
    return Texts(lacks=[_NOT_SHOWN + "pass the corpus with --corpus"] if to_show else ())
  # With --force, some of the runs may have another corpus: see below.
  if all(run.signature.checksum != corpus.checksum() for run in scored):
    raise SgdxError(
      f"{corpus.origin} is not the corpus of {scored[0].name}",
      expected=f"checksum {scored[0].signature.checksum}, as in its signature",
      available=f"checksum {corpus.checksum()}",
      fix="pass the same --corpus as to `sgdx score`, or omit it for a page with less detail",
    )
  data = {(run.signature.checksum, run.signature.split) for run in scored}
  if len(data) > 1:  # dialogue ids repeat between corpora and splits
    return Texts(lacks=[_NOT_SHOWN + "the runs have different corpora or splits"])
  of_variants = VariantSchemas(corpus, schemas)
  _check_own_schemas(scored, of_variants)
  return browser.read_texts(corpus, scored[0].signature.split, scored, of_variants)


def _check_own_schemas(scored: Sequence[Run], of_variants: VariantSchemas) -> None:
  """Refuses schemas of variants of the user's own that are not those that were scored."""
  for run in scored:
    for variant, checksum in run.signature.own_schemas.items():
      own_checksum = schema_checksum(of_variants.get(run.signature.split, variant))
      if own_checksum != checksum:
        raise SgdxError(
          f"the schemas of {variant} are not those that {run.name} was scored with",
          expected=f"checksum {checksum}, as in its signature",
          available=f"checksum {own_checksum}",
          fix=f"pass the same --schemas {variant}=DIR as to `sgdx score`",
        )


def _warnings(run: Run) -> list[str]:
  others = run.others.warnings if run.others else ()
  return list(dict.fromkeys((*run.report["warnings"], *others)))


# --- files ---------------------------------------------------------------------------------


def _write_tables(content: Content, folder: pathlib.Path) -> None:
  """Writes each table as Markdown, LaTeX and CSV, with its marks and signatures."""
  folder.mkdir()
  signatures = runs.signatures(content.runs)
  names = table_files(content.sections)
  for section in content.sections:
    context: dict[str, Any] = {"warnings": content.warnings, "signatures": signatures}
    if not section.signed:
      context = {"notes": section.lines}
    for table in section.tables:
      for form, ending in (("md", "md"), ("latex", "tex"), ("csv", "csv")):
        file = folder / f"{names[table.title]}.{ending}"
        text = document(form, [table], marks=content.marks, **context)
        file.write_text(text, "utf-8", "replace")  # names may hold lone surrogates


def _write_runs(
  content: Content, rows_of: Sequence[Sequence[Mapping[str, Any]]], folder: pathlib.Path
) -> list[str]:
  """Writes each run's examples, and its scores if not saved yet; returns the example files."""
  example_files = []
  for number, (run, rows) in enumerate(zip(content.runs, rows_of, strict=True), start=1):
    stem = re.sub(r"[^\w.-]+", "-", run.name)[:60].strip(".") or "run"
    # Different names can have the same stem.
    stem = stem if len(content.runs) == 1 else f"{number}-{stem}"
    if run.scored:
      scores = folder / "scores"
      scores.mkdir(exist_ok=True)
      score_files.save(
        run.report, run.table, scores / f"{stem}.json", scores / f"{stem}.frames.jsonl"
      )
    if run.failures is not None:
      (folder / "errors").mkdir(exist_ok=True)
      example_files.append(f"errors/{stem}.jsonl")
      with (folder / example_files[-1]).open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{line}\n" for line in browser.jsonl_lines(rows, content.texts))
  return example_files
