"""`python -m t5x.train` with actions, NaN losses, a full disk and other things that go wrong."""

import dataclasses
import inspect
import json
import os
import shutil

import pytest
import run_tasks
import seqio
from run_scripts import EIGHT_DEVICES

from t5x import checkpoints, partitioning, train, utils
from t5x._train import settings
from t5x.errors import T5XError


@pytest.fixture(scope="module")
def stopped(server, tmp_path_factory):
  """A run with the settings of run_actions.gin."""
  model_dir = tmp_path_factory.mktemp("actions")
  err = server.run(
    "train", "run_actions.gin", f"--gin.MODEL_DIR='{model_dir}'", "--gin.TRAIN_STEPS=1000"
  )
  return model_dir, err


def test_early_stopping_and_best_checkpoints(stopped):
  model_dir, err = stopped
  assert "run_last3 loss has stopped improving" in err
  assert "an action ended training at step 15" in err  # after the evaluations at 5, 10 and 15
  # 0 has no value and is kept; the loss at 10 is lower than at 5; 15 is the latest.
  assert checkpoints.checkpoint_steps(model_dir) == [0, 10, 15]
  assert {checkpoints.layout_of(p) for p in model_dir.glob("checkpoint_*")} == {"legacy"}


@pytest.mark.long
def test_the_best_checkpoint_is_chosen_by_metrics_that_are_still_computed(server, tmp_path):
  server.run("train", "run_countdown.gin", f"--gin.MODEL_DIR='{tmp_path}'", "--gin.TRAIN_STEPS=6")
  assert checkpoints.checkpoint_steps(tmp_path) == [2, 6]  # the best, and the last


def test_weight_metrics_reach_tensorboard(stopped):
  from tensorboard.backend.event_processing import event_accumulator

  events = event_accumulator.EventAccumulator(str(stopped[0] / "train"))
  events.Reload()
  tags = set(events.Tags()["tensors"])
  names = ("weight_rms", "weight_max", "weight_gradient_rms", "weight_update_rms")
  assert {f"{name}/table" for name in names} | {"weight_gradient_norm"} <= tags
  assert "config" in tags  # written by the summarize_config_fn, which gets a writer as in T5X


def test_dry_run_of_main_and_config_gin(stopped, server):
  """MODEL_DIR/config.gin names configurables by T5X's paths, and can be reused."""
  config = stopped[0] / "config.gin"
  text = config.read_text()
  assert "checkpointer_cls = @checkpoints.SaveBestCheckpointer" in text
  assert "[@trainer.EarlyStoppingAction()]" in text
  processes = [
    server.start("main", str(config), "--dry_run", "--run_mode=train"),
    server.start(
      "main",
      "run_eval.gin",
      "--dry_run",
      "--run_mode=eval",
      "--gin.CHECKPOINT_PATH='/nowhere'",
      "--gin.EVAL_OUTPUT_DIR='/nowhere'",
    ),
  ]
  for process in processes:
    code, err = process.wait()
    assert code == 0, err
    assert "the gin configuration is complete" in err
  assert not os.path.exists("/nowhere")


def test_full_disk(server, stopped, tmp_path):
  model_dir = tmp_path / "run"
  shutil.copytree(stopped[0], model_dir)  # resumes that run, from the legacy layout
  err = server.run(
    "train",
    "run_full_disk.gin",
    f"--gin.MODEL_DIR='{model_dir}'",
    "--gin.TRAIN_STEPS=1000",
    code=1,
  )
  assert f"restored {model_dir}/checkpoint_15 (step 15)" in err
  assert "The checkpoint of step 20 could not be written." in err
  assert f"free space in {model_dir}: " in err
  assert f"the same command continues from {model_dir}/checkpoint_15." in err
  assert "Traceback" not in err
  assert all(line.startswith(("t5x: ", "  ")) for line in err.splitlines() if line), err
  assert checkpoints.checkpoint_steps(model_dir) == [0, 10, 15]
  assert not list(model_dir.glob("*tmp*"))
  choice = checkpoints.choose_checkpoint(str(model_dir))
  assert choice.path == f"{model_dir}/checkpoint_15"
  assert checkpoints.load_checkpoint(choice.path)["state"]["step"] == 15


@pytest.mark.parametrize(
  ("args", "env"),
  [
    ([], {"RUN_FULL_DISK": "2500"}),  # config.gin is longer
    pytest.param(
      ["--gin.run_faults.FillDisk.size=2500", "--gin.train.stats_period=1"],
      {},
      marks=pytest.mark.long,
    ),
    pytest.param(
      [
        "--gin.run_faults.FillDisk.size=2500",
        "--gin.train.infer_eval_dataset_cfg=@infer_eval/utils.DatasetConfig()",
        "--gin.models.EncoderDecoderModel.module=@network.Transformer()",
        "--gin.seqio.Evaluator.logger_cls=[@seqio.JSONLogger]",
      ],
      {},
      marks=pytest.mark.long,
    ),
  ],
  ids=["config.gin", "events", "predictions"],
)
def test_full_disk_beside_checkpoints(server, tmp_path, args, env):
  more = ("--gin.TRAIN_STEPS=60", "--gin.utils.CheckpointConfig.save=None", *args)
  folder = f"--gin.MODEL_DIR='{tmp_path}'"
  err = server.run("train", "run_full_disk.gin", folder, *more, code=1, env=env)
  assert "could not be written." in err
  assert "File too large" in err
  assert "free space there" in err
  assert "Traceback" not in err


@pytest.mark.long
def test_nan_ends_the_run_and_is_not_saved(server, tmp_path):
  model_dir, cache = tmp_path / "run", tmp_path / "cache"
  env = {"JAX_COMPILATION_CACHE_DIR": None}  # it would override gin's
  args = (
    f"--gin.CACHE='{cache}'",
    f"--gin.MODEL_DIR='{model_dir}'",
    "--gin.TRAIN_STEPS=20",
  )
  # With the action the run ends where T5X ends it, but a state that is NaN is not saved.
  action = "--gin.train.actions={'TRAIN': [@TerminateOnNanAction()]}"
  err = server.run("train", "run_nan.gin", *args, action, env=env)
  assert "train loss is nan: stopping" in err
  assert "an action ended training at step 10" in err
  assert "its last state is not saved" in err
  assert checkpoints.checkpoint_steps(model_dir) == [0]
  assert list(cache.iterdir())  # programs are cached in utils.compilation_cache.folder

  # Without the action, it is an error; the run restarts from the good checkpoint.
  err = server.run("train", "run_nan.gin", *args, env=env, code=1)
  assert f"restored {model_dir}/checkpoint_0 (step 0)" in err
  assert "The training loss is nan at step 2." in err  # the first update is NaN
  assert "9 such losses in steps 2 to 10" in err
  assert "the last finite loss is" in err
  assert f"the latest checkpoint is good: {model_dir}/checkpoint_0" in err
  for advice in ("step_offset (now 1000)", "base_learning_rate", "skip_nan_updates"):
    assert advice in err
  assert "Traceback" not in err
  assert checkpoints.checkpoint_steps(model_dir) == [0]


def test_batch_and_legacy_layout_on_8_devices(server, tmp_path):
  out = server.run_file("run_layouts.py", tmp_path, env=EIGHT_DEVICES)
  error = json.loads(out)
  assert "batch size 18 on 4 data partitions" in error
  assert "16, 20" in error
  assert "BATCH_SIZE" in error
  folder = tmp_path / "checkpoint_1/target.w"
  assert json.loads((folder / ".zarray").read_text())["chunks"] == [8, 3]
  assert {p.name for p in folder.iterdir()} == {".zarray", "0.0", "0.1"}


def test_vocabulary_mismatch():
  class Model:
    FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter
    input_vocabulary = seqio.ByteVocabulary(extra_ids=100)
    output_vocabulary = run_tasks.VOCAB

  config = utils.DatasetConfig("run_last3", None, "train", 8, False, None)
  with pytest.raises(T5XError) as e:
    utils.verify_matching_vocabs(config, Model)
  assert "vocabulary differs from that of 'run_last3' (inputs)" in str(e.value)
  lengths = {"inputs": 8, "targets": 8}
  arguments = {
    **dict.fromkeys(("train_eval_dataset_cfg", "infer_eval_dataset_cfg"), None),
    "train_dataset_cfg": dataclasses.replace(config, task_feature_lengths=lengths),
    "model": Model,
    "eval_steps": 0,
    "partitioner": partitioning.PjitPartitioner(num_partitions=1),
  }
  default = inspect.signature(train.train).parameters["verify_matching_vocabs_fn"].default
  with pytest.raises(T5XError, match="vocabulary differs"):
    settings.check_data(arguments | {"verify_matching_vocabs_fn": default})
  settings.check_data(arguments | {"verify_matching_vocabs_fn": None})
  Model.input_vocabulary = run_tasks.VOCAB
  utils.verify_matching_vocabs(config, Model)
