"""Scores by training step: what T5X and SeqIO write for each checkpoint.

With t5x.train and t5x.eval, SeqIO writes predictions to `inference_eval/TASK-STEP.jsonl`, and a
line of scores per step to `TASK-metrics.jsonl`. These scores need neither a corpus nor all
predictions, but have no intervals, and apply to the split and prompts that were evaluated.
"""

import pathlib
import re
from collections.abc import Mapping

import numpy as np

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, is_number
from sgdx_t5x.metrics.sensitivity import relative_difference, summarise
from sgdx_t5x.prompts import FORMATS
from sgdx_t5x.scoring.predictions.files import find_files

KEYS = tuple(summarise({ORIGINAL: np.zeros(1)}))  # keys of a row
_STEP = re.compile(r"-(\d{6,})\.jsonl")
_METRICS = "-metrics.jsonl"
# Task names made by `tasks.registration.register_family`, whose import would need TensorFlow.
_ONE_VARIANT = re.compile(rf"(?:.*_)?(?:{'|'.join(FORMATS)})_sgd(?:x_(v[1-5]))?")
_SEVERAL = "several variants"
_EXPECTED = 'one line per evaluation: a JSON object with "step", as written by SeqIO'
_FIX = "evaluate again with t5x.train or t5x.eval, or move the file elsewhere"


def step_files(path: str | pathlib.Path, split: str) -> dict[int | None, list[pathlib.Path]]:
  """Returns the prediction files at a path by the training step in their names, ascending.

  Args:
    path: a file or folder, see `predictions.files.find_files`.
    split: the split of the predictions.

  Returns:
    step -> files; files without a step come first, under None.

  Raises:
    SgdxError: no predictions, or predictions of both formats.
  """
  steps: dict[int | None, list[pathlib.Path]] = {}
  for file in find_files(path, split):
    named = _STEP.search(file.name)
    steps.setdefault(int(named[1]) if named else None, []).append(file)
  return dict(sorted(steps.items(), key=lambda item: -1 if item[0] is None else item[0]))


def curves(
  folder: str | pathlib.Path,
) -> dict[str, tuple[tuple[int, dict[str, float]], ...]]:
  """Returns the scores per step that SeqIO wrote for each task.

  Args:
    folder: a MODEL_DIR, an EVAL_OUTPUT_DIR, or its inference_eval.

  Returns:
    task -> (step, {metric: fraction or count}), ascending; for a step that was evaluated twice,
    as in a resumed run, the later scores. Empty if nothing was evaluated there.

  Raises:
    SgdxError: a malformed line, except for a truncated last line, as a killed process leaves it.
  """
  folder = pathlib.Path(folder)
  places = (folder, folder / "inference_eval")
  files = next(filter(None, (sorted(place.glob("*" + _METRICS)) for place in places)), [])
  by_task = {file.name.removesuffix(_METRICS): _read_curve(file) for file in files}
  return {task: curve for task, curve in by_task.items() if curve}


def as_row(task: str, metrics: Mapping[str, float]) -> dict[str, float | None]:
  """Returns the metrics of a task as a row of the report's "sgdx", fractions.

  Args:
    task: its name. jga of t5dst_sgd is jga_orig; jga of t5dst_sgd_bt_zh is in no row.
    metrics: metrics of `metrics.seqio_metrics`.

  Returns:
    `KEYS`, with None for those that the task lacks, and num_frames.
  """
  row: dict[str, float | None] = {key: metrics.get(key) for key in KEYS}
  if variant := _variant(task):
    row[_jga(variant)] = metrics.get("jga")
  frames = metrics.get("num_frames")
  return row | {"num_frames": None if frames is None else int(frames)}


def rows(folder: str | pathlib.Path) -> tuple[tuple[int, dict[str, float | None]], ...]:
  """Returns one row per step, merged from all tasks in a folder.

  The scores of a task with several variants take precedence over those of single-variant tasks.
  JGA_v1-5 and Diff_rel are computed from the latter if all are over equally many frames: such
  tasks have the same examples in the same order, so those are the same frames. num_frames is None
  if the numbers of a row are over different frames.

  Args:
    folder: see `curves`.

  Returns:
    (step, row as from `as_row`), ascending; steps without any such score are left out.

  Raises:
    SgdxError: see `curves`; or two tasks have the same schema variant.
  """
  steps: dict[int, dict[str, dict[str, float]]] = {}
  for task, curve in curves(folder).items():
    for step, metrics in curve:
      steps.setdefault(step, {})[task] = metrics
  merged = ((step, _merge(steps[step], folder)) for step in sorted(steps))
  return tuple((step, row) for step, row in merged if row)


def _read_curve(file: pathlib.Path) -> tuple[tuple[int, dict[str, float]], ...]:
  text = file.read_bytes()
  lines = text.splitlines()
  curve: dict[int, dict[str, float]] = {}
  for number, line in enumerate(lines, start=1):
    if not line.strip():
      continue
    where = f"{file}, line {number}"
    try:
      values = decode_json(line, where, _EXPECTED, _FIX)
    except SgdxError:
      if number == len(lines) and not text.endswith(b"\n"):
        break
      raise
    step = values.pop("step", None) if isinstance(values, dict) else None
    if type(step) is not int or step < 0:
      raise SgdxError(
        f"{where}: step {step!r}" if isinstance(values, dict) else f"{where}: not a JSON object",
        expected=_EXPECTED,
        fix=_FIX,
      )
    # A custom task may log text.
    curve[step] = {name: float(x) for name, x in values.items() if is_number(x)}
  return tuple(sorted(curve.items()))


def _variant(task: str) -> str | None:
  """Returns the schema variant of a task; None if there are several, and for other variants."""
  named = _ONE_VARIANT.fullmatch(task)
  return (named[1] or ORIGINAL) if named else None


def _jga(variant: str) -> str:
  return "jga_orig" if variant == ORIGINAL else f"jga_{variant}"


def _merge(
  tasks: Mapping[str, Mapping[str, float]], folder: str | pathlib.Path
) -> dict[str, float | None]:
  """Returns the row merged from the tasks of one step; empty if none has such scores."""
  row: dict[str, float | None] = dict.fromkeys(KEYS)
  frames: dict[str, tuple[float | None, ...]] = {}  # key -> how many frames it is over
  for task in _ordered(tasks, folder):
    metrics = tasks[task]
    over = (metrics.get("num_frames"), metrics.get("num_frames_incomplete"))
    for key, value in as_row(task, metrics).items():
      if key in KEYS and row[key] is None and value is not None:
        row[key], frames[key] = value, over

  def same(*keys: str) -> bool:
    first, *others = {frames.get(key, (None,)) for key in keys}
    return not others and None not in first

  five = [_jga(variant) for variant in SGDX_VARIANTS]
  if row["jga_v1_5"] is None and same(*five):
    row["jga_v1_5"] = float(np.mean([row[key] for key in five]))
    frames["jga_v1_5"] = frames[five[0]]
  if row["diff_rel"] is None and same("jga_orig", "jga_v1_5") and row["jga_orig"]:
    row["diff_rel"] = relative_difference(row["jga_orig"], row["jga_v1_5"])
  if not frames:
    return {}
  num_frames = next(iter(frames.values()))[0] if same(*frames) else None
  return row | {"num_frames": None if num_frames is None else int(num_frames)}


def _ordered(tasks: Mapping[str, Mapping[str, float]], folder: str | pathlib.Path) -> list[str]:
  """Returns the tasks that have scores, the one with several variants first."""
  held: dict[str, str] = {}
  for task, metrics in tasks.items():
    variant = _variant(task) or (_SEVERAL if any(key in metrics for key in KEYS) else None)
    if variant in held:
      raise SgdxError(
        f"{folder}: {held[variant]} and {task} both evaluate {variant}",
        expected="at most one task per schema variant, and one for several variants",
        available=", ".join(tasks),
        fix=f"move the {_METRICS} file of one of them elsewhere",
      )
    if variant:
      held[variant] = task
  return sorted(held.values(), key=lambda task: task != held.get(_SEVERAL))
