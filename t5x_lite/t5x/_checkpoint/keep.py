"""Which checkpoints of a run are not among its best, and how one is deleted."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from etils import epath

from t5x.errors import T5XError


def worse_than_best(
  steps: Sequence[int],
  values: Mapping[int, float],
  keep: int | None,
  mode: str,
  keep_without_value: bool = True,
  force_keep_period: int | None = None,
) -> list[int]:
  """Returns the steps to delete so that the latest and the `keep` best ones stay.

  Args:
      steps: ascending.
      values: {step: metric}; NaN is worse than any number. Of equal values the later step wins.
      keep: best checkpoints to keep; None keeps all.
      mode: 'max' or 'min'.
      keep_without_value: keep steps that have no value and do not count them; otherwise they
          are deleted first.
      force_keep_period: keep multiples of this and do not count them.

  >>> worse_than_best([1, 2, 3, 4], {1: 0.5, 2: 0.9, 3: 0.4}, 1, "max")
  [1, 3]
  """
  if not keep:
    return []
  candidates = [s for s in steps[:-1] if not (force_keep_period and s % force_keep_period == 0)]
  without = [s for s in candidates if s not in values]
  sign = 1.0 if mode == "max" else -1.0

  def quality(step: int) -> tuple[float, int]:
    value = sign * values[step]
    return (-math.inf if math.isnan(value) else value), step

  ranked = sorted((s for s in candidates if s in values), key=quality)
  if not keep_without_value:
    ranked = without + ranked
  return sorted(ranked[:-keep])


class EventReader:
  """Reads the values of one metric from TensorBoard events; each call reads only new ones.

  Args:
      model_dir: folder the metric's name is relative to.
      metric: RUN/TAG; both parts may hold slashes.

  Attributes:
      metric: the name.
      tags: RUN/TAG of all values in the folders that the name may refer to.

  Raises:
      T5XError: the name has another form.
  """

  def __init__(self, model_dir: str, metric: str):
    self._root, self.metric = epath.Path(model_dir), metric.strip("/")
    if "/" not in self.metric:
      raise T5XError(
        "SaveBestCheckpointer.metric_name_to_monitor is not of the form RUN/TAG.",
        found=repr(metric),
        expected="an event folder in MODEL_DIR, '/', and a tag",
        available="for example 'train/accuracy', 'inference_eval/my_task/eval/my_metric'",
      )
    self.tags: set[str] = set()
    self._loaders: dict[str, Any] = {}
    self._values: dict[int, float] = {}

  def read(self) -> dict[int, float]:
    """Returns {step: value}; for a step that was written again, the last value."""
    from tensorboard.backend.event_processing import event_file_loader
    from tensorboard.util import tensor_util

    name_parts = self.metric.split("/")
    for i in range(1, len(name_parts)):
      run, tag = "/".join(name_parts[:i]), "/".join(name_parts[i:])
      folder = self._root / run
      if not folder.exists():
        continue
      for path in sorted(str(p) for p in folder.iterdir() if "tfevents" in p.name):
        if path not in self._loaders:
          self._loaders[path] = event_file_loader.EventFileLoader(path)
        for event in self._loaders[path].Load():
          for value in event.summary.value:
            self.tags.add(f"{run}/{value.tag}")
            if value.tag == tag:
              number = tensor_util.make_ndarray(value.tensor)
              self._values[event.step] = float(number)
    return self._values


def delete(folder: epath.Path) -> None:
  """Deletes a checkpoint; if interrupted, what is left does not look like one."""
  with contextlib.suppress(FileNotFoundError):
    if "://" in str(folder):
      for marker in ("checkpoint", "commit_success.txt", "_CHECKPOINT_METADATA"):
        (folder / marker).unlink(missing_ok=True)
      folder.rmtree()
    else:
      doomed = folder.parent / f"{folder.name}.tmp-{int(time.time())}-{os.getpid()}-deleted"
      folder.rename(doomed).rmtree()
