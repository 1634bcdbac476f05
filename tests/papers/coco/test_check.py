"""Checks on counterfactual turns, with trackers whose numbers are known in advance."""

import json
import shutil

import pytest
from commands import assert_four_parts, sgdx
from planted import write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst.checks.counterfactual import counterfactual_tables
from sgdx_t5x.tables import csv_lines

SETS = ("coco", "coco_ori")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("counterfactual")
  write_sample(folder / "sample", {"train": 40, "dev": 0, "test": 60})
  corpus = ("--corpus", folder / "sample")
  made = sgdx("coco", "perturb", *corpus, "--slots", "neutral", "--out", folder / "coco")
  assert made == 0
  original = open_corpus(folder / "sample")
  for tracker in ("gold", "frozen"):
    for name in ("original", *SETS):
      found = original if name == "original" else open_corpus(folder / name)
      write_planted(folder / tracker / name, tracker, original, found)
  return folder


def _check(folder, tracker, tmp_path, sets=SETS, **more):
  out = tmp_path / f"{tracker}.json"
  predictions = {name: folder / tracker / name for name in ("original", *sets)} | more
  code = sgdx(
    "checkdst", "check", "--corpus", folder / "sample",
    "--perturbed", *(f"{name}={folder / name}" for name in sets),
    "--predictions", *(f"{name}={path}" for name, path in predictions.items()),
    "--json", out, "--per-frame", tmp_path / f"{tracker}.jsonl", "--bootstrap-samples", 100,
  )  # fmt: skip
  assert code == 0
  return json.loads(out.read_text())


def test_gold_is_right_in_every_goal(folder, tmp_path):
  report = _check(folder, "gold", tmp_path)
  found, row = report["counterfactual"]["coco"], report["sets"]["coco"]["rows"]["all"]
  for key in ("original", "control", "counterfactual", "cjga", "with_fallback"):
    assert found[key] == 1
  for key in ("kept", "changed", "added", "rest"):
    assert row[f"{key}_accuracy"] == 1
  assert (row["dropped_left"], row["goal_reverted"]) == (0, 0)
  # The states differ because the goals do; the control has the same goals.
  control = report["sets"]["coco_ori"]["rows"]["all"]
  assert (row["agreement"], control["agreement"]) == (None, 1)


def test_frozen_hears_the_original_goal_everywhere(folder, tmp_path, capsys):
  report = _check(folder, "frozen", tmp_path)
  found, row = report["counterfactual"]["coco"], report["sets"]["coco"]["rows"]["all"]
  assert [found[key] for key in ("original", "control", "counterfactual", "cjga")] == [1, 1, 0, 0]
  assert (row["kept_accuracy"], row["rest_accuracy"]) == (1, 1)
  assert (row["changed_accuracy"], row["added_accuracy"], row["goal_reverted"]) == (0, 0, 1)
  assert row["dropped_left"] == 1
  # CoCo's own number is over all frames: those without a counterfactual keep their score, 1.
  frames = report["sets"]["original"]["rows"]["all"]["num_frames"]
  after = report["sets"]["coco"]["rows"]["all"]
  lost = after["num_frames"] * (1 - after["jga"])
  assert found["with_fallback"] == pytest.approx(1 - lost / frames)
  assert 0 < lost <= after["num_changed"]
  shown = capsys.readouterr().out
  assert "counterfactual turns" in shown


def test_csv_has_fractions_as_of_other_tables(folder, tmp_path):
  report = _check(folder, "frozen", tmp_path)
  first, *_ = counterfactual_tables(report)
  assert list(map(str, first.rows[0][1:5])) == ["100.0", "100.0", "0.0", "0.0"]
  values = [line.rpartition(",")[2] for line in csv_lines([first]).splitlines()]
  assert values[1:5] == ["1.0", "1.0", "0.0", "0.0"]


def test_numbers_are_over_the_turns_with_a_control(folder, tmp_path):
  found = _check(folder, "gold", tmp_path)["counterfactual"]["coco"]
  counts = open_corpus(folder / "coco").manifest("test").counts
  assert found["num_frames"] == counts["controls"]
  low, high = found["intervals"]["original"]
  assert low == high == 1


def test_a_set_crosses_with_variants_and_needs_no_control(folder, tmp_path):
  gold = folder / "gold"
  more = {"v3": gold / "original", "coco+v3": gold / "coco"}
  report = _check(folder, "gold", tmp_path, ("coco",), **more)
  assert set(report["counterfactual"]) == {"coco", "coco+v3"}
  found = report["counterfactual"]["coco+v3"]
  assert (found["counterfactual"], found["control_set"]) == (1, None)
  assert "control" not in found


def test_two_checks_of_counterfactuals_are_compared(folder, tmp_path, capsys):
  for tracker in ("gold", "frozen"):
    _check(folder, tracker, tmp_path)
  capsys.readouterr()
  assert sgdx("checkdst", "diff", tmp_path / "gold.json", tmp_path / "frozen.json") == 0
  assert "coco" in capsys.readouterr().out


def test_a_missing_edit_is_named(folder, tmp_path, capsys):
  """Regression: a KeyError."""
  edited = shutil.copytree(folder / "coco", tmp_path / "coco")
  *lines, last = (edited / "test/changes.jsonl").read_text().splitlines(keepends=True)
  (edited / "test/changes.jsonl").write_text("".join(lines))
  command = ("checkdst", "check", "--corpus", folder / "sample", "--perturbed", f"coco={edited}")
  predictions = (f"{name}={folder / 'gold' / name}" for name in ("original", "coco"))
  assert sgdx(*command, "--predictions", *predictions) == 1
  missing = json.loads(last)["dialogue_id"]
  assert_four_parts(capsys.readouterr().err, "changes.jsonl", f"no edit of {missing}")
