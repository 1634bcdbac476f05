"""One run at a time in a folder; the lock of a run that is gone is taken over."""

import os
import socket
import subprocess
import sys
import time

import pytest

from t5x._process import folder_lock
from t5x.errors import T5XError


def _held(path):
  return folder_lock.held([str(path)], "MODEL_DIR")


def test_a_second_run_is_told_who_is_there(tmp_path):
  path = tmp_path / "new" / "train.lock"
  with _held(path):
    before = path.read_bytes()
    with pytest.raises(T5XError) as e, _held(path):
      pass
    assert path.read_bytes() == before
  assert e.value.found.startswith(
    f"train.lock: process {os.getpid()} on {socket.gethostname()}, since 20"
  )
  assert str(path.parent) in e.value.message
  assert e.value.available == "nothing was changed"
  assert "--gin.MODEL_DIR" in e.value.fix
  assert os.listdir(path.parent) == []


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path):
  path = tmp_path / "train.lock"
  path.write_text("process 1 on elsewhere, since 2020-01-01 00:00:00\n")
  code = (
    "import sys, time\n"
    "from t5x._process import folder_lock\n"
    "try:\n"
    "  with folder_lock.held([sys.argv[1]], 'MODEL_DIR'):\n"
    "    print('mine', flush=True); sys.stdin.read()\n"
    "except ValueError:\n"
    "  print('not mine', flush=True)\n"
  )
  pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
  runs = [
    subprocess.Popen([sys.executable, "-c", code, str(path)], text=True, **pipes) for _ in range(4)
  ]
  lines = [run.stdout.readline().strip() for run in runs]
  for run in runs:
    run.communicate()
  assert sorted(lines) == ["mine", "not mine", "not mine", "not mine"]


def test_object_stores_have_no_lock(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with folder_lock.held(["gs://bucket/run/train.lock"], "MODEL_DIR"):
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_the_way(tmp_path, name):
  (tmp_path / "file").write_text("mine")
  with pytest.raises(T5XError) as e, _held(tmp_path / name / "train.lock"):
    pass
  assert "MODEL_DIR" in e.value.message
  assert e.value.found == f"{tmp_path / 'file'} is a file"
  assert (tmp_path / "file").read_text() == "mine"


RUNS = {
  "train": ("run_train.gin", "MODEL_DIR", "train.lock", "--gin.TRAIN_STEPS=1"),
  "eval": ("run_eval.gin", "EVAL_OUTPUT_DIR", "eval.run_last3.lock", "--gin.CHECKPOINT_PATH='x'"),
  "infer": (
    "run_infer.gin",
    "INFER_OUTPUT_DIR",
    "run_last3-predict.jsonl-00000-of-00001.lock",
    "--gin.CHECKPOINT_PATH='x'",
  ),
}


@pytest.mark.parametrize("script", RUNS)
def test_scripts_leave_a_folder_in_use_alone(server, tmp_path, script):
  gin_file, setting, lock, argument = RUNS[script]
  with _held(tmp_path / lock):
    before = (tmp_path / lock).read_bytes()
    err = server.run(script, gin_file, f"--gin.{setting}='{tmp_path}'", argument, code=1)
    assert f"Another run is using {tmp_path}" in err
    assert f"process {os.getpid()} on " in err
    assert f"set another --gin.{setting}" in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == [lock]
    assert (tmp_path / lock).read_bytes() == before


def test_the_lock_of_a_killed_run_is_taken_over(server, tmp_path):
  path = tmp_path / "train.lock"
  args = (f"--gin.MODEL_DIR='{tmp_path}'", "--gin.TRAIN_STEPS=9")
  run = server.start("train", "run_slow.gin", *args)
  while not path.exists() or not path.read_text():
    assert run.poll() is None, run.err()
    time.sleep(0.01)
  run.kill()
  # Ends with an error found after the lock is taken; test_survival tests resuming.
  wrong = "--gin.MIXTURE_OR_TASK_NAME='run_nothing'"
  err = server.run("train", "run_train.gin", *args, wrong, code=1)
  assert "No seqio task or mixture is named 'run_nothing'" in err
  assert not path.exists()
