"""Which checkpoint a run starts from.

1. The latest complete checkpoint in MODEL_DIR (a restarted run continues);
2. otherwise the one of RestoreCheckpointConfig (INITIAL_CHECKPOINT_PATH), with its
   assignment_map and state_transformation_fns;
3. otherwise freshly initialised parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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


def check_single(restore_cfg, script: str) -> None:
  """Raises T5XError if a RestoreCheckpointConfig names all checkpoints; it may be None."""
  if getattr(restore_cfg, "mode", None) == "all":
    raise T5XError(
      "RestoreCheckpointConfig.mode='all' is for evaluation.",
      expected=f"'specific' or 'latest' in {script}, which reads a single checkpoint",
      fix="utils.RestoreCheckpointConfig.mode = 'latest'",
    )


def chosen(restore_cfg) -> CheckpointChoice:
  """Returns the checkpoint that a configuration chooses.

  Raises:
      T5XError: it names none, or there is none that is complete.
  """
  choice = choose_checkpoint(None, restore_cfg)
  if choice is None:
    raise T5XError(
      "There is no checkpoint to run.",
      found=f"no complete checkpoint in {restore_cfg.path!r}",
      expected=f"folders checkpoint_N (mode={restore_cfg.mode!r})",
      fix="--gin.CHECKPOINT_PATH=\"'DIR/checkpoint_N'\"",
    )
  check_complete(choice.path)
  return choice


def checkpoint_step(choice: CheckpointChoice) -> int:
  """The step of a chosen checkpoint: from its folder's name, else from its content."""
  step = step_of(choice.path)
  return step_within(choice.path) if step is None else step


def step_within(path: str) -> int:
  """The step in a checkpoint's content: a copy may have another name."""
  return int(open_checkpoint(path).read({"state/step": (None, None)})["state/step"])
