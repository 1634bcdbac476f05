"""The runs of a report: scores of systems, with their frames where they are known."""

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x import scoring
from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files import not_found
from sgdx_t5x.metrics import JOINT_GOAL
from sgdx_t5x.report.steps import step_files
from sgdx_t5x.scoring import score_files
from sgdx_t5x.scoring.score_files import FrameTable
from sgdx_t5x.scoring.score_tables import GROUPS
from sgdx_t5x.signature import signature_fields, unlike_fields

_VERSIONS = (ORIGINAL, *SGDX_VARIANTS)


@dataclasses.dataclass(frozen=True)
class Run:
  """A system whose predictions were scored.

  Attributes:
    name: as the user named it, else that of its file or folder.
    report: what `sgdx score --json` writes.
    table: scores and failures per frame, None if they were not kept.
    steps: (training step, a row like report["sgdx"]["all"]) of each checkpoint, ascending.
    steps_note: what the steps' scores are over, if not what the report is over.
    lacks: what is missing for a whole report, and how to get it, a line each.
    origin: what it was read from.
    step: the training step that the predictions' names tell, if they do.
    scored: the scores, if they were made for this report and are in no file yet.
  """

  name: str
  report: Mapping[str, Any]
  table: FrameTable | None = None
  steps: tuple[tuple[int, Mapping[str, Any]], ...] = ()
  steps_note: str = ""
  lacks: tuple[str, ...] = ()
  origin: str = ""
  step: int | None = None
  scored: scoring.Scored | None = None

  @property
  def versions(self) -> tuple[str, ...]:
    """Schema versions that were scored, the original first."""
    return tuple(self.report["variants"])


def parse_names(items: Sequence[str]) -> dict[str, pathlib.Path]:
  """Reads RUN arguments, PATH or NAME=PATH: name -> path.

  A run without a name is called as its file is, or as its folder: that of `inference_eval/` the
  folder above, and of several that are alike with the folders above them.

  Raises:
    UsageError: a name twice.
  """
  named: dict[str, pathlib.Path] = {}
  lone: list[pathlib.Path] = []
  for item in items:
    name, sign, path = item.partition("=")
    name = " ".join(name.encode("utf-8", "replace").decode().split())
    if not sign or os.path.exists(item):
      lone.append(pathlib.Path(item))
    elif name in named or not name or not path:
      raise UsageError(
        f"RUN {item}",
        expected="PATH or NAME=PATH, each name once",
        available=", ".join(named),
        fix="name each run differently",
      )
    else:
      named[name] = pathlib.Path(path)
  for name, path in zip(_short_names(lone), lone, strict=True):
    if name in named:
      raise UsageError(
        f"two runs are called {name}: {named[name]} and {path}",
        expected="each name once",
        fix=f"give one of them another name: NAME={path}",
      )
    named[name] = path
  return named


def is_predictions(path: pathlib.Path) -> bool:
  """Whether a RUN is to be scored, rather than read.

  Raises:
    SgdxError: there is nothing, or something that is neither.
  """
  if not path.exists():
    expected = "a file of `sgdx score --json`, or predictions: a folder or JSONL"
    raise not_found(path, expected, "file or folder")
  report = path / "report.html" if path.is_dir() else path
  if report.name == "report.html" and report.is_file():
    scores = sorted(str(file) for file in report.parent.glob("scores/*.json"))
    raise SgdxError(
      f"RUN {path} is a report",
      expected="what a report is made from",
      available=", ".join(scores),
      fix="give its scores if they are there, else what it was made from",
    )
  if path.is_dir() and any(path.glob("checkpoint_*")):
    raise SgdxError(
      f"RUN {path} is a MODEL_DIR",
      expected="all predictions for a split; t5x.train writes some, for its scores while training",
      fix="run t5x.eval and give its EVAL_OUTPUT_DIR; --training draws the scores of MODEL_DIR",
    )
  return path.is_dir() or (path.suffix == ".jsonl" and not score_files.is_frames_file(path))


def read_run(name: str, path: str | pathlib.Path) -> Run:
  """Reads a run that was scored.

  Args:
    name: what to call it.
    path: what `sgdx score --json` wrote.

  Raises:
    SgdxError: no such file, of another kind, or scores per frame that are of another run.
  """
  path = pathlib.Path(path)
  report = score_files.read_report(path)
  _check_report(report, path)
  if not report["per_frame"]:
    how = "score again with --per-frame OUT.jsonl"
    return Run(
      name, report, origin=str(path), lacks=(f"{name}: {path} names no scores per frame; {how}",)
    )
  frames = path.parent / str(report["per_frame"].get("file"))
  if not frames.is_file():
    how = "put it back there, or score again with --per-frame"
    return Run(
      name,
      report,
      lacks=(f"{name}: its file of scores per frame, {frames}, is gone; {how}",),
      origin=str(path),
    )
  table = score_files.read_frames(path, [JOINT_GOAL])
  _check_table(table, report, path)
  lacks = ()
  if table.failures is None:
    lacks = (f"{name}: {frames} is of an older version and names no failures; score again",)
  return Run(name, report, table, lacks=lacks, origin=str(path))


def _check_report(report: Mapping[str, Any], path: pathlib.Path) -> None:
  """Refuses what is not there or of another kind, before it is looked for."""
  where = ""
  try:
    for part, groups in (("sgdx", report["sgdx"]), ("predict_nothing", report["predict_nothing"])):
      services = report["sgdx"]["services"] if part == "sgdx" else {}
      for group, row in [*((g, groups[g]) for g in GROUPS), *services.items()]:
        where = f"{part}, {group}"
        ends = [end for pair in row.get("ci95", {}).values() if pair for end in pair]
        numbers = [value for key, value in row.items() if key != "ci95" and value is not None]
        counts = (row["num_frames"], row["num_dialogues"])
        if not all(math.isfinite(x) for x in (*numbers, *ends, *counts)):
          raise ValueError("not a number")
    for version, groups in report["variants"].items():
      where = f"variants, {version}"
      groups["#ALL_SERVICES"].items()
  except (AttributeError, KeyError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{path}: {where or 'sgdx'}: {type(e).__name__}: {e}",
      expected="the scores that `sgdx score --json` writes",
      fix="run `sgdx score` again",
    ) from None


def _check_table(table: FrameTable, report: Mapping[str, Any], path: pathlib.Path) -> None:
  known = report["sgdx"]["services"]
  services = set(table.frames.services.tolist())
  if JOINT_GOAL not in table.metrics or not services <= set(known):
    strange = ", ".join(sorted(services.difference(known))) or f"no {JOINT_GOAL}"
    raise SgdxError(
      f"{path}: its scores per frame have {strange}",
      expected=f"{JOINT_GOAL} of the services in the report",
      available=", ".join(known)[:200],
      fix="run `sgdx score` again, with --json and --per-frame",
    )


def score_run(
  name: str, folder: pathlib.Path, corpus: Corpus, split: str, step: int | None, **settings: Any
) -> Run:
  """Scores a folder of predictions.

  Args:
    name: what to call it.
    folder: what t5x.eval or t5x.infer wrote, for several checkpoints perhaps; or one that holds
      a folder or file per schema version, original, v1 ... v5.
    corpus: to score with.
    split: of the corpus.
    step: the checkpoint that the report is about; None takes the last.
    **settings: attributes of `scoring.Settings`.

  Raises:
    SgdxError: anything that does not fit, see `scoring.score_predictions`.
  """
  sources = _sources(folder, split)
  chosen = max(sources, key=lambda found: found or 0) if step is None else step
  if chosen not in sources:
    raise SgdxError(
      f"{folder}: no predictions of step {step}",
      expected="predictions whose file names end in the step, -002700.jsonl",
      available="steps " + ", ".join(str(found) for found in sources),
      fix="name one of them, or leave --step out for the last",
    )
  steps = []
  for number, source in sources.items():
    scored = scoring.score_predictions(corpus, split, source, **settings)
    report = scoring.report(scored)
    if number == chosen:
      last = Run(name, report, origin=str(folder), step=number, scored=scored)
    if number is not None and len(sources) > 1:
      steps.append((number, report["sgdx"]["all"]))
  return dataclasses.replace(last, table=_table(folder, last.scored), steps=tuple(steps))


def _table(folder: pathlib.Path, scored: scoring.Scored) -> FrameTable:
  return FrameTable(
    folder,
    scored.signature,
    score_files.scores_checksum(scored.common),
    scored.common,
    tuple(next(iter(scored.common.values())).metrics),
    scored.warnings,
    scored.failures(),
  )


def differences(runs: Sequence[Run]) -> Iterator[str]:
  """Yields, for each run that cannot stand beside the first, what was scored otherwise."""
  first, *others = runs
  for run in others:
    ours, theirs = (signature_fields(r.report["signature"]) for r in (first, run))
    pairs = unlike_fields(first.report["signature"], run.report["signature"])
    pairs |= {
      name: (ours.get(name), theirs.get(name))
      for name in ("frames", "sample")
      if ours.get(name) != theirs.get(name)
    }
    if pairs:
      a, b = (
        ", ".join(f"{name}:{values[i] or 'none'}" for name, values in pairs.items()) for i in (0, 1)
      )
      yield f"{first.name} has {a}; {run.name} has {b}"


def said(runs: Sequence[Run], lines: Callable[[Run], Iterable[str]]) -> list[tuple[str, str]]:
  """Returns (names of the runs that say it, line) of what `lines` gives of each, a line once."""
  names: dict[str, list[str]] = {}
  for run in runs:
    for line in lines(run):
      names.setdefault(line, []).append(run.name)
  return [(", ".join(found), line) for line, found in names.items()]


def signatures(runs: Sequence[Run]) -> dict[str, str]:
  """Returns names of the runs that share a signature -> the signature."""
  return dict(said(runs, lambda run: [run.report["signature"]]))


def corpus_of(run: Run) -> tuple[str, str]:
  """Returns name and checksum of the corpus that a run was scored with."""
  name, _, checksum = signature_fields(run.report["signature"]).get("corpus", "").rpartition(":")
  return name, checksum


def split_of(run: Run) -> str:
  """Returns the split that a run was scored on."""
  return signature_fields(run.report["signature"]).get("split", "")


def _sources(folder: pathlib.Path, split: str) -> dict[int | None, dict[str, Any]]:
  """Returns step -> what `scoring.score_predictions` takes; the step is None if none is named."""
  named = {version: folder / version for version in _VERSIONS if (folder / version).exists()}
  if named:
    return {None: named}
  found = step_files(folder, split)
  return {step: {scoring.ALL: files if len(found) > 1 else folder} for step, files in found.items()}


def _short_names(paths: Sequence[pathlib.Path]) -> list[str]:
  parts = []
  for path in paths:
    *above, last = path.resolve().parts
    last = last.removesuffix(".gz").removesuffix(".json")
    parts.append([*above, last] if last != "inference_eval" or path.is_file() else above)
  for depth in range(1, max(map(len, parts), default=0) + 1):
    names = ["/".join(part[-depth:]) for part in parts]
    if len(set(names)) == len(names):
      return names
  return [part[-1] for part in parts]
