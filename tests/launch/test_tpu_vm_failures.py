"""launch/tpu_vm.sh: preemptions and other failures."""

import shlex
import subprocess

import pytest
from cloud import CAPACITY, IN_BUCKET, QUOTA, TRAIN, WHERE, four_parts

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
