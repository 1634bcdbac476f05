"""launch/*.sh against binaries that record calls and inject failures (fake_cloud/)."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest
from places import FIXTURES, ROOT

FAKES = FIXTURES / "fake_cloud"
# All that the scripts may call. Nothing else is on PATH, so that no real gcloud, nvidia-smi or
# Slurm can be reached, whatever this machine has.
TOOLS = (
  "awk basename bash cat chmod cksum cut date dirname env find git grep gzip head hostname mkdir "
  "mv nohup paste rm sed setsid sleep sort tail tar tee touch tr wc"
)
WHERE = ("--project=p", "--zone=us-central1-a")
AT = "--project=p --zone=us-central1-a"
TRAIN = ("--", "python", "-m", "t5x.train", "--gin_file=gin/sample/t5dst.gin")
IN_BUCKET = (*TRAIN, "--gin.MODEL_DIR='gs://b/m'")
QUOTA = (
  "ERROR: (gcloud.compute.tpus.tpu-vm.create) RESOURCE_EXHAUSTED: Quota limit "
  "'TPUV3sPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-central1-a."
)
CAPACITY = 'ERROR: (gcloud) {"code": 8, "message": "There is no more capacity in the zone"}'


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
  """A repository with what the scripts read, committed, and a folder of tools for PATH."""
  top = tmp_path_factory.mktemp("launch")
  repo = top / "repo"
  for folder in ("launch", "gin"):
    shutil.copytree(ROOT / folder, repo / folder)
  for file in ("constraints.txt", "setup.py", "t5x_lite/setup.py"):
    (repo / file).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / file, repo / file)
  (repo / ".gitignore").write_text("/runs/\n.venv/\n")
  for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -q -m all"):
    subprocess.run(["git", "-C", repo, *command.split()], check=True)
  (top / "tools").mkdir()
  for tool in TOOLS.split():
    (top / "tools" / tool).symlink_to(shutil.which(tool))
  (top / "tools" / "python3.11").symlink_to(sys.executable)
  return top


class Cloud:
  """A checkout, the folder that holds its fake cloud, and methods to run scripts in it."""

  def __init__(self, checkout, folder):
    self.repo, self.state = folder / "repo", folder / "cloud"
    shutil.copytree(checkout / "repo", self.repo, symlinks=True)
    self.state.mkdir()
    (self.state / "calls").touch()
    (self.state / "rules").touch()
    self.path = [str(FAKES), str(checkout / "tools")]

  def rule(self, pattern, text="", *, code=1, times=1, node="", queue=""):
    with (self.state / "rules").open("a") as rules:
      rules.write(f"{times}|{pattern}|{code}|{node}|{queue}|{text}\n")

  def run(self, script, *words, stdin="", env=()):
    return subprocess.run(
      [self.repo / "launch" / script, *words],
      env={
        "PATH": ":".join(self.path),
        "HOME": str(self.state),
        "CLOUDSDK_CONFIG": str(self.state / "no_account"),
        "FAKE_CLOUD": str(self.state),
        "LAUNCH_POLL_SECONDS": "0",
        **dict(env),
      },
      capture_output=True,
      text=True,
      input=stdin,
      timeout=30,
    )

  def tpu(self, *words, **kw):
    return self.run("tpu_vm.sh", *words, **kw)

  @property
  def calls(self):
    return (self.state / "calls").read_text().splitlines()

  def verbs(self):
    """What gcloud was asked to change, in one word each."""
    names = {"worker.sh": None, "create": "create", "delete": "delete", "scp": "scp"}
    found = []
    for call in self.calls:
      words = shlex.split(call)
      if "ssh" in words:
        found.append(words[-1].split("worker.sh ")[1].split()[0])
      else:
        found += [name for word, name in names.items() if word in words]
    return found


@pytest.fixture
def cloud(checkout, tmp_path):
  return Cloud(checkout, tmp_path)


def four_parts(done, code, *texts):
  """Checks for a four-part error on stderr that contains these texts."""
  assert done.returncode == code, done.stderr
  parts = [line.split(":")[0].strip() for line in done.stderr.splitlines()[-4:]]
  assert parts[1:] == ["expected", "available", "fix"], done.stderr
  for text in texts:
    assert text in done.stderr
  assert "unbound variable" not in done.stderr


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


# --- preemption ------------------------------------------------------------------------------


def preempted(cloud, times, *, queued):
  """Makes the first `times` runs end with the slice preempted."""
  states = {"queue": "SUSPENDED"} if queued else {}
  cloud.rule("*worker.sh follow*", code=255, times=times, node="PREEMPTED", **states)


@pytest.mark.parametrize("queued", [False, True])
def test_restarts_after_preemption_twice_then_succeeds(cloud, queued):
  preempted(cloud, 2, queued=queued)
  done = cloud.tpu("all", "v3-8", *WHERE, "--spot", *(["--queued"] if queued else []), *IN_BUCKET)
  assert done.returncode == 0, done.stderr
  once = ["create", "scp", "setup", "start", "follow"]
  assert cloud.verbs() == [*once, "delete", *once, "delete", *once]
  assert "preempted (2 of at most 20)" in done.stderr
  creations = [call for call in cloud.calls if " create " in call]
  assert len(set(creations)) == 1  # with the same options, --spot too
  starts = [call for call in cloud.calls if "worker.sh\\ start" in call]
  assert len(set(starts)) == 1
  assert not [call for call in cloud.calls if "--force" in call]


def test_run_restarts_a_slice_that_was_queued_in_the_queue(cloud):
  assert cloud.tpu("create", "v3-8", *WHERE, "--spot", "--queued").returncode == 0
  preempted(cloud, 1, queued=True)
  assert cloud.tpu("run", "v3-8", *WHERE, "--spot", *IN_BUCKET).returncode == 0
  assert len([c for c in cloud.calls if "queued-resources create" in c]) == 2


def test_a_restarted_run_keeps_its_code_and_its_engine(cloud):
  assert cloud.tpu("create", "v3-8", *WHERE, "--spot").returncode == 0
  assert cloud.tpu("setup", "v3-8", *WHERE, "--t5x", "google").returncode == 0
  archive = cloud.repo / "runs/launch/sgdx-v3-8.tar.gz"
  before = archive.read_bytes()
  (cloud.repo / "new").touch()
  for command in ("add new", "-c user.name=t -c user.email=t@t commit -q -m new"):
    subprocess.run(["git", "-C", cloud.repo, *command.split()], check=True)
  preempted(cloud, 1, queued=False)
  done = cloud.tpu("run", "v3-8", *WHERE, "--spot", *IN_BUCKET)
  assert done.returncode == 0, done.stderr
  setups = [call for call in cloud.calls if "worker.sh\\ setup" in call]
  assert [call.endswith("google") for call in setups] == [True, True]
  assert archive.read_bytes() == before
  assert "the code of the last setup" in done.stderr
  assert cloud.tpu("setup", "v3-8", *WHERE).returncode == 0
  assert archive.read_bytes() != before


def test_code_of_another_origin_is_moved_aside(cloud, tmp_path):
  """What setup sends is run here, as on a worker."""
  (cloud.state / "node").write_text("READY")
  home = tmp_path / "home"
  home.mkdir()
  repositories = [tmp_path / "a", tmp_path / "b"]
  for repository in repositories:
    (repository / "launch").mkdir(parents=True)
    (repository / "launch/worker.sh").write_text(f"echo {repository.name} > worked\n")
    for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -q -m all"):
      subprocess.run(["git", "-C", repository, *command.split()], check=True)

  def set_up(*options):
    assert cloud.tpu("setup", "v3-8", *WHERE, *options).returncode == 0
    command = shlex.split(cloud.calls[-1])[-1].removeprefix("--command=")
    subprocess.run(["bash", "-c", command], cwd=home, check=True, capture_output=True)
    return (home / "worked").read_text().strip()

  names = [set_up("--repo", str(repositories[i])) for i in (0, 0, 1)]
  assert names == ["a", "a", "b"]
  (home / "sgdx_t5x/mine").touch()
  subprocess.run(
    ["git", "-C", repositories[0], "archive", "--format=tar.gz", "--prefix=sgdx_t5x/",
     f"--output={home / 'sgdx_t5x.tar.gz'}", "HEAD"],
    check=True,
  )  # fmt: skip
  assert [set_up(), set_up()] == ["a", "a"]
  assert not (home / "sgdx_t5x/.git").exists()
  assert len(list(home.glob("sgdx_t5x.*/**/mine"))) == 1  # nothing is lost


def test_preempted_while_setting_up(cloud):
  cloud.rule("*worker.sh setup*", code=255, node="PREEMPTED")
  assert cloud.tpu("all", "v3-8", *WHERE, "--spot", *IN_BUCKET).returncode == 0
  assert cloud.verbs()[:6] == ["create", "scp", "setup", "delete", "create", "scp"]


def test_preempted_in_the_queue(cloud):
  cloud.rule("*queued-resources create*", code=0, queue="SUSPENDED")
  assert cloud.tpu("all", "v3-8", *WHERE, "--spot", "--queued", *IN_BUCKET).returncode == 0
  assert cloud.verbs()[:3] == ["create", "delete", "create"]


def test_state_that_says_preempted_late(cloud):
  """t5x ends on SIGTERM while Google still reports the slice as READY."""
  cloud.rule("*worker.sh follow*", code=143)
  cloud.rule("*tpu-vm describe*", code=0, text="READY", node="PREEMPTED")
  assert cloud.tpu("all", "v3-8", *WHERE, "--spot", *IN_BUCKET).returncode == 0
  assert cloud.verbs().count("create") == 2


def test_restarts_are_bounded(cloud):
  preempted(cloud, 9, queued=False)
  done = cloud.tpu("all", "v3-8", *WHERE, "--spot", "--restarts=2", *IN_BUCKET)
  four_parts(done, 1, "preempted 3 times", "--restarts 2")
  assert cloud.verbs().count("create") == 3


def test_without_spot_nothing_restarts_or_is_deleted(cloud):
  preempted(cloud, 9, queued=False)
  four_parts(cloud.tpu("all", "v3-8", *WHERE, *IN_BUCKET), 1, "sgdx-v3-8 is PREEMPTED")
  assert cloud.verbs().count("create") == 1
  assert "delete" not in cloud.verbs()


@pytest.mark.parametrize("spot", [(), ("--spot",)])
def test_a_command_that_fails_is_not_repeated(cloud, spot):
  cloud.rule("*worker.sh follow*", code=1, times=9, text="t5x: NaN loss")
  done = cloud.tpu("all", "v3-8", *WHERE, *spot, *IN_BUCKET)
  four_parts(done, 1, "exit code 1", "still running and costs money")
  assert cloud.verbs() == ["create", "scp", "setup", "start", "follow"]


def test_a_slice_that_someone_deleted_stays_deleted(cloud):
  cloud.rule("*worker.sh follow*", code=255, node="none")
  four_parts(cloud.tpu("all", "v3-8", *WHERE, "--spot", *IN_BUCKET), 1)
  assert cloud.verbs().count("create") == 1


def test_a_broken_connection_is_followed_again(cloud):
  cloud.rule("*worker.sh follow*", code=255, times=2, text="Connection reset")
  done = cloud.tpu("all", "v3-8", *WHERE, *IN_BUCKET)
  assert done.returncode == 0, done.stderr
  assert cloud.verbs() == ["create", "scp", "setup", "start", "follow", "follow", "follow"]
  assert "follow\\ 20" in cloud.calls[-1]  # not the whole log again


def test_a_state_that_cannot_be_asked_for_is_asked_for_again(cloud):
  preempted(cloud, 1, queued=False)
  cloud.rule("*tpu-vm describe*", "ERROR: (gcloud) UNAVAILABLE", times=2)
  assert cloud.tpu("all", "v3-8", *WHERE, "--spot", *IN_BUCKET).returncode == 0
  assert cloud.verbs().count("create") == 2
  cloud.rule("*tpu-vm describe*", "ERROR: (gcloud) UNAVAILABLE", times=9)
  four_parts(cloud.tpu("status", "v3-8", *WHERE), 1, "gcloud failed: (gcloud) UNAVAILABLE")


# --- other failures --------------------------------------------------------------------------


def test_quota(cloud):
  cloud.rule("*create*", QUOTA)
  done = cloud.tpu("create", "v3-8", *WHERE)
  page = "https://console.cloud.google.com/iam-admin/quotas?project=p&service=tpu.googleapis.com"
  four_parts(done, 1, page, "us-central1-b europe-west4-a", "quota for TPU v3 in us-central1-a")
  assert len(cloud.calls) == 1


def test_no_capacity_is_tried_again_then_said(cloud):
  cloud.rule("*create*", CAPACITY, times=2)
  assert cloud.tpu("create", "v3-8", *WHERE).returncode == 0
  assert cloud.verbs() == ["create"] * 3
  (cloud.state / "node").unlink()
  cloud.rule("*create*", CAPACITY, times=9)
  four_parts(cloud.tpu("create", "v3-8", *WHERE), 1, "no capacity for v3-8", "--queued")
  assert cloud.verbs() == ["create"] * 7


def test_already_exists(cloud):
  (cloud.state / "node").write_text("READY")
  done = cloud.tpu("all", "v3-8", *WHERE, *TRAIN)
  four_parts(done, 1, "sgdx-v3-8 already exists", "tpu_vm.sh run v3-8", "--name NAME")
  assert cloud.verbs() == ["create"]


@pytest.mark.parametrize(
  ("text", "found"),
  [
    (
      "PERMISSION_DENIED: Cloud TPU API has not been used in project p",
      "gcloud services enable tpu",
    ),
    ("PERMISSION_DENIED: Permission 'tpu.nodes.create' denied", "roles/tpu.admin"),
    ("something new", "something new"),
  ],
)
def test_other_refusals(cloud, text, found):
  cloud.rule("*create*", f"ERROR: (gcloud) {text}")
  four_parts(cloud.tpu("create", "v3-8", *WHERE), 1, found)


def test_hours_to_wait_may_begin_with_a_zero(cloud):
  words = ("create", "v3-8", *WHERE, "--queued", "--wait", "08")
  done = cloud.tpu(*words)
  assert done.returncode == 0, done.stderr
  assert "--valid-until-duration=8h" in cloud.calls[0]


def test_a_failed_request_in_the_queue(cloud):
  cloud.rule("*queued-resources create*", code=0, queue="FAILED")
  four_parts(cloud.tpu("create", "v3-8", *WHERE, "--queued"), 1, "is FAILED", "delete v3-8")
  assert "delete" not in cloud.verbs()


def test_ssh_that_fails_on_one_worker(cloud):
  (cloud.state / "node").write_text("READY")
  said = "##### Command execution on worker 2 failed with exit status 1. Continuing."
  cloud.rule("*worker.sh setup*", said)
  four_parts(cloud.tpu("setup", "v3-32", *WHERE), 1, "setup failed on worker 2;", "--worker=2")
  cloud.rule("*worker.sh start*", said)
  done = cloud.tpu("run", "v3-32", *WHERE, *IN_BUCKET)
  four_parts(done, 1, "run failed on worker 2;", "stopping it on the others")
  assert cloud.verbs() == ["scp", "setup", "start", "stop"]


def test_setup_waits_for_a_new_slice_to_answer(cloud):
  (cloud.state / "node").write_text("READY")
  cloud.rule("*scp*", "ERROR: (gcloud) [/usr/bin/scp] exited with return code [255].", times=2)
  assert cloud.tpu("setup", "v3-8", *WHERE).returncode == 0
  assert cloud.verbs() == ["scp", "scp", "scp", "setup"]


def test_several_workers_need_the_key_in_the_agent(cloud):
  (cloud.state / "node").write_text("READY")
  cloud.rule("*scp*", "ERROR: (gcloud) SSH Key is not present in the SSH agent.")
  four_parts(cloud.tpu("setup", "v3-32", *WHERE), 1, "ssh-add ~/.ssh/google_compute_engine")


def test_one_command_at_a_time(cloud):
  (cloud.state / "node").write_text("READY")
  cloud.rule("*worker.sh start*", "a command is already running here: python", code=4)
  four_parts(cloud.tpu("run", "v3-8", *WHERE, *TRAIN), 1, "already running", "tpu_vm.sh logs")
  assert cloud.verbs() == ["start"]


# --- wrong command lines: nothing is called ----------------------------------------------------


@pytest.mark.parametrize(
  ("words", "found"),
  [
    (("create", "v5litepod-8", *WHERE), "nearest: v5e-8"),
    (("create", "V3-8", *WHERE), "nearest: v3-8"),
    (("create",), "none given"),
    (("creat", "v3-8"), "nearest: create"),
    (("create", "v3-8", *WHERE, "--sopt"), "nearest: --spot"),
    (("create", "v3-8", "--project"), "--project has no value"),
    (("create", "v3-8", *WHERE, "--name", "My_TPU"), "--name My_TPU"),
    (("create", "v3-8", *WHERE, "--wait", "soon"), "soon is not a whole number"),
    (("setup", "v3-8", *WHERE, "--t5x", "gogle"), "lite or google"),
    (("run", "v3-8", *WHERE), "no command to run"),
    (("all", "v3-8", *WHERE, *TRAIN, "--dry-run"), "this would be a real run"),
    (("run", "v3-8", *WHERE, "--", "python", "-m", "t5x.train", "--gin_file=gin/t5dts.gin"),
     "nearest: gin/t5dst.gin"),
    (("run", "v3-8", *WHERE, "--", "python", "-m", "t5x.eval", "--gin_file", "gin/evl.gin"),
     "nearest: gin/eval.gin"),
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


# --- the worker's side -----------------------------------------------------------------------


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


# --- gpu.sh and cpu.sh -----------------------------------------------------------------------


@pytest.fixture
def installed(cloud):
  """A checkout whose .venv exists; its python records its calls."""
  (cloud.repo / ".venv/bin").mkdir(parents=True)
  (cloud.repo / ".venv/bin/python").symlink_to(FAKES / "python")
  files = ("setup.py", "t5x_lite/setup.py", "constraints.txt")
  text = b"".join((cloud.repo / file).read_bytes() for file in files)
  checksum = subprocess.run(["cksum"], input=text, capture_output=True, check=True).stdout
  (cloud.repo / ".venv/installed").write_bytes(checksum)
  return cloud


FULL = ("--", "python", "-m", "t5x.train", "--gin_file=gin/t5dst.gin")


@pytest.mark.parametrize(
  ("driver", "capability", "wheels"),
  [
    ("580.65.06", "9.0", "cuda13"),
    ("570.124.04", "8.0", "cuda12"),
    ("580.65.06", "7.0", "cuda12"),  # CUDA 13 dropped Volta
  ],
)
def test_gpu_installs_the_wheels_of_the_driver_once(installed, driver, capability, wheels):
  (installed.state / "gpus").write_text(f"{driver}, {capability}, NVIDIA\n" * 2)
  assert installed.run("gpu.sh", *FULL).returncode == 0
  version = next(
    line.split("==")[1]
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.startswith("jax==")
  )
  _, install, train = (shlex.split(call) for call in installed.calls)
  assert install[-1] == f"jax[{wheels}]=={version}"
  assert install[-3:-1] == ["--constraint", "constraints.txt"]
  assert train == ["python", *FULL[2:], "--gin_file=gin/scale/gpu.gin"]
  assert installed.run("gpu.sh", *FULL).returncode == 0
  assert len(installed.calls) == 5  # nvidia-smi, train


def test_gpu_refuses(installed):
  four_parts(installed.run("gpu.sh", *FULL), 1, "nvidia-smi failed")
  (installed.state / "gpus").write_text("470.82.01, 8.0, NVIDIA A100\n")
  four_parts(installed.run("gpu.sh", *FULL), 1, "driver 470 is too old", "525")
  four_parts(installed.run("gpu.sh", "--cuda", "11", *FULL), 2, "12 or 13")
  four_parts(installed.run("gpu.sh", "--seeds", "0,1", *FULL), 2, "--slurm")
  four_parts(installed.run("gpu.sh", "--nods", "2", *FULL), 2, "nearest: --nodes")
  assert not [call for call in installed.calls if call.startswith("python")]


def test_exit_codes_pass_through(installed):
  (installed.state / "python_exit").write_text("143")
  assert installed.run("cpu.sh", *FULL).returncode == 143


def test_the_last_command_takes_the_scripts_place():
  """A signal to `launch/cpu.sh` reaches the training, which saves."""
  words = "echo $$; source launch/common.sh; finish bash -c 'echo $$'"
  done = subprocess.run(["bash", "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
  first, second = done.stdout.split()
  assert first == second
  for script in ("cpu.sh", "gpu.sh"):
    assert re.search(r"^ *finish env JAX_PLATFORMS", (ROOT / "launch" / script).read_text(), re.M)


def test_cpu_adds_its_scale_where_it_belongs(installed):
  def ran(*words):
    assert installed.run("cpu.sh", *words).returncode == 0
    return shlex.split(installed.calls[-1])[1:]

  assert ran(*FULL) == [*FULL[2:], "--gin_file=gin/scale/cpu.gin"]
  assert ran(*TRAIN) == list(TRAIN[2:])  # the sample has its own settings
  assert ran(*FULL, "--gin_file=gin/scale/gpu.gin")[-1] == "--gin_file=gin/scale/gpu.gin"
  assert ran("--scale", "none", *FULL) == list(FULL[2:])
  assert ran("--scale=gin/scale/gpu.gin", *FULL)[-1] == "--gin_file=gin/scale/gpu.gin"
  evaluation = ("--", "python", "-m", "t5x.eval", "--gin_file=gin/eval.gin")
  assert ran(*evaluation) == list(evaluation[2:])
  (installed.repo / "mine.gin").write_text("include 'gin/t5dst_oracle.gin'\n")
  scales = {
    "gin/spandst.gin": "gin/scale/encoders/cpu.gin",
    "gin/sgpdst/copy.gin": "gin/scale/encoders/cpu.gin",
    "gin/d3st.gin": "gin/scale/cpu.gin",
    "mine.gin": "gin/scale/cpu.gin",
    # These have their own batches and lengths, which T5DST's would replace.
    "gin/coco_generator.gin": "gin/coco_generator.gin",
    "gin/prefine.gin": "gin/prefine.gin",
  }
  for file, last in scales.items():
    assert ran("--", "python", "-m", "t5x.train", f"--gin_file={file}")[-1] == f"--gin_file={last}"
  found = ran("--", "python", "-m", "t5x.train", "--gin_file=d3st.gin", "--gin_search_paths=gin")
  assert found[-1] == "--gin_file=gin/scale/cpu.gin"


@pytest.mark.parametrize("script", ["cpu.sh", "gpu.sh"])
def test_dry_run_of_cpu_and_gpu(cloud, script):
  options = ("--cuda", "12", "--slurm") if script == "gpu.sh" else ()
  done = cloud.run(script, *options, "--dry-run", *FULL)
  assert done.returncode == 0, done.stderr
  assert "source launch/environment.sh" in done.stdout
  assert cloud.calls == []
  assert not (cloud.repo / ".venv").exists()
  assert not (cloud.repo / "runs").exists()
  assert subprocess.run(["bash", "-n", "-c", done.stdout]).returncode == 0


def slurm(installed, *words, **variables):
  """Submits, runs the written script as Slurm would; returns it and its python calls."""
  done = installed.run("gpu.sh", "--cuda=12", "--slurm", *words)
  assert done.returncode == 0, done.stderr
  script = installed.repo / "runs/slurm/sgdx.sbatch"
  assert f"sbatch {script.relative_to(installed.repo)}" in installed.calls
  before = len(installed.calls)
  subprocess.run(
    ["bash", script],
    env={"PATH": ":".join(installed.path), "FAKE_CLOUD": str(installed.state), **variables},
    check=True,
    capture_output=True,
  )
  calls = [c for c in installed.calls[before:] if c.startswith("python")]
  return script.read_text(), [shlex.split(call)[1:] for call in calls]


def test_slurm_array_over_seeds(installed):
  words = ("--seeds=0,7", "--partition=a100", *FULL, "--gin.MODEL_DIR='r/%SEED%'", "%SEED%")
  script, calls = slurm(installed, *words, SLURM_ARRAY_TASK_ID="1", SLURM_NNODES="1")
  assert "#SBATCH --array=0-1\n" in script
  assert "#SBATCH --partition=a100\n" in script
  assert calls == [
    [*FULL[2:], "--gin.MODEL_DIR='r/7'", "7", "--gin_file=gin/scale/gpu.gin",
     "--gin.RANDOM_SEED=7"]
  ]  # fmt: skip


def test_slurm_array_over_gin_files(installed):
  words = ("--gin_files=gin/t5dst.gin,gin/t5dst_oracle.gin", "--", "python", "-m", "t5x.train",
           "--gin.MODEL_DIR='r/%GIN%'")  # fmt: skip
  _, calls = slurm(installed, *words, SLURM_ARRAY_TASK_ID="1", SLURM_NNODES="1")
  assert calls == [
    ["-m", "t5x.train", "--gin_file=gin/t5dst_oracle.gin", "--gin.MODEL_DIR='r/t5dst_oracle'",
     "--gin_file=gin/scale/gpu.gin"]
  ]  # fmt: skip


def test_slurm_arrays_files_may_have_a_scale(installed):
  words = ("--gin_files=gin/scale/cpu.gin,gin/scale/gpu.gin", *FULL, "--gin.MODEL_DIR='r/%GIN%'")
  _, (call,) = slurm(installed, *words, SLURM_ARRAY_TASK_ID="0", SLURM_NNODES="1")
  assert call[2:] == ["--gin_file=gin/scale/cpu.gin", FULL[-1], "--gin.MODEL_DIR='r/cpu'"]


def test_slurm_on_several_machines(installed):
  variables = {"SLURM_NNODES": "2", "SLURM_JOB_ID": "20007", "SLURM_JOB_NODELIST": "node[1-2]"}
  script, calls = slurm(installed, "--nodes", "2", *FULL, **variables)
  assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n" in script
  common = ["--multiprocess_gpu", "--coordinator_address=node1:20007", "--process_count=2"]
  assert [call[-4:] for call in calls] == [[*common, f"--process_index={k}"] for k in (0, 1)]


def test_slurm_refuses(installed):
  shared = ("--cuda=12", "--slurm", "--seeds=0,1", *FULL, "--gin.MODEL_DIR='runs/m'")
  four_parts(installed.run("gpu.sh", *shared), 2, "all jobs of the array would write", "%SEED%")
  twice = ("--cuda=12", "--slurm", *FULL, "--gin.MODEL_DIR='r/%SEED%'")
  four_parts(installed.run("gpu.sh", "--seeds=1,1", *twice), 2, "two jobs of the array", "1 1")
  same = ("--cuda=12", "--slurm", "--gin_files=gin/t5dst.gin,gin/sample/t5dst.gin", "--", "python",
          "-m", "t5x.train", "--gin.MODEL_DIR='r/%GIN%'")  # fmt: skip
  four_parts(installed.run("gpu.sh", *same), 2, "two jobs of the array are called t5dst")
  other = ("--cuda=12", "--slurm", "--gin_files=gin/t5dst.gin", "--", "bash", "run.sh")
  four_parts(installed.run("gpu.sh", *other), 2, "--gin_files with a command without t5x")
  for numbers in ("--nodes=0",), ("--gpus=0",), ("--nodes=2", "--gpus=00"):
    four_parts(installed.run("gpu.sh", "--cuda=12", "--slurm", *numbers, *FULL), 2, "1 or more")
  assert installed.calls == []
  (installed.state / "refuses").touch()
  four_parts(installed.run("gpu.sh", "--cuda=12", "--slurm", *FULL), 1, "nothing was submitted")


@pytest.mark.parametrize(
  "file", ["gin/sample/t5dst.gin", "./gin/scale/cpu.gin", "{}/gin/scale/cpu.gin"]
)
def test_a_scale_is_recognised_however_it_is_written(installed, file):
  file = file.format(installed.repo)
  done = installed.run(
    "cpu.sh", "--dry-run", "--", "python", "-m", "t5x.train", f"--gin_file={file}"
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout.count("--gin_file") == 1


def test_gin_files_may_be_in_a_search_path(installed, tmp_path):
  (tmp_path / "mine.gin").touch()
  words = ("--dry-run", "--", "python", "-m", "t5x.train", "--gin_file=mine.gin")
  assert installed.run("cpu.sh", *words, f"--gin_search_paths=gin,{tmp_path}").returncode == 0
  four_parts(installed.run("cpu.sh", *words), 2, "--gin_file=mine.gin: no such file")


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
  _, said = running.communicate(timeout=10)
  assert running.returncode == code
  assert "Nothing was stopped or deleted" in said
  assert f"launch/tpu_vm.sh delete v3-8 --name sgdx-v3-8 {AT}" in said
  assert "delete" not in cloud.verbs()


def test_the_page_shows_what_the_commands_print(cloud):
  page = (ROOT / "docs/launch.md").read_text()
  blocks = re.findall(r"```console\n\$ ((?:.*\\\n)*.*\n)((?:.*\n)*?)```\n", page)
  assert len(blocks) > 8
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


# --- all of them -----------------------------------------------------------------------------


@pytest.mark.parametrize(
  "script", ["tpu_vm.sh", "gpu.sh", "cpu.sh", "study.sh", "quickstart.sh", "test.sh", "minilm.sh"]
)
def test_help(cloud, script):
  """Help fits in 80 columns; for quickstart.sh and test.sh, it once started a whole run."""
  done = cloud.run(script, "--help")
  assert done.returncode == 0
  assert f"launch/{script}" in done.stdout
  assert "set -euo" not in done.stdout
  assert max(map(len, done.stdout.splitlines())) <= 80
  assert "command not found" not in done.stderr


@pytest.mark.parametrize("script", ["gpu.sh", "quickstart.sh"])
def test_help_from_another_folder(script):
  command = [f"./{script}", "--help"]
  done = subprocess.run(command, cwd=ROOT / "launch", capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")
  assert f"launch/{script}" in done.stdout


def test_quickstart_refuses_options(cloud):
  done = cloud.run("quickstart.sh", "--dry-run")
  assert done.returncode == 2
  assert done.stderr.startswith("--dry-run is not an option\n  expected:  no options\n")


def test_minilm_takes_no_option_for_a_folder(cloud):
  for words, found in (["--out"], "--out is not an option"), ([], "no folder is named"):
    done = cloud.run("minilm.sh", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{found}\n  expected:  the name of a new folder\n")


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck():
  names = ("common", "tpu_vm", "gpu", "cpu", "worker", "study")
  files = [f"launch/{name}.sh" for name in names] + [f"{FAKES}/{p.name}" for p in FAKES.iterdir()]
  done = subprocess.run(["shellcheck", "-x", *files], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout
