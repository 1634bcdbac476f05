"""Actions that may end training after looking at metrics (`train.actions` in gin).

  train_script.train.actions = {'TRAIN_EVAL': [@trainer.EarlyStoppingAction()]}
  trainer.EarlyStoppingAction.metric = ('my_task', 'loss')
  trainer.EarlyStoppingAction.mode = 'min'

Metrics come as {task: {metric: clu.values.Scalar}}, as in T5X; the task of TRAIN is 'train'.
Re-exported by `t5x.trainer`.
"""

from __future__ import annotations

import abc
import enum
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from clu import values as clu_values

from t5x._process import hosts
from t5x._process.log import log
from t5x.errors import T5XError, check_number, check_whole, nearest

MetricsByTask = Mapping[str, Mapping[str, Any]]


class ActionMode(enum.Enum):
  """When an action runs: at each point of TensorBoard, or after an evaluation."""

  TRAIN = 1
  TRAIN_EVAL = 2
  INFER_EVAL = 3


MODES = tuple(mode.name for mode in ActionMode)
_EXAMPLE = "train.actions = {'TRAIN_EVAL': [@trainer.EarlyStoppingAction()]}"


class BaseAction(abc.ABC):
  """An action; anything else with a method `run` may be one too."""

  @abc.abstractmethod
  def run(self, train_state: Any, metrics_by_task: MetricsByTask) -> bool:
    """Returns whether training is to end. Args: metrics_by_task, {task: {metric: value}}."""


def mode_name(key: Any) -> str:
  """Returns a mode's name, e.g. 'TRAIN_EVAL' for 'train_eval' or an enum member.

  Raises:
      T5XError: there is no such mode.
  """
  name = str(getattr(key, "name", key)).rsplit(".", 1)[-1].upper()
  if name not in MODES:
    raise T5XError(
      "train.actions has a key that is not a mode.",
      found=repr(key),
      expected="when to run the actions",
      available=", ".join(MODES),
      fix=_EXAMPLE,
    )
  return name


def _not_actions(message: str, found: Any) -> T5XError:
  return T5XError(
    message,
    found=repr(found),
    expected="a list of actions for each mode; append () to a class to create one",
    available=", ".join(MODES),
    fix=_EXAMPLE,
  )


class Actions:
  """The actions of a run, grouped by mode.

  Args:
      actions: `train.actions`: {mode: [action]}, or None.

  Raises:
      T5XError: a mode is unknown, or something is no action.
  """

  def __init__(self, actions: Mapping[Any, Sequence[Any]] | None):
    self._by_mode: dict[str, list[Any]] = {mode: [] for mode in MODES}
    if not isinstance(actions or {}, Mapping):
      raise _not_actions("train.actions has no list of actions for each mode.", actions)
    for key, acts in (actions or {}).items():
      mode = mode_name(key)
      if not isinstance(acts, (list, tuple)):
        raise _not_actions(f"train.actions[{mode!r}] is no list of actions.", acts)
      for action in acts:
        if isinstance(action, type) or not callable(getattr(action, "run", None)):
          raise _not_actions(f"train.actions[{mode!r}] has something that is no action.", action)
      self._by_mode[mode].extend(acts)

  def __bool__(self) -> bool:
    return any(self._by_mode.values())

  def has(self, mode: str) -> bool:
    """Returns whether there are actions for `mode`."""
    return bool(self._by_mode[mode])

  @property
  def handle_nan(self) -> bool:
    """Whether one of the actions ends training when a metric is not finite."""
    actions = itertools.chain.from_iterable(self._by_mode.values())
    return any(isinstance(action, TerminateOnNanAction) for action in actions)

  def run(self, mode: str, train_state, metrics_by_task: MetricsByTask) -> bool:
    """Runs the actions of `mode`; returns whether any of them wants to end training.

    The first process decides for all: only it has the metrics of an inference evaluation.
    """
    acts = self._by_mode[mode]
    if not acts:
      return False
    scalars_by_task: dict[str, dict[str, Any]] = {}
    for task, values in metrics_by_task.items():
      scalars_by_task[task] = dict(values)
      for name, value in values.items():
        if isinstance(value, float):
          scalars_by_task[task][name] = clu_values.Scalar(value)
    ended = False
    for action in acts:  # all of them: each keeps a history of its own
      ended |= bool(action.run(train_state, scalars_by_task))
    return bool(hosts.broadcast_number(ended))


def _number(action: Any, metrics_by_task: MetricsByTask, task: str, metric: str) -> float | None:
  """Looks up a metric; if it is missing or not a number, logs that and returns None."""
  values = metrics_by_task.get(task)
  if values is None or metric not in values:
    available = [f"{t}: {', '.join(m)}" for t, m in metrics_by_task.items()]
    close = nearest(task, metrics_by_task) if values is None else nearest(metric, values)
    log(
      f"{type(action).__name__} does nothing: no metric ({task!r}, {metric!r}); "
      + (
        f"nearest: {', '.join(close)}" if close else f"available: {'; '.join(available) or 'none'}"
      )
    )
    return None
  value: Any = getattr(values[metric], "value", values[metric])
  try:
    return float(value)
  except (TypeError, ValueError):
    log(f"{type(action).__name__} does nothing: {task} {metric} is {value!r}, not a number")
    return None


class EarlyStoppingAction(BaseAction):
  """Ends training when a metric has stopped improving.

  That is when each of the last `patience - 1` changes from one value to the next was too small:
  at most `atol + rtol * |earlier value|` in the direction of `mode`.

  Args:
      metric: (task, metric), for example ('my_task', 'accuracy').
      mode: 'min' or 'max', the direction of improvement.
      patience: values to look back over, 2 or more.
      atol: absolute change that is too small.
      rtol: relative change that is too small.

  Raises:
      T5XError: an argument is invalid.
  """

  def __init__(
    self,
    metric: tuple[str, str],
    mode: str,
    patience: int = 3,
    atol: float = 0.0,
    rtol: float = 0.0,
  ):
    if mode not in ("min", "max"):
      raise T5XError(
        "EarlyStoppingAction.mode is unknown.",
        found=repr(mode),
        expected="the direction in which the metric improves",
        available="min, max",
        fix="trainer.EarlyStoppingAction.mode = 'min'",
      )
    if not isinstance(metric, (list, tuple)) or [type(name) for name in metric] != [str, str]:
      raise T5XError(
        "EarlyStoppingAction.metric is no pair of a task and a metric.",
        found=repr(metric),
        expected="the name of the task, and that of its metric",
        fix="trainer.EarlyStoppingAction.metric = ('my_task', 'loss')",
      )
    check_whole(patience, "trainer.EarlyStoppingAction.patience", 2)
    check_number(atol, "trainer.EarlyStoppingAction.atol", 0)
    check_number(rtol, "trainer.EarlyStoppingAction.rtol", 0)
    self._task, self._metric = metric
    self._sign = 1.0 if mode == "max" else -1.0
    self._patience, self._atol, self._rtol = patience, atol, rtol
    self._history: list[float] = []

  def _stalled(self, earlier: float, later: float) -> bool:
    # False where one is NaN, as in T5X: that is for TerminateOnNanAction.
    return self._sign * (later - earlier) <= self._atol + self._rtol * abs(earlier)

  def run(self, train_state, metrics_by_task: MetricsByTask) -> bool:
    """Returns True to stop."""
    del train_state
    value = _number(self, metrics_by_task, self._task, self._metric)
    if value is None:
      return False
    self._history = [*self._history, value][-self._patience :]
    pairs = list(zip(self._history, self._history[1:], strict=False))
    # Each change counts by itself: a slow but steady improvement below the tolerance is none.
    if len(self._history) < self._patience or not all(self._stalled(a, b) for a, b in pairs):
      return False
    history = ", ".join(f"{v:.6g}" for v in self._history)
    log(f"{self._task} {self._metric} has stopped improving ({history}): stopping")
    return True


class TerminateOnNanAction(BaseAction):
  """Ends training when a metric is not finite.

  Args:
      task: key of the metrics to look at (`train`, or an evaluated task).
      metric: name of the metric.
  """

  def __init__(self, task: str, metric: str = "loss"):
    self._task, self._metric = task, metric

  def run(self, train_state, metrics_by_task: MetricsByTask) -> bool:
    """Returns True to stop."""
    del train_state
    value = _number(self, metrics_by_task, self._task, self._metric)
    if value is None or math.isfinite(value):
      return False
    log(f"{self._task} {self._metric} is {value}: stopping")
    return True
