"""Invalid settings of data raise errors in four parts; parts of splits, evaluated mixtures."""

import dataclasses
import types

import pytest
import seqio
from valid_settings import LENGTHS, TASK, assert_four_parts, dataset

from t5x import utils
from t5x._data import datasets
from t5x._infer import setup as infer_setup
from t5x.errors import T5XError


@pytest.mark.parametrize("size", [0, -4, 16.0, "16", None, True])
def test_batch_size(size):
  with pytest.raises(T5XError) as e:
    dataset(size)
  assert "BATCH_SIZE" in e.value.message
  assert e.value.found == repr(size)
  assert "at least 1" in e.value.expected
  assert "--gin.BATCH_SIZE" in e.value.fix


@pytest.mark.parametrize("length", [0, -3, "3", None, 1.5])
def test_lengths_are_positive_numbers(length):
  with pytest.raises(T5XError) as e:
    dataset(lengths={"inputs": length, "targets": 8})
  assert "'inputs' in TASK_FEATURE_LENGTHS" in e.value.message
  assert e.value.found == repr(length)


@pytest.mark.parametrize(
  ("lengths", "wrong"),
  [
    ({"inputs": 48}, "lack 'targets'"),
    ({"targets": 8}, "lack 'inputs'"),
    (None, "lack 'inputs'"),
    ({**LENGTHS, "other": 3}, "name unknown feature 'other'"),
  ],
)
def test_lengths_of_the_features_that_the_model_reads(lengths, wrong):
  converter = seqio.EncDecFeatureConverter
  with pytest.raises(T5XError) as e:
    utils.check_lengths(dataset(lengths=lengths), converter)
  assert wrong in e.value.message
  assert e.value.available == "features of the task: inputs, targets"
  assert "TASK_FEATURE_LENGTHS" in e.value.fix
  utils.check_lengths(dataset(), converter)


def test_an_evaluation_measures_lengths_that_are_not_given():
  for lengths in (None, {"inputs": 48}):
    utils.check_lengths(dataset(lengths=lengths), seqio.EncDecFeatureConverter, needed=False)


@pytest.mark.parametrize(
  "wrong",
  [
    {"shuffle": "False"},
    {"pack": None},
    {"seed": "x"},
    {"use_custom_packing_ops": 2},
  ],
)
def test_other_settings_of_data(wrong):
  good = {"mixture_or_task_name": TASK, "task_feature_lengths": LENGTHS, "split": "train",
          "batch_size": 8, "shuffle": False, "seed": 0}  # fmt: skip
  utils.DatasetConfig(**good)
  with pytest.raises(T5XError) as e:
    utils.DatasetConfig(**(good | wrong))
  assert_four_parts(e.value, repr(next(iter(wrong.values()))))


def test_sizes_have_32_bits_and_seeds_64():
  with pytest.raises(T5XError) as e:
    dataset(2**31)
  assert e.value.expected == "an integer of at least 1 and below 2**31"
  dataset(2**31 - 1)
  with pytest.raises(T5XError, match="below 2"):
    utils.DatasetConfig(TASK, LENGTHS, "train", 8, False, 2**63)


def test_fields_of_airio_have_t5xs_defaults_and_no_others():
  usual = {"runtime_preprocessors": None, "num_prefetch_threads": None, "num_workers": 0}
  assert dataclasses.replace(dataset(), **usual) == dataset()
  for name, value in (
    ("runtime_preprocessors", [len]),
    ("num_prefetch_threads", 2),
    ("num_workers", 1),
  ):
    with pytest.raises(T5XError, match=f"DatasetConfig.{name}, which is AirIO's"):
      dataclasses.replace(dataset(), **{name: value})


def test_training_eval_of_a_mixture_has_its_tasks_and_itself(monkeypatch):
  """As in T5X: an action may watch the mixture's loss."""
  if "run_both" not in seqio.MixtureRegistry.names():
    seqio.MixtureRegistry.add("run_both", ["run_last3", "run_broken_metric"], default_rate=1)
  cfg = utils.DatasetConfig(
    mixture_or_task_name="run_both",
    task_feature_lengths={"inputs": 48, "targets": 8},
    split="validation",
    batch_size=4,
    shuffle=False,
    seed=0,
  )
  converter = seqio.EncDecFeatureConverter
  found = utils.get_training_eval_datasets(cfg, 0, 1, 2, converter)
  assert list(found) == ["run_broken_metric", "run_last3", "run_both"]
  assert all(len(list(ds)) == 2 for ds in found.values())


def test_inference_on_a_mixture_says_which_of_its_tasks_lack_the_split(capsys):
  tasks = ["run_last3", "run_many"]
  mixture = seqio.Mixture("run_uneven", tasks, default_rate=1)
  cfg = dataclasses.replace(dataset(), mixture_or_task_name=mixture, split="validation")
  assert [task.name for task in infer_setup.tasks_of(cfg)] == tasks[:1]
  assert "run_many has no split 'validation'" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("split", "has"),
  [("train", True), ("train[:50%]", True), ("train[:9]+dev[5:]", True), ("test", False),
   ("train+tset", False), ("tset[:50%]", False)],
)  # fmt: skip
def test_parts_of_splits_are_of_their_split(split, has):
  task = types.SimpleNamespace(splits=("train", "dev"))
  assert datasets.has_split(task, split) == has
