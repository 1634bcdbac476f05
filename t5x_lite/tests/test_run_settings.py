"""Invalid settings raise errors in four parts, before anything is compiled."""

import dataclasses
import importlib
import inspect
import os
import types

import numpy as np
import pytest
import run_tasks  # noqa: F401 - registers the task
import seqio
from tiny_model import tiny_model

from t5x import checkpoints, decoding, models, partitioning, schedules, utils
from t5x import eval as eval_script
from t5x import train as train_script
from t5x._data import datasets
from t5x._settings.model import check_model
from t5x._settings.parts import check_parts
from t5x._train import settings, setup, streams
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
    utils.check_lengths(_dataset(lengths=lengths), converter)
  assert wrong in e.value.message
  assert e.value.available == "features of the task: inputs, targets"
  assert "TASK_FEATURE_LENGTHS" in e.value.fix
  utils.check_lengths(_dataset(), converter)


def test_an_evaluation_measures_lengths_that_are_not_given():
  for lengths in (None, {"inputs": 48}):
    utils.check_lengths(_dataset(lengths=lengths), seqio.EncDecFeatureConverter, needed=False)


@pytest.mark.parametrize(
  "wrong",
  [
    {"num_heads": 0},
    {"emb_dim": -3},
    {"head_dim": 0},
    {"vocab_size": 0},
    {"num_encoder_layers": -1},
    {"dropout_rate": 1.5},
    {"dropout_rate": "x"},
    {"logits_via_embedding": "False"},
    {"dtype": "int32"},
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


def assert_four_parts(error, found, *expected):
  assert error.found == found
  for part in (error.expected, error.fix):
    assert part
  for words in expected:
    assert words in error.text


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


@pytest.mark.parametrize(
  ("name", "value", "expected"),
  [
    ("label_smoothing", "x", "a number of at least 0 and below 1"),
    ("label_smoothing", 1.0, "a number of at least 0 and below 1"),
    ("label_smoothing", None, "a number of at least 0 and below 1"),
    ("z_loss", "x", "a number of at least 0"),
    ("z_loss", float("inf"), "a number of at least 0"),
    ("loss_normalizing_factor", 0, "a number above 0"),
    ("loss_normalizing_factor", [1], "a number of at least 0, or None"),
  ],
)
def test_numbers_of_a_loss(name, value, expected):
  with pytest.raises(T5XError) as e:
    models.EncoderDecoderModel(None, None, None, None, **{name: value})
  assert_four_parts(e.value, repr(value), name, expected)


def test_a_vocabulary_that_the_model_has_no_embedding_for():
  """It used to end as a NaN loss, with the advice to lower the learning rate."""
  with pytest.raises(T5XError) as e:
    check_model(tiny_model(decoding.beam_search, vocab_size=100))
  found = "network.T5Config.vocab_size = 100, 259 tokens in the input vocabulary"
  assert_four_parts(e.value, found, "at least 259", "network.T5Config.vocab_size = 384")
  check_model(tiny_model(decoding.beam_search, vocab_size=259))


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
      dataset_cfg=_dataset(),
      restore_checkpoint_cfg=restore(tmp_path),
      partitioner=partitioning.PjitPartitioner,
      output_dir=str(tmp_path / "out"),
      **({"mode": "predict"} if script == "infer" else {}),
    )


def test_training_checks_its_parts(tmp_path):
  for name, part in (("checkpoint_cfg", None), ("infer_eval_dataset_cfg", utils.DatasetConfig)):
    arguments = dict.fromkeys(inspect.signature(train_script.train).parameters)
    arguments |= {"train_dataset_cfg": _dataset(), "partitioner": object()}
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


def test_what_is_passed_to_a_decode_function_is_a_parameter_of_it():
  """It ended in a traceback at the first evaluation."""
  model = tiny_model(decoding.beam_search)
  for wrong, found in (
    ({"topk": 5}, "DecoderParams.topk is passed to beam_search"),
    ({"num_decodes": "4"}, "DecoderParams.num_decodes"),
    *(({"alpha": float(text)}, "DecoderParams.alpha") for text in ("nan", "inf", "-inf")),
  ):
    model._default_decoder_params = models.DecoderParams(**wrong)
    with pytest.raises(T5XError) as e:
      check_model(model)
    assert found in e.value.text
    assert e.value.fix
  model._default_decoder_params = models.DecoderParams(alpha=-0.5)
  check_model(model)


@pytest.fixture
def bound(monkeypatch):
  """A function that binds settings of a function or method, as gin would."""

  def bind(function, settings):
    monkeypatch.setattr("t5x._settings.model.bound_to", lambda x: settings if x is function else {})

  return bind


@pytest.mark.parametrize(
  ("name", "value"),
  [
    ("max_decode_steps", "10"),
    ("max_decode_steps", -1),
    ("rescale_log_probs", "False"),  # text is true
    ("decode_rng", 5),
    ("temperature", "hot"),
    ("topk", 2.5),
  ],
)
def test_settings_of_sampling(bound, name, value):
  """They ended in tracebacks at the first evaluation."""
  model = tiny_model(decoding.temperature_sample)
  bound(decoding.temperature_sample, {name: value})
  with pytest.raises(T5XError) as e:
    check_model(model)
  assert_four_parts(e.value, repr(value), f"temperature_sample.{name}")
  bound(models.EncoderDecoderModel.predict_batch_with_aux, {"decoder_params": {name: value}})
  with pytest.raises(T5XError) as e:
    check_model(model)
  assert_four_parts(e.value, repr(value), f"predict_batch_with_aux.decoder_params.{name}")


def test_sampling_is_by_number_or_by_probability(bound):
  model = tiny_model(decoding.temperature_sample)
  bound(decoding.temperature_sample, {"topp": 0.9})  # the default of topk is 1
  with pytest.raises(T5XError, match=r"topk = 1 and topp = 0\.9") as e:
    check_model(model)
  assert e.value.fix
  bound(decoding.temperature_sample, {"topk": 0, "topp": 1.5})
  with pytest.raises(T5XError, match="topp is not a probability") as e:
    check_model(model)
  assert_four_parts(e.value, "1.5", "from 0 to 1")
  for topp in (0.9, 1.0):
    bound(decoding.temperature_sample, {"topk": 0, "topp": topp, "decode_rng": np.zeros(2)})
    check_model(model)


@pytest.mark.parametrize(
  "wrong", [{"prompt_with_targets": "False"}, {"return_all_decodes": 2}, {"decoder_params": 0.6}]
)
def test_settings_of_predictions(bound, wrong):
  bound(models.EncoderDecoderModel.predict_batch_with_aux, wrong)
  with pytest.raises(T5XError) as e:
    check_model(tiny_model(decoding.beam_search))
  (name, value) = next(iter(wrong.items()))
  assert_four_parts(e.value, repr(value), f"predict_batch_with_aux.{name}")


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


def test_a_decode_function_is_a_function_or_none():
  check_model(tiny_model(None))
  with pytest.raises(T5XError) as e:
    check_model(tiny_model("beam_search"))
  assert_four_parts(e.value, "'beam_search'", "decode_fn")


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


def test_statistics_may_have_a_period_of_their_own():
  assert setup.check_periods(10, 3, None, 0, 30).next_stop(9, 30) == 10
  assert setup.check_periods(10, 3, None, 0, 30).next_stop(10, 30) == 12


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


def restore(path, mode="specific"):
  return utils.RestoreCheckpointConfig(path=str(path), mode=mode)


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
    _dataset(2**31)
  assert e.value.expected == "an integer of at least 1 and below 2**31"
  _dataset(2**31 - 1)
  with pytest.raises(T5XError, match="below 2"):
    utils.DatasetConfig(TASK, LENGTHS, "train", 8, False, 2**63)


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


@pytest.mark.parametrize(
  ("split", "has"),
  [("train", True), ("train[:50%]", True), ("train[:9]+dev[5:]", True), ("test", False),
   ("train+tset", False), ("tset[:50%]", False)],
)  # fmt: skip
def test_parts_of_splits_are_of_their_split(split, has):
  task = types.SimpleNamespace(splits=("train", "dev"))
  assert datasets.has_split(task, split) == has


def test_fields_of_airio_have_t5xs_defaults_and_no_others():
  usual = {"runtime_preprocessors": None, "num_prefetch_threads": None, "num_workers": 0}
  assert dataclasses.replace(_dataset(), **usual) == _dataset()
  for name, value in (
    ("runtime_preprocessors", [len]),
    ("num_prefetch_threads", 2),
    ("num_workers", 1),
  ):
    with pytest.raises(T5XError, match=f"DatasetConfig.{name}, which is AirIO's"):
      dataclasses.replace(_dataset(), **{name: value})
