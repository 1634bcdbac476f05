"""launch/worker.sh, which runs on a slice's workers."""

import os
import re
import subprocess
import time

from places import ROOT


def test_worker_runs_detached_and_is_followed(cloud):
  program = ("bash", "-c", "echo one; sleep 0.3; echo two; exit 3")
  assert cloud.run("worker.sh", "start", *program).returncode == 0
  assert cloud.run("worker.sh", "start", *program).returncode == 4
  done = cloud.run("worker.sh", "follow", "+1")
  assert (done.stdout, done.returncode) == ("one\ntwo\n", 3)
  assert "exited with 3" in cloud.run("worker.sh", "status").stdout
  assert cloud.run("worker.sh", "start", "true").returncode == 0  # the next run may start
  assert cloud.run("worker.sh", "follow", "+1").returncode == 0


def test_worker_removes_files_that_a_new_archive_lacks(tmp_path):
  script = (ROOT / "launch/worker.sh").read_text("utf-8")
  step = re.search(r"^remove_old_files\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)[0]
  code = tmp_path / "sgdx_t5x"
  (code / "state").mkdir(parents=True)
  for names in (["kept", "old one"], ["kept"]):
    for name in names:
      (code / name).touch()
    members = [f"sgdx_t5x/{name}" for name in names]
    subprocess.run(["tar", "-czf", "sgdx_t5x.tar.gz", *members], cwd=tmp_path, check=True)
    (code / "mine").touch()
    command = f"set -euo pipefail; state=state; {step}; remove_old_files"
    subprocess.run(["bash", "-c", command], cwd=code, check=True)
  assert sorted(path.name for path in code.iterdir()) == ["kept", "mine", "state"]


def test_worker_stops_with_sigterm(cloud):
  save = "import signal, sys, time; signal.signal(15, lambda *_: (print('saved'), sys.exit(143)))"
  program = ("python3.11", "-u", "-c", f"{save}; print('up'); time.sleep(20)")
  assert cloud.run("worker.sh", "start", *program).returncode == 0
  log = cloud.repo / "runs/launch/worker/log"
  for _ in range(100):
    if log.read_text() == "up\n":
      break
    time.sleep(0.05)
  assert cloud.run("worker.sh", "stop").returncode == 0
  done = cloud.run("worker.sh", "follow", "+1")
  assert (done.stdout, done.returncode) == ("up\nsaved\n", 143)


def test_worker_that_was_killed(cloud):
  assert cloud.run("worker.sh", "follow", "+1").returncode == 4
  assert cloud.run("worker.sh", "start", "sleep", "20").returncode == 0
  group = int((cloud.repo / "runs/launch/worker/pid").read_text())
  for _ in range(100):
    if os.getpgid(group) == group:
      break
    time.sleep(0.05)
  os.killpg(group, 9)
  done = cloud.run("worker.sh", "follow", "+1")
  assert (done.returncode, "was killed" in done.stderr) == (70, True)
  assert ": killed" in cloud.run("worker.sh", "status").stdout
