"""Checks of the objects that a script is made of, as gin creates them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from t5x.errors import T5XError

_USUAL = {
  "partitioner": "partitioning.PjitPartitioner",
  "checkpoint_cfg": "utils.CheckpointConfig",
  "restore_checkpoint_cfg": "utils.RestoreCheckpointConfig",
  "dataset_cfg": "utils.DatasetConfig",
  "train_dataset_cfg": "train/utils.DatasetConfig",
  "train_eval_dataset_cfg": "train_eval/utils.DatasetConfig",
  "infer_eval_dataset_cfg": "infer_eval/utils.DatasetConfig",
}


def check_parts(script: str, parts: Mapping[str, Any]) -> None:
  """Raises T5XError for a part that is None, or that gin has not created: its () are missing.

  Args:
    script: name of the function that gin configures.
    parts: {parameter: its value}.
  """
  for name, part in parts.items():
    if part is not None and not isinstance(part, type) and not inspect.isroutine(part):
      continue
    raise T5XError(
      f"{script}.{name} is not created.",
      found=repr(part)[:200],
      expected="an object; append () to a class to create one",
      fix=f"{script}.{name} = @{_USUAL[name]}()",
    )
