"""What `train` prepares before the first step: settings, starting point, data, evaluation."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from t5x import checkpoints, partitioning, utils
from t5x._checkpoint.choose import check_single, checkpoint_step, step_within
from t5x._checkpoint.read import check_complete
from t5x._checkpoint.restore import match_names
from t5x._data.datasets import lengths_str
from t5x._process.folder_lock import check_folder_name
from t5x._process.log import log
from t5x.errors import T5XError, check_whole

# ------------------------------------------------------------------------------- settings


@dataclasses.dataclass(frozen=True)
class Periods:
  """Numbers of steps between things other than training; 0 or None means never.

  Args:
      evals: steps between evaluations.
      stats: steps between TensorBoard points.
      saves: steps between checkpoints.
      gc: steps between garbage collections.
      save_steps: additional steps to save at.
  """

  evals: int
  stats: int
  saves: int | None
  gc: int
  save_steps: Sequence[int] = ()

  def next_stop(self, step: int, last: int) -> int:
    """The next step at which something other than training happens."""
    periods = (self.evals, self.stats, self.saves, self.gc)
    extra = [s for s in self.save_steps if s > step]
    return min([last, *(step + p - step % p for p in periods if p), *extra])

  def save_at(self, step: int) -> bool:
    """Whether to save after `step`."""
    return bool(self.saves and step % self.saves == 0) or step in self.save_steps

  def eval_at(self, step: int) -> bool:
    """Whether to evaluate after `step`."""
    return bool(self.evals and step % self.evals == 0)


def check_numbers(model_dir, total_steps, relative_steps, eval_steps, random_seed) -> None:
  """Raises T5XError for invalid settings of `train`."""
  check_folder_name(model_dir, "MODEL_DIR")
  check_whole(total_steps, "train.total_steps (TRAIN_STEPS)", 0, fix="--gin.TRAIN_STEPS=1000")
  check_whole(relative_steps, "train.relative_steps (TRAIN_STEPS_RELATIVE)", 0, optional=True)
  check_whole(eval_steps, "train.eval_steps (EVAL_STEPS)", 0, optional=True)
  check_whole(random_seed, "train.random_seed (RANDOM_SEED)", -(2**63), optional=True)


def check_periods(eval_period, stats_period, save_cfg, gc_period, total_steps) -> Periods:
  """Returns the periods; raises T5XError unless they are multiples of the shortest."""
  save_period = save_cfg.period if save_cfg else None
  settings = {
    "train.eval_period (EVAL_PERIOD)": eval_period,
    "SaveCheckpointConfig.period": save_period,
    "train.gc_period": gc_period,
  }
  periods = {k: v for k, v in settings.items() if v}
  for name, value in {**periods, "train.stats_period": stats_period or None}.items():
    unset = "automatic" if name == "train.stats_period" else "never"
    check_whole(value, name, 0, optional=True, fix=f"set {name} to 0 or None for {unset}")
  # The loop runs stretches of the shortest period and asks after each what is due.
  shortest = min(periods.values(), default=1)
  for name, value in periods.items():
    if value % shortest:
      raise T5XError(
        f"{name} is no multiple of {min(periods, key=periods.__getitem__)}, the shortest period.",
        found=f"{value}, and {shortest}",
        expected="periods that are multiples of the shortest",
        fix=f"for example set {name} to {value - value % shortest}",
      )
  if not stats_period:
    shortest = min([v for v in (eval_period, save_period) if v], default=100)
    stats_period = max(1, min(shortest, total_steps))
  steps = tuple(save_cfg.checkpoint_steps or ()) if save_cfg else ()
  return Periods(eval_period, stats_period, save_period, gc_period, steps)


# -------------------------------------------------------------------------- starting point


@dataclasses.dataclass(frozen=True)
class Start:
  """Where a run starts and ends.

  Args:
      choice: the checkpoint to start from, or None to start from scratch.
      step: its step; 0 from scratch.
      total_steps: the step to end at.
      run_start: the step that the run started from before it was ever resumed.
  """

  choice: checkpoints.CheckpointChoice | None
  step: int
  total_steps: int
  run_start: int

  @property
  def resuming(self) -> bool:
    """Whether the run goes on from a checkpoint of its own."""
    return self.choice is not None and self.choice.resuming


def choose_start(
  model_dir: str,
  restore_cfg,
  total_steps: int,
  relative_steps: int | None,
  run_start: int | None = None,
) -> Start:
  """Chooses the checkpoint: 1. MODEL_DIR's latest, 2. INITIAL_CHECKPOINT_PATH, 3. none.

  Args:
      model_dir: MODEL_DIR.
      restore_cfg: RestoreCheckpointConfig or None.
      total_steps: TRAIN_STEPS.
      relative_steps: TRAIN_STEPS_RELATIVE, counted from the run's start.
      run_start: where a run to be resumed started, if known (`streams.stored_run_start`).

  Raises:
      T5XError: it is missing or past the last step, or the mode is not for training.
  """
  check_single(restore_cfg, "train")
  choice = checkpoints.choose_checkpoint(model_dir, restore_cfg)
  if choice is not None:
    check_complete(choice.path)  # the step may be read from its name alone
  step = _start_step(choice, restore_cfg) if choice else 0
  if choice is None or not choice.resuming:
    run_start = step
  else:
    # The first checkpoint may have been deleted (SaveCheckpointConfig.keep).
    oldest = checkpoints.checkpoint_steps(model_dir)[0]
    run_start = oldest if run_start is None else min(run_start, oldest)
  if relative_steps:
    total_steps = run_start + relative_steps
  start = Start(choice, step, total_steps, run_start)
  if start.resuming or not getattr(restore_cfg, "state_transformation_fns", None):
    _check_remaining(start, relative_steps)  # else when they have been applied
  return start


def _check_remaining(start: Start, relative_steps: int | None) -> None:
  """Raises T5XError if a run starts past its last step."""
  choice, step = start.choice, start.step
  if choice is not None and step > start.total_steps:
    setting = f"TRAIN_STEPS={start.total_steps}"
    suggestion = f"TRAIN_STEPS={step + max(start.total_steps, 1)}"
    if relative_steps:
      setting = f"TRAIN_STEPS_RELATIVE={relative_steps} from step {start.run_start}"
      suggestion = f"TRAIN_STEPS_RELATIVE={step - start.run_start + relative_steps}"
    raise T5XError(
      "There is nothing to train: the starting checkpoint is past the last step.",
      found=f"step {step} ({choice.path}; {choice.rule}), {setting}",
      expected="a last step of at least that step: it includes the checkpoint's own steps",
      fix=f"--gin.{suggestion}, or a new MODEL_DIR.",
    )


def _start_step(choice: checkpoints.CheckpointChoice, restore_cfg) -> int:
  """The step that training goes on from: from the content, as a copy may have another name.

  Args:
      choice: from `choose_checkpoint`.
      restore_cfg: `utils.RestoreCheckpointConfig`, whose `assignment_map` may leave the step of
          the state as it is initialised, 0.
  """
  if choice.resuming:
    return checkpoint_step(choice)
  _, skipped, _ = match_names(["state/step"], getattr(restore_cfg, "assignment_map", None) or ())
  return 0 if skipped else step_within(choice.path)


def moved(start: Start, step: int, relative_steps: int | None) -> Start:
  """Returns where a run starts if `state_transformation_fns` have changed the step of its state.

  Raises:
      T5XError: it is past the last step.
  """
  shift = step - start.step
  last = start.total_steps + (shift if relative_steps else 0)
  start = dataclasses.replace(start, step=step, total_steps=last, run_start=start.run_start + shift)
  _check_remaining(start, relative_steps)
  return start


def num_microbatches(trainer) -> int:
  """Returns in how many parts a trainer, perhaps one of another class, computes a batch."""
  return getattr(trainer, "_num_microbatches", None) or 1


def describe_step(model, partitioner, cfg, trainer) -> str:
  """Returns what a training step computes and where, in one line.

  Args:
      model: the model; its `module.config.dtype` is named if it has one.
      partitioner: gives the mesh.
      cfg: `utils.DatasetConfig` of the training data.
      trainer: gives the number of microbatches.
  """
  microbatches = num_microbatches(trainer)
  config = getattr(getattr(model, "module", None), "config", None)
  dtype = getattr(config, "dtype", None)
  rows = f"{cfg.batch_size} {'packed ' if cfg.pack else ''}rows"
  return "; ".join(
    [
      f"mesh {partitioning.describe_mesh(partitioner.mesh)}",
      *([f"{jnp.dtype(dtype).name} activations"] if dtype is not None else []),
      f"{rows} a step ({lengths_str(cfg.task_feature_lengths)})",
      *([f"{microbatches} microbatches"] if microbatches > 1 else []),
    ]
  )


# ----------------------------------------------------------------------------------- data


def eval_data(
  cfg, model, partitioner, get_datasets_fn: Callable, seed: int | None, eval_steps: int
) -> Mapping[str, Any]:
  """Returns {task: batches} of the teacher-forced evaluation; {} if there is none."""
  if cfg is None or not eval_steps:
    return {}
  layout = partitioner.get_data_layout(cfg.batch_size)
  if cfg.seed is None:
    cfg = dataclasses.replace(cfg, seed=seed or 0)
  shard = layout.shard_id, layout.num_shards
  return get_datasets_fn(cfg, *shard, eval_steps, model.FEATURE_CONVERTER_CLS)


# ----------------------------------------------------------------- evaluation and saving


def make_evaluator(
  cfg, evaluator_cls, model, partitioner, axes, model_dir: str, verify_vocabs, check_stop
):
  """Returns the `utils.InferenceEvaluator` of the run, or None if there is nothing to do."""
  if cfg is None or evaluator_cls is None:
    return None
  evaluator = utils.InferenceEvaluator(
    cfg,
    evaluator_cls,
    model,
    partitioner,
    axes,
    log_dir=os.path.join(model_dir, "inference_eval"),
    verify_matching_vocabs_fn=verify_vocabs,
    check_stop=check_stop,
  )
  if evaluator.eval_tasks:
    return evaluator
  log(f"no inference_eval: no task has split {cfg.split!r} and metrics")
  return None


def make_checkpointer(model_dir: str, save_cfg, use_orbax: bool):
  """Returns the checkpointer, or None if nothing is to be saved."""
  if save_cfg is None:
    return None
  cls = save_cfg.checkpointer_cls
  if cls is None:
    cls = checkpoints.OrbaxCheckpointManagerInterface if use_orbax else checkpoints.Checkpointer
  return cls(model_dir, keep=save_cfg.keep, save_dtype=save_cfg.dtype, use_orbax=use_orbax)
