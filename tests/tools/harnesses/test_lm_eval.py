"""The folder for lm-evaluation-harness: its files, and its tasks run with the dummy model."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
import yaml
from commands import assert_four_parts, sgdx
from needs import lacks
from places import ROOT

FOLDER = ROOT / "sgdx_t5x/tools/harnesses/lm_eval"
STYLES = {"sgdx_t5dst": (), "sgdx_d3st": ("--prompt-style", "format=d3st")}


def load_utils():
  """Imports utils.py as lm-eval does: from its path, without a package."""
  spec = importlib.util.spec_from_file_location("lm_eval_utils", FOLDER / "utils.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
  """Maps each task to its prompts of one or two dialogues, in two variants."""
  folder, files = tmp_path_factory.mktemp("prompts"), {}
  for task, style in STYLES.items():
    files[task] = folder / f"{task}.jsonl"
    given = ("--variant", "original", "v3", "--limit", "2", "--targets", "--out", files[task])
    assert not sgdx("prompts", "--corpus", "sample", *given, *style)
  return files


def lines(file):
  return list(map(json.loads, file.read_text().splitlines()))


def score(answers, task):
  given = ("--predictions", f"all={answers}", "--allow-missing", "--bootstrap-samples", "0")
  return sgdx("score", "--corpus", "sample", *given, *STYLES[task], "--format", "json")


def test_the_functions_of_the_tasks_exist():
  """In all YAML files; as in lm-eval, a file's own keys override those of its `include`."""

  class Loader(yaml.SafeLoader):
    """A loader with lm-eval's tag for functions."""

  Loader.add_constructor("!function", lambda loader, node: f"!{node.value}")
  utils, tasks = load_utils(), {}
  for file in FOLDER.glob("*.yaml"):
    tasks[file.stem] = yaml.load(file.read_text(), Loader)
  for name, task in tasks.items():
    task = {**tasks.get(task.get("include", "").removesuffix(".yaml"), {}), **task}
    assert task["task"] == name
    for value in (task["custom_dataset"], task["process_results"]):
      module, _, function = value.removeprefix("!").partition(".")
      assert module == "utils"
      assert callable(getattr(utils, function))
    assert [x["metric"] for x in task["metric_list"]] == list(utils.exact({"target": "x"}, [" x"]))
  assert set(tasks) == set(STYLES)


@pytest.mark.parametrize("task", STYLES)
def test_rows_are_the_prompts(task, prompts):
  utils, whole = load_utils(), task == "sgdx_d3st"
  rows = utils.rows(str(prompts[task]), task, whole)
  assert [row["id"] for row in rows] == [row["id"] for row in lines(prompts[task])]
  assert {frozenset(row) for row in rows} == {frozenset(("id", "prompt", "target"))}
  other = next(file for name, file in prompts.items() if name != task)
  for wrong in (str(other), "", "absent.jsonl"):
    with pytest.raises(ValueError, match=rf"{task}: (?s:.*)sgdx prompts"):
      utils.rows(wrong, task, whole)


def test_whole_frames_in_another_format_are_not_d3sts(tmp_path):
  file = tmp_path / "tools.jsonl"
  given = ("--prompt-style", "format=tools", "--limit", "1", "--targets", "--out", file)
  assert not sgdx("prompts", "--corpus", "sample", "--variant", "v1", *given)
  with pytest.raises(ValueError, match="format=d3st"):
    load_utils().rows(str(file), "sgdx_d3st", True)


@pytest.mark.parametrize("task", STYLES)
def test_samples_are_predictions(task, prompts, tmp_path, capsys):
  """Samples with the targets, as lm-eval logs them, are scored as correct."""
  file = tmp_path / "samples.jsonl"
  shown = ("id", "prompt", "target")
  found = [
    {"doc_id": i, "doc": {k: row[k] for k in shown}, "filtered_resps": [f" {row['target']}\n"]}
    for i, row in enumerate(lines(prompts[task]))
  ]
  file.write_text("".join(f"{json.dumps(row)}\n" for row in found))
  assert score(file, task) == 0
  assert json.loads(capsys.readouterr().out)["sgdx"]["all"]["jga_v3"] == 1
  found[1]["filtered_resps"] = ["several", "answers"]
  file.write_text("".join(f"{json.dumps(row)}\n" for row in found))
  assert score(file, task) == 1
  assert_four_parts(capsys.readouterr().err, "samples.jsonl, line 2")


@pytest.mark.skipif(lacks("lm_eval"), reason="needs the extra lm-eval, 0.7 GB: run by hand")
@pytest.mark.parametrize("task", STYLES)
def test_tasks_run_with_the_dummy_model(task, prompts, tmp_path, capsys):
  """lm-eval's output can be scored: the dummy model answers "lol" to everything."""
  out = tmp_path / "out"
  command = [sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--tasks", task]
  command += ["--include_path", FOLDER, "--metadata", json.dumps({"prompts": str(prompts[task])})]
  command += ["--log_samples", "--output_path", out]
  ran = subprocess.run(
    command, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"}
  )
  assert ran.returncode == 0, ran.stderr[-2000:]
  (samples,) = out.rglob(f"samples_{task}_*.jsonl")
  assert {row["filtered_resps"][0] for row in lines(samples)} == {"lol"}
  assert score(samples, task) == 0
  rows = json.loads(capsys.readouterr().out)["sgdx"]["all"]
  assert rows["num_frames"] > 0
  if task == "sgdx_t5dst":
    assert rows["jga_v3"] == 0  # each slot of each frame has the value "lol"
