"""TensorBoard events of a run. Re-exported by `t5x.trainer`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax


class MetricsManager:
  """TensorBoard events in SUMMARY_DIR/NAME, written by the first process only.

  Args:
      name: `train` or `training_eval/<task>`.
      summary_dir: MODEL_DIR, or None to write nothing.

  Attributes:
      summary_dir: the folder of the events, or None.
      summary_writer: the `clu.metric_writers.MetricWriter`.
  """

  def __init__(self, name: str, summary_dir: str | None = None):
    from clu import metric_writers  # imports TensorFlow

    self.summary_dir = os.path.join(summary_dir, name) if summary_dir else None
    self.summary_writer: Any = metric_writers.MultiWriter([])
    if self.summary_dir and jax.process_index() == 0:
      self.summary_writer = metric_writers.SummaryWriter(self.summary_dir)

  def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
    """Writes {tag: number} and flushes."""
    self.summary_writer.write_scalars(step, scalars)
    self.summary_writer.flush()

  def flush(self) -> None:
    """Flushes everything written so far to the file."""
    self.summary_writer.flush()

  def close(self) -> None:
    """Closes the file."""
    self.summary_writer.close()


def shown_loss(model: Any, values: Mapping[str, Any]) -> str:
  """Returns which metric to show as a model's loss: the one per token where that is known."""
  per_token = "loss_per_nonpadding_target_token"
  summed = getattr(model, "_loss_normalizing_factor", None) is None
  return per_token if summed and per_token in values else "loss"
