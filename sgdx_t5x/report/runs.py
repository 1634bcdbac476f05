"""The runs of a report: scores of systems, with per-frame scores if there are any."""

import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from sgdx_t5x import signature
from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.variants import in_order
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.reading import as_text, not_found
from sgdx_t5x.metrics import JOINT_GOAL, Failure
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.scoring import score_files
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.scoring.predictions.files import find_files, find_variants, is_rows
from sgdx_t5x.scoring.rows import Row, Rows
from sgdx_t5x.scoring.score import ALL, Scored, score_predictions, score_report
from sgdx_t5x.signature import Signature
from sgdx_t5x.variants.variant_schemas import VariantSchemas

_STEP = re.compile(r"-(\d{6,})\.jsonl")  # SeqIO writes TASK-STEP.jsonl for each checkpoint


class OtherDialogues(Protocol):
  """Results of a run on other versions of its dialogues, whose frames correspond to its own.

  The error browser shows each version like a schema variant.
  """

  @property
  def sets(self) -> Mapping[str, Any]:
    """Label of a version -> an object with its schema `variant`; empty if errors are not known."""

  @property
  def lacks(self) -> Sequence[str]:
    """What is missing to show the errors, and how to get it, a line each."""

  @property
  def scores(self) -> Mapping[str, Mapping[str, float]]:
    """Label -> id of the run's frame -> JGA."""

  @property
  def warnings(self) -> Sequence[str]:
    """What makes the results PARTIAL, a line each."""

  def failures(self, frame_id: str) -> Iterator[tuple[str, Any]]:
    """Yields (label, failed slot) for a frame of the run.

    A failed slot has `slot`, `kind`, `predicted`, `gold`, and `before`, the run's own gold value.
    """


@dataclasses.dataclass(frozen=True)
class Run:
  """A system whose predictions were scored.

  Attributes:
    name: the user's name for it, or else that of its file or folder.
    report: what `sgdx score --json` writes.
    table: per-frame scores and errors; None if they were not kept.
    steps: (training step, JGA of all services) of each checkpoint, ascending.
    lacks: what is missing for a full report, and how to get it, a line each.
    origin: what it was read from.
    step: the training step in the predictions' names, if there is one.
    scored: the scores, if they were computed for this report and not saved yet.
    others: the same tracker's results on other versions of the dialogues, if an annex read them.
  """

  name: str
  report: Mapping[str, Any]
  table: FrameTable | None = None
  steps: tuple[tuple[int, Row], ...] = ()
  lacks: tuple[str, ...] = ()
  origin: str = ""
  step: int | None = None
  scored: Scored | None = None
  others: OtherDialogues | None = None

  def __repr__(self) -> str:
    state = "complete" if self.report["complete"] else "PARTIAL"
    return f"<Run {self.name!r}: {', '.join(self.variants)}, {state}, {self.origin}>"

  @property
  def signature(self) -> Signature:
    """What its scores depend on."""
    return Signature.parse(self.report["signature"])

  @functools.cached_property
  def rows(self) -> Rows:
    """The JGA rows of the run."""
    return Rows.from_json(self.report["sgdx"])

  @functools.cached_property
  def floor(self) -> Rows:
    """The JGA rows of predicting nothing."""
    return Rows.from_json(self.report["predict_nothing"])

  @property
  def variants(self) -> tuple[str, ...]:
    """Schema variants that were scored, the original first."""
    return tuple(self.report["variants"])

  @property
  def failures(self) -> Mapping[str, Sequence[Failure]] | None:
    """Frame id -> failed slots, of frames with at least one; None if not known."""
    return self.table.failures if self.table else None

  @property
  def seen(self) -> dict[str, bool]:
    """Service -> whether it is also in train; empty without per-frame scores."""
    if self.table is None:
      return {}
    frames = self.table.frames
    return dict(zip(frames.services.tolist(), frames.seen.tolist(), strict=True))


def parse_names(items: Sequence[str]) -> dict[str, pathlib.Path]:
  """Reads RUN arguments, PATH or NAME=PATH: name -> path.

  A run without a name is named after its file or folder (for `inference_eval/`, its parent); if
  these names are not unique, parent folders are prepended.

  Raises:
    UsageError: a repeated name, or none.
  """
  runs: list[tuple[str, pathlib.Path]] = []  # with the given name, or ""
  for item in items:
    name, sign, path = item.partition("=")
    name = " ".join(as_text(name).split())
    if not sign or os.path.exists(item):  # a path can contain =
      runs.append(("", pathlib.Path(item)))
    elif not name or not path:
      raise UsageError(
        f"RUN {item}", expected="PATH or NAME=PATH", fix="write NAME=PATH, or only PATH"
      )
    else:
      runs.append((name, pathlib.Path(path)))
  # Only paths without a name of the user's have to be told apart by what is in them.
  short = iter(_short_names([path for name, path in runs if not name]))
  paths_by_name: dict[str, pathlib.Path] = {}
  for own_name, path in runs:
    name = own_name or next(short)
    if name in paths_by_name:
      raise UsageError(
        f"two runs are named {name}: {paths_by_name[name]} and {path}",
        expected="PATH or NAME=PATH, with unique names",
        fix=f"give one of them another name: NAME={path}",
      )
    paths_by_name[name] = path
  return paths_by_name


def is_predictions(path: pathlib.Path) -> bool:
  """Whether a RUN is predictions to score, rather than scores to read.

  Raises:
    SgdxError: no such path, or a report or MODEL_DIR, which are neither.
  """
  if not path.exists():
    expected = "a file written by `sgdx score --json`, or predictions: a folder or JSONL"
    raise not_found(path, expected, "file or folder")
  # A report has JSONL files, too, and a MODEL_DIR has predictions: neither must be scored.
  report = path / "report.html" if path.is_dir() else path
  if report.name == "report.html" and report.is_file():
    scores = sorted(str(file) for file in report.parent.glob("scores/*.json"))
    raise SgdxError(
      f"RUN {path} is a report",
      expected="scores or predictions to make a report from",
      available=", ".join(scores),
      fix="pass the scores in its folder, or the inputs that it was made from",
    )
  if path.is_dir() and any(path.glob("checkpoint_*")):
    raise SgdxError(
      f"RUN {path} is a MODEL_DIR",
      expected="all predictions for a split; t5x.train writes only some, for its training curves",
      fix="run t5x.eval and pass its EVAL_OUTPUT_DIR",
    )
  return path.is_dir() or (is_rows(path) and not score_files.is_frames_file(path))


@checked_arguments(name=str, path=PATH)
def read_run(name: str, path: str | pathlib.Path) -> Run:
  """Reads a run that was scored.

  Args:
    name: its name in the report.
    path: what `sgdx score --json` wrote.

  Raises:
    SgdxError: a file that is missing, of another kind or of another run.
  """
  path = pathlib.Path(path)
  report = score_files.read_report(path)
  frames = score_files.frames_path(path, str((report["per_frame"] or {}).get("file")))
  lack = ""
  if not report["per_frame"]:
    lack = f"{path} has no per-frame scores; score again with --per-frame OUT.jsonl"
  elif not frames.is_file():
    remedy = "restore it, or score again with --per-frame"
    lack = f"its file of per-frame scores, {frames}, is missing; {remedy}"
  if lack:  # the tables need no frames, only plots by seen and unseen, and errors
    return Run(name, report, lacks=(f"{name}: {lack}",), origin=str(path))
  table = score_files.read_frames_of(report, path, [JOINT_GOAL])
  scored = report["sgdx"].get("services", {})
  unscored = set(table.frames.services.tolist()).difference(scored)
  if JOINT_GOAL not in table.metrics or unscored:
    unknown = ", ".join(sorted(unscored)) or f"no {JOINT_GOAL}"
    raise SgdxError(
      f"{path}: its per-frame scores have {unknown}",
      expected=f"{JOINT_GOAL} for the services in the report",
      available=", ".join(scored)[:200],
      fix="run `sgdx score` again, with --json and --per-frame",
    )
  lacks = ()
  if table.failures is None:
    lacks = (f"{name}: {frames} lists no errors; with the predictions, score again",)
  return Run(name, report, table, lacks=lacks, origin=str(path))


def score_run(
  name: str,
  folder: pathlib.Path,
  corpus: Corpus,
  split: str,
  *,
  on_progress: OnProgress = lambda *_: None,
  **settings: Any,
) -> Run:
  """Scores a folder of predictions.

  Args:
    name: its name in the report.
    folder: output of t5x.eval or t5x.infer, possibly for several checkpoints, of which the report
      is about the last; or a folder with a folder or file per schema variant: original, v1 ... v5,
      and others that the corpus, this package or the setting `schemas` has.
    corpus: the corpus to score with.
    split: the split of the corpus.
    on_progress: see `scoring.score_predictions`.
    **settings: see `scoring.Settings.of`.

  Raises:
    SgdxError: invalid or mismatched input, see `scoring.score_predictions`.
  """
  sources = _sources(folder, split, corpus, settings.get("schemas") or {})
  if None in sources and len(sources) > 1:
    raise SgdxError(
      f"{folder}: files of predictions with and without a step in their names",
      expected="predictions of checkpoints, whose file names end in the step, or of one run",
      fix="move the files without a step to a folder of their own",
    )
  steps, variants = [], {}
  for step, source in sources.items():  # ascending: what is left after the loop is the last
    scored = score_predictions(corpus, split, source, on_progress=on_progress, **settings)
    variants[step] = frozenset(scored.frames)
    report = score_report(scored, on_progress=on_progress)
    if step is not None and len(sources) > 1:
      steps.append((step, Row.from_json(report["sgdx"]["all"])))
  if len(set(variants.values())) > 1:
    if len(frozenset().union(*variants.values())) < sum(map(len, variants.values())):
      raise _other_variants(folder, variants)
    step, steps = None, []  # the numbers only tell files of one run apart, as dates do
    source = {ALL: folder}
    scored = score_predictions(corpus, split, source, on_progress=on_progress, **settings)
    report = score_report(scored, on_progress=on_progress)
  table = scored.table(folder)
  return Run(name, report, table, tuple(steps), origin=str(folder), step=step, scored=scored)


def _other_variants(folder: pathlib.Path, variants: Mapping[int | None, Set[str]]) -> SgdxError:
  """Returns the error for steps that were not predicted for the same variants."""
  of_steps = [f"{step}: {', '.join(in_order(names))}" for step, names in variants.items()]
  return SgdxError(
    f"{folder}: predictions of other variants at other steps",
    expected="the same variants at each step, of which the report shows the last",
    available="; ".join(of_steps),
    fix="run t5x.eval again for what is missing, or move the files of some steps elsewhere",
  )


def differences(runs: Sequence[Run]) -> Iterator[str]:
  """Yields, for each run not comparable with the first, how their scoring differs."""
  baseline, *other_runs = runs
  for run in other_runs:
    pairs = signature.differences(baseline.signature, run.signature, same_frames=True)
    if pairs:
      a = ", ".join(f"{name}:{value or 'none'}" for name, (value, _) in pairs.items())
      b = ", ".join(f"{name}:{value or 'none'}" for name, (_, value) in pairs.items())
      yield f"{baseline.name} has {a}; {run.name} has {b}"


def by_line(runs: Sequence[Run], lines: Callable[[Run], Iterable[str]]) -> list[tuple[str, str]]:
  """Returns (names of the runs that share it, line) for each distinct line of `lines`."""
  names: dict[str, list[str]] = {}
  for run in runs:
    for line in lines(run):
      names.setdefault(line, []).append(run.name)
  return [(", ".join(sharing), line) for line, sharing in names.items()]


def signatures(runs: Sequence[Run]) -> dict[str, str]:
  """Returns the names of runs that share a signature -> the signature."""
  return dict(by_line(runs, lambda run: [run.report["signature"]]))


def _sources(
  folder: pathlib.Path, split: str, corpus: Corpus, schemas: Mapping[str, str | os.PathLike]
) -> dict[int | None, dict[str, Any]]:
  """Returns step -> sources for `scoring.score_predictions`; None if no step is named.

  Args: schemas, variant -> folder of schemas, for variants of the user's own.
  """
  # A folder or file per variant; or else the files of one run, or of one per checkpoint.
  if paths := find_variants(folder, split, VariantSchemas(corpus, schemas)):
    return {None: {variant: paths[variant] for variant in in_order(paths, schemas)}}
  steps: dict[int | None, list[pathlib.Path]] = {}
  for file in find_files(folder, split):
    step = _STEP.search(file.name)
    steps.setdefault(int(step[1]) if step else None, []).append(file)
  ordered = sorted(steps, key=lambda step: -1 if step is None else step)
  return {step: {ALL: steps[step] if len(steps) > 1 else folder} for step in ordered}


def _short_names(paths: Sequence[pathlib.Path]) -> list[str]:
  """Returns names of the paths: as many of their last parts as tell them apart."""
  folders = []
  for path in paths:
    # Every EVAL_OUTPUT_DIR has a folder inference_eval, so that its parent says more.
    *above, last = path.resolve().parts
    last = last.removesuffix(".gz").removesuffix(".xz").removesuffix(".json")
    folders.append([*above, last] if last != "inference_eval" or path.is_file() else above)
  for depth in range(1, max(map(len, folders), default=0) + 1):
    names = ["/".join(folder[-depth:]) for folder in folders]
    if len(set(names)) == len(names):
      return names
  return [folder[-1] for folder in folders]
