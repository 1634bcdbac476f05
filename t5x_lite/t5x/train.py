"""Trains a model.

  python -m t5x.train --gin_file=FILE.gin --gin.MODEL_DIR="'/tmp/run'" --gin.TRAIN_STEPS=1000

Any gin binding can be given as --gin.NAME=VALUE. The run is resumed from the latest checkpoint
in MODEL_DIR if there is one. Ctrl-C stops between two steps and saves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5x import _cli
from t5x.errors import Interrupted, T5XError, not_in_lite


def _check_periods(eval_period, stats_period, checkpoint_period, gc_period, total_steps) -> int:
  """Returns the statistics period; raises T5XError where periods do not divide one another."""
  named = {
    "train.eval_period (EVAL_PERIOD)": eval_period,
    "SaveCheckpointConfig.period": checkpoint_period,
    "train.gc_period": gc_period,
    "train.stats_period": stats_period,
  }
  given = {k: v for k, v in named.items() if v}
  for name, value in given.items():
    if value < 0:
      raise T5XError(f"{name} is negative.", found=value, expected="a number of steps")
  values = list(given.items())
  for i, (name_a, a) in enumerate(values):
    for name_b, b in values[i + 1 :]:
      if max(a, b) % min(a, b):
        raise T5XError(
          f"{name_a} and {name_b} do not divide one another.",
          found=f"{a} and {b}",
          expected="one a multiple of the other",
          fix=f"for example set {name_b} to {a}.",
        )
  if stats_period:
    return stats_period
  shortest = min([v for v in (eval_period, checkpoint_period) if v], default=100)
  return max(1, min(shortest, total_steps))


def _next_stop(step: int, last: int, periods: Sequence[int], extra: Sequence[int]) -> int:
  """The next step at which something other than training happens."""
  stops = [last, *(step + p - step % p for p in periods if p), *(s for s in extra if s > step)]
  return min(stops)


def _make_seeds(random_seed: int | None) -> tuple[int, int | None]:
  """Returns (seed of initialisation and dropout, seed to derive data seeds from)."""
  import numpy as np

  if random_seed is not None:
    return int(random_seed), int(random_seed)
  seed = int(np.random.SeedSequence().generate_state(1)[0] % 2**31)
  import jax

  if jax.process_count() > 1:
    from jax.experimental import multihost_utils

    seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
  _cli.log(f"RANDOM_SEED is not set: using {seed}")
  return seed, None


def train(
  *,
  model,
  train_dataset_cfg,
  train_eval_dataset_cfg=None,
  infer_eval_dataset_cfg=None,
  checkpoint_cfg,
  partitioner,
  trainer_cls,
  model_dir: str,
  total_steps: int,
  eval_steps: int,
  eval_period: int,
  relative_steps: int | None = None,
  stats_period: int | None = None,
  random_seed: int | None = None,
  use_hardware_rng: bool = False,
  summarize_config_fn: Callable | None = None,
  inference_evaluator_cls: Any = None,
  get_dataset_fn: Callable | None = None,
  concurrent_metrics: bool = True,
  actions: Mapping[str, Sequence[Any]] | None = None,
  train_eval_get_dataset_fn: Callable | None = None,
  run_eval_before_training: bool = False,
  train_state_initializer_cls: Any = None,
  use_orbax: bool = True,
  verify_matching_vocabs_fn: Callable | None = None,
  gc_period: int = 0,
) -> tuple[int, Any]:
  """Trains a model (gin: `train_script.train`).

  Args:
      model: the model (`models.EncoderDecoderModel`).
      train_dataset_cfg: training data.
      train_eval_dataset_cfg: teacher-forced evaluation data, or None.
      infer_eval_dataset_cfg: data to decode and score with the tasks' metrics, or None.
      checkpoint_cfg: `utils.CheckpointConfig`.
      partitioner: `partitioning.PjitPartitioner`.
      trainer_cls: `trainer.Trainer` with its gin bindings.
      model_dir: folder of checkpoints, events and predictions; a run in it is resumed.
      total_steps: the step to end at, counted from the restored step's own number (fine-tuning
          a checkpoint of step 1,000,000 for n steps: 1,000,000 + n).
      eval_steps: batches of the teacher-forced evaluation.
      eval_period: steps between evaluations; 0 evaluates only at the end.
      relative_steps: train for so many steps from the starting checkpoint, instead of
          total_steps.
      stats_period: steps between TensorBoard points.
      random_seed: seed of parameters, dropout and (if they have none) data.
      use_hardware_rng: use the backend's fast generator (`rbg`) for keys.
      summarize_config_fn: called as fn(model_dir, summary_writer, step).
      inference_evaluator_cls: `seqio.Evaluator` with its gin bindings.
      get_dataset_fn: replaces `utils.get_dataset`.
      concurrent_metrics: compute metrics beside training, and wait for them at the next
          evaluation and at the end.
      actions: {'TRAIN' | 'TRAIN_EVAL' | 'INFER_EVAL': [action]}; `action.run(state, metrics)`
          returning True ends training.
      train_eval_get_dataset_fn: replaces `utils.get_training_eval_datasets`.
      run_eval_before_training: evaluate the starting state first.
      train_state_initializer_cls: replaces `utils.TrainStateInitializer`.
      use_orbax: must be True; the legacy layout can be read but not written.
      verify_matching_vocabs_fn: called as fn(dataset_cfg, model); None uses
          `utils.verify_matching_vocabs`.
      gc_period: steps between garbage collections; 0 leaves Python's default.

  Returns:
      (last step, last train state).

  Raises:
      T5XError: a setting, the data or a checkpoint does not fit; a metric failed.
      Interrupted: after Ctrl-C or SIGTERM, once the state is saved.
  """
  import jax
  import seqio

  from t5x import checkpoints, gin_utils, utils
  from t5x._runtime import Progress, StopRequest

  # ----------------------------------------------------------------- check the settings
  if not use_orbax:
    raise not_in_lite("train.use_orbax=False (writing the legacy layout)", "set it to True")
  save_cfg = checkpoint_cfg.save
  restore_cfg = checkpoint_cfg.restore
  if restore_cfg is not None and restore_cfg.mode == "all":
    raise T5XError(
      "RestoreCheckpointConfig.mode='all' is for evaluation.",
      expected="'specific' or 'latest' in training",
    )
  save_period = save_cfg.period if save_cfg else None
  stats_period = _check_periods(eval_period, stats_period, save_period, gc_period, total_steps)
  if use_hardware_rng:
    jax.config.update("jax_default_prng_impl", "rbg")
  seed, data_seed = _make_seeds(random_seed)
  init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(seed))
  get_dataset_fn = get_dataset_fn or utils.get_dataset
  verify_vocabs = verify_matching_vocabs_fn or utils.verify_matching_vocabs
  (summarize_config_fn or gin_utils.summarize_gin_config)(model_dir, None, 0)

  # ----------------------------------------------------------------- where to start from
  # 1. latest checkpoint in MODEL_DIR, 2. INITIAL_CHECKPOINT_PATH, 3. scratch.
  choice = checkpoints.choose_checkpoint(model_dir, restore_cfg)
  start_step = checkpoints.checkpoint_step(choice) if choice else 0
  if relative_steps:
    first = _first_step(model_dir, choice, start_step)
    total_steps = first + relative_steps
  if start_step > total_steps:
    raise T5XError(
      "There is nothing to train: the starting checkpoint is past the last step.",
      found=f"step {start_step} ({choice.path}; {choice.rule}), TRAIN_STEPS={total_steps}",
      expected="TRAIN_STEPS counts from the starting checkpoint's step",
      fix=f"--gin.TRAIN_STEPS={start_step + max(total_steps, 1)}, or a new MODEL_DIR.",
    )

  # ----------------------------------------------------------------- data
  utils.import_module(train_dataset_cfg.module)
  utils.get_mixture_or_task(train_dataset_cfg.mixture_or_task_name)
  verify_vocabs(train_dataset_cfg, model)
  layout = partitioner.get_data_layout(train_dataset_cfg.batch_size)
  shard_info = seqio.ShardInfo(index=layout.shard_id, num_shards=layout.num_shards)
  train_dataset_cfg = dataclasses.replace(
    train_dataset_cfg,
    seed=utils.resolve_seed(train_dataset_cfg, data_seed, start_step, "training data"),
  )
  converter = model.FEATURE_CONVERTER_CLS
  train_ds = get_dataset_fn(train_dataset_cfg, shard_info, converter)
  input_shapes, input_types = utils.batch_shapes(train_ds, train_dataset_cfg.batch_size)

  eval_sets: Mapping[str, Any] = {}
  if train_eval_dataset_cfg is not None and eval_steps:
    verify_vocabs_at = partitioner.get_data_layout(train_eval_dataset_cfg.batch_size)
    eval_cfg = train_eval_dataset_cfg
    if eval_cfg.seed is None:
      eval_cfg = dataclasses.replace(eval_cfg, seed=data_seed or 0)
    eval_sets = (train_eval_get_dataset_fn or utils.get_training_eval_datasets)(
      eval_cfg,
      seqio.ShardInfo(index=verify_vocabs_at.shard_id, num_shards=layout.num_shards),
      converter,
      eval_steps,
    )

  # ----------------------------------------------------------------- train state
  initializer_cls = train_state_initializer_cls or utils.TrainStateInitializer
  initializer = initializer_cls(
    optimizer_def=model.optimizer_def,
    init_fn=model.get_initial_variables,
    input_shapes=input_shapes,
    input_types=input_types,
    partitioner=partitioner,
  )
  if choice:
    state = initializer.from_checkpoint(choice, restore_cfg, init_rng)
    start_step = int(state.step)
  else:
    state = initializer.from_scratch(init_rng)
  utils.log_model_info(os.path.join(model_dir, "model-info.txt"), state)

  # ----------------------------------------------------------------- trainer, evaluator, saving
  trainer = trainer_cls(
    model=model,
    train_state=state,
    partitioner=partitioner,
    eval_names=list(eval_sets),
    summary_dir=model_dir,
    rng=trainer_rng,
    train_state_axes=initializer.train_state_axes,
  )
  del state  # its buffers are donated to the first step
  stop = StopRequest()
  evaluator = None
  if infer_eval_dataset_cfg is not None and inference_evaluator_cls is not None:
    evaluator = utils.InferenceEvaluator(
      infer_eval_dataset_cfg,
      inference_evaluator_cls,
      model,
      partitioner,
      initializer.train_state_axes,
      log_dir=os.path.join(model_dir, "inference_eval"),
      verify_matching_vocabs_fn=verify_vocabs,
      check_stop=stop.check,
    )
    if not evaluator.eval_tasks:
      _cli.log(f"no inference_eval: no task has split {infer_eval_dataset_cfg.split!r} and metrics")
      evaluator = None
  checkpointer = None
  if save_cfg is not None:
    checkpointer = checkpoints.Checkpointer(model_dir, save_cfg.keep, save_cfg.dtype)

  def save():
    if checkpointer is not None:
      transform = _chain(save_cfg.state_transformation_fns)
      checkpointer.save(trainer.train_state, transform)

  metrics_pending: list[Any] = []

  def wait_for_metrics() -> dict[str, Any]:
    return evaluator.finish(metrics_pending.pop()) if metrics_pending else {}

  def run_actions(mode: str, results: Mapping[str, Any]) -> bool:
    wanted = [a for key, acts in (actions or {}).items() if _mode(key) == mode for a in acts]
    return any([a.run(trainer.train_state, results) for a in wanted])

  def run_evals() -> bool:
    """Evaluates the current state; returns whether an action wants to stop."""
    ended = False
    if eval_sets:
      rows = train_eval_dataset_cfg.batch_size // layout.num_shards
      results = trainer.evaluate(eval_sets, rows)
      for task, values in results.items():
        # A loss that is normalised already is not per token once more.
        summed = getattr(model, "_loss_normalizing_factor", None) is None
        key = "loss_per_nonpadding_target_token" if summed else "loss"
        shown = {k: values[k] for k in (key, "accuracy") if k in values}
        _cli.log(f"training_eval {task}: " + ", ".join(f"{k} {v:.4f}" for k, v in shown.items()))
      ended |= run_actions("TRAIN_EVAL", results)
    if evaluator is not None:
      ended |= run_actions("INFER_EVAL", wait_for_metrics())
      metrics_pending.append(evaluator.evaluate(trainer.train_state))
      if not concurrent_metrics:
        ended |= run_actions("INFER_EVAL", wait_for_metrics())
    return ended

  # ----------------------------------------------------------------- train
  if gc_period:
    import gc

    gc.disable()
  step = start_step
  batches = utils.DevicePrefetcher(train_ds, trainer.batch_sharding)
  progress = Progress(step, total_steps, train_dataset_cfg.batch_size, trainer.last_metrics)
  stats_seconds = 0.0
  try:
    with stop.listening():
      with progress.excluded():
        save()  # the starting state, as T5X does: a point 0 for comparisons
        # A run stopped in its last evaluation has that left to do.
        if run_eval_before_training or start_step == total_steps:
          run_evals()
      ended = False
      while step < total_steps and not ended:
        target = _next_stop(
          step,
          total_steps,
          (eval_period, stats_period, save_period, gc_period),
          (save_cfg.checkpoint_steps or ()) if save_cfg else (),
        )
        while step < target:
          stop.check()
          batch = _next_batch(batches, train_dataset_cfg)
          if trainer.compile_seconds is None:
            with progress.excluded(steps=1):
              trainer.step(batch)
            _cli.log(f"compiled the training step in {trainer.compile_seconds:.1f} s")
            stats_seconds = progress.seconds()
          else:
            trainer.step(batch)
          step += 1
          progress.update(step)
        last = step == total_steps
        if last or step % stats_period == 0:
          seconds = progress.seconds() - stats_seconds
          values = trainer.summarize(step, seconds)
          stats_seconds = progress.seconds()
          ended |= run_actions("TRAIN", {"train": values})
        with progress.excluded():
          extra = (save_cfg.checkpoint_steps or ()) if save_cfg else ()
          if last or (save_period and step % save_period == 0) or step in extra:
            save()
          if last or (eval_period and step % eval_period == 0):
            progress.clear()
            ended |= run_evals()
          if gc_period and step % gc_period == 0:
            gc.collect()
      if ended and step < total_steps:
        _cli.log(f"an action ended training at step {step}")
        save()
      progress.update(step, force=True)
    wait_for_metrics()
  except Interrupted as e:
    with contextlib.suppress(Exception):
      progress.update(step, force=True)
    _save_and_say_how_to_resume(checkpointer, save, step, model_dir)
    raise e
  finally:
    batches.close()
    trainer.close()
    if checkpointer is not None:
      checkpointer.close()
  _cli.log(f"done at step {step}; outputs are in {model_dir}")
  return step, trainer.train_state


def _next_batch(batches, cfg):
  """The next batch; training data repeats, so it only ends if it is empty."""
  batch = next(batches, None)
  if batch is None:
    raise T5XError(
      f"The training data of {cfg.mixture_or_task_name!r} is empty.",
      found=f"no example in split {cfg.split!r} after preprocessing",
      fix="check the split, the task's filters and its files.",
    )
  return batch


def _first_step(model_dir, choice, start_step: int) -> int:
  """The step relative_steps counts from: the first checkpoint of this run, if resuming."""
  from t5x import checkpoints

  if choice is not None and choice.resuming:
    return checkpoints.checkpoint_steps(model_dir)[0]
  return start_step


def _mode(key: Any) -> str:
  """'TRAIN_EVAL' of 'TRAIN_EVAL', 'train_eval' or an enum member."""
  return str(getattr(key, "name", key)).rsplit(".", 1)[-1].upper()


def _chain(fns: Sequence[Callable]) -> Callable | None:
  """One function that applies all `fns` to a state dictionary, or None."""
  if not fns:
    return None

  def apply(tree):
    for fn in fns:
      tree = fn(tree, tree)
    return tree

  return apply


def _save_and_say_how_to_resume(checkpointer, save: Callable, step: int, model_dir: str) -> None:
  started = time.time()
  if checkpointer is None:
    _cli.log(f"stopped at step {step}; nothing is saved (checkpoint_cfg.save is None)")
    return
  save()
  checkpointer.wait()
  _cli.log(
    f"stopped at step {step}; saved in {time.time() - started:.1f} s. The same command "
    f"continues from {os.path.join(model_dir, f'checkpoint_{step}')}."
  )


if __name__ == "__main__":
  _cli.define_flags()
  _cli.run(lambda argv: _cli.run_configured(train), __doc__)
