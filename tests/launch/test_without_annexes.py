"""The core is installed from a copy of the tree without its annexes, and works there."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from commands import SGDX
from places import ANNEXES, ROOT
from sample_folder import write_sample
from task_names import FAMILIES, SUFFIXES

pytestmark = pytest.mark.long

# Of the core's quick tests, those that would take CI another minute.
LEFT_OUT = """cli/test_data.py cli/test_prompts.py cli/test_report.py launch/test_[!g]*.py
metrics/test_bootstrap.py report/* t5/* tasks/test_tasks.py
prompts/t5dst/test_examples.py prompts/test_uncased.py tasks/test_reading.py tasks/test_spandst.py
spandst/*encoder.py spandst/*model.py spandst/*network.py tracking/test_packed.py
tracking/test_shipped.py weights/test_weights.py"""
QUICK = "not real and not slow and not long and not shared"
# In place of launch/environment.sh: this Python, two steps, and one layer of the two.
ENVIRONMENT = f"""
say() {{ :; }}
sgdx() {{ "{sys.executable}" -m sgdx_t5x.cli "$@"; }}
layers="--gin.network.T5Config.num_encoder_layers=1 --gin.network.T5Config.num_decoder_layers=1"
steps="--gin.TRAIN_STEPS=2 --gin.EVAL_PERIOD=1 --gin.EVAL_STEPS=1 --gin.EVALUATOR_NUM_EXAMPLES=12"
python() {{
  case "$2" in
    t5x.train) "{sys.executable}" "$@" $layers $steps ;;
    t5x.eval) "{sys.executable}" "$@" $layers ;;
  esac
}}
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
  """A copy of what git tracks, without the annexes; `site` beside it has what pip installs."""
  listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
  if listed.returncode:
    pytest.skip("not a git checkout")
  copy = tmp_path_factory.mktemp("core") / "clone"
  for name in listed.stdout.split("\0")[:-1]:
    if not name.startswith(ANNEXES) and (ROOT / name).is_file():
      (copy / name).parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(ROOT / name, copy / name)
  options = ("--no-deps", "--no-build-isolation", "--no-index", "--target", copy.parent / "site")
  run(copy, sys.executable, "-m", "pip", "install", "--quiet", *options, ".", "./t5x_lite")
  return copy


def run(folder, *command):
  """Runs a command in the copy, or in `site`, with what is installed. Returns its output."""
  environment = {**os.environ, "PYTHONPATH": str(folder.parent / "site"), "PYTHONSAFEPATH": "1"}
  environment.pop("CI", None)  # which has ../shared
  environment.pop("PYTEST_XDIST_WORKER", None)  # a session of its own
  done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
  return done.stdout


def test_its_commands_are_listed_and_no_others(core):
  listed = run(core, *SGDX, "--help")
  for command in ("data", "score", "report", "prompts", "track"):
    assert re.search(rf"^ +{command} ", listed, re.MULTILINE), command
  assert "annexes" not in listed


def test_its_tasks_are_registered(core):
  """And none of an annex: each name begins with a family of the core."""
  code = "import sgdx_t5x.tasks as t; print(t.__file__, *t.REGISTERED)"
  file, *names = run(core, sys.executable, "-c", code).split()
  assert file == f"{core.parent}/site/sgdx_t5x/tasks/__init__.py"
  families = "|".join(FAMILIES)
  assert [x for x in names if not re.match(rf"((sample|tiny|plain)_)?({families})_", x)] == []
  assert {f"{family}_{suffix}" for family in FAMILIES for suffix in SUFFIXES} <= set(names)


def test_its_imports_are_within_the_contracts(core):
  code = "from importlinter.cli import lint_imports; exit(lint_imports('../clone/pyproject.toml'))"
  run(core.parent / "site", sys.executable, "-c", code)


def test_the_quick_start_runs_to_its_end(core):
  """With few dialogues, steps and layers."""
  write_sample(core / "runs/few/sample", {"train": 60, "dev": 3, "test": 3})
  script = core / "launch/quickstart.sh"
  text = script.read_text("utf-8")
  for old, new in (
    ("source launch/environment.sh", ENVIRONMENT),
    ("--corpus sample", "--corpus runs/few/sample"),
  ):
    assert old in text
    text = text.replace(old, new)
  script.write_text(text)
  printed = run(core, "bash", script)
  assert re.search(r"^ *JGA_orig +v1 ", printed, re.MULTILINE)
  assert re.search(r"^all +\d", printed, re.MULTILINE)
  page = (core / "runs/quickstart/report/report.html").read_text("utf-8")
  assert "backtrans" in page


def test_its_quick_tests_pass(core):
  left_out = [f"--ignore-glob=tests/{pattern}" for pattern in LEFT_OUT.split()]
  command = [sys.executable, "-m", "pytest", "-q", "-m", QUICK, "-p", "no:cacheprovider", *left_out]
  assert " passed" in run(core, *command, "tests")
