"""SaveBestCheckpointer keeps the checkpoints that Google's T5X documents and tests."""

import math

import jax.numpy as jnp
import pytest

from t5x import checkpoints
from t5x._checkpoint.keep import worse_than_best
from t5x.errors import T5XError
from t5x.trainer import MetricsManager


class _State:
  def __init__(self, step):
    self.step = jnp.int32(step)

  def state_dict(self):
    return {"target": {"w": jnp.ones((2, 2))}, "state": {"step": self.step}}


def _left(steps, *args, **kwargs):
  return sorted(set(steps) - set(worse_than_best(steps, *args, **kwargs)))


def test_latest_and_best():
  values = {1: 0.5, 2: 0.9, 3: 0.4, 4: 0.7}
  assert _left([1, 2, 3, 4], values, 1, "max") == [2, 4]
  assert _left([1, 2, 3, 4], values, 1, "min") == [3, 4]
  assert _left([1, 2, 3, 4], values, 2, "max") == [1, 2, 4]
  assert _left([1, 2, 3, 4], values, None, "max") == [1, 2, 3, 4]
  assert _left([1, 2, 3, 4], {1: 0.5, 2: 0.5, 3: 0.5}, 1, "max") == [3, 4]  # of ties, the later one
  for mode in ("max", "min"):
    assert _left([1, 2, 3], {1: 0.1, 2: math.nan}, 1, mode) == [1, 3]


def test_without_values():
  # Either kept and not counted, or deleted first, starting with the oldest.
  assert _left([1, 2, 3, 4, 5], {3: 0.1, 4: 0.2}, 1, "max") == [1, 2, 4, 5]
  assert _left([1, 2, 3, 4, 5], {3: 0.1, 4: 0.2}, 1, "max", False) == [4, 5]
  assert _left([1, 2, 3, 4, 5], {}, 2, "max", False) == [3, 4, 5]


@pytest.mark.parametrize("use_orbax", [True, False])
def test_force_keep_period_as_in_t5x(tmp_path, use_orbax):
  """The case T5X tests: period 3, keep 2, accuracy grows with the step, known after saving."""
  writer = MetricsManager("train", str(tmp_path))
  checkpointer = checkpoints.SaveBestCheckpointer(
    str(tmp_path),
    keep=2,
    use_orbax=use_orbax,
    metric_name_to_monitor="train/accuracy",
    metric_mode="max",
    keep_checkpoints_without_metrics=False,
    force_keep_period=3,
  )
  left = {}
  for step in range(10):
    checkpointer.save(_State(step))
    writer.write_scalars(step, {"loss": 1.0, "accuracy": step / 100})
    left[step] = checkpoints.checkpoint_steps(tmp_path)
  checkpointer.close()
  assert left[8] == [0, 3, 5, 6, 7, 8]
  assert left[9] == [0, 3, 6, 7, 8, 9]
  assert checkpoints.layout_of(tmp_path / "checkpoint_9") == ("orbax" if use_orbax else "legacy")


def test_missing_metrics_as_in_t5x(tmp_path):
  """The case T5X tests: metrics of steps 43 to 45 exist before the run."""
  writer = MetricsManager("inference_eval/task", str(tmp_path))
  for step, value in ((43, 0.6), (44, 0.5), (45, 0.4)):
    writer.write_scalars(step, {"eval/f1": value})
  best = {"keep": 1, "use_orbax": False, "metric_name_to_monitor": "inference_eval/task/eval/f1"}
  checkpointer = checkpoints.SaveBestCheckpointer(str(tmp_path), **best)
  expected = {
    41: [41],
    42: [41, 42],
    43: [41, 42, 43],
    44: [41, 42, 43, 44],
    45: [41, 42, 43, 45],
  }
  for step, left in expected.items():
    checkpointer.save(_State(step))
    assert checkpoints.checkpoint_steps(tmp_path) == left
  # A new run reads the events again.
  checkpointer = checkpoints.SaveBestCheckpointer(
    str(tmp_path), keep_checkpoints_without_metrics=False, **best
  )
  checkpointer.save(_State(46))
  assert checkpoints.checkpoint_steps(tmp_path) == [43, 46]


def test_unknown_metric_names_those_there_are(tmp_path, capsys):
  MetricsManager("train", str(tmp_path)).write_scalars(1, {"accuracy": 0.5})
  checkpointer = checkpoints.SaveBestCheckpointer(
    str(tmp_path), keep=1, use_orbax=False, metric_name_to_monitor="train/acuracy"
  )
  for step in (1, 2, 3):
    checkpointer.save(_State(step))
  assert "no value of 'train/acuracy' yet; the events have: train/accuracy" in (
    capsys.readouterr().err
  )
  assert checkpoints.checkpoint_steps(tmp_path) == [1, 2, 3]


def test_bad_settings(tmp_path):
  with pytest.raises(T5XError, match="max, min"):
    checkpoints.SaveBestCheckpointer(str(tmp_path), metric_mode="maximum")
  with pytest.raises(T5XError, match="RUN/TAG"):
    checkpoints.SaveBestCheckpointer(str(tmp_path), metric_name_to_monitor="accuracy")
