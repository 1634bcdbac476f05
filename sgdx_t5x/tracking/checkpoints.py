"""Finds a tracker's checkpoints, and reads their configurations into gin."""

import contextlib
import dataclasses
import importlib
import os
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import gin
from etils import epath

from sgdx_t5x.errors import SgdxError, first_line, nearest
from sgdx_t5x.tracking.config_gin import check_config, check_modules, trained_task

if TYPE_CHECKING:
  from sgdx_t5x.tasks.registration import Registered

_STEP = re.compile(r"checkpoint_\d+")
_MAIN = re.compile(r"^import __main__ as (\w+)$", re.MULTILINE)
_OWNER = "SGDX_TRACKING"  # a macro that says which checkpoint's configuration gin has
_USING_GIN = threading.RLock()  # which has one configuration per process
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
  path = epath.Path(folder)
  if _STEP.fullmatch(path.name):
    return (_read(path, allowed),)
  inside = sorted(path.iterdir()) if path.is_dir() else []
  if last := _last(inside):
    return (_read(last, allowed),)
  latest = []
  for part in inside:
    if part.is_dir() and (last := _last(sorted(part.iterdir()))):
      latest.append(last)
  if not latest:
    raise SgdxError(
      f"{folder}: no checkpoint", expected=_EXPECTED, available=_names(path), fix="check the path"
    )
  return tuple(_read(last, allowed) for last in latest)


def one_of(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
  """Returns the only checkpoint. Raises SgdxError if there are several."""
  if len(checkpoints) > 1:
    raise SgdxError(
      f"{len(checkpoints)} checkpoints: " + ", ".join(x.path for x in checkpoints),
      expected=f"one checkpoint: a tracker for the task {checkpoints[0].task} has a single model",
      fix="pass the path of one of them",
    )
  return checkpoints[0]


def _last(paths: Sequence[Any]) -> Any:
  """Returns the path of checkpoint_N with the greatest N; None if there is none."""
  steps = [path for path in paths if _STEP.fullmatch(path.name)]
  return max(steps, key=lambda path: int(path.name.rpartition("_")[2]), default=None)


def _read(path: Any, allowed: Sequence[str]) -> Checkpoint:
  for place in (path.parent, path):  # MODEL_DIR, or a checkpoint that was copied with its file
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
    names = sorted(path.name for path in folder.iterdir())
  except (OSError, NotImplementedError):
    return ""
  return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if names[8:] else "")


# --- configurations ------------------------------------------------------------------------


def registered(checkpoint: Checkpoint) -> "Registered":
  """Returns the task or mixture that a checkpoint was trained on.

  Raises:
    SgdxError: nothing of that name is registered.
  """
  from sgdx_t5x import tasks

  with configured(checkpoint), _importing(checkpoint):
    if isinstance(module := query("MIXTURE_OR_TASK_MODULE"), str):
      check_modules([module], checkpoint.config_path, checkpoint.allowed)
      importlib.import_module(module)
  task = tasks.REGISTERED.get(checkpoint.task)
  if task is None:
    raise SgdxError(
      f"{checkpoint.config_path}: MIXTURE_OR_TASK_NAME = {checkpoint.task!r}",
      expected="a task or mixture of sgdx_t5x.tasks, or of the MIXTURE_OR_TASK_MODULE named there",
      available=nearest(checkpoint.task, tasks.REGISTERED),
      fix="install the package that registers it, and name its module in config.gin: "
      "MIXTURE_OR_TASK_MODULE = 'my_tasks'; then pass --allow-module my_tasks",
    )
  return task


@contextlib.contextmanager
def configured(checkpoint: Checkpoint) -> Iterator[None]:
  """Loads a checkpoint's configuration into gin, which models query when they are traced.

  It replaces gin's previous one. There `__main__` is the training script, which it is not here.
  Other threads wait until the block ends.
  """
  owner = f"{checkpoint.path} {zlib.crc32(checkpoint.config.encode()):08x} {checkpoint.allowed}"
  with _USING_GIN:
    if query(_OWNER) != owner:  # otherwise it is there already
      config = _MAIN.sub(r"from t5x import train as \1", checkpoint.config)
      with gin.unlock_config(), _importing(checkpoint):
        gin.clear_config()
        check_config(config, checkpoint.config_path, checkpoint.allowed)
        gin.parse_config(config)
        gin.parse_config(f"{_OWNER} = {owner!r}")
    yield


def query(name: str) -> Any:
  """Returns the value of a macro, or of a parameter, with macros resolved."""
  try:
    value = gin.query_parameter(name if "." in name else f"%{name}")
  except ValueError:
    return None
  followed: set[str] = set()  # macros may refer to each other
  while isinstance(value, gin.config.ConfigurableReference) and str(value).startswith("%"):
    if str(value) in followed:
      break
    followed.add(str(value))
    value = gin.query_parameter(str(value))
  return value


@contextlib.contextmanager
def _importing(checkpoint: Checkpoint) -> Iterator[None]:
  """Turns errors about modules and names that a configuration has and this machine has not."""
  try:
    yield
  except (ImportError, ValueError) as e:  # the latter is gin's, of an unknown name
    raise SgdxError(
      f"{checkpoint.config_path}: {first_line(e)}",
      expected="modules and names that are installed here",
      fix="install what the configuration imports, in the version that trained the checkpoint; "
      "--debug shows more",
    ) from e
