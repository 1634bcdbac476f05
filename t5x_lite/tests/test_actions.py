"""Actions end training where Google's T5X does (its documented cases, and hand-computed ones)."""

import math

import clu.values
import pytest

from t5x import trainer
from t5x._step.actions import Actions
from t5x.errors import T5XError


def _run(action, values, task="task", metric="metric"):
  return [action.run(None, {task: {metric: v}}) for v in values]


@pytest.mark.parametrize(
  ("mode", "values", "atol", "rtol", "stops"),
  [
    ("max", [1, 1.2, 1.4], 0.1, 0.0, False),
    ("max", [1, 1.2, 1.4], 0.1, 0.08, False),  # 0.2 is more than 0.18 and than 0.196
    ("max", [1, 1.2, 1.4], 0.0, 0.2, True),  # 0.2 is not more than 0.2, nor than 0.24
    ("max", [1, 1, 1], 0.0, 0.0, True),
    ("min", [1, 1, 1], 0.0, 0.0, True),
    ("min", [1, 0.9, 0.71], 0.2, 0.0, True),
    ("min", [1, 0.8, 0.6], 0.15, 0.0, False),
    ("min", [1, 0.8, 0.6], 0.1, 0.09, False),
    ("min", [1, 0.8, 0.6], 0.0, 0.3, True),
    ("min", [1, 0.8, 0.7, 0.6], 0.15, 0.0, True),
    ("min", [1, 1], 0.0, 0.0, False),  # fewer than `patience` values
    ("min", [1, 1, 0.5, 1], 0.0, 0.0, False),  # 1 -> 0.5 is still in the window
    ("max", [0.5, math.nan, 0.9], 0.0, 0.0, False),
    ("min", [math.nan, math.nan, math.nan], 0.0, 0.0, False),
  ],
)
def test_early_stopping(mode, values, atol, rtol, stops):
  for wrap in (float, clu.values.Scalar):
    action = trainer.EarlyStoppingAction(("task", "metric"), mode, 3, atol, rtol)
    assert _run(action, [wrap(v) for v in values])[-1] is stops


def test_early_stopping_stops_at_the_first_chance():
  action = trainer.EarlyStoppingAction(("task", "metric"), "min", patience=3)
  assert _run(action, [3, 2, 2, 1, 1, 1]) == [False, False, False, False, False, True]


@pytest.mark.parametrize(
  ("value", "stops"), [(1.0, False), (math.nan, True), (math.inf, True), (-math.inf, True)]
)
def test_terminate_on_nan(value, stops):
  assert _run(trainer.TerminateOnNanAction("task"), [value], metric="loss") == [stops]
  action = trainer.TerminateOnNanAction("task", "metric")
  assert _run(action, [clu.values.Scalar(value)]) == [stops]


@pytest.mark.parametrize(
  "action",
  [
    trainer.TerminateOnNanAction("task", "loss"),
    trainer.EarlyStoppingAction(("task", "loss"), "min", patience=2),
  ],
)
def test_what_is_not_there_is_named(action, capsys):
  assert _run(action, [math.nan] * 3, task="tesk", metric="loss") == [False] * 3
  assert "no metric ('task', 'loss'); nearest: tesk" in capsys.readouterr().err
  assert _run(action, [math.nan] * 3, metric="losses") == [False] * 3
  assert "no metric ('task', 'loss'); nearest: losses" in capsys.readouterr().err
  assert _run(action, ["text"] * 3, metric="loss") == [False] * 3
  assert "is 'text', not a number" in capsys.readouterr().err


def test_metrics_are_those_of_t5x():
  """Actions written for T5X read `.value`."""

  class Mine(trainer.BaseAction):
    def run(self, train_state, metrics_by_task):
      return metrics_by_task["train"]["loss"].value < 1

  actions = Actions({trainer.ActionMode.TRAIN: [Mine()]})
  assert not actions.run("TRAIN", None, {"train": {"loss": 1.5}})
  assert actions.run("TRAIN", None, {"train": {"loss": 0.5}})
  with pytest.raises(TypeError, match="abstract"):
    trainer.BaseAction()


def test_modes():
  class Always:
    def run(self, state, metrics):
      return True

  actions = Actions({"train_eval": [Always()]})
  assert actions.run("TRAIN_EVAL", None, {})
  assert not actions.run("TRAIN", None, {})
  assert not actions.handle_nan
  assert Actions({"TRAIN": [trainer.TerminateOnNanAction("train")]}).handle_nan
  assert not Actions(None)


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: Actions({"EVAL": []}), "TRAIN, TRAIN_EVAL, INFER_EVAL"),
    (lambda: trainer.EarlyStoppingAction(("a", "b"), "lower"), "min, max"),
    (lambda: trainer.EarlyStoppingAction(("a", "b"), "min", patience=1), "patience"),
    (lambda: trainer.EarlyStoppingAction("loss", "min"), "no pair of a task and a metric"),
    (lambda: trainer.EarlyStoppingAction(("a", None), "min"), "no pair of a task and a metric"),
    (lambda: trainer.EarlyStoppingAction(("a", "b"), "min", atol="x"), "atol"),
    (lambda: trainer.EarlyStoppingAction(("a", "b"), "min", rtol=-0.1), "rtol"),  # as in T5X
    (lambda: Actions([trainer.TerminateOnNanAction("a")]), "train.actions has no list"),
    (lambda: Actions({"TRAIN": trainer.TerminateOnNanAction("a")}), "is no list of actions"),
    (lambda: Actions({"TRAIN": [trainer.TerminateOnNanAction]}), "that is no action"),
    (lambda: Actions({"TRAIN": ["NaN"]}), "that is no action"),
  ],
)
def test_bad_settings(make, message):
  with pytest.raises(T5XError, match=message) as e:
    make()
  assert e.value.expected
  assert e.value.fix
