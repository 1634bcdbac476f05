"""Trains a model.

  python -m t5x.train --gin_file=FILE.gin --gin.MODEL_DIR="'/tmp/run'" \\
    --gin.TRAIN_STEPS=1000

Any gin binding can be given as --gin.NAME=VALUE. The run is resumed from the
latest checkpoint in MODEL_DIR if there is one. Ctrl-C stops between two steps
and saves.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5x._process.log import log
from t5x._script import cli
from t5x._settings import defaults


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
  inference_evaluator_cls: Any = defaults.evaluator,
  get_dataset_fn: Callable | None = None,
  concurrent_metrics: bool = True,
  actions: Mapping[str, Sequence[Any]] | None = None,
  train_eval_get_dataset_fn: Callable | None = None,
  run_eval_before_training: bool = False,
  train_state_initializer_cls: Any = None,
  use_orbax: bool = True,
  verify_matching_vocabs_fn: Callable | None = defaults.verify_matching_vocabs,
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
      summarize_config_fn: called as fn(model_dir, summary_writer of training, step) once there is a
          train state; config.gin is written before.
      inference_evaluator_cls: `seqio.Evaluator` with its gin bindings, by default one that writes
          TensorBoard events and JSON files; None evaluates no predictions.
      get_dataset_fn: replaces `utils.get_dataset`.
      concurrent_metrics: compute metrics beside training, and wait for them at the next
          evaluation and at the end (not if there are INFER_EVAL actions: they need them).
      actions: {'TRAIN' | 'TRAIN_EVAL' | 'INFER_EVAL': [action]}; `action.run(state, metrics)`
          returning True ends training
          (after saving, unless the loss or the parameters are not finite).
      train_eval_get_dataset_fn: replaces `utils.get_training_eval_datasets`.
      run_eval_before_training: evaluate the starting state first.
      train_state_initializer_cls: replaces `utils.TrainStateInitializer`.
      use_orbax: False writes checkpoints in T5X's legacy layout; both can be read.
      verify_matching_vocabs_fn: called as fn(dataset_cfg, model), by default
          `utils.verify_matching_vocabs`; None checks nothing.
      gc_period: steps between garbage collections; 0 leaves them to Python (in scripts, rare).

  Returns:
      (last step, last train state).

  Raises:
      T5XError: a setting, the data or a checkpoint does not fit.
      Interrupted: after Ctrl-C or SIGTERM, once the state is saved.
  """
  arguments = dict(locals())  # now, while these are the only names
  # Imported here: `--help` and wrong flags are answered before the seconds that this takes.
  import jax

  from t5x import gin_utils, utils
  from t5x._process import folder_lock
  from t5x._process.stop import StopRequest
  from t5x._train import settings, setup, streams
  from t5x._train.loop import Evaluations, Loop, Saver
  from t5x._train.trim import trimmed
  from t5x.examples.t5 import network, softmax_attention

  # ----------------------------------------------------------------- check the settings
  periods, actions = settings.check(arguments)
  save_cfg, restore_cfg = checkpoint_cfg.save, checkpoint_cfg.restore
  if use_hardware_rng:  # before any key is made: a key belongs to one generator
    jax.config.update("jax_default_prng_impl", "rbg")
  # What is opened below is closed in reverse order, however the run ends: the saver first, whose
  # checkpoint must be complete, and the lock of the folder last.
  with contextlib.ExitStack() as at_end:
    at_end.enter_context(folder_lock.held([os.path.join(model_dir, "train.lock")], "MODEL_DIR"))
    gin_utils.summarize_gin_config(model_dir)  # a run that fails later has it too
    start = setup.choose_start(
      model_dir, restore_cfg, total_steps, relative_steps, streams.stored_run_start(model_dir)
    )

    # ----------------------------------------------------------------- data
    settings.check_data(arguments)
    # The data goes on where it stopped, with the seeds it began with, unless its settings changed.
    stream = streams.choose_stream(model_dir, start, random_seed, train_dataset_cfg)
    init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(stream.seed))
    train_ds, num_shards = streams.training_data(
      train_dataset_cfg,
      model,
      partitioner,
      get_dataset_fn or utils.get_dataset,
      stream,
      start.step,
    )
    # It reads while the rest is being prepared.
    sharding = partitioner.sharding(partitioner.data_partition_spec)
    batches = utils.DevicePrefetcher(trimmed(train_ds, model), sharding)
    at_end.callback(batches.close)
    # Before parameters are made: a mistake in these sets need not wait for them.
    eval_sets = setup.eval_data(
      train_eval_dataset_cfg,
      model,
      partitioner,
      train_eval_get_dataset_fn or utils.get_training_eval_datasets,
      random_seed,
      eval_steps,
    )

    # --------------------------------------------------------------- state, evaluation, saving
    shapes, types = utils.batch_shapes(train_ds, train_dataset_cfg.batch_size)
    initializer = (train_state_initializer_cls or utils.TrainStateInitializer)(
      optimizer_def=model.optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes=shapes,
      input_types=types,
      partitioner=partitioner,
    )
    if start.choice:
      state = initializer.from_choice(start.choice, restore_cfg, init_rng)
    else:
      state = initializer.from_scratch(init_rng)
    utils.log_model_info(os.path.join(model_dir, "model-info.txt"), state)
    axes = initializer.train_state_axes
    trainer = trainer_cls(
      model=model,
      train_state=state,
      partitioner=partitioner,
      eval_names=list(eval_sets),
      summary_dir=model_dir,
      rng=trainer_rng,
      train_state_axes=axes,
    )
    del state  # its buffers are donated to the first step
    partitioner.check_microbatches(train_dataset_cfg.batch_size, setup.num_microbatches(trainer))
    # state_transformation_fns may have given the restored state another step.
    first_step, step = start.step, int(trainer.train_state.step)
    if summarize_config_fn is not None:
      summarize_config_fn(model_dir, trainer.train_metrics_manager.summary_writer, step)
    start = setup.moved(start, step, relative_steps)
    streams.store_moved(model_dir, stream, step - first_step)
    log(setup.describe_step(model, partitioner, train_dataset_cfg, trainer))
    if isinstance(getattr(model, "module", None), network.Transformer):
      # Another network has an attention of its own.
      log(softmax_attention.describe())
    stop = StopRequest()
    evaluator = setup.make_evaluator(
      infer_eval_dataset_cfg,
      inference_evaluator_cls,
      model,
      partitioner,
      axes,
      model_dir,
      verify_matching_vocabs_fn,
      stop.check,
    )
    # This host's part of a batch: each one reads only its rows.
    rows = train_eval_dataset_cfg.batch_size // num_shards if eval_sets else 0
    evaluations = Evaluations(
      trainer, model, eval_sets, rows, evaluator, actions, concurrent_metrics
    )
    at_end.callback(evaluations.close)
    at_end.callback(trainer.close)
    checkpointer = setup.make_checkpointer(model_dir, save_cfg, use_orbax)
    saver = Saver(model_dir, checkpointer, save_cfg, trainer, model, actions)
    at_end.callback(saver.close)

    # --------------------------------------------------------------- train
    loop = Loop(
      trainer,
      streams.never_empty(batches, train_dataset_cfg),
      start.total_steps,
      periods,
      saver,
      evaluations,
      actions,
      stop,
    )
    loop.run(eval_first=run_eval_before_training)
  log(f"done at step {loop.step}; outputs are in {model_dir}")
  return loop.step, trainer.train_state


if __name__ == "__main__":
  cli.define_flags()
  cli.run(lambda argv: cli.run_configured(train), __doc__)
