"""Checks of what gin binds to `train`, before anything is written or compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t5x import utils
from t5x._model.check import bound_to, check_kind, check_model
from t5x._step.actions import Actions
from t5x._train import setup
from t5x.errors import check_flag, check_whole

_CALLABLES = (  # (argument, whether it may be None, an example)
  ("trainer_cls", False, "@trainer.Trainer"),
  ("summarize_config_fn", True, "@gin_utils.summarize_gin_config"),
  ("inference_evaluator_cls", True, "@seqio.Evaluator"),
  ("get_dataset_fn", True, "None"),
  ("train_eval_get_dataset_fn", True, "None"),
  ("train_state_initializer_cls", True, "None"),
  ("verify_matching_vocabs_fn", True, "None"),
)
_FLAGS = ("use_hardware_rng", "concurrent_metrics", "run_eval_before_training", "use_orbax")


def check(arguments: Mapping[str, Any]) -> tuple[setup.Periods, Actions]:
  """Checks all arguments of `train`, alone and together.

  Args:
    arguments: by name.

  Returns:
    (periods, actions).

  Raises:
    T5XError: for the first one that cannot be used.
  """
  get = arguments.__getitem__
  total_steps = get("total_steps")
  setup.check_numbers(
    get("model_dir"), total_steps, get("relative_steps"), get("eval_steps"), get("random_seed")
  )
  _check_kinds(arguments)
  save_cfg = get("checkpoint_cfg").save
  periods = setup.check_periods(
    get("eval_period"), get("stats_period"), save_cfg, get("gc_period"), total_steps
  )
  actions = Actions(get("actions"))
  check_model(get("model"), trains=True)
  _check_classes(get("trainer_cls"), get("inference_evaluator_cls"))
  return periods, actions


def _check_kinds(arguments: Mapping[str, Any]) -> None:
  for name, optional, example in (
    ("train_dataset_cfg", False, "@train/utils.DatasetConfig()"),
    ("train_eval_dataset_cfg", True, "@train_eval/utils.DatasetConfig()"),
    ("infer_eval_dataset_cfg", True, "@infer_eval/utils.DatasetConfig()"),
    ("checkpoint_cfg", False, "@utils.CheckpointConfig()"),
  ):
    cls = utils.CheckpointConfig if name == "checkpoint_cfg" else utils.DatasetConfig
    fits = isinstance(arguments[name], cls) or (optional and arguments[name] is None)
    expected = f"a {cls.__name__}" + (", or None" if optional else "")
    check_kind(arguments[name], f"train.{name}", fits, expected, f"train.{name} = {example}")
  example = "@partitioning.PjitPartitioner()"
  is_one = hasattr(arguments["partitioner"], "get_data_layout")
  is_one = is_one and not isinstance(arguments["partitioner"], type)
  check_kind(
    arguments["partitioner"], "train.partitioner", is_one, example, f"train.partitioner = {example}"
  )
  for name, optional, example in _CALLABLES:
    fits = callable(arguments[name]) or (optional and arguments[name] is None)
    expected = "a class or function" + (", or None" if optional else "")
    check_kind(arguments[name], f"train.{name}", fits, expected, f"train.{name} = {example}")
  for name in _FLAGS:
    check_flag(arguments[name], f"train.{name}")


def _check_classes(trainer_cls: Any, evaluator_cls: Any) -> None:
  """Checks what gin binds to classes of which objects are made only after the data."""
  bound = bound_to(trainer_cls)
  name = "trainer.Trainer"
  check_whole(bound.get("num_microbatches"), f"{name}.num_microbatches", 0, optional=True)
  rate = bound.get("learning_rate_fn")
  example = "@utils.create_learning_rate_scheduler()"
  fits = rate is None or callable(rate)
  fix = f"{name}.learning_rate_fn = {example}"
  check_kind(rate, f"{name}.learning_rate_fn", fits, f"a function of the step: {example}", fix)
  bound = bound_to(evaluator_cls)
  name = "seqio.Evaluator"
  examples = f"{name}.num_examples (EVALUATOR_NUM_EXAMPLES)"
  check_whole(bound.get("num_examples"), examples, 0, optional=True)
  check_flag(bound.get("use_memory_cache", True), f"{name}.use_memory_cache")
  loggers = bound.get("logger_cls", ())
  example = "[@seqio.TensorBoardLogger, @seqio.JSONLogger]"
  fits = isinstance(loggers, (list, tuple)) and all(map(callable, loggers))
  check_kind(
    loggers, f"{name}.logger_cls", fits, "a list of classes", f"{name}.logger_cls = {example}"
  )
  for logger in loggers:
    rows = bound_to(logger).get("write_n_results")
    check_whole(rows, "seqio.JSONLogger.write_n_results (JSON_WRITE_N_RESULTS)", 0, optional=True)


def check_data(arguments: Mapping[str, Any]) -> None:
  """Checks tasks, vocabularies, lengths and batches of the data.

  Args:
    arguments: of `train`, by name.

  Raises:
    T5XError: for the first one that does not fit.
  """
  train_cfg, model = arguments["train_dataset_cfg"], arguments["model"]
  eval_cfg = arguments["train_eval_dataset_cfg"] if arguments["eval_steps"] else None
  infer_cfg, partitioner = arguments["infer_eval_dataset_cfg"], arguments["partitioner"]
  converter = model.FEATURE_CONVERTER_CLS
  utils.import_module(train_cfg.module)
  utils.get_mixture_or_task(train_cfg.mixture_or_task_name)
  (arguments["verify_matching_vocabs_fn"] or utils.verify_matching_vocabs)(train_cfg, model)
  utils.check_lengths(train_cfg, converter)
  for cfg, needed in ((eval_cfg, True), (infer_cfg, False)):
    if cfg is not None:
      utils.import_module(cfg.module)
      utils.check_lengths(cfg, converter, needed=needed)
  for cfg in (train_cfg, eval_cfg):
    if cfg is not None:
      partitioner.get_data_layout(cfg.batch_size)
