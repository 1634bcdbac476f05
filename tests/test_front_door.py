"""The public names of `import sgdx_t5x`, its import cost, and the paths of earlier versions."""

import ast
import importlib
import inspect
import json
import pathlib
import subprocess
import sys
import textwrap
import warnings

import pytest
from places import ROOT

import sgdx_t5x
from sgdx_t5x.cli import main

SAVED_CONFIG = ROOT / "benchmarks/results/study/none-0.gin"  # written by an earlier version

# Names that the old modules had: (old module, name, new module).
OLD_NAMES = [
  ("augment.statistics", "schema_statistics", "augment.distances"),
  ("comparison", "compare", "scoring.compare"),
  ("corpus", "open_corpus", "corpora"),
  ("corpus", "Corpus", "data.corpus"),
  ("corpus", "SPLITS", "data.variants"),
  ("corpus", "PIVOTS", "data.variants"),
  ("corpus", "DOWNLOAD_HINT", "data.sources"),
  ("corpus_statistics", "count", "data.statistics"),
  ("datasets.examples", "SlotTable", "prompts.t5dst.examples"),
  ("datasets.examples", "read_back", "prompts.seqio_steps"),
  ("datasets.prepare", "prepare", "records.prepare"),
  ("datasets.records", "RecordSource", "records.source"),
  ("datasets.sgd", "Sgd", "records.builder"),
  ("dialogue", "Dialogue", "data.dialogue"),
  ("dialogue_checks", "ERRORS", "data.annotation_rules"),
  ("export", "export", "data.export"),
  ("frames_file", "read_frames", "scoring.score_files"),
  ("prediction_files", "find_files", "scoring.predictions.files"),
  ("prediction_files", "read_rows", "scoring.predictions.rows"),
  ("prediction_files", "PredictedTurn", "scoring.predictions.dialogues"),
  ("predictions", "read_predictions", "scoring.predictions"),
  ("predictions", "Predictions", "scoring.predictions.files"),
  ("report.score_tables", "layout", "scoring.score_tables"),
  ("report.tables", "Table", "tables"),
  ("report.versus", "tables", "scoring.comparison_tables"),
  ("sample.structured_init", "restructure", "from_scratch.structured_init"),
  ("sample.train_vocabulary", "VOCABULARY", "sample.vocabulary"),
  ("schema", "load_schema", "data.schema"),
  ("simulator.tables", "Backend", "simulator.backend"),
  ("structured_init", "StructuredInitModel", "from_scratch.structured_init"),
  ("subset", "Subset", "data.subset"),
  ("train_vocabulary", "TAGS", "from_scratch.vocabulary"),
  ("variants", "SGDX_VARIANTS", "data.variants"),
  ("version", "package_version", "signature"),
]


def python(code, **kwargs):
  command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code]
  return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


@pytest.mark.parametrize("name", sgdx_t5x.PUBLIC)
def test_public_names_resolve_and_are_documented(name):
  value = getattr(sgdx_t5x, name)
  assert inspect.getdoc(value)
  place = sgdx_t5x.PUBLIC[name].partition(":")[0]
  assert inspect.unwrap(value).__module__.startswith(f"sgdx_t5x.{place}")


def test_checkers_and_python_know_the_same_names():
  """The imports under `TYPE_CHECKING` agree with `PUBLIC`."""
  tree = ast.parse(pathlib.Path(sgdx_t5x.__file__).read_text("utf-8"))
  conditions = [node for node in tree.body if isinstance(node, ast.If)]
  block = next(node for node in conditions if ast.unparse(node.test) == "TYPE_CHECKING")
  imported = {
    alias.asname or alias.name: node.module.removeprefix("sgdx_t5x.")
    + (f":{alias.name}" if alias.asname else "")
    for node in block.body
    if node.module.startswith("sgdx_t5x.")
    for alias in node.names
  }
  assert imported == sgdx_t5x.PUBLIC
  assert sorted(sgdx_t5x.__all__) == sorted(sgdx_t5x.PUBLIC)
  assert set(sgdx_t5x.PUBLIC) <= set(dir(sgdx_t5x))


def test_an_unknown_name_is_an_attribute_error():
  with pytest.raises(AttributeError, match="'sgdx_t5x' has no attribute 'open_korpus'"):
    sgdx_t5x.open_korpus  # noqa: B018
  with pytest.raises(ImportError):
    importlib.import_module("sgdx_t5x.korpus")


def test_importing_costs_no_library():
  """The import needs no NumPy, TensorFlow or JAX; opening a corpus needs no TensorFlow or JAX."""
  found = python(
    "import sys; import sgdx_t5x\n"
    "before = {'numpy', 'tensorflow', 'jax'} & set(sys.modules)\n"
    "sgdx_t5x.SgdxError, sgdx_t5x.open_corpus('sample')\n"
    "print(before, {'tensorflow', 'jax'} & set(sys.modules))"
  )
  assert found.stdout == "set() set()\n", found.stderr


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
  printed = float(capsys.readouterr().out)
  report = sgdx_t5x.score_report(names["scored"])
  assert printed == report["predict_nothing"]["all"]["jga_v1_5"] > 0


# --- paths of earlier versions --------------------------------------------------------------


@pytest.mark.parametrize(("old", "name", "new"), OLD_NAMES)
def test_old_paths_lead_to_the_new_ones(old, name, new):
  now = getattr(importlib.import_module(f"sgdx_t5x.{new}"), name)
  sys.modules.pop(f"sgdx_t5x.{old}", None)
  with pytest.warns(DeprecationWarning, match=f"sgdx_t5x.{old}.{name} .* sgdx_t5x.{new}.{name}$"):
    assert getattr(importlib.import_module(f"sgdx_t5x.{old}"), name) is now
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert getattr(sys.modules[f"sgdx_t5x.{old}"], name) is now  # warns only once


def test_every_old_path_is_tried():
  assert {old for old, _, _ in OLD_NAMES} | {"datasets"} == set(sgdx_t5x.MOVED)


def test_old_modules_lack_what_they_lacked():
  with pytest.raises(ImportError, match="cannot import name 'closed_corpus'"):
    from sgdx_t5x.corpus import closed_corpus  # noqa: F401
  with pytest.raises(AttributeError, match=r"'Wanted': see sgdx_t5x.scoring.predictions.files, "):
    importlib.import_module("sgdx_t5x.predictions").Wanted  # noqa: B018
  assert not hasattr(importlib.import_module("sgdx_t5x.datasets"), "sgd2")


def test_the_warning_points_at_the_import():
  found = python("from sgdx_t5x.corpus import open_corpus")
  assert found.returncode == 1
  assert 'File "<string>", line 1' in found.stderr
  assert "DeprecationWarning: sgdx_t5x.corpus.open_corpus has moved" in found.stderr


def test_paths_that_stay():
  """The old documentation names them; they give no warnings."""
  from sgdx_t5x import metrics
  from sgdx_t5x.scoring import score_predictions

  assert score_predictions is sgdx_t5x.score_predictions
  assert importlib.import_module("sgdx_t5x.tasks").__name__ == "sgdx_t5x.tasks"
  assert metrics.__name__ == "sgdx_t5x.metrics"


def test_a_saved_configuration_still_resolves():
  """A config.gin of an earlier version imports `sgdx_t5x.structured_init`."""
  text = SAVED_CONFIG.read_text("utf-8")
  assert "from sgdx_t5x import structured_init\n" in text
  command = ["t5x.main", "--run_mode=train", f"--gin_file={SAVED_CONFIG}", "--dry_run"]
  found = subprocess.run(
    [sys.executable, "-m", *command], capture_output=True, text=True, check=False, cwd=ROOT
  )
  assert found.returncode == 0, found.stderr


def test_the_version_is_that_of_the_package_and_of_the_citation():
  from sgdx_t5x.signature import package_version

  assert sgdx_t5x.__version__ == package_version()
  assert "__version__" in dir(sgdx_t5x)
  setup, citation = ((ROOT / name).read_text("utf-8") for name in ("setup.py", "CITATION.cff"))
  version = setup.split('version="')[1].split('"')[0]
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
  assert f"{len(scored.nothing)} frames" in shown[1]
