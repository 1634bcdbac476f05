"""One run at a time in a folder; the lock of a run that is gone is taken over."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time

import pytest

from t5x._process import folder_lock
from t5x.errors import T5XError


def _held(path):
  return folder_lock.held([str(path)], "MODEL_DIR")


def _leave(path, **changes):
  """Writes the lock of a process like this one, except for `changes`."""
  owner = dataclasses.replace(folder_lock.this_process(), **changes)
  path.write_text(json.dumps(dataclasses.asdict(owner)))
  return owner


def _ended():
  """The id of a process that has ended."""
  child = subprocess.Popen([sys.executable, "-S", "-c", ""])
  child.wait()
  return child.pid


def test_a_second_run_is_told_who_is_there(tmp_path):
  path = tmp_path / "new" / "train.lock"
  with _held(path):
    before = path.read_bytes()
    with pytest.raises(T5XError) as e, _held(path):
      pass
    assert path.read_bytes() == before
  assert e.value.found.startswith(
    f"train.lock: process {os.getpid()} on {folder_lock.this_process().host}, since 20"
  )
  assert str(path.parent) in e.value.message
  assert e.value.available == "nothing was changed"
  assert "--gin.MODEL_DIR" in e.value.fix
  assert "rm " not in e.value.fix  # it is known to be running
  assert os.listdir(path.parent) == []


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path, capsys):
  path = tmp_path / "train.lock"
  pid = _leave(path, pid=_ended()).pid
  with _held(path):
    assert json.loads(path.read_text())["pid"] == os.getpid()
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1
  assert re.search(rf"taking over .*train.lock from process {pid} on .*, which has ended", lines[0])


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_another_process_of_the_same_id_is_not_the_owner(tmp_path):
  path = tmp_path / "train.lock"
  _leave(path, started=1)  # this process's id, another start time
  with _held(path):
    pass


def test_a_zombie_has_ended(tmp_path):
  child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
  started = folder_lock._started(child.pid)
  owner = _leave(tmp_path / "train.lock", pid=child.pid, started=started or 0)
  assert folder_lock.is_gone(owner) is False
  child.kill()
  os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # wait without reaping it
  assert folder_lock.is_gone(owner) is bool(started)
  child.communicate()
  assert folder_lock.is_gone(owner) is True


@pytest.mark.parametrize("change", [{"host": "elsewhere"}, {"machine": "another boot"}])
def test_another_machine_is_believed_while_it_is_heard_of(tmp_path, capsys, change):
  path = tmp_path / "train.lock"
  owner = _leave(path, pid=_ended(), **change)
  with pytest.raises(T5XError) as e, _held(path):
    pass
  assert f"process {owner.pid} on {owner.host}" in e.value.found
  assert f"rm {path}" in e.value.fix
  assert "5 minutes" in e.value.fix
  silent_since = time.time() - folder_lock.STALE - 1
  os.utime(path, (silent_since, silent_since))
  with _held(path):
    pass
  assert "which was last active 5 minutes ago" in capsys.readouterr().err


def test_a_running_owner_is_heard_of(tmp_path, monkeypatch):
  monkeypatch.setattr(folder_lock, "BEAT", 0.01)
  path = tmp_path / "train.lock"
  with _held(path):
    os.utime(path, (1, 1))
    until = time.monotonic() + 60
    while path.stat().st_mtime == 1:
      assert time.monotonic() < until, "no beat in a minute"
      time.sleep(0.01)


def test_a_lock_that_was_cut_off_or_lost(tmp_path):
  path = tmp_path / "train.lock"
  path.write_text('{"host": ')
  with _held(path):
    _leave(path, pid=1)  # somebody removed it, and another run has it now
  assert json.loads(path.read_text())["pid"] == 1
  path.unlink()
  with _held(path):
    path.unlink()
  assert not path.exists()


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path):
  path = tmp_path / "train.lock"
  _leave(path, pid=_ended())
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
  assert f"taking over {path} from process {run.pid} on " in err
  assert "No seqio task or mixture is named 'run_nothing'" in err
  assert not path.exists()
