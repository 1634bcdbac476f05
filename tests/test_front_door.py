"""The public names of `import sgdx_t5x` and its import cost."""

import importlib
import inspect
import json
import pathlib
import subprocess
import sys
import textwrap
import tomllib

import pytest
from places import ROOT

import sgdx_t5x
from sgdx_t5x.cli import main


@pytest.mark.parametrize("name", sgdx_t5x.PUBLIC)
def test_public_names_resolve_and_are_documented(name):
  value = getattr(sgdx_t5x, name)
  assert inspect.getdoc(value)
  place = sgdx_t5x.PUBLIC[name].partition(":")[0]
  assert inspect.unwrap(value).__module__.startswith(f"sgdx_t5x.{place}")


def test_the_public_names_are_listed():
  assert set(sgdx_t5x.__all__) == set(sgdx_t5x.PUBLIC) <= set(dir(sgdx_t5x))


def test_an_unknown_name_is_an_attribute_error():
  with pytest.raises(AttributeError, match="'sgdx_t5x' has no attribute 'open_korpus'"):
    sgdx_t5x.open_korpus  # noqa: B018
  with pytest.raises(ImportError):
    importlib.import_module("sgdx_t5x.korpus")


def test_importing_costs_no_library():
  """The import needs no NumPy, TensorFlow or JAX; opening a corpus needs no TensorFlow or JAX."""
  code = (
    "import sys; import sgdx_t5x\n"
    "before = {'numpy', 'tensorflow', 'jax'} & set(sys.modules)\n"
    "sgdx_t5x.SgdxError, sgdx_t5x.open_corpus('sample')\n"
    "print(before, {'tensorflow', 'jax'} & set(sys.modules))"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
  assert done.stdout == "set() set()\n", done.stderr


def test_the_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """It runs unchanged, on predictions of "none" for every slot."""
  code = textwrap.dedent(sgdx_t5x.__doc__.split("predicted:\n", 1)[1])
  folder = tmp_path / "runs/quickstart/eval/inference_eval"
  folder.mkdir(parents=True)
  monkeypatch.chdir(tmp_path)
  variants = ["original", "v1", "v2", "v3", "v4", "v5"]
  asked = ["prompts", "--corpus", "sample", "--split", "test", "--variant", *variants]
  assert main([*asked, "--out", "prompts.jsonl"]) == 0
  rows = map(json.loads, pathlib.Path("prompts.jsonl").read_text("utf-8").splitlines())
  answers = (json.dumps({"id": row["id"], "prediction": "none"}) for row in rows)
  (folder / "answers.jsonl").write_text("".join(f"{line}\n" for line in answers), "utf-8")
  capsys.readouterr()
  names = {}
  exec(compile(code, "example", "exec"), names)
  jga, signature = capsys.readouterr().out.split()
  report = names["scores"].report
  assert float(jga) == report["predict_nothing"]["all"]["jga_v1_5"] > 0
  assert signature == report["signature"]


def test_shorter_paths():
  from sgdx_t5x import metrics
  from sgdx_t5x.scoring import score_predictions

  assert score_predictions is sgdx_t5x.score_predictions
  assert importlib.import_module("sgdx_t5x.tasks").__name__ == "sgdx_t5x.tasks"
  assert metrics.__name__ == "sgdx_t5x.metrics"


def test_the_version_is_that_of_the_package_and_of_the_citation():
  from sgdx_t5x.signature import package_version

  assert sgdx_t5x.__version__ == package_version()
  assert "__version__" in dir(sgdx_t5x)
  project, citation = (
    (ROOT / name).read_text("utf-8") for name in ("pyproject.toml", "CITATION.cff")
  )
  version = tomllib.loads(project)["project"]["version"]
  assert f"\nversion: {version}\n" in citation


def test_results_are_shown_in_a_line(tmp_path):
  """Regression: in a notebook, each filled the screen with every score of every frame."""
  import tiny_corpus as tiny

  corpus = sgdx_t5x.open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  folders = {v: tiny.write_dialogues(tmp_path / v, tiny.GOLD, v) for v in ("original", "v1")}
  scored = sgdx_t5x.score_predictions(corpus, "test", folders, bootstrap_samples=0)
  table = scored.table(tmp_path / "frames.jsonl")
  compared = sgdx_t5x.compare(table, table)
  shown = [repr(x) for x in (corpus, scored, table, compared)]
  assert all(len(line) < 400 and "\n" not in line and "array" not in line for line in shown)
  assert shown[1].startswith("<Scored original, v1: ")
  assert f"{len(scored.empty_state_scores)} frames" in shown[1]
