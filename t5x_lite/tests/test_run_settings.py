"""Invalid settings of a run raise errors in four parts, before anything is compiled."""

import dataclasses
import importlib
import inspect
import os
from importlib import resources

import numpy as np
import pytest
from tiny_model import tiny_model
from valid_settings import LENGTHS, TASK, assert_four_parts, dataset, restore

from t5x import decoding, partitioning, schedules, utils
from t5x import train as train_script
from t5x._settings.parts import check_parts
from t5x._train import settings, setup
from t5x.errors import T5XError


@pytest.mark.parametrize("number", ["x", -0.1, float("nan"), None, True, [0.1], 10**400])
def test_a_learning_rate_is_a_number(number):
  for name in ("base_learning_rate", "warmup_steps", "min_learning_rate"):
    with pytest.raises(T5XError) as e:
      schedules.create_learning_rate_scheduler(**{name: number})
    assert_four_parts(e.value, repr(number), f"create_learning_rate_scheduler.{name}", "at least 0")
  schedules.create_learning_rate_scheduler(base_learning_rate=np.float32(0.1), warmup_steps=0)


@pytest.mark.parametrize("factors", [None, ["constant"], 0.001, "constant * linear"])
def test_factors_of_a_learning_rate_are_names(factors):
  with pytest.raises(T5XError) as e:
    schedules.create_learning_rate_scheduler(factors)
  assert "learning rate factor" in e.value.found
  assert "linear_warmup" in e.value.available


def test_a_cycle_of_no_steps_would_be_a_division_by_zero():
  with pytest.raises(T5XError, match="steps_per_cycle"):
    schedules.create_learning_rate_scheduler("cosine_decay", steps_per_cycle=0)


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", True])
def test_partitions(number):
  with pytest.raises(T5XError) as e:
    partitioning.PjitPartitioner(num_partitions=number)
  assert_four_parts(e.value, repr(number), "PjitPartitioner.num_partitions", "of at least 1")


def test_more_partitions_than_devices():
  """On one CPU, 3 used to be ignored; divisors of the device count still are, as in T5X."""
  with pytest.raises(T5XError) as e:
    _ = partitioning.PjitPartitioner(num_partitions=3).mesh
  assert_four_parts(e.value, "3 model partitions for 1 device", "available: 1\n")


@pytest.mark.parametrize(
  ("name", "value", "found"),
  [
    ("model_parallel_submesh", 2, "2"),
    ("ici_mesh_shape", "11", "'11'"),
    ("dcn_mesh_shape", (1, 0), "0"),
    ("logical_axis_rules", 5, "5"),
    ("logical_axis_rules", ("embed", "model"), "'embed'"),  # brackets around it are missing
    ("logical_axis_rules", [("embed", "modle")], "('embed', 'modle')"),
    ("logical_axis_rules", [("embed", ("data", 1))], "('embed', ('data', 1))"),
  ],
)
def test_shapes_and_rules_of_meshes(name, value, found):
  """They ended in tracebacks, of misspelt mesh axes when parameters were made."""
  with pytest.raises(T5XError) as e:
    partitioning.PjitPartitioner(**{name: value})
  assert_four_parts(e.value, found)
  rules = [("embed", None), ("vocab", ("data", "model")), ["mlp", "model"]]
  partitioning.PjitPartitioner(logical_axis_rules=rules, model_parallel_submesh=[1, 1, 1, 1])


def test_a_mesh_has_two_axes():
  with pytest.raises(T5XError, match="ici_mesh_shape") as e:
    _ = partitioning.PjitPartitioner(ici_mesh_shape=(1, 1, 1)).mesh
  assert e.value.fix


@pytest.mark.parametrize("part", [None, utils.DatasetConfig, len])
def test_parts_of_a_script_are_created(part):
  """A class without its () ended in a traceback."""
  with pytest.raises(T5XError) as e:
    check_parts("train", {"partitioner": object(), "train_dataset_cfg": part})
  fix = "train.train_dataset_cfg = @train/utils.DatasetConfig()"
  assert_four_parts(e.value, repr(part), "append ()", fix)


@pytest.mark.parametrize("script", ["evaluate", "infer"])
def test_scripts_check_their_parts(script, tmp_path):
  module = importlib.import_module(f"t5x.{'eval' if script == 'evaluate' else 'infer'}")
  with pytest.raises(T5XError, match=f"{script}.partitioner is not created"):
    getattr(module, script)(
      model=tiny_model(decoding.beam_search),
      dataset_cfg=dataset(),
      restore_checkpoint_cfg=restore(tmp_path),
      partitioner=partitioning.PjitPartitioner,
      output_dir=str(tmp_path / "out"),
      **({"mode": "predict"} if script == "infer" else {}),
    )


def test_training_checks_its_parts(tmp_path):
  for name, part in (("checkpoint_cfg", None), ("infer_eval_dataset_cfg", utils.DatasetConfig)):
    arguments = dict.fromkeys(inspect.signature(train_script.train).parameters)
    arguments |= {"train_dataset_cfg": dataset(), "partitioner": object()}
    arguments |= {"checkpoint_cfg": utils.CheckpointConfig(), name: part}
    with pytest.raises(T5XError, match=f"train.{name} is not created"):
      settings.check(arguments)


@pytest.mark.parametrize(
  "wrong",
  [
    {"num_partitions": 1, "model_parallel_submesh": (1, 1)},
    {"params_on_devices": False},
  ],
)
def test_meshes(wrong):
  with pytest.raises(T5XError) as e:
    partitioning.PjitPartitioner(**wrong)
  for name in wrong:
    assert name in e.value.text
  assert e.value.expected
  assert e.value.fix


def test_the_vocabulary_of_predictions_is_that_of_a_feature(tmp_path):
  """It was looked up when the model had been restored."""
  with pytest.raises(T5XError) as e:
    importlib.import_module("t5x.infer").infer(
      mode="predict",
      model=tiny_model(decoding.beam_search),
      dataset_cfg=utils.DatasetConfig(TASK, LENGTHS, "test", 8, False, 0),
      restore_checkpoint_cfg=restore(tmp_path / "checkpoint_3"),
      partitioner=partitioning.PjitPartitioner(num_partitions=1),
      output_dir=str(tmp_path / "out"),
      output_vocab_feature_name="target",
    )
  assert_four_parts(e.value, "'target'", "output_vocab_feature_name", "inputs, targets")


def test_statistics_may_have_a_period_of_their_own():
  assert setup.check_periods(10, 3, None, 0, 30).next_stop(9, 30) == 10
  assert setup.check_periods(10, 3, None, 0, 30).next_stop(10, 30) == 12


def test_periods_are_multiples_of_the_shortest():
  """As in T5X; the others need not divide one another."""
  save = utils.SaveCheckpointConfig(period=6)
  periods = setup.check_periods(4, None, save, 2, 30)
  assert [periods.next_stop(step, 30) for step in (4, 6)] == [6, 8]
  with pytest.raises(T5XError) as e:
    setup.check_periods(4, None, save, 0, 30)
  assert_four_parts(e.value, "6, and 4", "SaveCheckpointConfig.period to 4", "EVAL_PERIOD")


def test_predictions_are_evaluated_if_no_evaluator_is_named(tmp_path):
  """As in T5X, also with pretrain.gin: data to evaluate on were ignored in silence."""
  default = inspect.signature(train_script.train).parameters["inference_evaluator_cls"].default
  model, partitioner = tiny_model(decoding.beam_search), partitioning.PjitPartitioner()
  parts = default, model, partitioner, None, str(tmp_path), None, None
  evaluator = setup.make_evaluator(dataclasses.replace(dataset(), split="validation"), *parts)
  assert [task.name for task in evaluator.eval_tasks] == ["run_last3"]
  runs = resources.files("t5x") / "configs/runs/pretrain.gin"
  assert "inference_evaluator_cls" not in runs.read_text()


def test_a_run_without_evaluations_has_no_period_of_them():
  """As in T5X: EVAL_PERIOD, which run files set, need then not fit that of saving."""
  arguments = dict.fromkeys(inspect.signature(train_script.train).parameters)
  arguments |= dict.fromkeys(("use_hardware_rng", "concurrent_metrics", "use_orbax"), False)
  arguments |= {
    "run_eval_before_training": False,
    "train_dataset_cfg": dataset(),
    "checkpoint_cfg": utils.CheckpointConfig(utils.SaveCheckpointConfig(period=3)),
    "partitioner": partitioning.PjitPartitioner(),
    "model": tiny_model(decoding.beam_search),
    "model_dir": "x",
    "total_steps": 9,
    "eval_period": 2,
  }
  assert settings.check(arguments)[0].next_stop(0, 9) == 3
  with pytest.raises(T5XError, match="EVAL_PERIOD"):
    settings.check(arguments | {"infer_eval_dataset_cfg": dataset()})


@pytest.mark.parametrize(
  ("name", "value"),
  [
    ("model_dir", None),
    ("model_dir", ""),
    ("model_dir", 5),
    ("total_steps", -5),
    ("total_steps", "5"),
    ("total_steps", None),
    ("relative_steps", -5),
    ("eval_steps", -1),
    ("eval_steps", 1.5),
    ("random_seed", "x"),
    ("random_seed", 10**20),
  ],
)
def test_numbers_of_a_run(name, value):
  good = {
    "model_dir": "x",
    "total_steps": 1,
    "relative_steps": None,
    "eval_steps": 0,
    "random_seed": 0,
  }
  setup.check_numbers(**good)
  with pytest.raises(T5XError) as e:
    setup.check_numbers(**(good | {name: value}))
  assert str(e.value.found).strip("'") == str(value).strip("'")
  assert e.value.fix


@pytest.mark.parametrize("value", [-1, 1.5, "x"])
@pytest.mark.parametrize("position", [0, 1, 3])
def test_periods(position, value):
  arguments = [2, 2, None, 0, 10]
  arguments[position] = value
  with pytest.raises(T5XError):
    setup.check_periods(*arguments)


@pytest.mark.parametrize(
  ("script", "argument", "expected"),
  [
    ("train", "--gin.BATCH_SIZE=0", "BATCH_SIZE"),
    ("train", "--gin.TASK_FEATURE_LENGTHS={'inputs': 48}", "lack 'targets'"),
    ("train", "--gin.TASK_FEATURE_LENGTHS=512", "no length for each feature"),
    ("train", "--gin.MIXTURE_OR_TASK_NAME=None", "No seqio task or mixture is named None."),
    ("train", "--gin.train.use_orbax='False'", "train.use_orbax is neither True nor False."),
    ("train", "--gin.MODEL_DIR='file'", "MODEL_DIR is a file."),
    ("train", "--gin.INITIAL_CHECKPOINT_PATH='file'", "no complete checkpoint at file"),
    ("train", "--gin.utils.create_learning_rate_scheduler.base_learning_rate='x'", "base_learning"),
    ("train", "--gin.network.T5Config.vocab_size=200", "smaller than its vocabulary"),
    ("eval", "--gin.network.T5Config.vocab_size=200", "smaller than its vocabulary"),
    ("infer", "--gin.network.T5Config.vocab_size=200", "smaller than its vocabulary"),
    ("eval", "--gin.utils.DatasetConfig.batch_size=0", "batch_size"),
    ("infer", "--gin.INFER_OUTPUT_DIR='file/x'", "INFER_OUTPUT_DIR cannot be written to."),
  ],
)
def test_scripts_say_so(server, tmp_path, script, argument, expected):
  (tmp_path / "file").write_text("mine")
  folder = {"train": "MODEL_DIR", "eval": "EVAL_OUTPUT_DIR", "infer": "INFER_OUTPUT_DIR"}[script]
  more = "--gin.TRAIN_STEPS=1" if script == "train" else "--gin.CHECKPOINT_PATH='x'"
  args = (f"run_{script}.gin", f"--gin.{folder}='new'", more, argument)
  err = server.run(script, *args, code=1, cwd=tmp_path)
  assert "t5x: error:" in err
  assert expected in err
  assert "Traceback" not in err
  if "learning_rate" not in argument:  # the rate is first computed for a step
    assert "initialised" not in err
  assert not os.path.exists(tmp_path / "new/checkpoint_0")
  assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
  ("script", "mode"),
  [*((script, mode) for script in ("eval", "infer") for mode in ("specific", "latest")),
   ("eval", "all")],
)  # fmt: skip
def test_a_checkpoint_is_looked_for_before_datasets_and_models_are_made(
  script, mode, tmp_path, monkeypatch
):
  """They used to take ten seconds before a misspelt path was reported."""

  def made(*args, **kwargs):
    raise AssertionError("made before the checkpoint was looked for")

  monkeypatch.setattr(utils, "InferenceEvaluator", made)
  function = importlib.import_module(f"t5x.{script}")
  arguments = {"mode": "predict"} if script == "infer" else {}
  with pytest.raises(T5XError, match=f"no complete checkpoint .* {tmp_path}/checkpoint_3") as e:
    getattr(function, {"eval": "evaluate"}.get(script, script))(
      model=tiny_model(decoding.temperature_sample),
      dataset_cfg=utils.DatasetConfig(TASK, LENGTHS, "test", 8, False, 0),
      restore_checkpoint_cfg=restore(tmp_path / "checkpoint_3", mode),
      partitioner=partitioning.PjitPartitioner(num_partitions=1),
      output_dir=str(tmp_path / "out"),
      train_state_initializer_cls=made,
      **arguments,
    )
  assert e.value.fix
  assert not (tmp_path / "out/config.gin").exists()
