"""What all scripts in launch/ have in common."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib

import pytest
from cloud import FAKES
from packaging.specifiers import SpecifierSet
from places import ROOT


@pytest.mark.parametrize(
  "script",
  [f"{x}.sh" for x in ["tpu_vm", "gpu", "cpu", "study", "quickstart", "test", "minilm", "mpnet"]],
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


@pytest.mark.parametrize("script", ["minilm.sh", "mpnet.sh"])
def test_fetching_takes_no_option_for_a_folder(script):
  environment = {**os.environ, "PYTHON": sys.executable}
  for words, found in (["--out"], "--out"), ([], "no folder is named"):
    command = [ROOT / "launch" / script, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{found}\n  expected:  the name of a new folder\n")


def test_mpnet_is_fetched_beside_its_folder(tmp_path):
  """400 MB would be lost if the folder could not be made at the end."""
  python = tmp_path / "python"
  python.write_text('#!/bin/sh\necho "$*"\nexit 3\n')
  python.chmod(0o755)
  command = [ROOT / "launch/mpnet.sh", tmp_path / "new/mpnet"]
  environment = {**os.environ, "PYTHON": str(python)}
  done = subprocess.run(command, env=environment, capture_output=True, text=True)
  assert done.returncode == 3
  assert f" --dest {tmp_path}/new/." in done.stdout
  assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize(
  ("version", "refused"), [("(3, 10, 9)", 1), ("(3, 13)", 0), ("(3, 14)", 1)]
)
def test_pythons_without_builds_of_the_pinned_packages_are_refused(installed, version, refused):
  python = installed.repo / "python"
  code = f"import sys; sys.version_info = {version}; exec(sys.argv[1])"
  python.write_text(f'#!/bin/sh\n[ $1 = -c ] && exec {sys.executable} -c "{code}" "$2"\necho 3\n')
  python.chmod(0o755)
  done = subprocess.run(
    ["bash", "-ec", "source launch/environment.sh"],
    cwd=installed.repo,
    env={**os.environ, "PYTHON": str(python)},
    capture_output=True,
    text=True,
  )
  assert done.returncode == refused
  lines = ["no Python 3.11, 3.12 or 3.13 found", "  expected:", "  available: 3", "  fix:"]
  for found, line in zip(done.stderr.splitlines(), lines if refused else [], strict=True):
    assert found.startswith(line)


def test_an_environment_without_pip_is_made_again(installed):
  """Debian's Python without python3-venv leaves one, also after python3-venv is installed."""
  (installed.repo / ".venv/installed").unlink()
  for name, program in (
    ("python", 'case "$*" in "-m venv .venv") echo made >&2; exit 1 ;; *) exit 0 ;; esac'),
    (".venv/bin/python", "exit 1"),
  ):
    (installed.repo / name).unlink(missing_ok=True)
    (installed.repo / name).write_text(f"#!/bin/sh\n{program}\n")
    (installed.repo / name).chmod(0o755)
  done = subprocess.run(
    ["bash", "-ec", "source launch/environment.sh"],
    cwd=installed.repo,
    env={**os.environ, "PYTHON": str(installed.repo / "python")},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 1
  assert "made\n  fix: " in done.stderr


def test_modules_are_compiled_once_though_not_beside_the_sources(installed, tmp_path):
  (tmp_path / "part.py").write_text("x = 1\n")
  script = f"source launch/environment.sh; cd {tmp_path}; {sys.executable} -c 'import part'"
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": ""}
  subprocess.run(["bash", "-ec", script], cwd=installed.repo, env=environment, check=True)
  assert not (tmp_path / "__pycache__").exists()
  (compiled,) = (installed.repo / ".venv/pycache").rglob("part.*.pyc")
  assert compiled.is_relative_to(f"{installed.repo}/.venv/pycache{tmp_path}")


def test_pinned_versions_run_on_the_oldest_python_of_pyproject():
  """Debian 12 has 3.11.2; soupsieve 4.1.2, once pinned, wants 3.11.5."""
  project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
  oldest = project["requires-python"].removeprefix(">=") + ".0"
  pins = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if not line.startswith("#")
  )
  # Other versions may have other requirements; in CI, those installed are the pinned ones.
  wanted = {
    found.name: found.metadata["Requires-Python"] or ""
    for found in importlib.metadata.distributions()
    if pins.get(found.name.lower().replace("_", "-")) == found.version
  }
  assert len(wanted) > 100
  assert {n: w for n, w in wanted.items() if not SpecifierSet(w).contains(oldest)} == {}


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck():
  names = ("common", "tpu_vm", "gpu", "cpu", "worker", "study")
  files = [f"launch/{name}.sh" for name in names] + [f"{FAKES}/{p.name}" for p in FAKES.iterdir()]
  done = subprocess.run(["shellcheck", "-x", *files], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout
