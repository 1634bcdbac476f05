"""`sgdx report`: the paper's tables and figures for any runs, and the errors behind them.

examples:
  Predictions of t5x.eval, which are first scored with the usual settings:
    sgdx report runs/quickstart/eval --corpus sample --out report

  Runs scored before, with scores per frame; the first is the baseline:
    sgdx score --corpus sgd.zip --predictions all=base/eval --json base.json \\
      --per-frame base.frames.jsonl
    sgdx report none=base.json backtrans=bt.json --corpus sgd.zip --out report

  Runs of a system with several seeds, SYSTEM#SEED, for means and deviations:
    sgdx report bt#0=b0.json bt#1=b1.json --out report

RUN is a file of `sgdx score --json`, next to its --per-frame file if there is
one; or predictions: a folder or JSONL file of t5x.eval or t5x.infer, or a
folder with a folder or file per schema variant (original, v1 ... v5, bt_zh,
those of --schemas). Of several checkpoints, tables show the last and a plot
shows all. A run is named NAME, or after its file or folder. DIR will contain
report.html, which needs no other file and no network; plots, tables, and all
errors. See docs/report.md.
"""

import argparse
import pathlib
from typing import TYPE_CHECKING, Any

from sgdx_t5x import annexes
from sgdx_t5x.cli.options import CORPUS, add_command, add_reading, add_split
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs, corpus_path, named_path
from sgdx_t5x.errors import UsageError, require

if TYPE_CHECKING:
  from sgdx_t5x.cli.progress import Update
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.report.browser import Texts
  from sgdx_t5x.report.runs import Run

_TITLE = "Robustness to schema wording"
_OF_PREDICTIONS = ("split", "prompt_style", "allow_missing")  # options only for runs to score


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "write a page of tables, figures and errors for one or more runs"
  parser = add_command(subparsers, "report", __doc__, help=summary)
  text = "[NAME=]PATH, see below"
  add_input(parser, "runs", nargs="+", metavar="RUN", help=text, path=named_path)
  text = "folder for the report"
  add_output(parser, "--out", required=True, metavar="DIR", help=text, folder=True)
  text = f"{CORPUS}: to show its dialogues and schemas"
  add_input(parser, "--corpus", help=text, path=corpus_path)
  text = (
    "frames to embed per run, service, slot, variant and kind of error (default: 5); 0: no "
    "error browser, to publish the page without text of the corpus"
  )
  parser.add_argument("--examples", type=int, default=5, metavar="N", help=text)
  text = "compare runs that were scored with different settings, and mark every table"
  parser.add_argument("--force", action="store_true", help=text)
  scoring = parser.add_argument_group("for predictions, which are scored first")
  add_split(scoring)
  add_reading(scoring)
  for module in annexes.table("REPORT_OPTIONS").values():
    annexes.load(module).add_options(parser)
  parser.set_defaults(run=run, usual={name: parser.get_default(name) for name in _OF_PREDICTIONS})


def run(args: argparse.Namespace) -> int:
  """Scores what is not scored, writes the report, prints its summary. Returns 0."""
  # Before the work: libraries that are needed after it.
  require("jinja2", extra="report", why="the page of `sgdx report`")
  require("matplotlib", extra="report", why="the plots of `sgdx report`")
  from sgdx_t5x.cli import output
  from sgdx_t5x.cli.options import check_least, no_cycles, parse_schemas
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.files.locks import lock
  from sgdx_t5x.report import build, run_tables, runs

  check_least(args, "examples", 0, "omit it to use the default, 5")
  out = pathlib.Path(args.out)
  # Locked from the check to the end: two reports at once would mix their files.
  with lock(out), no_cycles(), progress("parts") as update:
    build.check_out(out)
    check_no_inputs(args, [out])
    scored, corpus = _runs(args, update)
    texts = _texts_of_annexes(scored, corpus, args)
    schemas = parse_schemas(args)
    content = build.make(_TITLE, scored, corpus, args.force, update, texts, schemas)
    page = build.write(content, out, args.examples, update)
  seeds = run_tables.seeds(scored)
  tables = [run_tables.variants(scored), *([seeds] if seeds else [])]
  signatures = runs.signatures(scored) if len(scored) > 1 else {"": scored[0].report["signature"]}
  notes = [*content.lacks, f"report: {page}"]
  marks, warnings = content.marks, content.warnings
  output.show(
    "text", tables, {}, marks=marks, warnings=warnings, notes=notes, signatures=signatures
  )
  return 0


def _texts_of_annexes(
  scored: "list[Run]", corpus: "Corpus | None", args: argparse.Namespace
) -> "Texts":
  from sgdx_t5x.report.browser import Texts

  texts = Texts()
  for annex in _annexes("read_texts"):
    of_annex = annex.read_texts(scored, corpus, args)
    said, edits = {**texts.said, **of_annex.said}, {**texts.edits, **of_annex.edits}
    texts = Texts(said=said, edits=edits, lacks=[*texts.lacks, *of_annex.lacks])
  return texts


def _runs(args: argparse.Namespace, on_progress: "Update") -> "tuple[list[Run], Corpus | None]":
  from sgdx_t5x.cli.options import scoring_settings
  from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
  from sgdx_t5x.report import runs

  paths = runs.parse_names(args.runs)
  unscored = {name for name, path in paths.items() if runs.is_predictions(path)}
  if not unscored:  # before anything is read
    _check_no_scoring_options(args)
  corpus = open_corpus(args.corpus) if args.corpus else None
  settings = {**scoring_settings(args), "on_progress": on_progress}
  scored = []
  for name, path in paths.items():
    if name not in unscored:
      scored.append(runs.read_run(name, path))
      continue
    if corpus is None:
      raise UsageError(
        f"{path} holds predictions, but there is no --corpus",
        expected="the corpus that was predicted, to score against",
        fix="add --corpus ARCHIVE or --corpus sample, or pass a file of `sgdx score --json`",
      )
    scored.append(runs.score_run(name, path, corpus, args.split, **settings))
  if corpus is None and all(run.signature.corpus == SAMPLE for run in scored):
    sample = open_corpus(SAMPLE)  # unless the runs were scored with another release of it
    is_theirs = any(run.signature.checksum == sample.checksum() for run in scored)
    corpus = sample if is_theirs else None
  for annex in _annexes("read"):
    scored = annex.read(scored, args)
  return scored, corpus


def _check_no_scoring_options(args: argparse.Namespace) -> None:
  """Refuses options that have no effect where every run is scored already."""
  changed = [name for name, value in args.usual.items() if getattr(args, name) != value]
  if changed:
    option = "--" + changed[0].replace("_", "-")
    raise UsageError(
      f"{option}, but every RUN is already scored",
      expected="predictions to score with it: a folder, or JSONL of t5x.eval or t5x.infer",
      fix=f"pass the predictions instead, or run `sgdx score` again with {option}",
    )


def _annexes(function: str) -> list[Any]:
  """Returns the modules of the annexes' sections that have a function, see `report.sections`."""
  from sgdx_t5x.report.sections import annex_sections

  return [module for module in annex_sections() if hasattr(module, function)]
