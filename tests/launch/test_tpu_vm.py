"""launch/tpu_vm.sh: what it calls, prints and refuses."""

import os
import re
import shlex
import signal
import subprocess
import time

import pytest
from cloud import AT, IN_BUCKET, TRAIN, WHERE, four_parts
from places import ROOT

# --- what is called --------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("slice_", "accelerator", "runtime"),
  [  # cloud.google.com/tpu/docs/runtimes
    ("v3-8", "v3-8", "tpu-ubuntu2204-base"),
    ("v4-32", "v4-32", "tpu-ubuntu2204-base"),
    ("v5e-8", "v5litepod-8", "v2-alpha-tpuv5-lite"),
    ("v6e-4", "v6e-4", "v2-alpha-tpuv6e"),
  ],
)
def test_create(cloud, slice_, accelerator, runtime):
  done = cloud.tpu("create", slice_, *WHERE)
  assert done.returncode == 0, done.stderr
  assert cloud.calls == [
    f"gcloud compute tpus tpu-vm create sgdx-{slice_} --version={runtime} "
    f"--accelerator-type={accelerator} {AT} --quiet"
  ]
  assert "costs money until" in done.stderr


def test_create_in_the_queue_waits_until_active(cloud):
  cloud.rule("*queued-resources create*", code=0, queue="WAITING_FOR_RESOURCES")
  cloud.rule("*queued-resources describe*", code=0, text="PROVISIONING")
  cloud.rule("*queued-resources describe*", code=0, queue="ACTIVE", text="PROVISIONING")
  done = cloud.tpu("create", "v3-8", *WHERE, "--queued", "--spot", "--wait", "2", "--name", "n")
  assert done.returncode == 0, done.stderr
  assert cloud.calls[0] == (
    "gcloud compute tpus queued-resources create n --node-id=n "
    "--runtime-version=tpu-ubuntu2204-base --valid-until-duration=2h --accelerator-type=v3-8 "
    f"{AT} --spot --quiet"
  )
  assert len([c for c in cloud.calls if "queued-resources describe" in c]) == 3


def test_all_creates_sets_up_and_runs(cloud):
  done = cloud.tpu("all", "v3-8", *WHERE, *TRAIN)
  assert done.returncode == 0, done.stderr
  assert cloud.verbs() == ["create", "scp", "setup", "start", "follow"]
  scp, setup, start = (shlex.split(call) for call in cloud.calls[1:4])
  assert scp[5:7] == ["runs/launch/sgdx-v3-8.tar.gz", "sgdx-v3-8:sgdx_t5x.tar.gz"]
  assert "--worker=all" in scp
  assert "--worker=all" in setup
  assert setup[-1].endswith("worker.sh setup lite")
  assert start[-1].endswith("start python -m t5x.train --gin_file=gin/sample/t5dst.gin")
  assert "t5x: step 100" in done.stdout
  assert "t5x: step 100" in (cloud.repo / "runs/launch/sgdx-v3-8.log").read_text()
  packed = subprocess.run(
    ["tar", "-tzf", cloud.repo / "runs/launch/sgdx-v3-8.tar.gz"], capture_output=True, text=True
  )
  assert "sgdx_t5x/launch/worker.sh" in packed.stdout.split()


def test_words_arrive_on_the_workers_as_they_were_typed(cloud):
  (cloud.state / "node").write_text("READY")
  word = """--gin.MODEL_DIR='gs://b/a "b" $c'"""
  assert cloud.tpu("run", "v3-8", *WHERE, *TRAIN, word).returncode == 0
  remote = shlex.split(cloud.calls[0])[-1].removeprefix("--command=")
  assert shlex.split(remote)[-1] == word


def test_several_hosts_get_jax_distributed_once(cloud):
  (cloud.state / "node").write_text("READY")
  assert cloud.tpu("run", "v3-32", *WHERE, *IN_BUCKET).returncode == 0
  assert shlex.split(cloud.calls[0])[-1].endswith(" --multiprocess_gpu")
  assert cloud.tpu("run", "v3-32", *WHERE, *IN_BUCKET, "--multiprocess_gpu").returncode == 0
  assert cloud.calls[2].count("--multiprocess_gpu") == 1
  assert cloud.tpu("run", "v3-32", *WHERE, "--", "sgdx", "ls").returncode == 0
  assert "multiprocess" not in cloud.calls[4]


def test_setup_of_googles_t5x_from_a_url(cloud):
  (cloud.state / "node").write_text("READY")
  done = cloud.tpu("setup", "v3-8", *WHERE, "--t5x", "google", "--repo", "https://h/r.git")
  assert done.returncode == 0, done.stderr
  assert cloud.verbs() == ["setup"]
  command = shlex.split(cloud.calls[0])[-1]
  assert "git clone https://h/r.git sgdx_t5x" in command
  assert command.endswith("worker.sh setup google")


def test_logs_stop_status(cloud):
  (cloud.state / "node").write_text("READY")
  assert "step 100" in cloud.tpu("logs", "v3-8", *WHERE).stdout
  assert cloud.tpu("stop", "v3-8", *WHERE).returncode == 0
  assert "slice READY, queued request NONE" in cloud.tpu("status", "v3-8", *WHERE).stdout
  assert cloud.verbs() == ["follow", "stop", "status"]


def test_fetch(cloud):
  (cloud.state / "node").write_text("READY")
  to = str(cloud.state / "got")
  assert cloud.tpu("fetch", "v3-8", *WHERE, "--from", "gs://b/m", "--to", to).returncode == 0
  assert cloud.tpu("fetch", "v3-8", *WHERE, "--from", "sgdx_t5x/runs", "--to", to).returncode == 0
  assert cloud.calls == [
    f"gcloud storage cp --recursive gs://b/m {to} --project=p",
    f"gcloud compute tpus tpu-vm scp --recurse sgdx-v3-8:sgdx_t5x/runs {to} {AT} --worker=0"
    " --quiet",
  ]
  four_parts(cloud.tpu("fetch", "v3-8", *WHERE), 2, "--from")


def test_project_and_zone_of_gcloud(cloud):
  assert cloud.tpu("create", "v3-8").returncode == 0
  assert "--project=configured-project --zone=us-central1-a" in cloud.calls[-1]


# --- delete ----------------------------------------------------------------------------------


def test_delete_asks(cloud):
  (cloud.state / "node").write_text("READY")
  for answer in ("", "n\n", "no\n"):
    four_parts(cloud.tpu("delete", "v3-8", *WHERE, stdin=answer), 1, "nothing was deleted")
  assert cloud.verbs() == []
  done = cloud.tpu("delete", "v3-8", *WHERE, stdin="y\n")
  assert done.returncode == 0, done.stderr
  assert cloud.calls[-1] == f"gcloud compute tpus tpu-vm delete sgdx-v3-8 {AT} --quiet"
  assert "Buckets were not touched" in done.stderr
  four_parts(cloud.tpu("delete", "v3-8", *WHERE, "--yes"), 1, "there is no sgdx-v3-8")


def test_delete_takes_the_queued_request_too(cloud):
  assert cloud.tpu("create", "v3-8", *WHERE, "--queued").returncode == 0
  assert cloud.tpu("delete", "v3-8", *WHERE, "--yes").returncode == 0
  assert f"queued-resources delete sgdx-v3-8 --force {AT}" in cloud.calls[-1]
  assert not (cloud.state / "node").exists()


# --- dry runs --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--spot", "--queued"), ("--t5x", "google")])
def test_dry_run_prints_the_calls_and_makes_none(cloud, options):
  """The printed lines, pasted into a shell, are the calls of the real run."""
  words = ("all", "v3-32", *WHERE, *options, *IN_BUCKET)
  dry = cloud.tpu(*words[:2], "--dry-run", *words[2:])
  assert dry.returncode == 0, dry.stderr
  assert cloud.calls == []
  assert not (cloud.repo / "runs").exists()
  assert cloud.tpu(*words).returncode == 0
  real = [call for call in cloud.calls if "tpu-vm describe" not in call]
  (cloud.state / "calls").write_text("")
  for file in ("node", "queue"):
    (cloud.state / file).unlink(missing_ok=True)
  subprocess.run(
    ["bash", "-e", "-c", dry.stdout],
    cwd=cloud.repo,
    env={"PATH": ":".join(cloud.path), "FAKE_CLOUD": str(cloud.state)},
    check=True,
    capture_output=True,
  )
  assert cloud.calls == real


@pytest.mark.parametrize("command", ["setup", "logs", "stop", "status", "delete"])
def test_dry_run_of_the_rest(cloud, command):
  done = cloud.tpu(command, "v3-8", *WHERE, "--dry-run")
  assert done.returncode == 0, done.stderr
  assert "sgdx-v3-8" in done.stdout
  assert cloud.calls == []


def test_dry_run_does_not_ask_gcloud_for_the_project(cloud):
  four_parts(cloud.tpu("create", "v3-8", "--dry-run"), 2, "no project", "--dry-run does not ask")
  assert cloud.calls == []


# --- wrong command lines: nothing is called ----------------------------------------------------


@pytest.mark.parametrize(
  ("words", "found"),
  [
    (("create", "v5litepod-8", *WHERE), "v4-32 v5e-4 v5e-8"),
    (("create", "V3-8", *WHERE), "v3-8 v3-32"),
    (("create",), "none given"),
    (("creat", "v3-8"), "available: "),
    (("create", "v3-8", *WHERE, "--sopt"), "--zone --spot"),
    (("create", "v3-8", "--project"), "--project has no value"),
    (("create", "v3-8", *WHERE, "--name", "My_TPU"), "--name My_TPU"),
    (("create", "v3-8", *WHERE, "--wait", "soon"), "soon is not a whole number"),
    (("setup", "v3-8", *WHERE, "--t5x", "gogle"), "lite or google"),
    (("run", "v3-8", *WHERE), "no command to run"),
    (("all", "v3-8", *WHERE, *TRAIN, "--dry-run"), "this would be a real run"),
    (("run", "v3-8", *WHERE, "--", "python", "-m", "t5x.train", "--gin_file=gin/t5dts.gin"),
     "gin/t5dts.gin: no such file"),
    (("run", "v3-8", *WHERE, "--", "python", "-m", "t5x.eval", "--gin_file", "gin/evl.gin"),
     "gin/evl.gin: no such file"),
    (("all", "v3-32", *WHERE, *TRAIN, "--gin.MODEL_DIR='runs/m'"), "several hosts"),
    (("all", "v3-8", *WHERE, "--spot", *TRAIN, "--gin.MODEL_DIR='runs/m'"), "loses its disk"),
  ],
)  # fmt: skip
def test_wrong_command_lines(cloud, words, found):
  four_parts(cloud.tpu(*words), 2, found)
  assert cloud.calls == []


def test_no_project_or_zone(cloud):
  cloud.rule("config get-value project", code=1, times=1)
  four_parts(cloud.tpu("create", "v3-8", "--zone=us-central1-a"), 2, "no project")
  cloud.rule("config get-value compute/zone", code=1, times=1)
  done = cloud.tpu("create", "v3-8", "--project=p")
  four_parts(done, 2, "no zone", "us-central1-a us-central1-b europe-west4-a")
  assert cloud.verbs() == []


def test_a_gin_file_that_is_not_committed(cloud):
  (cloud.repo / "gin/mine.gin").write_text("")
  words = ("--", "python", "-m", "t5x.train", "--gin_file=gin/mine.gin")
  four_parts(cloud.tpu("run", "v3-8", *WHERE, *words), 2, "not in HEAD", "?? gin/mine.gin")


def test_a_gin_file_in_a_search_path(cloud):
  words = ("run", "v3-8", *WHERE, "--dry-run", "--", "python", "-m", "t5x.train")
  words += ("--gin_file=t5dst.gin", "--gin.MODEL_DIR='gs://b/m'")
  assert cloud.tpu(*words, "--gin_search_paths=launch,gin/sample").returncode == 0
  four_parts(cloud.tpu(*words, "--gin_search_paths=launch"), 2, "t5dst.gin")


def test_without_gcloud(cloud):
  cloud.path = cloud.path[1:]
  four_parts(cloud.tpu("create", "v3-8", *WHERE), 1, "https://cloud.google.com/sdk/docs/install")


# --- interrupted, documented -----------------------------------------------------------------


@pytest.mark.parametrize(
  ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_says_what_still_costs_money(cloud, number, code):
  cloud.rule("*queued-resources create*", code=0, queue="WAITING_FOR_RESOURCES")
  script = cloud.repo / "launch/tpu_vm.sh"
  running = subprocess.Popen(
    [script, "create", "v3-8", *WHERE, "--queued"],
    env={
      "PATH": ":".join(cloud.path),
      "FAKE_CLOUD": str(cloud.state),
      "LAUNCH_POLL_SECONDS": "20",
    },
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
    start_new_session=True,
    preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # ignored under nohup, for instance
  )
  for line in running.stderr:
    if "WAITING_FOR_RESOURCES" in line:
      break
  time.sleep(0.1)
  os.killpg(running.pid, number)
  _, said = running.communicate()
  assert running.returncode == code
  assert "Nothing was stopped or deleted" in said
  assert f"launch/tpu_vm.sh delete v3-8 --name sgdx-v3-8 {AT}" in said
  assert "delete" not in cloud.verbs()


def test_the_page_shows_what_the_commands_print(cloud):
  page = (ROOT / "docs/launch.md").read_text()
  blocks = re.findall(r"```console\n\$ ((?:.*\\\n)*.*\n)((?:.*\n)*?)```\n", page)
  assert len(blocks) > 6
  for command, shown in blocks:
    done = subprocess.run(
      ["bash", "-c", command],
      cwd=cloud.repo,
      env={"PATH": ":".join(cloud.path), "FAKE_CLOUD": str(cloud.state)},
      capture_output=True,
      text=True,
    )
    assert done.stdout.replace(str(cloud.repo), "/home/you/sgdx_t5x") == shown, command
  assert cloud.calls == []
