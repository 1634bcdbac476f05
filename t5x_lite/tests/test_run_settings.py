"""Settings that cannot be meant are errors in four parts, before anything is compiled."""

import os

import pytest
import run_tasks  # noqa: F401 - registers the task
import seqio

from t5x import utils
from t5x._process.dtypes import check_dtype
from t5x._train import setup
from t5x.errors import T5XError
from t5x.examples.t5 import network

TASK = seqio.get_mixture_or_task("run_last3")
LENGTHS = {"inputs": 48, "targets": 8}


def _dataset(batch_size=8, lengths=LENGTHS):
  return utils.DatasetConfig(TASK, lengths, "train", batch_size, False, 0)


@pytest.mark.parametrize("size", [0, -4, 16.0, "16", None, True])
def test_batch_size(size):
  with pytest.raises(T5XError) as e:
    _dataset(size)
  assert "BATCH_SIZE" in e.value.message
  assert e.value.found == repr(size)
  assert "at least 1" in e.value.expected
  assert "--gin.BATCH_SIZE" in e.value.fix


@pytest.mark.parametrize("length", [0, -3, "3", None, 1.5])
def test_lengths_are_positive_numbers(length):
  with pytest.raises(T5XError) as e:
    _dataset(lengths={"inputs": length, "targets": 8})
  assert "'inputs' in TASK_FEATURE_LENGTHS" in e.value.message
  assert e.value.found == repr(length)


def test_lengths_are_a_dictionary():
  with pytest.raises(T5XError, match="must be a dictionary"):
    _dataset(lengths=512)


@pytest.mark.parametrize(
  ("lengths", "wrong"),
  [
    ({"inputs": 48}, "have no 'targets'"),
    ({"targets": 8}, "have no 'inputs'"),
    (None, "have no 'inputs'"),
    ({**LENGTHS, "other": 3}, "name 'other'"),
  ],
)
def test_lengths_of_the_features_that_the_model_reads(lengths, wrong):
  converter = seqio.EncDecFeatureConverter
  with pytest.raises(T5XError) as e:
    utils.check_lengths(_dataset(lengths=lengths), converter)
  assert wrong in e.value.message
  assert e.value.available == "features of the task: inputs, targets"
  assert "TASK_FEATURE_LENGTHS" in e.value.fix
  utils.check_lengths(_dataset(), converter)


def test_an_evaluation_measures_lengths_that_are_not_given():
  for lengths in (None, {"inputs": 48}):
    utils.check_lengths(_dataset(lengths=lengths), seqio.EncDecFeatureConverter, needed=False)


def test_types():
  with pytest.raises(T5XError) as e:
    check_dtype("float31", "network.T5Config.dtype")
  assert e.value.found == "'float31'"
  assert "float32, bfloat16" in e.value.available
  assert e.value.fix == "network.T5Config.dtype = 'float32'"
  for cls in (utils.SaveCheckpointConfig, utils.RestoreCheckpointConfig):
    with pytest.raises(T5XError, match=f"{cls.__name__}.dtype"):
      cls(dtype="float31")
    cls(dtype=None)


@pytest.mark.parametrize(
  "wrong",
  [
    {"dtype": "float31"},
    {"num_heads": 0},
    {"emb_dim": -3},
    {"head_dim": 0},
    {"vocab_size": 0},
    {"num_encoder_layers": -1},
    {"dropout_rate": 1.5},
    {"dropout_rate": "x"},
  ],
)
def test_sizes_of_a_model(wrong):
  with pytest.raises(T5XError) as e:
    network.T5Config(**{"vocab_size": 384, **wrong})
  (name, value) = next(iter(wrong.items()))
  assert f"network.T5Config.{name}" in e.value.message
  assert e.value.found == repr(value)


@pytest.mark.parametrize(
  "wrong",
  [{"period": 1.5}, {"period": "x"}, {"keep": 1.5}, {"checkpoint_steps": 5}, {"period": 0}],
)
def test_saving(wrong):
  (name, value) = next(iter(wrong.items()))
  with pytest.raises(T5XError, match=f"SaveCheckpointConfig.{name}") as e:
    utils.SaveCheckpointConfig(**wrong)
  assert str(e.value.found).strip("'") == str(value)


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
    ("train", "--gin.network.T5Config.dtype='float31'", "network.T5Config.dtype"),
    ("train", "--gin.TASK_FEATURE_LENGTHS={'inputs': 48}", "have no 'targets'"),
    ("train", "--gin.MODEL_DIR='file'", "MODEL_DIR is a file."),
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
  assert "initialised" not in err
  assert not os.path.exists(tmp_path / "new/checkpoint_0")
  assert (tmp_path / "file").read_text() == "mine"
