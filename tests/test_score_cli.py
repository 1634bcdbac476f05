"""`sgdx score` from its command line: the table, the JSON, the flags, the refusals."""

import copy
import json
import os
import pathlib
import subprocess
import sys

import pytest

from sgdx_t5x.cli import main

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # importlib mode leaves tests/ out
import tiny_corpus as tiny

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


def gold_everywhere(folder):
  return [f"{v}={tiny.write_dialogues(folder / v, tiny.GOLD, v)}" for v in ALL]


def test_gold_scores_one(corpus, tmp_path):
  assert score(corpus, *gold_everywhere(tmp_path), out=tmp_path / "s.json") == 0
  report = json.loads((tmp_path / "s.json").read_text())
  assert report["complete"] is True
  for variant in ALL:
    for group in report["variants"][variant].values():
      assert set(group.values()) <= {1.0, None}
  for name, frames in (("all", 6), ("seen", 4), ("unseen", 2)):
    assert report["sgdx"][name] == {
      **{f"jga_{v}": 1.0 for v in ("orig", *tiny.VARIANTS, "v1_5")},
      **dict.fromkeys(("diff_rel", "ss_jga", "ss_jga_exclude", "zero_mean_share"), 0.0),
      "num_frames": frames,
    }
  assert list(report["sgdx"]["services"]) == ["Banks_1", "Homes_2"]
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
  # 3, 4, 5, 5, 5 and 5 of 5 variants right: CoV .9129, .5590 and 0 (test_metrics_sensitivity)
  assert found["all"]["ss_jga"] == pytest.approx((0.9129 + 0.5590) / 6, abs=5e-5)
  assert found["seen"]["ss_jga"] == pytest.approx((0.9129 + 0.5590) / 4, abs=5e-5)
  assert found["unseen"]["ss_jga"] == 0.0
  assert found["services"]["Banks_1"] == found["seen"]


def test_rows_of_a_whole_evaluation(corpus, tmp_path):
  """T5X writes a file per task; ids name the variants. DSTC8 predictions score the same."""
  folder = tmp_path / "inference_eval"
  tiny.write_rows(folder / "t5dst_sgd-000010.jsonl", tiny.example_rows(tiny.GOLD, "original"))
  rows = [row for v in tiny.VARIANTS for row in tiny.example_rows(tiny.GOLD, v)]
  tiny.write_rows(folder / "t5dst_sgdx-000010.jsonl", rows)
  assert score(corpus, f"all={tmp_path}", out=tmp_path / "rows.json") == 0
  assert score(corpus, *gold_everywhere(tmp_path / "d"), out=tmp_path / "dialogues.json") == 0
  texts = [(tmp_path / f"{n}.json").read_text() for n in ("rows", "dialogues")]
  assert texts[0] == texts[1]


def test_what_cannot_be_computed_is_null_and_said(corpus, tmp_path, capsys):
  pairs = gold_everywhere(tmp_path)
  assert score(corpus, pairs[1], pairs[3], out=tmp_path / "s.json") == 0
  row = json.loads((tmp_path / "s.json").read_text())["sgdx"]["all"]
  assert {k for k, v in row.items() if v is not None} == {"jga_v1", "jga_v3", "num_frames"}
  printed = capsys.readouterr().out
  assert "need v1 to v5; not given: JGA_orig, v2, v4, v5" in printed


def test_zero_mean_rule(corpus, tmp_path):
  states = wrong(("1_00000", 0))  # wrong everywhere: 0/0 in one frame of six
  states["2_00000"] = tiny.GOLD["2_00000"]
  pairs = [f"{v}={tiny.write_dialogues(tmp_path / v, states, v)}" for v in ALL]
  pairs[1] = f"v1={tiny.write_dialogues(tmp_path / 'v1', wrong(('1_00000', 0), ('1_00000', 1)))}"
  found = {}
  for rule in ("zero", "exclude"):
    assert score(corpus, *pairs, "--zero-mean", rule, out=tmp_path / rule) == 0
    report = json.loads((tmp_path / rule).read_text())
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
  report = json.loads((tmp_path / "s.json").read_text())
  assert report["complete"] is False
  assert "|frames:5|PARTIAL|" in report["signature"]
  assert report["sgdx"]["all"]["num_frames"] == 5


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


@pytest.mark.parametrize(
  ("args", "code", "part"),
  [
    (["x"], 2, "--predictions x"),
    (["v1=a", "v1=b"], 2, "names v1 twice"),
    (["v1=a", "--prompt-style", "values=b"], 1, "PromptStyle.values = 'b'"),
    (["v1=a", "--prompt-style", "lowercase=1"], 2, "--prompt-style lowercase=1"),
    (["v1=a", "--split", "dev"], 1, "no split 'dev'"),
    (["v1=a", "--split", "train"], 1, "no user frames in split train"),
    (["v1=/nowhere"], 1, "no file or folder"),
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
  assert "No such file" in capsys.readouterr().err


def test_the_command_is_plain_when_piped_and_fits_80_columns(corpus, tmp_path):
  code = "import sys; from sgdx_t5x.cli import main; sys.exit(main(sys.argv[1:]))"
  command = [sys.executable, "-c", code, "score"]
  done = subprocess.run(
    [*command, "--corpus", corpus, "--predictions", *gold_everywhere(tmp_path)],
    capture_output=True,
    text=True,
    env={**os.environ, "COLUMNS": "80"},
    check=False,
  )
  assert done.returncode == 0, done.stderr
  assert "\x1b" not in done.stdout
  lines = done.stdout.splitlines()
  assert all(len(line) <= 80 for line in lines if "signature" not in line)
  words = [" ".join(line.split()) for line in lines]
  assert words.count("JGA_orig v1 v2 v3 v4 v5 JGA_v1-5 Diff_rel SS_JGA frames") == 2
  assert "all 100.0 100.0 100.0 100.0 100.0 100.0 100.0 0.0 0.0 6" in words
  help_text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
  assert "examples:" in help_text.stdout
  for field in ("JGA_v1-5", "all=eval/inference_eval"):
    assert field in help_text.stdout
