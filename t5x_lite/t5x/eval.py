"""Evaluates checkpoints on the metrics of a task or mixture.

  python -m t5x.eval --gin_file=FILE.gin \\
    --gin.CHECKPOINT_PATH="'/tmp/run/checkpoint_1000'" \\
    --gin.EVAL_OUTPUT_DIR="'/tmp/eval'"

Writes EVAL_OUTPUT_DIR/inference_eval/<task>-<step>.jsonl, <task>-metrics.jsonl
and TensorBoard events. Until then results are in EVAL_OUTPUT_DIR/partial as
they come; the same command goes on from there.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

from t5x._process.log import log
from t5x._script import cli
from t5x._settings import defaults
from t5x.errors import T5XError

_SHOWN = 12  # tasks that an error names


def _choices(restore_cfg) -> list:
  """The checkpoints to evaluate, in order of steps; raises T5XError where there is none."""
  from t5x import checkpoints
  from t5x._checkpoint.choose import chosen

  choice = chosen(restore_cfg)
  if restore_cfg.mode != "all":
    return [choice]
  steps = checkpoints.checkpoint_steps(os.path.dirname(choice.path))
  return [checkpoints.choose_checkpoint(None, restore_cfg, step) for step in steps]


def evaluate(
  *,
  model,
  dataset_cfg,
  restore_checkpoint_cfg,
  partitioner,
  output_dir: str,
  inference_evaluator_cls: Any = defaults.evaluator,
  training_evaluator_cls: Any = None,
  summarize_config_fn: Callable | None = None,
  train_state_initializer_cls: Any = None,
  train_eval_get_dataset_fn: Callable | None = None,
  fallback_init_rng: int | None = None,
  use_orbax: bool = True,
) -> dict[int, dict[str, dict[str, Any]]]:
  """Evaluates checkpoints (gin: `eval_script.evaluate`).

  Args:
      model: the model.
      dataset_cfg: what to evaluate on; task_feature_lengths None measures the lengths.
      restore_checkpoint_cfg: which checkpoints; mode 'all' skips steps that
          OUTPUT_DIR/eval.<task>.ckpt lists as done.
      partitioner: `partitioning.PjitPartitioner`.
      output_dir: folder of the results.
      inference_evaluator_cls: `seqio.Evaluator` with its gin bindings, by default one that writes
          TensorBoard events and JSON files; None is that, too.
      training_evaluator_cls: not covered, must be None.
      summarize_config_fn: called as fn(output_dir, None, 0).
      train_state_initializer_cls: replaces `utils.TrainStateInitializer`.
      train_eval_get_dataset_fn: unused without training_evaluator_cls.
      fallback_init_rng: seed for arrays the checkpoint does not have (else they are an error).
      use_orbax: accepted; both layouts are recognised.

  Returns:
      {step: {task: {metric: value}}}.
  """
  from etils import epath

  from t5x import gin_utils, utils
  from t5x._process import folder_lock
  from t5x._process.stop import StopRequest
  from t5x._settings.model import check_model
  from t5x._settings.parts import check_parts
  from t5x.errors import not_in_lite

  del use_orbax, train_eval_get_dataset_fn
  if training_evaluator_cls is not None:
    raise not_in_lite("evaluate.training_evaluator_cls", "set it to None")
  inference_evaluator_cls = inference_evaluator_cls or defaults.evaluator
  folder_lock.check_folder_name(output_dir, "EVAL_OUTPUT_DIR")
  parts = {"dataset_cfg": dataset_cfg, "restore_checkpoint_cfg": restore_checkpoint_cfg}
  check_parts("evaluate", {**parts, "partitioner": partitioner})
  check_model(model)
  utils.import_module(dataset_cfg.module)
  utils.check_lengths(dataset_cfg, model.FEATURE_CONVERTER_CLS, needed=False)
  name = dataset_cfg.mixture_or_task_name
  results_of = os.path.join(output_dir, f"eval.{name if isinstance(name, str) else name.name}")
  if fallback_init_rng is not None:
    restore_checkpoint_cfg.fallback_to_scratch = True
  with folder_lock.held([f"{results_of}.lock"], "EVAL_OUTPUT_DIR"):
    choices = _choices(restore_checkpoint_cfg)  # before the datasets, which take their time
    (summarize_config_fn or gin_utils.summarize_gin_config)(output_dir, None, 0)

    # ----------------------------------------------------------------- data and shapes
    stop = StopRequest()
    # The evaluator measures the lengths with which the train state is made: it gets the axes later.
    axes = types.SimpleNamespace()
    evaluator = utils.InferenceEvaluator(
      dataset_cfg,
      inference_evaluator_cls,
      model,
      partitioner,
      axes,
      log_dir=os.path.join(output_dir, "inference_eval"),
      check_stop=stop.check,
      journal_dir=os.path.join(output_dir, "partial"),
    )
    if not evaluator.eval_tasks:
      raise T5XError(
        f"No task of {dataset_cfg.mixture_or_task_name!r} can be evaluated.",
        found=f"no task with split {dataset_cfg.split!r} and metrics",
        available=_splits_and_metrics(dataset_cfg),
        fix="set utils.DatasetConfig.split, or add metric_fns to the tasks.",
      )
    rows = dataset_cfg.batch_size
    initializer = (train_state_initializer_cls or utils.TrainStateInitializer)(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes={k: (rows, *n) for k, n in evaluator.model_feature_shapes.items()},
      partitioner=partitioner,
    )
    axes.params = initializer.train_state_axes.params

    # ----------------------------------------------------------------- evaluate
    with stop.listening():
      results = _evaluate_all(
        initializer,
        evaluator,
        choices,
        restore_checkpoint_cfg,
        epath.Path(f"{results_of}.ckpt"),
        fallback_init_rng or 0,
        stop.check,
      )
  log(f"outputs are in {output_dir}")
  return results


def _evaluate_all(
  initializer,
  evaluator,
  choices,
  restore_cfg,
  done_file,
  seed: int,
  check_stop: Callable[[], None],
) -> dict[int, dict[str, dict[str, Any]]]:
  """Evaluates those of the chosen checkpoints that `done_file` does not list; lists them there."""
  import jax

  from t5x import checkpoints, utils

  evaluated = set(done_file.read_text().splitlines()) if done_file.exists() else set()
  results: dict[int, dict[str, dict[str, Any]]] = {}
  for choice in choices:
    step = checkpoints.checkpoint_step(choice)
    # One checkpoint that is asked for by name is evaluated again, perhaps with other metrics.
    if choice.path in evaluated and restore_cfg.mode == "all":
      log(f"{choice.path} is in {done_file}: skipped")
      continue
    state = initializer.from_choice(choice, restore_cfg, jax.random.PRNGKey(seed))
    if not results:
      utils.log_model_info(str(done_file.parent / "model-info.txt"), state)
    check_stop()
    results[step] = evaluator.finish(evaluator.evaluate(state))
    evaluated.add(choice.path)
    if jax.process_index() == 0:
      # checkpoint_900 before checkpoint_1000.
      by_step = sorted(evaluated, key=lambda path: (len(path), path))
      done_file.write_text("\n".join(by_step))  # at once: a stopped run goes on after it
  return results


def _splits_and_metrics(cfg) -> str:
  """A line for all tasks that have the same splits and as many metrics."""
  import seqio

  from t5x import utils

  groups: dict[tuple[str, int], list[str]] = {}
  for t in seqio.get_subtasks(utils.get_mixture_or_task(cfg.mixture_or_task_name)):
    groups.setdefault((", ".join(t.splits), len(t.metric_fns)), []).append(t.name)
  lines = []
  for (splits, number), names in groups.items():
    ellipsis = f", ... ({len(names)} tasks)" if len(names) > _SHOWN else ""
    metrics = f"{number or 'no'} metric{'s' * (number != 1)}"
    lines.append(f"splits {splits or 'none'}, {metrics}: {', '.join(names[:_SHOWN])}{ellipsis}")
  return "\n".join(lines)


if __name__ == "__main__":
  cli.define_flags()
  cli.run(lambda argv: cli.run_configured(evaluate), __doc__)
