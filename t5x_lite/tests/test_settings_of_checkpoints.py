"""Where a run starts; invalid settings of saving and restoring raise errors in four parts."""

import dataclasses

import numpy as np
import pytest
from valid_settings import assert_four_parts, restore

from t5x import checkpoints, utils
from t5x import eval as eval_script
from t5x._train import setup, streams
from t5x.errors import T5XError


@pytest.mark.parametrize(
  "wrong",
  [
    {"period": 1.5},
    {"period": "x"},
    {"keep": 1.5},
    {"period": 0},
    {"save_dataset": "no"},
    {"dtype": "int8"},  # weights would be cut to whole numbers
    {"dtype": "foo"},
    {"checkpoint_steps": -3},
    {"checkpoint_steps": 3},
    {"checkpoint_steps": 3.0},
    {"state_transformation_fns": "half"},
    {"state_transformation_fns": [None]},
  ],
)
def test_saving(wrong):
  (name, value) = next(iter(wrong.items()))
  with pytest.raises(T5XError, match=f"SaveCheckpointConfig.{name}") as e:
    utils.SaveCheckpointConfig(**wrong)
  assert str(e.value.found).strip("'") == str(value)


@pytest.mark.parametrize(
  ("config", "setting"),
  [
    (utils.SaveCheckpointConfig, "checkpoint_manager_cls"),
    (utils.RestoreCheckpointConfig, "checkpoint_manager_cls"),
    (utils.RestoreCheckpointConfig, "checkpointer_cls"),
  ],
)
def test_a_class_that_would_not_be_used_is_refused(config, setting):
  class Mine(checkpoints.Checkpointer):
    pass

  with pytest.raises(T5XError, match=f"{config.__name__}.{setting}.* is not in t5x_lite"):
    config(**{setting: Mine})
  for own in (checkpoints.Checkpointer, checkpoints.OrbaxCheckpointManagerInterface):
    config(**{setting: own})


@pytest.mark.parametrize(
  ("assignment_map", "problem"),
  [
    ({"target/new": "target/old"}, "is no list of pairs"),
    (("target/new", "target/old"), "something that is no pair"),  # brackets around it are missing
    ("ab", "is no list of pairs"),
    ([("a", "b", "c")], "something that is no pair"),
    ([("a", 5)], "not a pattern and a replacement"),
    ([(None, "a")], "not a pattern and a replacement"),
    ([("target/(.*", "a")], "an invalid pattern (missing )"),
  ],
)
def test_an_assignment_map_has_pairs_of_names(assignment_map, problem):
  """They ended in tracebacks, most of them after the data had been read."""
  with pytest.raises(T5XError) as e:
    utils.RestoreCheckpointConfig("x", assignment_map=assignment_map)
  found = assignment_map if "no list" in problem else assignment_map[0]
  assert_four_parts(e.value, repr(found), problem, r"r'target/old/\1'")
  utils.RestoreCheckpointConfig("x", assignment_map=[("target/(.*)", r"target/old/\1")])


def test_functions_that_change_a_checkpoint_are_in_a_list():
  with pytest.raises(T5XError) as e:
    utils.RestoreCheckpointConfig("x", state_transformation_fns=len)
  assert_four_parts(e.value, repr(len), "state_transformation_fns is no list of functions")


@pytest.mark.parametrize("path", ["", [""]])
def test_a_path_is_text(path):
  with pytest.raises(T5XError) as e:
    utils.RestoreCheckpointConfig(path=path)
  assert_four_parts(e.value, repr(path), "INITIAL_CHECKPOINT_PATH")


def test_an_initial_checkpoint_that_is_a_file(tmp_path):
  path = tmp_path / "checkpoint_5"
  path.write_text("mine")
  with pytest.raises(T5XError) as e:
    setup.choose_start(str(tmp_path / "new"), restore(path), 10, None)
  assert_four_parts(e.value, "a file, not a folder", f"no complete checkpoint at {path}")
  with pytest.raises(T5XError, match="no complete checkpoint in"):
    setup.choose_start(str(tmp_path / "new"), restore(path, "latest"), 10, None)


def test_an_evaluation_without_checkpoints_is_refused_even_if_arrays_may_be_new(tmp_path):
  cfg = restore(tmp_path, "latest")
  cfg.fallback_to_scratch = True  # as with evaluate.fallback_init_rng
  with pytest.raises(T5XError) as e:
    eval_script._choices(cfg)
  assert_four_parts(e.value, f"no complete checkpoint in '{tmp_path}'", "checkpoint_N")


def test_a_checkpoint_that_is_not_there_is_not_past_the_last_step(tmp_path):
  (tmp_path / "checkpoint_3/state").mkdir(parents=True)
  (tmp_path / "checkpoint_3/commit_success.txt").touch()
  with pytest.raises(T5XError) as e:
    setup.choose_start(str(tmp_path / "new"), restore(tmp_path / "checkpoint_999900"), 10, None)
  assert_four_parts(e.value, "no such folder", f"available: {tmp_path}/checkpoint_3\n")


class _State:
  """A train state at step 3."""

  step = np.int32(3)

  def state_dict(self):
    return {"target": {"w": np.ones(2, np.float32)}, "state": {"step": self.step}}


@pytest.fixture
def checkpoint(tmp_path):
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path / "old"), keep=1)
  checkpointer.save(_State())
  checkpointer.close()
  return tmp_path / "old/checkpoint_3"


def test_the_start_is_the_step_of_the_state(checkpoint, tmp_path):
  """Whatever the folder's name, and 0 if the map leaves the step as it is initialised."""

  def start(cfg, total, relative=None):
    return setup.choose_start(str(tmp_path / "new"), cfg, total, relative)

  with pytest.raises(T5XError, match="past the last step"):
    start(restore(checkpoint), 2)
  cfg = restore(checkpoint.rename(tmp_path / "checkpoint_9000"))
  assert (start(cfg, 1, 4).step, start(cfg, 1, 4).total_steps) == (3, 7)
  cfg.assignment_map = [("state/.*", None)]
  assert (start(cfg, 2).step, start(cfg, 1, 4).total_steps) == (0, 4)
  found = setup.moved(start(restore(cfg.path), 1, 4), 0, 4)  # a transformation drops the step
  assert (found.step, found.total_steps, found.run_start) == (0, 4, 0)


def test_the_start_is_checked_when_the_step_has_been_changed(checkpoint, tmp_path):
  cfg = restore(checkpoint)
  cfg.state_transformation_fns = [lambda state, target, is_resuming: state]
  start = setup.choose_start(str(tmp_path / "new"), cfg, 2, None)
  assert setup.moved(start, 0, None).total_steps == 2
  with pytest.raises(T5XError, match="past the last step") as e:
    setup.moved(start, 7, None)
  assert e.value.found.startswith("step 7 ")


def test_data_begin_at_the_step_that_a_function_sets(checkpoint, tmp_path):
  start = setup.choose_start(str(tmp_path / "new"), restore(checkpoint), 0, 4)
  data = utils.DatasetConfig("task", None, "train", 4, shuffle=True, seed=None)
  stream = streams.choose_stream(str(tmp_path), start, 5, data)
  streams.store_moved(str(tmp_path), stream, 1000 - start.step)
  assert streams.stored_run_start(str(tmp_path)) == 1000
  own = dataclasses.replace(start.choice, resuming=True)
  again = streams.choose_stream(
    str(tmp_path), dataclasses.replace(start, choice=own, step=1004), 5, data
  )
  assert again == dataclasses.replace(stream, first_step=1000, run_start=1000)


def test_a_damaged_checkpoint_is_said(checkpoint, tmp_path):
  (checkpoint / "state/_METADATA").unlink()
  with pytest.raises(T5XError) as e:
    checkpoints.load_checkpoint(str(checkpoint))
  assert "missing, cut short or others'" in e.value.text
  assert "copy the checkpoint again" in e.value.fix
  (tmp_path / "checkpoint_5").mkdir()
  for content in (b"", b"<html>no such bucket</html>", b"model_checkpoint_path: 1"):
    (tmp_path / "checkpoint_5/checkpoint").write_bytes(content)
    with pytest.raises(T5XError, match="checkpoint_5"):
      checkpoints.load_checkpoint(str(tmp_path / "checkpoint_5"))


def test_relative_steps_count_from_the_runs_start(tmp_path):
  """Also where its first checkpoint has been deleted."""
  for step in (20, 30):
    (tmp_path / f"checkpoint_{step}/state").mkdir(parents=True)
    (tmp_path / f"checkpoint_{step}/commit_success.txt").touch()

  def last_step(run_start):
    return setup.choose_start(str(tmp_path), None, 99, 30, run_start).total_steps

  assert [last_step(start) for start in (0, 10, None, 25)] == [30, 40, 50, 50]
  (tmp_path / "stream.json").write_text(
    '{"first_step": 5, "data_seed": 1, "seed": 1, "settings": "", "run_start": 3}'
  )
  assert streams.stored_run_start(str(tmp_path)) == 3


def test_nothing_is_left_of_relative_steps(tmp_path):
  (tmp_path / "checkpoint_50/state").mkdir(parents=True)
  (tmp_path / "checkpoint_50/commit_success.txt").touch()
  with pytest.raises(T5XError) as e:
    setup.choose_start(str(tmp_path), None, 1, 10, 20)
  assert e.value.found.endswith("TRAIN_STEPS_RELATIVE=10 from step 20")
  assert "TRAIN_STEPS_RELATIVE=40" in e.value.fix
  assert setup.choose_start(str(tmp_path), None, 1, 40, 20).total_steps == 60
