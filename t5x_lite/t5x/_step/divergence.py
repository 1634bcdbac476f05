"""Losses and parameters that are not finite: noticing them, and what to tell the user.

Losses are checked where metrics are fetched anyway. A loss is computed before its step's update,
so a finite loss does not show that the parameters after the step are finite: those are checked
before each save.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from t5x.errors import T5XError


@dataclasses.dataclass
class LossWatch:
  """What is known about losses so far.

  Args:
      first_bad: first step whose loss is not finite, or None. (Steps are counted from 1: step n
          makes the parameters of checkpoint n.)
      value: that loss.
      num_bad: steps with such a loss.
      last_seen: last step that was checked.
      last_good_loss: (step, loss) of the latest finite loss.
  """

  first_bad: int | None = None
  value: float = math.nan
  num_bad: int = 0
  last_seen: int = 0
  last_good_loss: tuple[int, float] | None = None

  def look(self, step: int, metrics: Mapping[str, Any]) -> None:
    """Records the loss of one step's metrics (on the host)."""
    self.last_seen = step
    if "loss" not in metrics:
      return
    loss = float(getattr(metrics["loss"], "total", math.nan))
    if math.isfinite(loss):
      self.last_good_loss = step, loss
      return
    self.num_bad += 1
    if self.first_bad is None:
      self.first_bad, self.value = step, loss


@jax.jit
def _all_finite(leaves: Sequence[jax.Array]) -> jax.Array:
  return jnp.stack([jnp.isfinite(x).all() for x in leaves]).all()


def all_finite(params: Any) -> bool:
  """Returns whether all floating-point parameters are finite (fetches a single scalar)."""
  leaves = [x for x in jax.tree_util.tree_leaves(params) if jnp.issubdtype(x.dtype, jnp.floating)]
  return not leaves or bool(_all_finite(leaves))


def _advice(optimizer_def: Any, first_step: int, step: int) -> str:
  """Returns what to try, the likeliest cause first."""
  offset = getattr(optimizer_def, "step_offset", None)
  lines = []
  if offset and first_step < offset:
    lines.append(
      f"set adafactor.Adafactor.step_offset (now {offset}) to the step of the initial "
      "checkpoint, or to 0 from scratch: an update at a step below it is NaN"
    )
  if step == first_step:
    lines.append("start from another checkpoint: this one contains such values")
  lines.append("lower utils.create_learning_rate_scheduler.base_learning_rate, or warm up longer")
  if hasattr(optimizer_def, "skip_nan_updates") and not optimizer_def.skip_nan_updates:
    lines.append("set adafactor.Adafactor.skip_nan_updates = True to skip isolated bad batches")
  return ";\n".join(lines) + "."


def diverged(
  watch: LossWatch, first_step: int, step: int, optimizer_def: Any, latest: str | None
) -> T5XError:
  """Returns the error for a run that cannot go on.

  Args:
      watch: the losses; if all are finite, it is the parameters that are not.
      first_step: step this run started from.
      step: the current step.
      optimizer_def: the model's optimizer.
      latest: path of the latest checkpoint, which is good, or None.
  """
  at_start = step == first_step
  if watch.first_bad is not None:
    message = f"The training loss is {watch.value} at step {watch.first_bad}."
    evidence = f"{watch.num_bad} such losses in steps {watch.first_bad} to {watch.last_seen}"
  elif at_start:
    message = f"Parameters are not finite (NaN or infinite) before training, at step {step}."
    evidence = "the starting state itself contains such values"
  else:
    message = f"Parameters are not finite (NaN or infinite) after step {step}."
    evidence = "no bad loss up to this step: its gradients or its update overflowed"
  if watch.last_good_loss is not None:
    evidence += "; the last finite loss is {1:.6g} at step {0}".format(*watch.last_good_loss)
  resume = bool(latest) and not at_start
  available = None if at_start else "nothing was saved: there is no checkpoint"
  if resume:
    available = f"this state was not saved; the latest checkpoint is good: {latest}"
  return T5XError(
    message,
    found=evidence,
    expected="finite losses and parameters",
    available=available,
    fix=_advice(optimizer_def, first_step, step)
    + ("\nThe same command continues from that checkpoint." if resume else ""),
  )
