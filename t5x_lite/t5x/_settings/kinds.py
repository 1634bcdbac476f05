"""Checks of what gin binds to the scripts: values of the wrong kind, before anything is read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import gin

from t5x import utils
from t5x.errors import T5XError, check_flag, check_whole

_PARTITIONER = "@partitioning.PjitPartitioner()"
_INFERENCE_CONFIGS = {
  "dataset_cfg": (utils.DatasetConfig, False, "@utils.DatasetConfig()"),
  "restore_checkpoint_cfg": (
    utils.RestoreCheckpointConfig,
    False,
    "@utils.RestoreCheckpointConfig()",
  ),
}


def bound_to(configurable: Any) -> Mapping[str, Any]:
  """Returns what gin binds to a class or function that it configured; {} if it did not."""
  # A reference is to a subclass that gin makes, or to a function around the one it knows.
  original = [inspect.unwrap(configurable)] if callable(configurable) else []
  for candidate in getattr(configurable, "__mro__", original):
    try:
      gin.get_bindings(candidate, resolve_references=False)
    except ValueError:  # not configurable
      continue
    return gin.get_bindings(candidate)
  return {}


def check_kind(value: Any, name: str, fits: bool, expected: str, fix: str) -> None:
  """Raises T5XError unless `fits`.

  Args:
    value: what a setting was bound to.
    name: the setting.
    fits: whether it can be used.
    expected: what can be used.
    fix: a line of gin that binds such a value.
  """
  if not fits:
    raise T5XError(f"{name} is invalid.", found=repr(value)[:200], expected=expected, fix=fix)


def check_arguments(
  script: str,
  arguments: Mapping[str, Any],
  configs: Mapping[str, tuple[type, bool, str]],
  callables: Mapping[str, tuple[bool, str]],
  flags: Sequence[str] = (),
) -> None:
  """Raises T5XError for the first argument of a script that is of the wrong kind.

  Args:
    script: `train`, `evaluate` or `infer`.
    arguments: mapping from name to value; `partitioner` is checked too.
    configs: {argument: (class, whether it may be None, an example)}.
    callables: {argument: (whether it may be None, an example)}, for classes and functions.
    flags: arguments that are True or False.
  """

  def check(name: str, fits: bool, expected: str, optional: bool, example: str) -> None:
    value = arguments[name]
    fits = fits or (optional and value is None)
    expected += ", or None" if optional else ""
    check_kind(value, f"{script}.{name}", fits, expected, f"{script}.{name} = {example}")

  for name, (cls, optional, example) in configs.items():
    check(name, isinstance(arguments[name], cls), f"a {cls.__name__}", optional, example)
  partitioner = arguments["partitioner"]
  is_one = hasattr(partitioner, "get_data_layout") and not isinstance(partitioner, type)
  check("partitioner", is_one, f"a partitioner: {_PARTITIONER}", False, _PARTITIONER)
  for name, (optional, example) in callables.items():
    value = arguments[name]
    fits = callable(value) and not (name.endswith("_fn") and isinstance(value, type))
    expected = "a function" if name.endswith("_fn") else "a class or function"
    check(name, fits, expected, optional, example)
  for name in flags:
    check_flag(arguments[name], f"{script}.{name}")


def check_evaluator(evaluator_cls: Any) -> None:
  """Raises T5XError for invalid bindings of `seqio.Evaluator`, made late, and its loggers."""
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


def check_inference(
  script: str, arguments: Mapping[str, Any], callables: Mapping[str, tuple[bool, str]]
) -> None:
  """Raises T5XError for the first argument of `evaluate` or `infer` that is of the wrong kind.

  Args:
    script: its name.
    arguments: mapping from name to value.
    callables: as in `check_arguments`.
  """
  optional = {"summarize_config_fn": (True, "None"), "train_state_initializer_cls": (True, "None")}
  check_arguments(script, arguments, _INFERENCE_CONFIGS, {**optional, **callables})
  seed = f"{script}.fallback_init_rng"
  check_whole(arguments["fallback_init_rng"], seed, -(2**63), optional=True)
