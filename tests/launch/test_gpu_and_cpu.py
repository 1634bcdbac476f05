"""launch/gpu.sh, on one machine and under Slurm, and launch/cpu.sh."""

import re
import shlex
import subprocess

import pytest
from cloud import TRAIN, four_parts
from places import ROOT

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
  four_parts(installed.run("gpu.sh", "--nods", "2", *FULL), 2, "--nods is not an option", "--nodes")
  given = ("--cuda", "12", "--time", "24:00:00", "--gpus", "4")  # it would train here, on all GPUs
  four_parts(installed.run("gpu.sh", *given, *FULL), 2, "--time --gpus without --slurm")
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
  main = ("--", "python", "-m", "t5x.main", "--run_mode=train", "--gin_file=gin/t5dst.gin")
  assert ran(*main) == [*main[2:], "--gin_file=gin/scale/cpu.gin"]
  assert ran(*TRAIN) == list(TRAIN[2:])  # the sample has its own settings
  assert ran(*FULL, "--gin_file=gin/scale/gpu.gin")[-1] == "--gin_file=gin/scale/gpu.gin"
  assert ran("--scale", "none", *FULL) == list(FULL[2:])
  assert ran("--scale=gin/scale/gpu.gin", *FULL)[-1] == "--gin_file=gin/scale/gpu.gin"
  evaluation = ("--", "python", "-m", "t5x.eval", "--gin_file=gin/eval.gin")
  assert ran(*evaluation) == list(evaluation[2:])
  (installed.repo / "mine.gin").write_text("include 'gin/t5dst_backtrans.gin'\n")
  scales = {
    "gin/spandst.gin": "gin/scale/encoders/cpu.gin",
    "gin/d3st.gin": "gin/scale/cpu.gin",
    "mine.gin": "gin/scale/cpu.gin",
    # It has its own batch and lengths, which T5DST's would replace.
    "gin/study/spandst.gin": "gin/study/spandst.gin",
    "gin/study/model.gin --gin_file=gin/t5dst.gin": "gin/scale/cpu.gin",  # only a model
  }
  for file, last in scales.items():
    words = f"python -m t5x.train --gin_file={file}".split()
    assert ran("--", *words)[-1] == f"--gin_file={last}"
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
  words = ("--gin_files=gin/t5dst.gin,gin/t5dst_backtrans.gin", "--", "python", "-m", "t5x.train",
           "--gin.MODEL_DIR='r/%GIN%'")  # fmt: skip
  _, calls = slurm(installed, *words, SLURM_ARRAY_TASK_ID="1", SLURM_NNODES="1")
  assert calls == [
    ["-m", "t5x.train", "--gin_file=gin/t5dst_backtrans.gin", "--gin.MODEL_DIR='r/t5dst_backtrans'",
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
  for shared in (["--gin.MODEL_DIR='runs/m'"], ["--gin_bindings", "MODEL_DIR = 'runs/m'"]):
    done = installed.run("gpu.sh", "--cuda=12", "--slurm", "--seeds=0,1", *FULL, *shared)
    four_parts(done, 2, "all jobs of the array would write", "MODEL_DIR = runs/m", "%SEED%")
  twice = ("--cuda=12", "--slurm", *FULL, "--gin.MODEL_DIR='r/%SEED%'")
  four_parts(installed.run("gpu.sh", *twice), 2, "%SEED% without --seeds")
  files = ("--cuda=12", "--slurm", "--seeds=0,1", *FULL, "--gin.MODEL_DIR='r/%SEED%/%GIN%'")
  four_parts(installed.run("gpu.sh", *files), 2, "%GIN% without --gin_files")
  four_parts(installed.run("gpu.sh", "--seeds=1,1", *twice), 2, "two jobs of the array", "1 1")
  four_parts(installed.run("gpu.sh", "--seeds=00,0", *twice), 2, "00 is not a whole number")
  same = ("--cuda=12", "--slurm", "--gin_files=gin/t5dst.gin,gin/sample/t5dst.gin", "--", "python",
          "-m", "t5x.train", "--gin.MODEL_DIR='r/%GIN%'")  # fmt: skip
  four_parts(installed.run("gpu.sh", *same), 2, "two jobs of the array are called t5dst")
  other = ("--cuda=12", "--slurm", "--gin_files=gin/t5dst.gin", "--", "bash", "run.sh")
  four_parts(installed.run("gpu.sh", *other), 2, "--gin_files with a command without t5x")
  for number in ("--nodes=0", "--gpus=0"):
    four_parts(installed.run("gpu.sh", "--cuda=12", "--slurm", number, *FULL), 2, "1 or more")
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
  (tmp_path / "mine.gin").write_text("include 'base.gin'\n")
  (tmp_path / "base.gin").write_text("include 'gin/t5dst.gin'\n")
  words = ("--dry-run", "--", "python", "-m", "t5x.train", "--gin_file=mine.gin")
  done = installed.run("cpu.sh", *words, f"--gin_search_paths=gin,{tmp_path}")
  assert done.stdout.endswith(" --gin_file=gin/scale/cpu.gin\n")  # of what mine.gin includes
  four_parts(installed.run("cpu.sh", *words), 2, "--gin_file=mine.gin: no such file")
