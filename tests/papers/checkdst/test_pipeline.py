"""Perturbed corpora through all commands and tasks: prompts, records, scores, statistics."""

import json
import pathlib

import pytest
import seqio
from commands import assert_four_parts, sgdx
from once import made_once
from records import records_of
from sample_folder import write_sample

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst import tasks  # noqa: F401  # registers them
from sgdx_t5x.records.prepare import prepare

LENGTHS = {"inputs": 400, "targets": 20}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
  """`sample` (a part of the sample), its perturbed sets and the records of all of them."""

  def make(folder: pathlib.Path) -> None:
    sample = write_sample(folder / "sample", {"train": 30, "dev": 4, "test": 25})
    prepare(open_corpus(sample), folder / "data")
    sets = {kind: (kind,) for kind in ("ned", "pi", "sdi")}
    train = ("--split", "train", "--seed", "1")
    sets["ned_aug"] = ("ned", "--entities", "names", *train)
    for name, options in sets.items():
      assert sgdx("checkdst", "perturb", *options, "--corpus", sample, "--out", folder / name) == 0
      prepare(open_corpus(folder / name), folder / "data")

  return made_once(tmp_path_factory, "perturbed-records", make)


def _prompts(folder, name, *variants, out, targets=False):
  command = ("prompts", "--corpus", folder / name, "--variant", *variants, "--out", out)
  assert sgdx(*command, *(["--targets"] if targets else [])) == 0
  return [json.loads(line) for line in out.read_text().splitlines()]


def _examples(name: str, split: str = "test"):
  task = seqio.get_mixture_or_task(name)
  return list(task.get_dataset(LENGTHS, split, shuffle=False).as_numpy_iterator())


@pytest.mark.parametrize("form", ["t5dst", pytest.param("d3st", marks=pytest.mark.long)])
def test_tasks_ask_what_sgdx_prompts_asks(folder, tmp_path, form):
  style = () if form == "t5dst" else ("--prompt-style", f"format={form}")
  command = ("prompts", "--corpus", folder / "ned", "--variant", "original", "v3", *style)
  assert sgdx(*command, "--out", tmp_path / "rows") == 0
  rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
  prompts = {row["id"]: row["prompt"] for row in rows}
  assert {name.split("/")[0] for name in prompts} == {"ned", "ned+v3"}
  with records_of(folder / "data"):
    found = {
      e["example_id_pretokenized"].decode(): e["inputs_pretokenized"].decode()
      for suffix in ("", "_v3")
      for e in _examples(f"sample_{form}_checkdst_ned{suffix}")
    }
  assert found == prompts


@pytest.mark.parametrize("kind", ["ned", "pi", "sdi"])
def test_right_answers_score_1_under_every_variant(folder, tmp_path, kind):
  rows = _prompts(folder, kind, "original", "v1", "v5", out=tmp_path / "rows", targets=True)
  answers = tmp_path / "answers.jsonl"
  text = "".join(json.dumps({"id": r["id"], "prediction": r["target"]}) + "\n" for r in rows)
  answers.write_text(text)
  scores = tmp_path / "scores.json"
  command = ("score", "--corpus", folder / kind, "--predictions", f"all={answers}")
  assert sgdx(*command, "--json", scores) == 0
  found = json.loads(scores.read_text())
  assert f"sample+{kind}" in found["signature"]
  assert list(found["variants"]) == ["original", "v1", "v5"]
  assert {v["#ALL_SERVICES"]["joint_goal_accuracy"] for v in found["variants"].values()} == {1.0}
  if kind == "ned":  # the page is made in the same way for all kinds
    out = tmp_path / "report"
    assert sgdx("report", scores, "--corpus", folder / kind, "--out", out) == 0
    assert any(out.rglob("*.html"))
  # The name of the set alone is also a label of its original variant.
  labels = (f"{kind}={answers}", f"{kind}+v1={answers}")
  assert sgdx("score", "--corpus", folder / kind, "--predictions", *labels) == 0


def test_predictions_of_another_set_are_refused(folder, tmp_path, capsys):
  sets = {}
  for name in ("ned", "sdi", "sample"):
    rows = _prompts(folder, name, "original", out=tmp_path / name, targets=True)
    sets[name] = tmp_path / f"{name}.jsonl"
    text = "".join(json.dumps({"id": r["id"], "prediction": r["target"]}) + "\n" for r in rows)
    sets[name].write_text(text)
    (tmp_path / name).unlink()
  capsys.readouterr()
  for corpus, file in (("ned", "sdi"), ("sample", "ned"), ("ned", "sample")):
    command = ("score", "--corpus", folder / corpus, "--predictions", f"all={sets[file]}")
    assert sgdx(*command) == 1
    assert_four_parts(capsys.readouterr().err, "a prediction for", "--corpus")
  # The folder of a mixture holds all sets: each corpus takes its own.
  for corpus in ("ned", "sample"):
    command = ("score", "--corpus", folder / corpus, "--predictions", f"all={tmp_path}")
    assert sgdx(*command) == 0
  assert sgdx("score", "--corpus", folder / "pi", "--predictions", f"all={tmp_path}") == 1
  assert_four_parts(capsys.readouterr().err, "a prediction for")


def test_all_sets_of_one_folder_or_file_are_checked(folder, tmp_path, capsys):
  out = tmp_path / "predictions"
  out.mkdir()
  variants = {"sample": ("original", "v1", "v3"), "ned": ("original", "v3"), "pi": ("original",)}
  for name, some in variants.items():
    rows = _prompts(folder, name, *some, out=tmp_path / "rows", targets=True)
    text = "".join(json.dumps({"id": r["id"], "prediction": r["target"]}) + "\n" for r in rows)
    (out / f"{name}.jsonl").write_text(text)
  one = tmp_path / "all.jsonl"
  one.write_text("".join(file.read_text() for file in out.iterdir()))

  def check(*predictions, perturbed=("ned", "pi")):
    sets = [f"{name}={folder / name.removesuffix('2')}" for name in perturbed]
    command = ("checkdst", "check", "--corpus", folder / "sample", "--bootstrap-samples", 0)
    files = ("--perturbed", *sets, "--predictions", *predictions)
    capsys.readouterr()
    return sgdx(*command, *files, "--json", tmp_path / "check.json")

  for place in (out, one):
    assert check(f"all={place}") == 0
    report = json.loads((tmp_path / "check.json").read_text())
    # No perturbed set has v1, so there is nothing to compare it with.
    assert set(report["sets"]) == {"original", "v3", "ned", "ned+v3", "pi"}
    assert {x["rows"]["all"]["jga"] for x in report["sets"].values()} == {1}
    assert report["sets"]["ned+v3"]["compared_with"] == "v3"
  assert check(f"all={out}", f"ned={out / 'ned.jsonl'}") == 2
  assert_four_parts(capsys.readouterr().err, "predictions for ned, also given by name")
  assert check(f"all={out}", perturbed=("ned", "ned2")) == 2
  assert_four_parts(capsys.readouterr().err, "ned, also given by name, or the kind of two sets")
  assert check(f"all={out}", perturbed=("ned", "sdi")) == 2
  assert_four_parts(capsys.readouterr().err, "no predictions for sdi")
  assert sgdx("checkdst", "check", "--corpus", folder / "sample", "--perturbed",
              f"ned={folder / 'sample'}", "--predictions", f"all={out}") == 1  # fmt: skip
  assert_four_parts(capsys.readouterr().err, "no perturbed dialogues in split test")
  (out / "dialogues_001.json").write_text("[]")
  for file in out.glob("*.jsonl"):
    file.unlink()
  assert check(f"all={out}") == 1
  assert_four_parts(capsys.readouterr().err, "do not state which set")


def test_a_mixture_for_training_has_both_originals_and_copies(folder):
  with records_of(folder / "data"):
    examples = _examples("sample_t5dst_sgd_ned_aug", "train")
    assert {e["example_id_pretokenized"].split(b"/")[0] for e in examples} == {b"ned"}
    mixture = seqio.get_mixture_or_task("sample_t5dst_ned_aug")
    assert len(mixture.tasks) == 2
    rates = {mixture.get_rate(task) for task in mixture.tasks}
    assert len(rates) == 1
    found = mixture.get_dataset(LENGTHS, "train", seed=1, copy_pretokenized=True).take(300)
    inputs = {e["inputs_pretokenized"] for e in found.as_numpy_iterator()}
  copies = {e["inputs_pretokenized"] for e in examples}
  assert inputs & copies
  assert inputs - copies


def test_the_mixture_of_all_sets_has_them(folder):
  with records_of(folder / "data"):
    mixture = seqio.get_mixture_or_task("sample_t5dst_checkdst")
    first = [
      next(iter(task.get_dataset(LENGTHS, "test", shuffle=False).as_numpy_iterator()))
      for task in mixture.tasks
    ]
  kinds = sorted(e["example_id_pretokenized"].decode().split("/")[0] for e in first)
  assert kinds == ["ned", "original", "pi", "sdi"]


def test_records_that_are_not_there_say_how_to_make_them(folder):
  with records_of(folder / "data"), pytest.raises(SgdxError) as error:
    _examples("sample_t5dst_checkdst_vs")
  assert "sgdx checkdst perturb vs --corpus sample" in error.value.text
  with records_of(folder / "data"), pytest.raises(SgdxError) as error:
    _examples("t5dst_sgd_ned_aug", "train")
  options = "--entities names --corpus FILE --split train --seed 1"
  assert f"sgdx checkdst perturb ned {options}" in error.value.text


def test_other_names_of_records(folder, tmp_path, capsys):
  prepared = prepare(open_corpus(folder / "ned"), tmp_path, name="mine")
  assert prepared.builder_config.name == "mine"
  assert list(prepared.info.splits) == ["test"]
  assert sgdx("data", "prepare", "--corpus", folder / "ned", "--name", "a/b") == 2
  assert_four_parts(capsys.readouterr().err, "--name a/b")


@pytest.mark.parametrize("kind", ["ned", "pi", "sdi"])
def test_statistics_take_a_perturbed_corpus(folder, kind, capsys):
  assert sgdx("data", "stats", "--corpus", folder / kind) == 0
  assert f"sample+{kind}" in capsys.readouterr().out
  assert sgdx("stats", "--corpus", folder / kind) == 0
