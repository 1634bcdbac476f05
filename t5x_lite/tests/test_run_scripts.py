"""`python -m t5x.train|eval|infer|main` as a user runs them, on a tiny task and model."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import types

import pytest
import run_tasks
import seqio
import tensorflow as tf
from fork_server import environment
from run_scripts import NO_EVAL, SUPPORT

from t5x import checkpoints, utils
from t5x import eval as eval_script
from t5x._script import cli


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A run in a new process, as users start it; all others are forked."""
  model_dir = tmp_path_factory.mktemp("run")
  started = time.time()
  done = subprocess.run(
    [
      *(sys.executable, "-m", "t5x.train", f"--gin_search_paths={SUPPORT}"),
      "--gin_file=run_train.gin",
      *(f"--gin.MODEL_DIR='{model_dir}'", "--gin.TRAIN_STEPS=20"),
    ],
    env=environment(),
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-4000:]
  print(f"20 steps as a process, nothing cached: {time.time() - started:.1f} s")
  return model_dir, done.stderr


def _steps(model_dir):
  return checkpoints.checkpoint_steps(model_dir)


def _scalars(folder):
  from tensorboard.backend.event_processing import event_accumulator
  from tensorboard.util import tensor_util

  events = event_accumulator.EventAccumulator(str(folder), size_guidance={"tensors": 0})
  events.Reload()
  return {
    tag: {e.step: float(tensor_util.make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)}
    for tag in events.Tags()["tensors"]
    if tag != "config"  # text
  }


def _rows(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def test_train_writes_what_t5x_writes(trained):
  model_dir, err = trained
  assert _steps(model_dir) == [0, 10, 20]
  assert "train_script.train" in (model_dir / "config.gin").read_text()
  assert "Total number of parameters" in (model_dir / "model-info.txt").read_text()
  scalars = _scalars(model_dir / "train")
  assert {"loss", "accuracy", "cross_ent_loss", "z_loss", "learning_rate"} <= scalars.keys()
  assert scalars["loss"][20] < scalars["loss"][10]
  assert scalars["learning_rate"][20] == pytest.approx(0.01)
  evals = _scalars(model_dir / "training_eval/run_last3")
  assert evals["loss"][20] < evals["loss"][10]
  assert "exact_match" in str(_scalars(model_dir / "inference_eval/run_last3").keys())
  assert re.search(r"step 20/20 \| .* steps/s \| .* tokens/s \| loss [\d.]+ \| lr 0.01", err)


def test_train_writes_predictions(trained):
  folder = trained[0] / "inference_eval"
  metrics = _rows(folder / "run_last3-metrics.jsonl")
  assert [m["step"] for m in metrics] == [10, 20]
  assert {"exact_match", "mean_score", "mean_aux_score"} <= metrics[0].keys()
  rows = _rows(folder / "run_last3-000020.jsonl")
  assert len(rows) == 22
  assert {"input", "target", "output", "prediction", "score", "aux_scores"} <= rows[0].keys()
  assert rows[0]["input"]["inputs_pretokenized"][-3:] == rows[0]["target"]
  assert metrics[1]["mean_score"] == pytest.approx(sum(r["score"] for r in rows) / 22)


def test_quiet_start(trained):
  assert all(line.startswith("t5x: ") for line in trained[1].splitlines()), trained[1]


@pytest.mark.long
def test_eval_all_checkpoints_once(server, trained, tmp_path):
  args = (
    f"--gin.CHECKPOINT_PATH='{trained[0]}'",
    "--gin.utils.RestoreCheckpointConfig.mode='all'",
    "--gin.utils.DatasetConfig.split='validation'",
    f"--gin.EVAL_OUTPUT_DIR='{tmp_path}'",
  )
  server.run("eval", "run_eval.gin", *args)
  results = {r["step"]: r for r in _rows(tmp_path / "inference_eval/run_last3-metrics.jsonl")}
  assert sorted(results) == [0, 10, 20]
  # The same parameters give the same scores as in training.
  in_training = _rows(trained[0] / "inference_eval/run_last3-metrics.jsonl")
  for row in in_training:
    for name in ("exact_match", "mean_score", "mean_aux_score"):
      assert results[row["step"]][name] == pytest.approx(row[name], rel=1e-4)
  assert (tmp_path / "eval.run_last3.ckpt").read_text().split("\n") == [
    f"{trained[0]}/checkpoint_{step}" for step in (0, 10, 20)
  ]
  assert (tmp_path / "inference_eval/run_last3-000010.jsonl").exists()
  assert (tmp_path / "config.gin").exists()


def test_evaluating_one_checkpoint_leaves_the_others_in_the_list(tmp_path):
  file = tmp_path / "eval.run_last3.ckpt"
  file.write_text("m/checkpoint_0\nm/checkpoint_10")
  choice = checkpoints.CheckpointChoice("m/checkpoint_10", "specific", False)

  class Evaluator:
    def evaluate(self, state):
      return state

    def finish(self, pending):
      return pending

  class Initializer:
    def from_choice(self, choice, restore_cfg, rng):
      return types.SimpleNamespace(state_dict=dict)

  cfg = utils.RestoreCheckpointConfig(path="m/checkpoint_10")
  found = eval_script._evaluate_all(
    Initializer(), Evaluator(), [choice], cfg, file, 0, lambda: None
  )
  assert list(found) == [10]
  assert file.read_text().split("\n") == ["m/checkpoint_0", "m/checkpoint_10"]


def test_infer_keeps_order_and_main_runs_it(server, trained, tmp_path):
  args = (
    "--run_mode=infer",
    f"--gin.CHECKPOINT_PATH='{trained[0]}/checkpoint_20'",
    "--gin.infer.mode='predict_with_aux'",
    f"--gin.INFER_OUTPUT_DIR='{tmp_path}'",
  )
  err = server.run("main", "run_infer.gin", *args)
  assert "22 examples (20 distinct)" in err
  path = tmp_path / "run_last3-predict_with_aux.jsonl-00000-of-00001"
  assert pathlib.Path(f"{path}.COMPLETED").exists()
  rows = _rows(path)
  assert [r["inputs"]["inputs_pretokenized"] for r in rows] == [
    r["inputs"] for r in run_tasks._examples("test")
  ]
  assert isinstance(rows[0]["prediction"], str)
  assert isinstance(rows[0]["aux"]["scores"], float)
  assert rows[9] == rows[10]  # equal inputs


def _wait_for(condition, process):
  while not condition():
    assert process.poll() is None, process.err()[-3000:]
    time.sleep(0.02)


@pytest.mark.long
def test_kill_resume_and_sigterm(server, tmp_path):
  args = (f"--gin.MODEL_DIR='{tmp_path}'", "--gin.EVAL_PERIOD=5", *NO_EVAL)
  process = server.start("train", "run_train.gin", "--gin.TRAIN_STEPS=100000", *args)
  _wait_for(lambda: len(_steps(tmp_path)) >= 3, process)
  process.kill()
  process.wait()
  last = _steps(tmp_path)[-1]

  # After kill -9 the next run starts from the last complete checkpoint.
  err = server.run("train", "run_train.gin", f"--gin.TRAIN_STEPS={last + 7}", *args)
  assert f"restored {tmp_path}/checkpoint_{last} (step {last})" in err
  assert "the latest checkpoint in MODEL_DIR takes precedence" in err
  assert f"training data seed 17 since step 0; skipping the {last} batches already seen" in err
  assert _steps(tmp_path)[-1] == last + 7

  # SIGTERM stops between two steps, saves, and says how to continue.
  process = server.start("train", "run_train.gin", "--gin.TRAIN_STEPS=100000", *args)
  _wait_for(lambda: _steps(tmp_path)[-1] > last + 7, process)
  process.kill(signal.SIGTERM)
  code, err = process.wait()
  assert code == 128 + signal.SIGTERM
  stopped = int(re.search(r"stopped at step (\d+); saved", err).group(1))
  assert _steps(tmp_path)[-1] == stopped
  assert f"The same command continues from {tmp_path}/checkpoint_{stopped}" in err


def test_unset_macros_are_named_all_at_once(server):
  err = server.run("train", "t5x/configs/runs/finetune.gin", "--dry_run", code=1)
  names = [
    "MODEL_DIR",
    "MIXTURE_OR_TASK_NAME",
    "TASK_FEATURE_LENGTHS",
    "TRAIN_STEPS",
    "INITIAL_CHECKPOINT_PATH",
    "MODEL",
  ]
  assert all(re.search(rf"\b{name}\b", err) for name in names), err
  assert "6 required settings are not set" in err
  # Quoted for the shell and gin: without the double quotes, gin rejected the suggested fix.
  for name, text in (("MODEL_DIR", "DIR"), ("MIXTURE_OR_TASK_NAME", "NAME")):
    assert f"""--gin.{name}="'{text}'\"""" in err
  assert "--gin.TRAIN_STEPS=..." in err
  assert "Traceback" not in err


@pytest.mark.parametrize(
  ("argument", "code", "expected"),
  [
    ("--gin.MODLE_DIR='/tmp/x'", 1, "MODLE_DIR: MODEL_DIR"),
    ("--gin.trian.eval_period=5", 1, "No configurable matching 'trian'"),
    ("--gin.train.eval_perod=5", 1, "doesn't have a parameter named 'eval_perod'"),
    ("--gin.MODEL_DIR=/tmp/x", 2, """--gin.MODEL_DIR="'/tmp/x'\""""),
    ("--gin_fil=x.gin", 2, "--gin_file"),
  ],
)
def test_typos_on_the_command_line(server, argument, code, expected):
  err = server.run(
    "train", "run_train.gin", "--gin.TRAIN_STEPS=1", "--dry_run", argument, code=code
  )
  assert expected in err
  assert "Traceback" not in err


@pytest.mark.parametrize(
  ("line", "meant"),
  [
    ("TRAIN_STEP = 50", "TRAIN_STEPS in place of TRAIN_STEP"),
    ("TRIAN_STEPS = 50", "TRAIN_STEPS in place of TRIAN_STEPS"),
    ("train_steps = 50", "TRAIN_STEPS in place of train_steps"),
    ("BATCHSIZE = 3", "BATCH_SIZE in place of BATCHSIZE"),
  ],
)
def test_misspelt_macros_in_a_file(server, tmp_path, line, meant):
  """Regression: they had no effect, and the training ran its default number of steps."""
  (tmp_path / "a.gin").write_text(f"include 'run_train.gin'\nTRAIN_STEPS = 9\n{line}\n")
  err = server.run("train", str(tmp_path / "a.gin"), "--gin.MODEL_DIR='x'", "--dry_run", code=1)
  assert f"Nothing uses {line.split()[0]}." in err
  assert meant in err


def test_other_unused_macros_are_named_in_one_line(server, tmp_path):
  """They may be on purpose; a name that differs in its number from one in use is one of them."""
  lines = ("WARMUP_1 = 2", "WARMUP_2 = 3", "NOTE = 'mine'", "train.total_steps = %WARMUP_1")
  (tmp_path / "a.gin").write_text("\n".join(("include 'run_train.gin'", *lines)) + "\n")
  bindings = ("--gin.MODEL_DIR='x'", "--gin.TRAIN_STEPS=9")
  err = server.run("train", str(tmp_path / "a.gin"), *bindings, "--dry_run")
  (named,) = [x for x in err.splitlines() if "nothing uses" in x]
  assert {"NOTE", "WARMUP_2"} <= set(named.partition(": ")[2].partition(": ")[2].split(", "))
  assert "WARMUP_1" not in named


_REFUSED = """
class Refused(Exception):
  text, exit_code = "no vocabulary at nope\\n  fix:       name another", 3

try:
  raise Refused()
except Refused as e:
  raise AttributeError("of a module that asked for it") from e
"""


@pytest.mark.parametrize("given", ["--gin_file=own.gin", "--gin_bindings=import own_tasks"])
def test_a_users_error_while_gin_imports_a_module_is_the_error(server, tmp_path, given):
  """It used to be shown as a finding of gin's, with the advice to close brackets."""
  (tmp_path / "own_tasks.py").write_text(_REFUSED)
  (tmp_path / "own.gin").write_text("import own_tasks\n")
  err = server.run("train", None, given, "--dry_run", code=3, cwd=tmp_path)
  assert err == "\nt5x: error: no vocabulary at nope\n  fix:       name another\n"


def test_a_split_that_no_task_has_names_all_tasks_once(monkeypatch):
  def task(name, splits, metrics):
    return types.SimpleNamespace(name=name, splits=splits, metric_fns=metrics)

  tasks = [task(f"a{i}", ("dev", "test"), [len]) for i in range(6)]
  tasks += [task("b", ("dev",), []), *(task(f"c{i}", ("x",), [len, len]) for i in range(20))]
  monkeypatch.setattr(seqio, "get_subtasks", lambda mixture: tasks)
  monkeypatch.setattr(utils, "get_mixture_or_task", lambda name: name)
  lines = eval_script._splits_and_metrics(types.SimpleNamespace(mixture_or_task_name="m"))
  alike, without, many = lines.split("\n")
  assert alike == "splits dev, test, 1 metric: a0, a1, a2, a3, a4, a5"
  assert without == "splits dev, no metrics: b"
  assert many.startswith("splits x, 2 metrics: c0, c1, ")
  assert many.endswith(", ... (20 tasks)")


@pytest.mark.parametrize(
  ("error", "cause", "shown"),
  [
    (KeyboardInterrupt(), None, False),
    (ImportError("numpy"), KeyboardInterrupt(), False),
    (ImportError("numpy"), None, True),
  ],
)
def test_an_interrupt_during_imports_says_nothing_else(error, cause, shown, capfd):
  """The output of libraries during imports, which is hidden, used to appear after Ctrl-C."""

  def import_libraries():
    with cli._silent_stderr():
      os.write(2, b"I0000 oneDNN\n")
      raise error from cause

  with pytest.raises(type(error)):
    import_libraries()
  assert capfd.readouterr().err == "I0000 oneDNN\n" * shown
  assert cli._report(error, debug=False) == (1 if shown else 130)
  err = capfd.readouterr().err
  assert "ImportError: numpy" in err if shown else err == "t5x: interrupted.\n"


def test_a_misspelt_gin_file_is_named_with_the_folders_that_were_searched(server):
  err = server.run("train", "run_trian.gin", "--dry_run", code=1)
  assert "Unable to open file: run_trian.gin. Searched config paths: " in err


def test_checkpoint_of_another_size(server, trained):
  err = server.run(
    "train",
    "run_train.gin",
    f"--gin.MODEL_DIR='{trained[0]}'",
    "--gin.TRAIN_STEPS=30",
    "--gin.EMB_DIM=16",
    *NO_EVAL,
    code=1,
  )
  assert "arrays differ in shape" in err
  assert "target/decoder/decoder_norm/scale: checkpoint (32,), model (16,)" in err, err
  assert "the latest checkpoint in MODEL_DIR takes precedence over INITIAL_CHECKPOINT_PATH" in err
  assert "Traceback" not in err


@pytest.mark.long
def test_failing_metric_fails_the_run(server, tmp_path):
  err = server.run(
    "train",
    "run_train.gin",
    f"--gin.MODEL_DIR='{tmp_path}'",
    "--gin.MIXTURE_OR_TASK_NAME='run_broken_metric'",
    "--gin.TRAIN_STEPS=2",
    "--gin.train.train_eval_dataset_cfg=None",
    code=1,
  )
  assert "A metric failed" in err
  assert "this metric is broken" in err


@pytest.mark.parametrize("script", ["train", "eval", "infer", "main"])
def test_help_imports_nothing_heavy(script):
  code = (
    f"import runpy, sys; sys.argv = ['{script}', '--help']\n"
    f"try: runpy.run_module('t5x.{script}', run_name='__main__', alter_sys=True)\n"
    "except SystemExit as e: code = e.code\n"
    "heavy = {'jax', 'tensorflow', 'seqio', 'flax'} & set(sys.modules)\n"
    "assert code == 0 and not heavy, heavy\n"
  )
  out = subprocess.run(
    [sys.executable, "-c", code],
    env=environment(),
    capture_output=True,
    text=True,
  )
  assert out.returncode == 0, out.stderr
  assert "--gin_file" in out.stdout
  assert f"python -m t5x.{script}" in out.stdout
  assert ".;" not in out.stdout  # absl's "repeat this option" followed text that says so
  assert "repeat this option" not in out.stdout


def test_a_file_in_googles_storage_that_cannot_be_read_is_no_traceback():
  error = ValueError("gin says where")
  error.__cause__ = tf.errors.FailedPreconditionError(
    None,
    None,
    "Error executing an HTTP request: no host\n\t when reading metadata of gs://b/v.model",
  )
  found = cli.find_unreadable(error).text
  assert found.startswith("gs://b/v.model could not be read.\n  found:     no host\n")
  assert "copy it to this machine" in found
  assert cli.find_unreadable(tf.errors.InvalidArgumentError(None, None, "bad shape")) is None
  assert cli.find_unreadable(ValueError("gs://b/v.model")) is None
