"""Which checkpoint a run starts from.

1. The latest complete checkpoint in MODEL_DIR (a restarted run continues);
2. otherwise the one of RestoreCheckpointConfig (INITIAL_CHECKPOINT_PATH), with its
   assignment_map and state_transformation_fns;
3. otherwise freshly initialised parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from etils import epath

from t5x._checkpoint.read import check_complete, checkpoint_steps, open_checkpoint, step_of
from t5x.errors import T5XError, not_in_lite


@dataclasses.dataclass(frozen=True)
class CheckpointChoice:
  """A checkpoint and the rule that chose it (for messages).

  Args:
      path: its folder.
      rule: why this one, as a clause.
      resuming: whether it is the run's own checkpoint (then no assignment_map applies).
  """

  path: str
  rule: str
  resuming: bool = False


def choose_checkpoint(
  model_dir: str | None, restore_cfg=None, restore_step: int | None = None
) -> CheckpointChoice | None:
  """Applies the rules in the docstring of `t5x._checkpoint.choose`.

  Args:
      model_dir: the run's folder, or None to ignore it.
      restore_cfg: `utils.RestoreCheckpointConfig` or None.
      restore_step: in a folder of checkpoints, the step wanted (mode 'all').

  Returns:
      The choice, or None to start from scratch.
  """
  if model_dir and (steps := checkpoint_steps(model_dir)):
    return CheckpointChoice(
      str(epath.Path(model_dir) / f"checkpoint_{steps[-1]}"),
      "the latest checkpoint in MODEL_DIR takes precedence over INITIAL_CHECKPOINT_PATH",
      resuming=True,
    )
  if restore_cfg is None or not restore_cfg.path:
    return None
  paths = restore_cfg.path
  if not isinstance(paths, str) and isinstance(paths, Sequence):
    if len(paths) > 1:
      raise not_in_lite("RestoreCheckpointConfig.path with several paths")
    paths = paths[0]
  path = str(paths)
  if restore_cfg.mode == "specific":
    return CheckpointChoice(path, "RestoreCheckpointConfig.path with mode='specific'")
  steps = checkpoint_steps(path)
  if not steps:
    if restore_cfg.fallback_to_scratch:
      return None
    raise T5XError(
      f"There is no complete checkpoint in {path}.",
      expected=f"folders checkpoint_N (mode={restore_cfg.mode!r})",
      fix="correct the path; for one checkpoint_N folder use mode='specific'.",
    )
  step = steps[-1] if restore_step is None else restore_step
  rule = f"step {step} of RestoreCheckpointConfig.path, mode={restore_cfg.mode!r}"
  return CheckpointChoice(str(epath.Path(path) / f"checkpoint_{step}"), rule)


def check_choice(choice: CheckpointChoice, restore_cfg=None) -> None:
  """Raises T5XError if there is no complete checkpoint where one was chosen.

  Args:
      choice: from `choose_checkpoint`, which does not check a path of mode 'specific'.
      restore_cfg: `utils.RestoreCheckpointConfig`; a `checkpointer_cls` that restores checkpoints
          itself may know other layouts.
  """
  if not hasattr(getattr(restore_cfg, "checkpointer_cls", None), "restore"):
    check_complete(choice.path)


def first_choices(restore_cfgs: Sequence) -> tuple[Any, list[CheckpointChoice]]:
  """Returns the first configuration that has checkpoints, and all those that it names.

  Args:
      restore_cfgs: `utils.RestoreCheckpointConfig`s. With mode 'specific', `path` names the
          checkpoints themselves; 'latest' means the latest one of each folder, 'all' all of them.

  Returns:
      (configuration, checkpoints in ascending order); (None, []) if no folder holds one.

  Raises:
      T5XError: a folder of checkpoints does not exist.
  """
  for cfg in restore_cfgs:
    given = [cfg.path] if isinstance(cfg.path, str) else list(cfg.path or ())
    paths = [str(path) for path in given]
    if cfg.mode != "specific":
      for path in paths:
        if not epath.Path(path).is_dir():
          raise T5XError(
            f"There is no folder {path}.",
            expected=f"a folder with checkpoint_N (mode={cfg.mode!r})",
            fix="correct RestoreCheckpointConfig.path",
          )
      steps = {path: checkpoint_steps(path)[-1 if cfg.mode == "latest" else 0 :] for path in paths}
      paths = [str(epath.Path(p) / f"checkpoint_{step}") for p in paths for step in steps[p]]
    if paths:
      rule = f"RestoreCheckpointConfig.path, mode={cfg.mode!r}"
      return cfg, [CheckpointChoice(path, rule) for path in paths]
  return None, []


def checkpoint_step(choice: CheckpointChoice) -> int:
  """The step of a chosen checkpoint: from its folder's name, else from its content."""
  step = step_of(choice.path)
  return step_within(choice.path) if step is None else step


def step_within(path: str) -> int:
  """The step in a checkpoint's content: a copy may have another name."""
  return int(open_checkpoint(path).read({"state/step": (None, None)})["state/step"])
