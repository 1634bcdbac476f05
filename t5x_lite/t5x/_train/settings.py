"""Checks of what gin binds to `train`, before anything is written or compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t5x import utils
from t5x._settings.kinds import bound_to, check_arguments, check_evaluator, check_kind
from t5x._settings.model import check_model
from t5x._step.actions import Actions
from t5x._train import setup
from t5x.errors import check_whole

_CONFIGS = {  # argument: (class, whether it may be None, an example)
  "train_dataset_cfg": (utils.DatasetConfig, False, "@train/utils.DatasetConfig()"),
  "train_eval_dataset_cfg": (utils.DatasetConfig, True, "@train_eval/utils.DatasetConfig()"),
  "infer_eval_dataset_cfg": (utils.DatasetConfig, True, "@infer_eval/utils.DatasetConfig()"),
  "checkpoint_cfg": (utils.CheckpointConfig, False, "@utils.CheckpointConfig()"),
}
_CALLABLES = {  # argument: (whether it may be None, an example)
  "trainer_cls": (False, "@trainer.Trainer"),
  "summarize_config_fn": (True, "@gin_utils.summarize_gin_config"),
  "inference_evaluator_cls": (True, "@seqio.Evaluator"),
  "get_dataset_fn": (True, "None"),
  "train_eval_get_dataset_fn": (True, "None"),
  "train_state_initializer_cls": (True, "None"),
  "verify_matching_vocabs_fn": (True, "None"),
}
_FLAGS = ("use_hardware_rng", "concurrent_metrics", "run_eval_before_training", "use_orbax")


def check(arguments: Mapping[str, Any]) -> tuple[setup.Periods, Actions]:
  """Checks all arguments of `train`, alone and together.

  Args:
    arguments: mapping from name to value.

  Returns:
    (periods, actions).

  Raises:
    T5XError: for the first invalid argument.
  """
  get = arguments.__getitem__
  total_steps = get("total_steps")
  setup.check_numbers(
    get("model_dir"), total_steps, get("relative_steps"), get("eval_steps"), get("random_seed")
  )
  check_arguments("train", arguments, _CONFIGS, _CALLABLES, _FLAGS)
  save_cfg = get("checkpoint_cfg").save
  periods = setup.check_periods(
    get("eval_period"),
    get("stats_period"),
    save_cfg,
    get("gc_period"),
    get("relative_steps") or total_steps,
  )
  actions = Actions(get("actions"))
  check_model(get("model"), trains=True)
  _check_classes(get("trainer_cls"), get("inference_evaluator_cls"))
  return periods, actions


def _check_classes(trainer_cls: Any, evaluator_cls: Any) -> None:
  """Checks what gin binds to classes that are instantiated only after the data is set up."""
  bound = bound_to(trainer_cls)
  name = "trainer.Trainer"
  check_whole(bound.get("num_microbatches"), f"{name}.num_microbatches", 0, optional=True)
  rate = bound.get("learning_rate_fn")
  example = "@utils.create_learning_rate_scheduler()"
  fits = rate is None or callable(rate)
  fix = f"{name}.learning_rate_fn = {example}"
  check_kind(rate, f"{name}.learning_rate_fn", fits, f"a function of the step: {example}", fix)
  check_evaluator(evaluator_cls)


def check_data(arguments: Mapping[str, Any]) -> None:
  """Checks tasks, vocabularies, lengths and batches of the data.

  Args:
    arguments: mapping from name to value, those of `train`.

  Raises:
    T5XError: for the first one that does not fit.
  """
  train_cfg, model = arguments["train_dataset_cfg"], arguments["model"]
  eval_cfg = arguments["train_eval_dataset_cfg"] if arguments["eval_steps"] else None
  infer_cfg, partitioner = arguments["infer_eval_dataset_cfg"], arguments["partitioner"]
  converter = model.FEATURE_CONVERTER_CLS
  utils.import_module(train_cfg.module)
  utils.get_mixture_or_task(train_cfg.mixture_or_task_name)
  if verify := arguments["verify_matching_vocabs_fn"]:
    verify(train_cfg, model)
  utils.check_lengths(train_cfg, converter)
  for cfg, needed in ((eval_cfg, True), (infer_cfg, False)):
    if cfg is not None:
      utils.import_module(cfg.module)
      utils.check_lengths(cfg, converter, needed=needed)
  for cfg in (train_cfg, eval_cfg):
    if cfg is not None:
      partitioner.get_data_layout(cfg.batch_size)
