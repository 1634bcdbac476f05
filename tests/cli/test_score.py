"""`sgdx score` from its command line: the table, the JSON, the flags, the refusals."""

import contextlib
import copy
import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil

import pytest
import tiny_corpus as tiny
from commands import assert_four_parts, sgdx_process

import sgdx_t5x
from sgdx_t5x import metrics
from sgdx_t5x.cli import main

ALL = ("original", *tiny.VARIANTS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return str(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def wrong(*places):
  """GOLD with an impossible `kind` in these (dialogue, turn) of Banks_1: the frame scores 0."""
  states = copy.deepcopy(tiny.GOLD)
  for dialogue_id, turn in places:
    states[dialogue_id][turn]["Banks_1"] = {"kind": ["wrong"]}
  return states


def score(corpus, *args, out=None):
  """Returns the exit code, whichever way `main` gives it."""
  command = ["score", "--corpus", corpus, "--predictions", *args]
  try:
    return main([*command, "--json", str(out)] if out else command)
  except SystemExit as e:
    return e.code


def load(path):
  return json.loads(path.read_text())


def gold_everywhere(folder):
  return [f"{v}={tiny.write_dialogues(folder / v, tiny.GOLD, v)}" for v in ALL]


def test_gold_scores_one(corpus, tmp_path):
  assert score(corpus, *gold_everywhere(tmp_path), out=tmp_path / "s.json") == 0
  report = json.loads((tmp_path / "s.json").read_text())
  assert report["complete"] is True
  for variant in ALL:
    for group in report["variants"][variant].values():
      assert set(group.values()) <= {1.0, None}
  ones = [f"jga_{v}" for v in ("orig", *tiny.VARIANTS, "v1_5")]
  ones += [*(f"cjga_{v}" for v in (*tiny.VARIANTS, "all")), "retained", "worst", "agreement"]
  zeros = ("diff_rel", "ss_jga", "ss_jga_exclude", "zero_mean_share", "lost", "gained", "spread")
  scores = {**dict.fromkeys(ones, 1.0), **dict.fromkeys(zeros, 0.0)}
  for name, frames, dialogues in (("all", 6, 3), ("seen", 4, 2), ("unseen", 2, 2)):
    row = report["sgdx"][name]
    assert row.pop("ci95") == {key: [value, value] for key, value in scores.items()}
    assert row == {**scores, "num_frames": frames, "num_dialogues": dialogues}
  assert list(report["sgdx"]["services"]) == ["Banks_1", "Homes_2"]
  assert list(report["sgdx"]["domains"]) == ["Banks", "Homes"]
  # Only the first frame's gold state is empty, and its service is seen.
  nothing = report["predict_nothing"]
  assert nothing["all"]["jga_orig"] == nothing["all"]["jga_v1_5"] == pytest.approx(1 / 6)
  assert (nothing["seen"]["jga_v2"], nothing["unseen"]["jga_v2"]) == (0.25, 0.0)
  assert nothing["all"]["zero_mean_share"] == pytest.approx(5 / 6)
  leftovers = [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
  assert leftovers == []


def test_a_table_by_hand(corpus, tmp_path):
  """Four of the six frames are of Banks_1 (seen); v1 is wrong in one of them, v2 in two."""
  states = {v: tiny.GOLD for v in ALL}
  states["v1"] = wrong(("1_00000", 0))
  states["v2"] = wrong(("1_00000", 0), ("1_00000", 1))
  pairs = [f"{v}={tiny.write_dialogues(tmp_path / v, s, v)}" for v, s in states.items()]
  assert score(corpus, *pairs, out=tmp_path / "s.json") == 0
  found = json.loads((tmp_path / "s.json").read_text())["sgdx"]
  assert found["all"]["jga_v1"] == pytest.approx(5 / 6)
  assert found["seen"]["jga_v2"] == pytest.approx(2 / 4)
  assert found["all"]["jga_v1_5"] == pytest.approx((5 / 6 + 4 / 6 + 3) / 5)
  assert found["all"]["diff_rel"] == pytest.approx((5 / 6 + 4 / 6 + 3) / 5 - 1)
  # 3, 4, 5, 5, 5 and 5 of 5 variants right: CoV .9129, .5590 and 0 (metrics/test_sensitivity.py)
  assert found["all"]["ss_jga"] == pytest.approx((0.9129 + 0.5590) / 6, abs=5e-5)
  assert found["seen"]["ss_jga"] == pytest.approx((0.9129 + 0.5590) / 4, abs=5e-5)
  assert found["unseen"]["ss_jga"] == 0.0
  assert found["services"]["Banks_1"] == found["domains"]["Banks"] == found["seen"]
  # Right with the original and with v1: five of six; with v1 to v5 all: four.
  assert (found["all"]["cjga_v1"], found["all"]["cjga_all"]) == pytest.approx((5 / 6, 4 / 6))
  # v1 is wrong in one dialogue of three, in one of its three frames; a sample holds that
  # dialogue 0 to 3 times: JGA 1 at most, 2/3 at least, each in more than 2.5% of samples.
  assert found["all"]["ci95"]["jga_v1"] == pytest.approx([2 / 3, 1.0])


def test_rows_of_a_whole_evaluation(corpus, tmp_path):
  """T5X's file per task, DSTC8 predictions and answers to `sgdx prompts` score the same.

  In T5X's files, ids name the variants.
  """
  folder = tmp_path / "inference_eval"
  tiny.write_rows(folder / "t5dst_sgd-000010.jsonl", tiny.example_rows(tiny.GOLD, "original"))
  rows = [row for v in tiny.VARIANTS for row in tiny.example_rows(tiny.GOLD, v)]
  tiny.write_rows(folder / "t5dst_sgdx-000010.jsonl", rows)
  assert score(corpus, f"all={tmp_path}", out=tmp_path / "rows.json") == 0
  assert score(corpus, *gold_everywhere(tmp_path / "d"), out=tmp_path / "dialogues.json") == 0
  every = [*tiny.example_rows(tiny.GOLD, "original"), *rows]
  answers = [
    {"id": row["inputs"]["example_id_pretokenized"], "prediction": row["prediction"]}
    for row in every
  ]
  path = tiny.write_rows(tmp_path / "answers.jsonl", answers)
  assert score(corpus, f"all={path}", out=tmp_path / "answers.json") == 0
  found = [load(tmp_path / f"{n}.json") for n in ("rows", "answers", "dialogues")]
  assert found[0] == found[1]
  assert found[0]["sgdx"] == found[2]["sgdx"]
  # Rows say nothing about intents, requested slots and spans.
  group = found[0]["variants"]["v2"]["#ALL_SERVICES"]
  absent = {key for key, value in group.items() if value is None}
  assert absent == {k for k in group if k.startswith(("active_", "requested_", "slot_tagging_"))}


def test_what_cannot_be_computed_is_null_and_said(corpus, tmp_path, capsys):
  pairs = gold_everywhere(tmp_path)
  assert score(corpus, pairs[1], pairs[3], out=tmp_path / "s.json") == 0
  row = json.loads((tmp_path / "s.json").read_text())["sgdx"]["all"]
  ends = row.pop("ci95")
  counts = {"num_frames", "num_dialogues"}
  for numbers in (set(row) - counts, set(ends)):
    assert {k for k in numbers if row[k] is not None} == {"jga_v1", "jga_v3"}
  assert {k for k, v in ends.items() if v is not None} == {"jga_v1", "jga_v3"}
  printed = capsys.readouterr().out
  assert "require v1 to v5; missing: JGA_orig, v2, v4, v5" in printed


def test_zero_mean_rule(corpus, tmp_path):
  states = wrong(("1_00000", 0))  # wrong everywhere: 0/0 in one frame of six
  states["2_00000"] = tiny.GOLD["2_00000"]
  pairs = [f"{v}={tiny.write_dialogues(tmp_path / v, states, v)}" for v in ALL]
  pairs[1] = f"v1={tiny.write_dialogues(tmp_path / 'v1', wrong(('1_00000', 0), ('1_00000', 1)))}"
  found = {}
  predictions = dict(pair.split("=", 1) for pair in pairs)
  for rule in ("zero", "exclude"):
    report = sgdx_t5x.score(corpus, "test", predictions, zero_mean=rule).report
    assert f"zero_mean:{rule}" in report["signature"]
    found[rule] = report["sgdx"]["all"]
  assert found["zero"]["zero_mean_share"] == pytest.approx(1 / 6)
  assert found["zero"]["ss_jga"] == pytest.approx(0.5590 / 6, abs=5e-5)  # 4 of 5 right
  assert found["exclude"]["ss_jga"] == pytest.approx(0.5590 / 5, abs=5e-5)
  assert found["zero"]["ss_jga_exclude"] == found["exclude"]["ss_jga"]


def test_fuzzy_back_ends_and_prompt_style(corpus, tmp_path):
  states = copy.deepcopy(tiny.GOLD)
  states["1_00000"][1]["Banks_1"]["to"] = ["Anna Le"]
  rows = tiny.example_rows(states, "original")
  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  jga = {}
  for fuzzy in ("difflib", "levenshtein", "exact"):
    assert score(corpus, f"original={path}", "--fuzzy", fuzzy, out=tmp_path / "s.json") == 0
    report = json.loads((tmp_path / "s.json").read_text())
    assert f"fuzzy:{fuzzy}" in report["signature"]
    jga[fuzzy] = report["sgdx"]["all"]["jga_orig"]
  # "anna lee" and "anna le": 2 * 7 / 15 = .933 -> 93
  assert jga["difflib"] == jga["levenshtein"] == pytest.approx((5 + 0.93) / 6)
  assert jga["exact"] == pytest.approx(5 / 6)
  for row in rows:
    letters = {"Checking": "a", "Savings": "b", "rent": "a"}
    row["prediction"] = letters.get(row["prediction"], row["prediction"])
  tiny.write_rows(path, rows)
  style = ("--prompt-style", "values=letters", "lowercase=false")
  assert score(corpus, f"original={path}", *style, out=tmp_path / "s.json") == 0
  report = json.loads((tmp_path / "s.json").read_text())
  assert report["sgdx"]["all"]["jga_orig"] == jga["difflib"]
  assert "|style:values=letters|" in report["signature"]
  path = tiny.write_dialogues(tmp_path / "dialogues", states)  # no prompts, so no style
  assert score(corpus, f"original={path}", *style, out=tmp_path / "s.json") == 0
  assert "style:" not in json.loads((tmp_path / "s.json").read_text())["signature"]


def test_missing_frames_are_refused_or_said_loudly(corpus, tmp_path, capsys):
  pairs = gold_everywhere(tmp_path)
  states = copy.deepcopy(tiny.GOLD)
  del states["2_00000"]
  tiny.write_dialogues(tmp_path / "v2", states)
  assert score(corpus, *pairs) == 1
  assert "1 of 6 frames of v2 are missing" in capsys.readouterr().err
  assert score(corpus, *pairs, "--allow-missing", out=tmp_path / "s.json") == 0
  printed = capsys.readouterr().out
  assert printed.startswith("PARTIAL: 1 of 6 frames of v2 have no prediction")
  assert "PARTIAL signature: sgdx|" in printed
  assert score(corpus, f"v2={tiny.write_dialogues(tmp_path / 'none', {})}", "--allow-missing") == 1
  assert "--allow-missing" not in capsys.readouterr().err
  report = json.loads((tmp_path / "s.json").read_text())
  assert report["complete"] is False
  assert re.search(r"\|frames:5\|sample:[0-9a-f]{8}\|PARTIAL\|", report["signature"])
  assert report["sgdx"]["all"]["num_frames"] == 5


def test_dialogues_that_the_corpus_lacks(corpus, tmp_path, capsys):
  """A tracker predicted all of test; the corpus at hand has only part of it."""
  states = {**tiny.GOLD, "9_00000": [{"Banks_1": {}}]}
  rows = tiny.example_rows(states, "original")
  places = (tiny.write_dialogues(tmp_path, states), tiny.write_rows(tmp_path / "p.jsonl", rows))
  for path in (places[0] / "dialogues_all.json", places[1]):
    assert score(corpus, f"original={path}") == 1
    capsys.readouterr()
    assert score(corpus, f"original={path}", "--allow-missing", out=tmp_path / "s.json") == 0
    said = "PARTIAL: 1 dialogues predicted for original are not in the corpus"
    assert capsys.readouterr().out.startswith(said)
    report = load(tmp_path / "s.json")
    assert (report["complete"], report["sgdx"]["all"]["jga_orig"]) == (False, 1.0)


def test_a_variant_of_unknown_dialogues_only_is_not_passed_over(corpus, tmp_path, capsys):
  rows = [*tiny.example_rows(tiny.GOLD, "v1"), *tiny.example_rows({"9_0": [{"Banks_1": {}}]}, "v5")]
  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  assert score(corpus, f"all={path}", "--allow-missing") == 1
  error = capsys.readouterr().err
  assert "no predictions for v5 except for 1 unknown dialogues" in error
  assert "all=DIR" not in error  # is what was passed
  rows[-1]["inputs"]["example_id_pretokenized"] = "v7/train/9_0-000-Banks_1/kind"
  tiny.write_rows(path, rows)
  assert score(corpus, f"all={path}", "--allow-missing") == 1
  assert "unknown variant 'v7'" in capsys.readouterr().err


def test_turns_that_lack_a_frame_are_left_out_across_turns(corpus, tmp_path, capsys):
  states = copy.deepcopy(tiny.GOLD)
  del states["1_00001"][0]["Homes_2"]
  pair = f"original={tiny.write_dialogues(tmp_path, states)}"
  flags = ("--joint-acc-across-turn", "--allow-missing")
  assert score(corpus, pair, *flags, out=tmp_path / "s.json") == 0
  report = load(tmp_path / "s.json")
  assert report["missing"] == {"original": 1}
  assert report["sgdx"]["all"]["num_frames"] == 4


def test_ignored_parts_are_of_all_answers_also_across_turns(corpus):
  """Answers in turns that lack a frame were not counted: 5 of 4 had ignored parts."""
  opened = sgdx_t5x.open_corpus(corpus)
  ids = [frame.frame_id for frame in metrics.gold_frames(opened.dialogues("test"))]
  ids.remove("1_00001-000-Homes_2")
  rows = [{"id": f"original/test/{x}/*", "prediction": "[states] 99=x"} for x in ids]
  settings = {"prompt_format": "d3st", "across_turn": True, "allow_missing": True}
  scores = sgdx_t5x.score(opened, "test", {"original": rows}, bootstrap_samples=0, **settings)
  assert scores.scored.notes[0].startswith("5 of 5 answers for original")


def test_equal_predictions_for_several_variants_are_said(corpus, tmp_path, capsys):
  folder = tiny.write_dialogues(tmp_path, tiny.GOLD)
  assert score(corpus, *(f"{v}={folder}" for v in ALL)) == 0
  said = " ".join(capsys.readouterr().out.split())
  assert "same predictions are used for original, v1, v2, v3, v4, v5; results cannot differ" in said


def test_a_folder_of_the_corpus_that_may_not_be_read_is_not_left_out(corpus, capsys, monkeypatch):
  listdir = os.listdir

  def refuse(path):
    if pathlib.Path(path).name == "v2":
      raise PermissionError(13, "Permission denied", str(path))
    return listdir(path)

  monkeypatch.setattr(os, "listdir", refuse)  # root can read any folder
  assert score(corpus, f"original={corpus}/test") == 1
  assert "v2: Permission denied" in capsys.readouterr().err


def test_unreadable_files_are_named_without_a_traceback(corpus, tmp_path, capsys, monkeypatch):
  path = tiny.write_dialogues(tmp_path, tiny.GOLD) / "dialogues_all.json"

  def refuse(self):
    raise PermissionError(13, "Permission denied", str(self))

  monkeypatch.setattr(pathlib.Path, "read_bytes", refuse)  # root can read any file
  assert score(corpus, f"original={path}") == 1
  error = capsys.readouterr().err
  assert "Permission denied" in error
  assert "fix:" in error


def test_more_samples_than_memory_can_hold_are_no_traceback(corpus, tmp_path, capsys, monkeypatch):
  """On all of SGD's test split, the million samples that are allowed take 34 GB."""

  def refuse(*_):
    raise MemoryError("Unable to allocate 31.3 GiB")

  monkeypatch.setattr(metrics.BootstrapSamples, "draw", refuse)
  path = tiny.write_dialogues(tmp_path, tiny.GOLD)
  assert score(corpus, f"original={path}", "--bootstrap-samples", "1000000") == 1
  assert_four_parts(
    capsys.readouterr().err, "Unable to allocate 31.3 GiB", "fewer bootstrap samples"
  )


def test_joint_accuracy_across_a_turn(corpus, tmp_path):
  """Turn 0 of 1_00001 has a frame of each service; Homes_2 is wrong in it."""
  states = copy.deepcopy(tiny.GOLD)
  states["1_00001"][0]["Homes_2"] = {"intent": ["buy"]}
  path = tiny.write_dialogues(tmp_path, states)
  flag = "--joint-acc-across-turn"
  assert score(corpus, f"original={path}", flag, out=tmp_path / "s.json") == 0
  report = load(tmp_path / "s.json")
  groups = report["variants"]["original"]
  joint = {name: groups[name]["joint_goal_accuracy"] for name in groups}
  assert joint["#ALL_SERVICES"] == report["sgdx"]["all"]["jga_orig"] == pytest.approx(4 / 5)
  assert joint["#SEEN_SERVICES"] == joint["Banks"] == report["sgdx"]["seen"]["jga_orig"] == 1.0
  assert joint["#UNSEEN_SERVICES"] == joint["Homes_2"] == 1 / 2
  assert groups["#ALL_SERVICES"]["active_intent_accuracy"] == 1.0
  # Averages stay per frame: Homes_2's is 0, of five frames that have active slots.
  assert groups["#ALL_SERVICES"]["average_goal_accuracy"] == pytest.approx(4 / 5)
  assert "|jga:official-across-turn|" in report["signature"]


def test_other_metrics_over_variants(corpus, tmp_path, capsys):
  pairs = gold_everywhere(tmp_path)
  pairs[2] = f"v2={tiny.write_dialogues(tmp_path / 'v2', wrong(('1_00000', 1)), 'v2')}"
  key = "average_cat_accuracy"
  assert score(corpus, *pairs, "--metric", key, out=tmp_path / "s.json") == 0
  row = load(tmp_path / "s.json")["metrics"][key]["all"]
  # Five frames have a categorical slot in the gold state; v2 is wrong in one of them.
  assert row[f"{key}_v2"] == pytest.approx(4 / 5)
  assert row[f"{key}_v1_5"] == pytest.approx(24 / 25)
  assert row[f"ss_{key}"] == pytest.approx(0.5590 / 5, abs=5e-5)
  assert "average_cat_accuracy (%)" in capsys.readouterr().out
  assert score(corpus, *pairs, "--metric", "average_cat") == 2
  assert "nearest: average_cat_accuracy" in capsys.readouterr().err


def test_formats_hold_the_same_numbers(corpus, tmp_path, capsys):
  pairs = gold_everywhere(tmp_path)
  pairs[1] = f"v1={tiny.write_dialogues(tmp_path / 'v1', wrong(('1_00000', 1)))}"
  shown = {}
  for form in ("md", "latex", "csv", "json"):
    assert score(corpus, *pairs, "--format", form) == 0
    shown[form] = capsys.readouterr().out
  cells = ("all", "100.0", "83.3", *["100.0"] * 4, "96.7", "-3.3", "9.3", "6")
  assert "| " + " | ".join(cells) + " |" in shown["md"]
  assert " & ".join(cells).replace("-3.3", "$-$3.3") + r" \\" in shown["latex"]
  signature = json.loads(shown["json"])["signature"]
  assert all(signature in text for text in shown.values())
  lines = list(csv.DictReader(io.StringIO(shown["csv"])))
  found = {(x["table"], x["row"], x["column"]): x["value"] for x in lines}
  assert float(found["predictions", "all", "v1"]) == pytest.approx(5 / 6)
  assert 0 < float(found["95% intervals", "JGA_v1-5", "all, ci95_low"]) < 29 / 30


def test_variants_of_ones_own_are_scored(corpus, tmp_path, capsys):
  """By the names of their schemas, whose checksum is in the signature."""
  mine = tmp_path / "mine/test/schema.json"
  mine.parent.mkdir(parents=True)
  mine.write_text(pathlib.Path(corpus, "sgd_x/data/v2/test/schema.json").read_text())
  rows = tiny.example_rows(tiny.GOLD, "v2")
  for row in rows:
    row["inputs"]["example_id_pretokenized"] = row["inputs"]["example_id_pretokenized"].replace(
      "v2/", "mine/", 1
    )
  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  assert score(corpus, f"mine={path}") == 1
  assert "--schemas" in capsys.readouterr().err
  named = tiny.write_dialogues(tmp_path / "v2", tiny.GOLD, "v2")
  signatures = []
  for source in (f"mine={path}", f"mine={named}", f"all={path}"):
    own = ("--schemas", f"mine={tmp_path / 'mine'}")
    assert score(corpus, source, *own, out=tmp_path / "s.json") == 0
    report = load(tmp_path / "s.json")
    assert report["variants"]["mine"]["#ALL_SERVICES"]["joint_goal_accuracy"] == 1.0
    signatures.append(report["signature"])
  assert len(set(signatures)) == 1
  assert re.search(r"\|schemas:mine=[0-9a-f]{8}\|", signatures[0])
  mine.write_text(mine.read_text().replace("said like", "told as"))
  assert score(corpus, f"mine={path}", *own, out=tmp_path / "s.json") == 0
  assert load(tmp_path / "s.json")["signature"] != signatures[0]
  assert score(corpus, f"mine={path}", "--schemas", "mine") == 2
  capsys.readouterr()
  gold = tiny.write_dialogues(tmp_path / "original", tiny.GOLD)
  own = f"other={tmp_path / 'mien'}"  # also where nothing is of this variant
  assert score(corpus, f"original={gold}", "--schemas", own) == 1
  assert re.search(r"no folder at .*mien\n.*\n.*nearest: mine", capsys.readouterr().err)


def test_variants_of_ones_own_have_the_order_in_which_they_were_given(corpus, tmp_path, capsys):
  """After original and v1 to v5, in their usual order; one file with all has that of --schemas."""
  rows, folders = [], []
  for name in ("zeta", "alpha", "mid"):
    schema = tmp_path / name / "test/schema.json"
    schema.parent.mkdir(parents=True)
    schema.write_text(pathlib.Path(corpus, "sgd_x/data/v2/test/schema.json").read_text())
    folders.append(f"{name}={tmp_path / name}")
  for name in ("alpha", "mid", "zeta"):
    for row in tiny.example_rows(tiny.GOLD, "v2"):
      found = row["inputs"]["example_id_pretokenized"]
      row["inputs"]["example_id_pretokenized"] = found.replace("v2/", f"{name}/", 1)
      rows.append(row)
  path, out = tiny.write_rows(tmp_path / "p.jsonl", rows), tmp_path / "s.json"
  v2, original = (f"{v}={tiny.write_dialogues(tmp_path / v, tiny.GOLD, v)}" for v in ("v2", ALL[0]))

  def variants(*predictions):
    options = ("--schemas", *folders, "--per-frame", tmp_path / "s.jsonl", "--all")
    assert score(corpus, *predictions, *map(str, options), out=out) == 0
    table = capsys.readouterr().out.partition("official metrics")[2].splitlines()
    assert list(load(out)["variants"]) == table[1].split()
    return table[1].split()

  assert variants(f"all={path}") == ["zeta", "alpha", "mid"]
  assert score(corpus, f"all={path}", "--schemas", *folders) == 0  # as v1 to v5 are shown
  header, *_ = capsys.readouterr().out.splitlines()[1:]
  shown = ["JGA_orig", "zeta", "alpha", "mid", "JGA_reworded", "Diff_rel", "SS_JGA", "frames"]
  assert header.split() == shown
  named = (f"zeta={path}", v2, f"alpha={path}", original, f"mid={path}")
  assert variants(*named) == ["original", "v2", "zeta", "alpha", "mid"]


def test_dialogues_may_be_compressed(corpus, tmp_path):
  folder = tiny.write_dialogues(tmp_path / "v1", tiny.GOLD, "v1")
  [file] = folder.glob("*.json")
  packed = file.with_name(f"{file.name}.gz")
  packed.write_bytes(gzip.compress(file.read_bytes()))
  file.unlink()
  for source in (folder, packed):
    assert score(corpus, f"v1={source}", out=tmp_path / "s.json") == 0
    assert load(tmp_path / "s.json")["sgdx"]["all"]["jga_v1"] == 1.0


def test_scores_per_frame_and_no_intervals(corpus, tmp_path):
  pairs = gold_everywhere(tmp_path)
  pairs[1] = f"v1={tiny.write_dialogues(tmp_path / 'v1', wrong(('1_00000', 1)))}"
  options = ("--per-frame", str(tmp_path / "f.jsonl"), "--bootstrap-samples", "0")
  assert score(corpus, *pairs, *options, out=tmp_path / "s.json") == 0
  report = load(tmp_path / "s.json")
  assert report["per_frame"]["file"] == "f.jsonl"
  assert "ci95" not in report["sgdx"]["all"]
  head, *rows = map(json.loads, (tmp_path / "f.jsonl").read_text().splitlines())
  assert head["checksum"] == report["per_frame"]["checksum"]
  assert head["signature"] == report["signature"]
  assert [row["id"] for row in rows][:2] == ["1_00000-000-Banks_1", "1_00000-002-Banks_1"]
  assert rows[1]["scores"]["joint_goal_accuracy"] == {v: float(v != "v1") for v in ALL}
  assert rows[0]["scores"]["average_goal_accuracy"]["v1"] is None


def test_a_printed_report_names_its_file_from_where_it_is_printed(
  corpus, tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  options = ("--per-frame", "f.jsonl", "--bootstrap-samples", "0", "--format", "json")
  assert score(corpus, *gold_everywhere(tmp_path), *options) == 0
  assert json.loads(capsys.readouterr().out)["per_frame"]["file"] == "f.jsonl"


def test_signature_names_what_the_score_depends_on(corpus, tmp_path, capsys):
  assert score(corpus, *gold_everywhere(tmp_path), "--format", "json") == 0
  report = json.loads(capsys.readouterr().out)
  name, *fields = report["signature"].split("|")
  assert name == "sgdx"
  found = dict(field.partition(":")[::2] for field in fields)
  assert found["split"] == "test"
  assert found["variants"] == "original+v1+v2+v3+v4+v5"
  assert found["frames"] == "6"
  assert len(found["corpus"].split(":")[1]) == 16
  assert "complete" in found
  assert found["version"]


def test_a_folder_of_variants_is_read(corpus, tmp_path):
  """`sgdx track --out DIR` writes DIR/original, DIR/v1 and so on; other entries are left alone."""
  for variant in ("original", *tiny.VARIANTS):
    tiny.write_dialogues(tmp_path / "all" / variant, tiny.GOLD, variant)
  (tmp_path / "all/track.json").write_text("{}")
  named = [f"{path.name}={path}" for path in (tmp_path / "all").glob("*/")]
  reports = []
  for number, items in enumerate(([tmp_path / "all"], named)):
    assert score(corpus, *map(str, items), out=tmp_path / f"{number}.json") == 0
    reports.append(json.loads((tmp_path / f"{number}.json").read_text()))
  assert reports[0] == reports[1]
  assert list(reports[0]["variants"]) == ["original", *tiny.VARIANTS]


def test_predictions_of_no_variant_are_not_passed_over(corpus, tmp_path, capsys):
  tiny.write_dialogues(tmp_path / "original", tiny.GOLD, "original")
  tiny.write_dialogues(tmp_path / "V3", tiny.GOLD, "v3")
  assert score(corpus, str(tmp_path)) == 1
  error = capsys.readouterr().err
  assert "V3: predictions, but 'V3' is no variant" in error
  assert "available: original, v1" in error


def test_a_dialogue_without_user_frames_is_known(tmp_path):
  """Regression: the corpus's own files were refused as predictions: "no such dialogue"."""
  corpus = tiny.write_corpus(tmp_path / "tiny")
  path = corpus / "test/dialogues_001.json"
  dialogues = json.loads(path.read_text())
  empty = copy.deepcopy(dialogues[0]) | {"dialogue_id": "9_00000"}
  for turn in empty["turns"]:
    turn["frames"] = []
  path.write_text(json.dumps([*dialogues, empty]))
  assert score(str(corpus), f"original={corpus}/test") == 0


def test_files_named_after_variants(corpus, tmp_path, capsys):
  """Parts of one file are read together; files that hold no predictions are left alone."""
  folder = tmp_path / "all"
  tiny.write_rows(folder / "original.jsonl", tiny.example_rows(tiny.GOLD, "original"))
  rows = tiny.example_rows(tiny.GOLD, "v2")
  tiny.write_rows(folder / "v2.jsonl-00000-of-00002", rows[:3])
  tiny.write_rows(folder / "v2.jsonl-00001-of-00002", rows[3:])
  (folder / "v1.jsonl.bak").write_text("an older one")
  (folder / "notes.json").write_text("{}")
  named = ("--per-frame", str(folder / "scores.jsonl"))
  assert score(corpus, str(folder), *named, out=folder / "scores.json") == 0
  assert score(corpus, str(folder), out=tmp_path / "scores.json") == 0
  report = json.loads((tmp_path / "scores.json").read_text())
  assert list(report["variants"]) == ["original", "v2"]
  for name in ("v2.jsonl", "v2.jsonl.gz", "v2.json", "v2/", "V2.jsonl", "V2/test/dialogues_1.json"):
    other = folder / name
    if name == "v2/":
      other.mkdir()
    else:
      other.parent.mkdir(exist_ok=True, parents=True)
      other.write_bytes((folder / "original.jsonl").read_bytes())
    capsys.readouterr()
    assert score(corpus, str(folder)) == 1
    error = capsys.readouterr().err
    assert "'V2' is no variant" in error if "V2" in name else "predictions of variant v2" in error
    shutil.rmtree(folder / name.partition("/")[0]) if "/" in name else other.unlink()


@pytest.mark.parametrize(
  ("args", "code", "part"),
  [
    (["x"], 2, "--predictions x: no such folder"),
    (["v1=a", "v1=b"], 2, "has two values for v1"),
    (["v1=a", "--prompt-style", "values=b"], 1, "PromptStyle.values = 'b'"),
    (["v1=a", "--prompt-style", "lowercase=1"], 2, "--prompt-style lowercase=1"),
    (["v1=a", "--split", "dev"], 1, "no split 'dev'"),
    (["v1=a", "--split", "train"], 1, "no user frames in split train"),
    (["v1=/nowhere"], 1, "no file or folder"),
    (["v1=a", "--bootstrap-samples", "1"], 2, "1 bootstrap samples"),
    (["v1=a", "--json", ""], 2, "--json ''"),
    (
      ["v1=a", "--json", "x", "--per-frame", "./x"],
      2,
      "--per-frame './x' is also the file of --json",
    ),
    (["v1=a", "--json", "-"], 2, "--json -"),
  ],
)
def test_mistakes_get_an_exit_code_and_four_parts(corpus, capsys, args, code, part):
  assert score(corpus, *args) == code
  error = capsys.readouterr().err
  assert part in error
  assert "fix:" in error
  assert "Traceback" not in error


def test_json_into_a_folder_that_is_not_there(corpus, tmp_path, capsys):
  assert score(corpus, *gold_everywhere(tmp_path), out=tmp_path / "no" / "s.json") == 1
  assert f"no writable folder {tmp_path / 'no'}" in capsys.readouterr().err


def test_the_command_is_plain_when_piped_and_fits_80_columns(corpus, tmp_path):
  given = ("--corpus", corpus, "--all", "--predictions", *gold_everywhere(tmp_path))
  done = sgdx_process("score", *given, env={**os.environ, "COLUMNS": "80"})
  assert done.returncode == 0, done.stderr
  assert "\x1b" not in done.stdout
  lines = done.stdout.splitlines()
  assert all(len(line) <= 80 for line in lines if "signature" not in line)
  words = [" ".join(line.split()) for line in lines]
  assert words.count("JGA_orig v1 v2 v3 v4 v5 JGA_v1-5 Diff_rel SS_JGA frames") == 2
  assert "all 100.0 100.0 100.0 100.0 100.0 100.0 100.0 0.0 0.0 6" in words
  help_text = sgdx_process("score", "--help")
  assert help_text.returncode == 0
  assert "examples:" in help_text.stdout
  for field in ("JGA_v1-5", "all=eval/inference_eval"):
    assert field in help_text.stdout


def test_outputs_are_named_and_progress_is_shown(corpus, tmp_path, monkeypatch, capsys):
  """Regression: scoring SGD was silent for 20 s."""
  shown = []

  @contextlib.contextmanager
  def progress(unit):
    yield lambda task, done, total, unit=unit: shown.append((task, done, total, unit))

  monkeypatch.setattr("sgdx_t5x.cli.progress.progress", progress)
  sources = gold_everywhere(tmp_path)
  out, frames = tmp_path / "s.json", tmp_path / "f.jsonl"
  assert score(corpus, *sources, "--per-frame", str(frames), out=out) == 0
  assert capsys.readouterr().err.splitlines() == [f"written: {out}", f"written: {frames}"]
  rows = len(load(out)["sgdx"]["services"]) + len(load(out)["sgdx"]["domains"]) + 3
  last = {task: (done, total, unit) for task, done, total, unit in shown}
  assert last == {
    "reading dialogues of test": (1, None, "dialogues"),
    "reading predictions": (0, 0, "MB"),
    "computing scores": (rows, rows, "rows"),
  }
