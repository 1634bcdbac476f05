"""`sgdx report`: the paper's tables and figures for any runs, and the errors behind them."""

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from sgdx_t5x import annexes
from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import (
  CORPUS,
  add_command,
  add_reading,
  add_split,
  no_cycles,
  parse_schemas,
)
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs, corpus_path, named_path
from sgdx_t5x.cli.progress import Update, progress
from sgdx_t5x.errors import SgdxError, UsageError, require
from sgdx_t5x.files.locks import lock

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.report.runs import Run

_OF_PREDICTIONS = ("split", "step", "prompt_style", "allow_missing")
_EPILOG = """\
examples:
  Predictions of t5x.eval, which are first scored with the usual settings:
    sgdx report runs/quickstart/eval --corpus sample --out report

  Runs scored before, with scores per frame; the first is the baseline:
    sgdx score --corpus sgd.zip --predictions all=base/eval --json base.json \\
      --per-frame base.frames.jsonl
    sgdx report none=base.json backtrans=bt.json --corpus sgd.zip --out report

  Runs of a system with several seeds, SYSTEM#SEED, for means and deviations:
    sgdx report none#0=a0.json none#1=a1.json bt#0=b0.json bt#1=b1.json \\
      --out report

  Checkpoints: if there are predictions for several steps, tables show the last
  (or --step) and plots show all; MODEL_DIR adds scores that t5x.train logged:
    sgdx report bt=runs/bt/eval --training bt=runs/bt/model --corpus sgd.zip \\
      --out report

RUN is a file of `sgdx score --json`, next to its --per-frame file if there is
one; or predictions: a folder or JSONL file of t5x.eval or t5x.infer, or a
folder with a folder or file per schema variant (original, v1 ... v5, bt_zh,
those of --schemas). A run is named NAME, or after its file or folder. DIR will
contain report.html, which needs no other file and no network; plots (SVG, PDF,
PNG); tables (Markdown, LaTeX, CSV); and all errors (JSONL). See docs/report.md.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(
    subparsers,
    "report",
    __doc__,
    _EPILOG,
    "write a page of tables, figures and errors for one or more runs",
  )
  add_input(
    parser, "runs", nargs="+", metavar="RUN", help="[NAME=]PATH, see below", path=named_path
  )
  add_output(
    parser, "--out", required=True, metavar="DIR", help="folder for the report", folder=True
  )
  add_input(
    parser, "--corpus", help=f"{CORPUS}: to show its dialogues and schemas", path=corpus_path
  )
  parser.add_argument("--title", default="Robustness to schema wording", help="title of the page")
  add_input(
    parser,
    "--training",
    action="append",
    default=[],
    metavar="[NAME=]MODEL_DIR",
    help="MODEL_DIR of t5x.train, to plot the scores it logged by step; once per run",
    path=named_path,
  )
  parser.add_argument(
    "--examples",
    type=int,
    default=5,
    metavar="N",
    help="frames to embed per run, service, slot, variant and kind of error (default: 5); 0: no "
    "error browser, to publish the page without text of the corpus",
  )
  parser.add_argument(
    "--force",
    action="store_true",
    help="compare runs that were scored with different settings, and mark every table",
  )
  scoring = parser.add_argument_group("for predictions, which are scored first")
  add_split(scoring)
  scoring.add_argument("--step", type=int, help="checkpoint to show (default: the last)")
  add_reading(scoring)
  for module in annexes.table("REPORT_OPTIONS").values():
    annexes.load(module).add_options(parser)
  output.add_format(parser)
  parser.set_defaults(run=run, usual={name: parser.get_default(name) for name in _OF_PREDICTIONS})
  return parser


def run(args: argparse.Namespace) -> int:
  """Scores what is not scored, writes the report, prints its summary. Returns 0."""
  _check_libraries()
  from sgdx_t5x.cli.options import check_least
  from sgdx_t5x.report import build, run_tables, runs

  check_least(args, "examples", 0, "omit it to use the default, 5")
  out = pathlib.Path(args.out)
  with lock(out), no_cycles(), progress("parts") as update:
    build.check_out(out)
    check_no_inputs(args, [out])
    scored, corpus = _runs(args, update)
    texts = [annex.read_texts(scored, corpus, args) for annex in _annexes("read_texts")]
    others = build.OtherTexts(
      said={label: said for each in texts for label, said in each.said.items()},
      edits={label: edits for each in texts for label, edits in each.edits.items()},
      lacks=[line for each in texts for line in each.lacks],
    )
    schemas = parse_schemas(args)
    content = build.make(args.title, scored, corpus, args.force, update, others, schemas)
    page = build.write(content, out, args.examples, update)
  output.show(
    args.format,
    [run_tables.variants(scored), *([means] if (means := run_tables.seeds(scored)) else [])],
    {"report": str(page), "runs": {run.name: _overall(run) for run in scored}},
    marks=content.marks,
    warnings=content.warnings,
    notes=[*content.lacks, f"report: {page}"],
    signatures=runs.signatures(scored) if len(scored) > 1 else {"": scored[0].report["signature"]},
  )
  return 0


def _overall(run: "Run") -> dict[str, Any]:
  """Returns what --format json prints about a run: all but domains and services."""
  from sgdx_t5x.scoring.rows import GROUPS

  groups = {group: run.report["sgdx"][group] for group in GROUPS}
  return {"signature": run.report["signature"], "warnings": run.report["warnings"], **groups}


def _check_libraries() -> None:
  """Raises before the work if a library is missing that is needed after it."""
  require("jinja2", extra="report", why="the page of `sgdx report`")
  require("matplotlib", extra="report", why="the plots of `sgdx report`")


def _runs(args: argparse.Namespace, on_progress: Update) -> "tuple[list[Run], Corpus | None]":
  from sgdx_t5x.cli.options import scoring_settings
  from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
  from sgdx_t5x.report import runs

  named = runs.parse_names(args.runs)
  folders = paths_of_runs(list(named), args.training, "training", "folder")
  unscored = {name for name, path in named.items() if runs.is_predictions(path)}
  _check_options(args, [named[name] for name in named if name in unscored])
  corpus = open_corpus(args.corpus) if args.corpus else None
  settings = {**scoring_settings(args), "on_progress": on_progress}
  scored = [
    runs.score_run(name, path, corpus, args.split, args.step, **settings)
    if name in unscored
    else runs.read_run(name, path)
    for name, path in named.items()
  ]
  if corpus is None and all(run.signature.corpus == SAMPLE for run in scored):
    corpus = _sample_of(scored)
  scored = _with_steps(scored, folders)
  for annex in _annexes("read"):
    scored = annex.read(scored, args)
  return scored, corpus


def _check_options(args: argparse.Namespace, unscored: list[pathlib.Path]) -> None:
  """Refuses predictions without a corpus, and options that would have no effect."""
  if unscored and not args.corpus:
    raise UsageError(
      f"{unscored[0]} holds predictions, but there is no --corpus",
      expected="the corpus that was predicted, to score against",
      fix="add --corpus ARCHIVE or --corpus sample, or pass a file written by `sgdx score --json`",
    )
  changed = [name for name, value in args.usual.items() if getattr(args, name) != value]
  if changed and not unscored:
    option = "--" + changed[0].replace("_", "-")
    raise UsageError(
      f"{option}, but every RUN is already scored",
      expected="predictions to score with it: a folder, or JSONL of t5x.eval or t5x.infer",
      fix="pass the predictions instead"
      + (f", or run `sgdx score` again with {option}" if changed[0] != "step" else ""),
    )


def _sample_of(scored: "list[Run]") -> "Corpus | None":
  """Returns the sample, unless the runs were scored with another release of it."""
  from sgdx_t5x.corpus.opening import SAMPLE, open_corpus

  corpus = open_corpus(SAMPLE)
  same = any(run.signature.checksum == corpus.checksum() for run in scored)
  return corpus if same else None


def _with_steps(scored: "list[Run]", folders: Mapping[str, pathlib.Path]) -> "list[Run]":
  """Adds to runs the scores per step of --training."""
  from sgdx_t5x.report import steps
  from sgdx_t5x.scoring.rows import Row

  curves = {
    name: tuple((step, Row.from_json(row)) for step, row in steps.rows(folder))
    for name, folder in folders.items()
  }
  for name, curve in curves.items():
    if len(curve) < 2:
      raise SgdxError(
        f"--training {folders[name]}: scores for {len(curve)} steps",
        expected="a MODEL_DIR of t5x.train with several steps in inference_eval/TASK-metrics.jsonl",
        fix="pass that folder; pass predictions for several steps as a RUN: `sgdx report DIR`",
      )
  return [
    dataclasses.replace(
      run,
      steps=curves[run.name],
      steps_note=f"as logged in {folders[run.name]}, on the frames evaluated there, often from dev",
    )
    if run.name in curves
    else run
    for run in scored
  ]


def _annexes(function: str) -> list[Any]:
  """Returns the modules of the annexes' sections that have a function, see `report.sections`."""
  from sgdx_t5x.report.sections import annex_sections

  return [module for module in annex_sections() if hasattr(module, function)]


def paths_of_runs(
  names: list[str],
  items: list[str],
  option: str,
  what: Literal["folder", "file"],
) -> dict[str, pathlib.Path]:
  """Reads [NAME=]PATH ... of an option, once per run. Returns name of the run -> path.

  Args:
    names: of the runs; a single one need not be named.
    items: the option's values.
    option: its name, without "--".
    what: what the paths must be.
  """
  exists = pathlib.Path.is_dir if what == "folder" else pathlib.Path.is_file
  metavar = "NAME=MODEL_DIR" if what == "folder" else "NAME=FILE"
  paths: dict[str, pathlib.Path] = {}
  for item in items:
    name, _, path = item.partition("=")
    if len(names) == 1 and exists(pathlib.Path(item)):
      name, path = names[0], item
    is_known = name in names and name not in paths
    if not is_known or not exists(pathlib.Path(path)):
      raise UsageError(
        f"--{option} {item}" + (f": no {what} {path}" if is_known and path else ""),
        expected=f"{metavar} with the name of a run, once per run, and an existing {what}",
        available="runs: " + ", ".join(names),
        fix="check the path" if is_known and path else f"specify the run: --{option} {metavar}",
      )
    paths[name] = pathlib.Path(path)
  return paths
