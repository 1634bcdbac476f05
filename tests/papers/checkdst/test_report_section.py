"""Perturbed dialogues in a report: the section of a check, and texts in the error browser."""

import csv
import json
import re
import shutil

import pytest
from commands import assert_four_parts, sgdx
from planted import write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst import ned, sdi
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.write import write_perturbed
from sgdx_t5x.report import plot_style

pytest.importorskip("matplotlib", reason="plots need the extra `report`")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """Scores of gold on 12 dialogues, and a check with frozen on ned and taker on sdi."""
  folder = tmp_path_factory.mktemp("checked")
  corpus = open_corpus(write_sample(folder / "sample", {"train": 20, "dev": 0, "test": 12}))
  split = Split(corpus, "test")
  predictions = {"original": write_planted(folder / "p" / "original", "gold", corpus, corpus)}
  for kind, tracker in ((ned, "frozen"), (sdi, "taker")):
    name = kind.__name__.rpartition(".")[2]
    write_perturbed(kind.perturber(split, 0), split, 0, folder / name)
    found = open_corpus(folder / name)
    predictions[name] = write_planted(folder / "p" / name, tracker, corpus, found)
  sets = [f"{name}={folder / name}" for name in ("ned", "sdi")]
  common = ("--corpus", corpus.origin, "--bootstrap-samples", 100)
  named = [f"{name}={path}" for name, path in predictions.items()]
  written = ("--json", folder / "check.json", "--per-frame", folder / "check.jsonl")
  given = ("--perturbed", *sets, "--predictions", *named)
  assert sgdx("checkdst", "check", *common, *given, *written) == 0
  written = ("--json", folder / "s.json", "--per-frame", folder / "s.jsonl")
  assert sgdx("score", *common, "--predictions", named[0], *written) == 0
  return folder, corpus, sets


@pytest.fixture(autouse=True)
def plots_in_the_page_only(monkeypatch):
  """Drawing the plot files takes most of a report's time."""
  monkeypatch.setattr(plot_style, "FILE_FORMATS", ())


def report(made, out, *options):
  folder, corpus, _ = made
  command = ("report", f"gold={folder / 's.json'}", "--corpus", corpus.origin, "--out", out)
  return sgdx(*command, *options)


def embedded(out):
  text = (out / "report.html").read_text()
  (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
  return text, json.loads(data)


def test_section_and_browser(made, tmp_path):
  folder, _, sets = made
  out = tmp_path / "out"
  assert report(made, out, "--check", folder / "check.json", "--perturbed", *sets) == 0
  text, data = embedded(out)
  assert 'href="#perturbed-1"' in text
  assert "JGA of the frames" not in text
  file = out / "tables/gold-on-perturbed-dialogues-all-services.csv"
  cells = {(row["row"], row["column"]): row["value"] for row in csv.DictReader(file.open())}
  checked = json.loads((folder / "check.json").read_text())["sets"]
  assert float(cells["ned", "perturbed"]) == 0
  assert float(cells["sdi", "perturbed"]) == checked["sdi"]["rows"]["all"]["perturbed"]
  assert "sets:ned:" in (out / "tables/gold-on-perturbed-dialogues-all-services.md").read_text()
  # The tracker is right on the original, so every error is on a perturbed set.
  assert data["variants"] == ["original", "ned", "sdi"]
  assert data["sets"] == {"ned": "original", "sdi": "original"}
  assert {total["variant"] for total in data["totals"]} == {"ned", "sdi"}
  lines = [json.loads(line) for line in (out / "errors/gold.jsonl").read_text().splitlines()]
  wrong = round(checked["ned"]["rows"]["all"]["num_changed"])
  assert sum(line["scores"]["ned"] < 1 for line in lines) == wrong
  assert all(line["scores"]["original"] == 1 and line["changes"] for line in lines)
  replaced = {
    line["dialogue_id"]: line["strings"]
    for line in map(json.loads, (folder / "ned/test/changes.jsonl").read_text().splitlines())
  }
  seen = 0
  for frame in data["frames"]:
    said = data["dialogues"][frame["dialogue"]]
    for failure in frame["failures"]:
      if "ned" in failure["kinds"]:  # frozen: it predicts what is right in the original
        strings = replaced[frame["dialogue"]]
        assert failure["predicted"]["ned"] == failure["gold"][0]
        assert sorted(failure["gold_there"]["ned"]) == sorted(strings[x] for x in failure["gold"])
        marked = [
          part for turn in said[: frame["turn"] + 1] if turn[2:]
          for is_new, part in turn[2].get("ned", ()) if is_new
        ]  # fmt: skip
        words = set(re.findall(r"\w+", " ".join(marked)))
        assert words & set(re.findall(r"\w+", failure["gold_there"]["ned"][0]))
        seen += 1
      else:
        assert "gold_there" not in failure
  assert seen


def test_without_the_perturbed_dialogues_the_page_says_so(made, tmp_path, capsys):
  out = tmp_path / "out"
  assert report(made, out, "--check", made[0] / "check.json") == 0
  printed = capsys.readouterr().out
  assert "utterances of ned, sdi are not shown: pass --perturbed NAME=DIR" in printed
  assert all(not turn[2:] for turns in embedded(out)[1]["dialogues"].values() for turn in turns)


def test_what_does_not_fit_is_refused(made, tmp_path, capsys):
  folder = made[0]
  check = json.loads((folder / "check.json").read_text())
  place = tmp_path / "check.json"
  shutil.copy(folder / "check.jsonl", tmp_path)

  def refused(*options, code=1):
    assert report(made, tmp_path / "out", *options) == code
    return capsys.readouterr().err

  check["sets"]["original"]["rows"]["all"]["jga"] -= 0.01
  place.write_text(json.dumps(check))
  assert_four_parts(refused("--check", place), "not a check of gold", "JGA 99.00", "not 100.00")
  check["signature"] = check["signature"].replace("fuzzy:difflib", "fuzzy:exact")
  place.write_text(json.dumps(check))
  assert_four_parts(refused("--check", place), "fuzzy:exact, not fuzzy:difflib")
  good = ("--check", folder / "check.json", "--perturbed")
  other = f"ned={folder / 'sdi'}"
  assert_four_parts(refused(*good, other), "was not checked", "checksum")
  assert_four_parts(
    refused(*good, f"pi={folder / 'ned'}"), "--perturbed pi=", "was not checked", "ned: "
  )
  assert_four_parts(refused("--check", tmp_path / "no.json", code=2), "name the run", "runs: gold")
  assert not (tmp_path / "out").exists()
  check = json.loads((folder / "check.json").read_text()) | {"per_frame": None}
  place.write_text(json.dumps(check))
  assert report(made, tmp_path / "out", "--check", place) == 0
  assert "check again with --per-frame" in capsys.readouterr().out
  assert embedded(tmp_path / "out")[1]["variants"] == ["original"]
