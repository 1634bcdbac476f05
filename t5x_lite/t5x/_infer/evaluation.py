"""Evaluation with seqio's Evaluator, as gin configures it, on top of `t5x._infer.inference`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from t5x._data.batches import quick_converter
from t5x._data.datasets import (
  DatasetConfig,
  get_mixture_or_task,
  import_module,
  verify_matching_vocabs,
)
from t5x._infer.infer_fn import get_infer_fn
from t5x._infer.journal import Journal, config_hash, decoder
from t5x._process.hosts import broadcast_text
from t5x._process.log import log
from t5x.errors import T5XError

_SHOWN = 12  # scores per task on the console; all are in its files


class InferenceEvaluator:
  """Runs a seqio evaluator's tasks on a train state.

  Args:
      infer_eval_dataset_cfg: what to evaluate on.
      inference_evaluator_cls: `seqio.Evaluator` as gin configured it.
      model: the model; gives predict_batch, predict_batch_with_aux and score_batch.
      partitioner: partitioner of the train state.
      train_state_axes: the state with PartitionSpecs.
      log_dir: folder of the loggers' files.
      verify_matching_vocabs_fn: called as fn(cfg, model), or None.
      check_stop: called between batches; raises to stop.
      journal_dir: folder that stores results as they are produced, so that a killed evaluation
          continues where it stopped; None stores none.
  """

  def __init__(
    self,
    infer_eval_dataset_cfg: DatasetConfig,
    inference_evaluator_cls,
    model,
    partitioner,
    train_state_axes,
    log_dir: str | None = None,
    verify_matching_vocabs_fn=verify_matching_vocabs,
    check_stop=None,
    journal_dir: str | None = None,
  ):
    cfg = infer_eval_dataset_cfg
    import_module(cfg.module)
    get_mixture_or_task(cfg.mixture_or_task_name)
    if verify_matching_vocabs_fn is not None:
      verify_matching_vocabs_fn(cfg, model)
    # The default is not passed: gin may have bound the evaluator's own setting.
    options = {} if cfg.use_memory_cache else {"use_memory_cache": False}
    name = cfg.mixture_or_task_name
    self.evaluator = inference_evaluator_cls(
      log_dir=log_dir,
      mixture_or_task_name=name if isinstance(name, str) else name.name,
      feature_converter=quick_converter(model.FEATURE_CONVERTER_CLS(pack=False)),
      eval_split=cfg.split,
      use_cached=cfg.use_cached,
      seed=42 if cfg.seed is None else cfg.seed,
      sequence_length=cfg.task_feature_lengths,
      **options,
    )
    # Without a task to evaluate, which callers judge, the evaluator reads no examples.
    datasets = self.evaluator.cached_task_datasets if self.evaluator.eval_tasks else {}
    for task, ds in datasets.items():
      if next(iter(ds.take(1)), None) is None:
        raise T5XError(
          f"There are no examples of {task!r} to evaluate.",
          found=f"an empty split {cfg.split!r}",
          expected="at least one example",
          fix="add examples, name another split, or leave the task out of the mixture",
        )
    self._journal_dir = journal_dir
    self._vocabulary = getattr(model, "output_vocabulary", None)  # not every model has one
    self._journals: list[Journal] = []

    def make(step):
      return get_infer_fn(
        step, cfg.batch_size, train_state_axes, partitioner, check_stop=check_stop
      )

    self._predicts_once = model.predicts_once
    self._predict_with_aux = make(model.predict_batch_with_aux)
    self._predict = make(model.predict_batch)
    self._score = make(model.score_batch)

  @property
  def eval_tasks(self):
    """Tasks that have the split and metrics."""
    return self.evaluator.eval_tasks

  @property
  def model_feature_shapes(self) -> Mapping[str, tuple[int, ...]]:
    """{model feature: padded shape}."""
    return self.evaluator.model_feature_shapes

  def _task_name(self, ds) -> str:
    for name, cached in self.evaluator.cached_model_datasets.items():
      if cached is ds:
        return name
    return ""

  def evaluate(self, train_state: Any, train_state_axes: Any = None) -> Any:
    """Runs the model over all tasks and starts the metrics.

    Returns:
        A future of {task: {metric: value}}; `.result()` raises what a metric raised.
    """
    del train_state_axes
    step = int(train_state.step)
    needs_aux = {task.name for task in self.eval_tasks if task.predict_with_aux_metric_fns}
    settings_hash = ""
    if self._journal_dir:
      settings_hash = config_hash(train_state.params, {"step": step})
    memo: dict[str, Any] = {}

    def run(infer_fn, ds, kind):
      name = self._task_name(ds)
      label = f"{'score' if kind == 'score' else 'eval'} {name} at step {step}"
      if not self._journal_dir:
        return infer_fn(ds, train_state, label=label)
      path = os.path.join(self._journal_dir, f"{name}-{step}-{kind}")
      is_text = kind != "score" and self._vocabulary is not None
      to_text = decoder(self._vocabulary) if is_text else None
      journal = Journal(path, settings_hash, to_text)
      self._journals.append(journal)
      return infer_fn(ds, train_state, label=label, journal=journal)

    def with_aux(ds):
      name = self._task_name(ds)
      if name not in memo:
        memo[name] = run(self._predict_with_aux, ds, "predict_with_aux")
      return memo[name]

    def predict(ds):
      # One decode serves both kinds of metric.
      if self._predicts_once and self._task_name(ds) in needs_aux:
        return with_aux(ds)[0]
      return run(self._predict, ds, "predict")

    def score(ds):
      return run(self._score, ds, "score")

    metrics, _ = self.evaluator.evaluate(
      compute_metrics=jax.process_index() == 0,
      step=step,
      predict_fn=predict,
      score_fn=score,
      predict_with_aux_fn=with_aux,
    )
    return metrics

  def finish(self, metrics_future) -> dict[str, dict[str, Any]]:
    """Waits for the metrics of `evaluate`; all processes get what the first one computed.

    Raises:
        Exception: what a metric raised; the run must not end as if it had succeeded.
    """
    results: dict[str, dict[str, Any]] = {}
    failure: Exception | None = None
    try:
      results = metrics_future.result() or {}
    except Exception as e:
      failure = e
    if jax.process_count() > 1:  # otherwise actions would end training on the first process only
      results, failure = _of_first_process(results, failure)
    if failure is not None:
      failure.add_note(
        "A metric failed, or the task's postprocessing: this evaluation has no scores. Predictions "
        "can be made without metrics by `python -m t5x.infer`."
      )
      raise failure
    for journal in self._journals:
      journal.close(complete=True)
    self._journals = []
    for task, values in results.items():
      scores = [f"{k} {_scalar(v)}" for k, v in values.items()]
      if len(scores) > _SHOWN:
        scores[_SHOWN:] = [f"and {len(scores) - _SHOWN} more"]
      log(f"{task}: {', '.join(scores)}")
    return results


def _of_first_process(results, failure: Exception | None):
  """The first process's (results, failure) on every process; only numbers on the others."""
  numbers: dict[str, dict[str, float]] = {}
  for task, values in results.items():
    numbers[task] = {}
    for name, metric in values.items():
      value = getattr(metric, "value", metric)
      if np.ndim(value) == 0 and np.isreal(value):  # JSON has no arrays, texts stay here
        numbers[task][name] = float(value)
  text = broadcast_text(json.dumps([numbers, failure and str(failure)]))
  if jax.process_index() == 0:
    return results, failure
  numbers, message = json.loads(text)
  return numbers, message and ValueError(message)


def _scalar(value: Any) -> str:
  value = getattr(value, "value", value)
  try:
    return f"{float(value):.4g}"
  except (TypeError, ValueError):
    return str(value)[:60]
