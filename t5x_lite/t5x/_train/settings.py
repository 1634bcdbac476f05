"""Checks of what gin binds to `train`, before anything is written or compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t5x import utils
from t5x._settings.model import check_model
from t5x._settings.parts import check_parts
from t5x._step.actions import Actions
from t5x._train import setup
from t5x.errors import check_flag


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
  optional = ("train_eval_dataset_cfg", "infer_eval_dataset_cfg")
  needed = ("train_dataset_cfg", "checkpoint_cfg", "partitioner")
  parts = [*needed, *(name for name in optional if get(name) is not None)]
  check_parts("train", {name: get(name) for name in parts})
  for name in ("use_hardware_rng", "concurrent_metrics", "run_eval_before_training", "use_orbax"):
    check_flag(get(name), f"train.{name}")
  total_steps = get("total_steps")
  setup.check_numbers(
    get("model_dir"), total_steps, get("relative_steps"), get("eval_steps"), get("random_seed")
  )
  save_cfg = get("checkpoint_cfg").save
  evaluates = any(get(name) is not None for name in optional)
  periods = setup.check_periods(
    get("eval_period") if evaluates else 0,
    get("stats_period"),
    save_cfg,
    get("gc_period"),
    get("relative_steps") or total_steps,
  )
  actions = Actions(get("actions"))
  check_model(get("model"), trains=True)
  return periods, actions


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
