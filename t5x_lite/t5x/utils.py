"""What gin files know as `utils.X`: configuration dataclasses and the functions they bind.

Implementations live in private modules by topic; this file is the list of public names and the
checkpoint configurations.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

from t5x._checkpoint.init_state import TrainStateInitializer, log_model_info
from t5x._checkpoint.restore import check_assignment_map
from t5x._data.datasets import (
  DatasetConfig,
  batch_shapes,
  check_lengths,
  get_dataset,
  get_mixture_or_task,
  get_training_eval_datasets,
  import_module,
  resolve_seed,
  resume_data,
  verify_matching_vocabs,
)
from t5x._data.devices import DevicePrefetcher
from t5x._infer.evaluation import InferenceEvaluator
from t5x._infer.infer_fn import get_infer_fn
from t5x._process.compilation_cache import compilation_cache
from t5x._process.matmul import cpu_matmul
from t5x.errors import T5XError, check_flag, check_float_type, check_whole, not_in_lite
from t5x.schedules import create_learning_rate_scheduler
from t5x.train_state import InferenceState

__all__ = [
  "CheckpointConfig",
  "DatasetConfig",
  "DevicePrefetcher",
  "InferenceEvaluator",
  "InferenceState",
  "RestoreCheckpointConfig",
  "SaveCheckpointConfig",
  "TrainStateInitializer",
  "batch_shapes",
  "check_lengths",
  "compilation_cache",
  "cpu_matmul",
  "create_learning_rate_scheduler",
  "get_dataset",
  "get_infer_fn",
  "get_mixture_or_task",
  "get_training_eval_datasets",
  "import_module",
  "log_model_info",
  "resolve_seed",
  "resume_data",
  "round_vocab_size_to_multiple",
  "verify_matching_vocabs",
]

_MODES = ("specific", "latest", "all")


def _check_functions(fns: Any, config: str) -> None:
  """Raises T5XError unless these state_transformation_fns are a list of functions, or None."""
  if isinstance(fns, (list, tuple, type(None))) and all(map(callable, fns or ())):
    return
  raise T5XError(
    f"{config}.state_transformation_fns is no list of functions.",
    found=repr(fns),
    expected="a list, also of a single function",
    fix=f"utils.{config}.state_transformation_fns = [@my_module.my_function]",
  )


def _check_class(cls: Any, setting: str) -> None:
  """Raises T5XError for a class other than those in `checkpoints`: it would not be used."""
  module = str(getattr(getattr(cls, "func", cls), "__module__", ""))  # of a partial: what it calls
  if cls is not None and not module.startswith("t5x."):
    raise not_in_lite(f"{setting} = {cls!r}", "leave it unset")


@dataclasses.dataclass
class SaveCheckpointConfig:
  """How training saves.

  Args:
      dtype: type the parameters are stored in.
      period: steps between checkpoints; None saves only at the start and the end.
      checkpoint_steps: additional steps to save at (not necessarily multiples of `period`).
      keep: number of checkpoints to keep; None keeps all.
      keep_dataset_checkpoints: accepted; there is no dataset state to keep.
      save_dataset: not covered (a resumed run finds its place in the data without it).
      checkpointer_cls: `@checkpoints.Checkpointer` writes the legacy layout (as does
          `train.use_orbax = False`), `@checkpoints.SaveBestCheckpointer` keeps the best
          checkpoints; None writes the Orbax layout.
      state_transformation_fns: called as fn(state dictionary, a tree of its structure) before
          saving; return the new dictionary, or both (as in T5X).
      checkpoint_manager_cls: accepted for T5X's default class.
  """

  dtype: str = "float32"
  period: int | None = None
  checkpoint_steps: Sequence[int] | None = None
  keep: int | None = None
  keep_dataset_checkpoints: int | None = None
  save_dataset: bool = False
  checkpointer_cls: Any = None
  state_transformation_fns: Sequence[Callable] = dataclasses.field(default_factory=list)
  checkpoint_manager_cls: Any = None

  def __post_init__(self):
    # Now, while gin makes it: the first save may be hours away.
    check_flag(self.save_dataset, "SaveCheckpointConfig.save_dataset")
    if self.save_dataset:
      raise not_in_lite("SaveCheckpointConfig.save_dataset=True", "set it to False")
    for name, example in (("period", 1000), ("keep", 3)):
      fix = f"utils.SaveCheckpointConfig.{name} = {example}"
      check_whole(getattr(self, name), f"SaveCheckpointConfig.{name}", optional=True, fix=fix)
    check_float_type(self.dtype, "SaveCheckpointConfig.dtype")
    _check_functions(self.state_transformation_fns, "SaveCheckpointConfig")
    _check_class(self.checkpoint_manager_cls, "SaveCheckpointConfig.checkpoint_manager_cls")
    if not isinstance(self.checkpoint_steps, (Sequence, type(None))):
      raise T5XError(
        "SaveCheckpointConfig.checkpoint_steps is no list.",
        found=repr(self.checkpoint_steps),
        expected="steps",
        fix="utils.SaveCheckpointConfig.checkpoint_steps = [1000, 3000]",
      )
    for step in self.checkpoint_steps or ():
      check_whole(step, "Each of SaveCheckpointConfig.checkpoint_steps", minimum=0)


@dataclasses.dataclass
class RestoreCheckpointConfig:
  """Where a run starts from, or what eval and infer read.

  Args:
      path: a checkpoint_N folder (mode 'specific') or a folder of them; [] or None is scratch.
      mode: 'specific', 'latest' or 'all' (eval only: each checkpoint in turn).
      assignment_map: (pattern of names in the model, name in the checkpoint or None to keep the
          initial value) pairs.
      strict: refuse arrays in the checkpoint that the model does not have.
      fallback_to_scratch: initialise arrays the checkpoint does not have.
      dtype: type to convert parameters to; None keeps the model's.
      restore_dataset: not covered.
      checkpointer_cls: accepted for T5X's default classes; both layouts are recognised.
      state_transformation_fns: called as fn(checkpoint_tree, model_tree).
      checkpoint_manager_cls: accepted for T5X's default class.
  """

  path: str | Sequence[str] | None = None
  mode: str = "latest"
  assignment_map: Sequence[tuple[str, str | None]] | None = None
  strict: bool = True
  fallback_to_scratch: bool = False
  dtype: str | None = None
  restore_dataset: bool = False
  checkpointer_cls: Any = None
  state_transformation_fns: Sequence[Callable] = ()
  checkpoint_manager_cls: Any = None

  def __post_init__(self):
    if self.mode not in _MODES:
      raise T5XError(
        "RestoreCheckpointConfig.mode is unknown.",
        found=repr(self.mode),
        expected="which of the checkpoints in a folder to restore",
        available=", ".join(_MODES),
        fix="RestoreCheckpointConfig.mode = 'specific'",
      )
    if isinstance(self.path, os.PathLike):
      self.path = os.fspath(self.path)
    paths = self.path if isinstance(self.path, (list, tuple)) else [self.path]
    # A shell makes '' of a variable that is not set.
    if "" in paths:
      raise T5XError(
        "RestoreCheckpointConfig.path (INITIAL_CHECKPOINT_PATH, CHECKPOINT_PATH) is not a path.",
        found=repr(self.path),
        expected="a string: a folder checkpoint_N; or [] to start from scratch",
        fix="--gin.INITIAL_CHECKPOINT_PATH=\"'FOLDER/checkpoint_1000'\"",
      )
    check_float_type(self.dtype, "RestoreCheckpointConfig.dtype", optional=True)
    check_assignment_map(self.assignment_map)
    _check_functions(self.state_transformation_fns, "RestoreCheckpointConfig")
    for name in ("checkpointer_cls", "checkpoint_manager_cls"):
      _check_class(getattr(self, name), f"RestoreCheckpointConfig.{name}")
    for name in ("strict", "fallback_to_scratch", "restore_dataset"):
      check_flag(getattr(self, name), f"RestoreCheckpointConfig.{name}")
    if self.restore_dataset:
      raise not_in_lite("RestoreCheckpointConfig.restore_dataset=True", "set it to False")


@dataclasses.dataclass
class CheckpointConfig:
  """Saving and restoring; either may be None.

  Args:
      save: SaveCheckpointConfig.
      restore: RestoreCheckpointConfig.
  """

  save: SaveCheckpointConfig | None = None
  restore: RestoreCheckpointConfig | None = None


def round_vocab_size_to_multiple(vocabulary, divisor: int = 128) -> int:
  """Returns the vocabulary's size rounded up to a multiple of `divisor`."""
  size = vocabulary.vocab_size
  return -(-size // divisor) * divisor
