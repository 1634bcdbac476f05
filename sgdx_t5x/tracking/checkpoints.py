"""Finds a tracker's checkpoints, and the names of what they were trained on."""

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError

_STEP = re.compile(r"checkpoint_(\d+)")
_EXPECTED = "a folder checkpoint_N written by `t5x.train`, or its MODEL_DIR, with config.gin"


@dataclasses.dataclass(frozen=True, slots=True)
class Checkpoint:
  """A checkpoint and the configuration that it was trained with.

  Attributes:
    path: the folder checkpoint_N.
    config_path: of its config.gin.
    config: the text of config.gin.
    task: name of the task or mixture that it was trained on.
    allowed: modules that its config.gin may name, besides `config_gin.PACKAGES`.
  """

  path: str
  config_path: str
  config: str
  task: str
  allowed: tuple[str, ...] = ()


def find_checkpoints(
  folder: str | os.PathLike, allowed: Sequence[str] = ()
) -> tuple[Checkpoint, ...]:
  """Returns the checkpoints of a tracker.

  Args:
    folder: checkpoint_N; or a MODEL_DIR, of which the last checkpoint is taken; or a folder of
      several MODEL_DIRs, one for each model of the tracker. gs:// works where T5X's does.
    allowed: see `Checkpoint`.

  Raises:
    SgdxError: there is no checkpoint, or no config.gin beside it that names its task.
  """
  from etils import epath

  path = epath.Path(folder)
  if not path.exists():
    raise SgdxError(
      f"{folder}: no such folder",
      expected=_EXPECTED,
      available=_names(path.parent),
      fix="check the path",
    )
  if _STEP.fullmatch(path.name):
    return (_read(path, allowed),)
  inside = sorted(path.iterdir()) if path.is_dir() else []
  if last := _last(inside):
    return (_read(last, allowed),)
  found = [_last(sorted(part.iterdir())) for part in inside if part.is_dir()]
  if not any(found):
    raise SgdxError(
      f"{folder}: no checkpoint", expected=_EXPECTED, available=_names(path), fix="check the path"
    )
  return tuple(_read(last, allowed) for last in found if last)


def _last(paths: Sequence[Any]) -> Any:
  """Returns the path of checkpoint_N with the greatest N; None if there is none."""
  steps = {int(match[1]): path for path in paths if (match := _STEP.fullmatch(path.name))}
  return steps[max(steps)] if steps else None


def _read(path: Any, allowed: Sequence[str]) -> Checkpoint:
  from sgdx_t5x.tracking.config_gin import trained_task

  for place in (path.parent, path):
    config = place / "config.gin"
    if config.exists():
      text = config.read_bytes().decode(errors="replace")  # what is no text has no model either
      break
  else:
    raise SgdxError(
      f"{path}: no config.gin next to it",
      expected="the config.gin that `t5x.train` wrote to MODEL_DIR, which identifies the tracker",
      available=_names(path.parent),
      fix=f"copy it from the MODEL_DIR to {path.parent}",
    )
  task = trained_task(text)
  if not task:
    raise SgdxError(
      f"{config}: no MIXTURE_OR_TASK_NAME",
      expected="the configuration of a training run on a task or mixture in sgdx_t5x.tasks",
      fix="copy the config.gin of the run that wrote the checkpoint",
    )
  return Checkpoint(str(path), str(config), text, task, tuple(allowed))


def _names(folder: Any) -> str:
  try:
    found = sorted(path.name for path in folder.iterdir())
  except (OSError, NotImplementedError):
    return ""
  return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if found[8:] else "")
