"""What `pip install` installs: files, metadata, and that it works outside the repository."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from packaging.requirements import Requirement
from places import ROOT

from sgdx_t5x import annexes

PARTS = ("sgdx_t5x", "tasks", "metrics", "gin", "docs", "t5x_lite")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  """Both wheels, built from a copy of the tree and unpacked, as pip would install them."""
  tree, site = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("site")
  for part in PARTS:
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "tests")
    shutil.copytree(ROOT / part, tree / part, ignore=ignored)
  for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
    shutil.copy(ROOT / name, tree)
  options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", "wheels"]
  command = [sys.executable, "-m", "pip", "wheel", "-q", *options, ".", "./t5x_lite"]
  subprocess.run(command, cwd=tree, check=True)
  wheels = sorted((tree / "wheels").iterdir())
  assert [wheel.name.split("-")[0] for wheel in wheels] == ["sgdx_t5x", "t5x"]
  files = [name for wheel in wheels for name in zipfile.ZipFile(wheel).namelist()]
  assert len(files) == len(set(files))  # else one would overwrite the other's
  for wheel in wheels:
    zipfile.ZipFile(wheel).extractall(site)
  return site


@pytest.fixture(scope="module")
def about(site):
  return next(importlib.metadata.distributions(name="sgdx_t5x", path=[str(site)]))


def python(site, *args, cwd):
  """Runs Python as if the wheels were installed, in a folder."""
  environment = {**os.environ, "PYTHONPATH": str(site)}
  return subprocess.run(
    [sys.executable, *args], capture_output=True, text=True, check=False, cwd=cwd, env=environment
  )


def tracked(*patterns):
  """Returns relative paths of the repository's files that git tracks or does not ignore."""
  command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
  listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
  if listed.returncode:
    pytest.skip("not a git checkout")
  return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def test_nothing_is_left_out(site):
  installed = {p.relative_to(site).as_posix() for p in (site / "sgdx_t5x").rglob("*")}
  rooms = tracked("tasks", "metrics", "gin", ":(glob)docs/**/*.md")
  wanted = {f"sgdx_t5x/{name}" for name in rooms} | tracked("sgdx_t5x")
  assert wanted - installed == set()
  lite = {name.removeprefix("t5x_lite/") for name in tracked("t5x_lite/t5x")}
  assert {name for name in lite if not (site / name).exists()} == set()


def test_only_packages_of_these_names(site):
  """A folder `gin` or `tasks` beside sgdx_t5x would shadow other packages of that name."""
  names = {p.name for p in site.iterdir() if not p.name.endswith(".dist-info")}
  assert names == {"sgdx_t5x", "t5x"}
  assert not [p for p in site.rglob("*") if p.name == "tests"]


def test_metadata(about):
  assert about.metadata["Author"] == "The sgdx_t5x authors"
  assert about.metadata["License-Expression"] == "Apache-2.0"
  assert about.metadata["Description-Content-Type"] == "text/markdown"
  assert about.metadata.get_payload().strip() == (ROOT / "README.md").read_text("utf-8").strip()
  urls = [url.split(", ")[0] for url in about.metadata.get_all("Project-URL")]
  assert urls == ["Paper", "Data"]
  found = {(entry.group, entry.name, entry.value) for entry in about.entry_points}
  assert found == {
    ("console_scripts", "sgdx", "sgdx_t5x.cli:main"),
    ("inspect_ai", "sgdx_t5x", "sgdx_t5x.tools.harnesses.inspect_task"),
    ("t5x.gin_search_paths", "sgdx_t5x", "sgdx_t5x.gin"),
  }


HELP = """
import contextlib, sys
from sgdx_t5x.cli import main

for command in sys.argv[1:]:
  with contextlib.suppress(SystemExit):
    main([*command.split(), "--help"])
"""


def test_help_names_files_that_are_there(site, tmp_path):
  """For every command, outside the repository, and inside it, where the short names are right."""
  commands = ["", "score", "diff", "report", "prompts", "stats", "ls", "compose"]
  commands += ["weights import", "weights export", *annexes.table("SUMMARIES")]
  commands += [f"data {verb}" for verb in ("prepare", "verify", "export", "stats", "vocabulary")]
  away = python(site, "-c", HELP, *commands, cwd=tmp_path)
  assert away.stdout.count("usage: sgdx") == len(commands), away.stderr
  named = re.findall(r"\S*(?:docs|tasks)/[\w./-]*\w", away.stdout)
  assert len(named) >= 6
  assert [name for name in named if not pathlib.Path(name).exists()] == []
  assert all(name.startswith(str(site)) for name in named)
  here = python(site, "-c", HELP, *commands, cwd=ROOT)
  # Lines with a long path wrap at other places.
  assert here.stdout.split() == away.stdout.replace(f"{site}/sgdx_t5x/", "").split()


def test_errors_name_files_that_are_there(site, tmp_path):
  code = (
    "from sgdx_t5x.errors import SgdxError\n"
    "print(SgdxError('a', expected='b', fix='see docs/metrics/worst.md or (tasks/README.md)'))"
  )
  text = python(site, "-c", code, cwd=tmp_path).stdout
  assert f"{site}/sgdx_t5x/docs/metrics/worst.md or ({site}/sgdx_t5x/tasks/README.md)" in text
  assert (
    "see docs/metrics/worst.md or (tasks/README.md)" in python(site, "-c", code, cwd=ROOT).stdout
  )


def test_every_document_that_the_code_names_is_installed(site):
  sources = [p for part in ("sgdx_t5x", "t5x") for p in (site / part).rglob("*.py")]
  named = {
    name
    for path in sources
    for name in re.findall(r"(?<![\w/.])((?:docs|tasks)/[\w/-]+\.md)", path.read_text("utf-8"))
  }
  assert len(named) >= 6
  assert {name for name in named if not (site / "sgdx_t5x" / name).exists()} - {
    "docs/NAME.md"
  } == set()


def distributions_of(names):
  """The distributions of these names and of all that they require without extras."""
  found, waiting = {}, list(names)
  while waiting:
    name = waiting.pop()
    if name not in found:
      found[name] = importlib.metadata.distribution(name)
      needs = map(Requirement, found[name].requires or ())
      waiting += [r.name for r in needs if not r.marker or r.marker.evaluate({"extra": ""})]
  return list(found.values())


@pytest.fixture(scope="module")
def bare(site, about, tmp_path_factory):
  """What `pip install` installs without extras, and nothing else: what -S needs on its path."""
  folder = tmp_path_factory.mktemp("bare")
  needs = map(Requirement, about.requires)
  names = [r.name for r in needs if not r.marker or r.marker.evaluate({"extra": ""})]
  for distribution in distributions_of(names):
    tops = {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "/")}
    for top in tops - {"__pycache__"}:
      if not (folder / top).exists():
        (folder / top).symlink_to(distribution.locate_file(top))
  return f"{site}{os.pathsep}{folder}"


def test_scores_need_no_extra(bare, tmp_path):
  """Neither TensorFlow nor JAX: docs/README.md's promise, with both wheels installed together."""
  sgdx = ("-S", "-m", "sgdx_t5x.cli")
  lacking = python(bare, "-S", "-c", "import tensorflow", cwd=tmp_path)
  assert "No module named 'tensorflow'" in lacking.stderr
  written = ("--variant", "original", "--targets", "--limit", 60, "--out", "prompts.jsonl")
  done = python(bare, *sgdx, "prompts", "--corpus", "sample", *map(str, written), cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  rows = map(json.loads, (tmp_path / "prompts.jsonl").read_text("utf-8").splitlines())
  answers = [json.dumps({"id": row["id"], "prediction": row["target"]}) for row in rows]
  (tmp_path / "answers.jsonl").write_text("\n".join(answers), "utf-8")
  predictions = ("--predictions", "original=answers.jsonl", "--allow-missing")
  done = python(bare, *sgdx, "score", "--corpus", "sample", *predictions, cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  assert re.search(r"^all +100\.0", done.stdout, re.MULTILINE), done.stdout


def test_gin_files_are_found_in_an_empty_folder(site, tmp_path):
  """Gin files of experiments, what they include, and the modules that they import."""
  arguments = ["-m", "t5x.main", "--run_mode=train", "--dry_run"]
  arguments += ["--gin_file=gin/t5dst_backtrans.gin", "--gin_file=gin/study/model.gin"]
  arguments += ["--gin_file=gin/scale/cpu.gin", "--gin.MODEL_DIR='model'"]
  found = python(site, *arguments, cwd=tmp_path)
  assert found.returncode == 0, found.stderr
  assert list(tmp_path.iterdir()) == []


def test_a_checkout_that_hides_the_installed_package_is_whole():
  """From the repository's root, `python -m` imports sgdx_t5x from there, without tasks/ in it."""
  code = (
    "import importlib.util, sys; sys.path.insert(0, sys.argv[1])\n"
    "for name in ('tasks', 'metrics', 'gin'):\n"
    "  print(*importlib.util.find_spec(f'sgdx_t5x.{name}').submodule_search_locations)"
  )
  command = [sys.executable, "-S", "-c", code, str(ROOT)]
  found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
  assert found.stdout.split() == [str(ROOT / name) for name in ("tasks", "metrics", "gin")]
