"""Scores by provenance: a tracker blind to coreference gets exactly the carried values wrong."""

import json
from collections import Counter

import pytest
from commands import sgdx
from planted import write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.metrics import gold_frames
from sgdx_t5x.scoring import score_predictions, score_report


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  folder = tmp_path_factory.mktemp("corpus") / "sample"
  return open_corpus(write_sample(folder, {"train": 0, "dev": 0, "test": 60}))


@pytest.fixture(scope="module")
def report(corpus, tmp_path_factory):
  folder = tmp_path_factory.mktemp("score")
  predictions = [
    f"{variant}={write_planted(folder / tracker, tracker, corpus, corpus)}"
    for variant, tracker in (("original", "gold"), ("v1", "blind"), ("v2", "silent"))
  ]
  command = ("score", "--corpus", corpus.origin, "--bootstrap-samples", 100, "--predictions")
  for name, options in (("plain", ()), ("by_source", ("--provenance",))):
    assert sgdx(*command, *predictions, *options, "--json", folder / name) == 0
  plain, found = (json.loads((folder / name).read_text()) for name in ("plain", "by_source"))
  assert plain == {key: value for key, value in found.items() if key != "provenance"}
  return found["provenance"]


def test_values_by_source(report, corpus):
  counts = sum((provenance.count(x) for x in corpus.dialogues("test")), start=Counter())
  for source in ("informed", "accepted", "carried"):
    row = report["values"][source]["all"]
    assert row["slot_accuracy_orig"] == 1
    assert row["slot_accuracy_v1"] == float(source != "carried")
    assert row["slot_accuracy_v2"] == 0
    entering = report["entering"][source]["all"]
    assert entering["num_frames"] == counts[source] <= row["num_frames"]
    assert entering["slot_accuracy_v1"] == row["slot_accuracy_v1"]
  assert report["values"]["carried"]["all"]["num_frames"] == counts["carried_slots"]
  assert "unknown" not in report["values"]


def test_frames_by_source(report, corpus):
  frames = report["frames"]
  assert frames["carried"]["all"]["jga_v1"] == 0
  assert frames["accepted"]["all"]["jga_v1"] == frames["neither"]["all"]["jga_v1"] == 1
  assert frames["carried"]["all"]["ci95"]["jga_orig"] == [1, 1]
  total = sum(row["all"]["num_frames"] for row in frames.values())
  assert total == sum(1 for x in corpus.dialogues("test") for _ in x.user_frames())


def test_frames_that_were_read_without_origins_are_read_again(corpus, tmp_path):
  """Otherwise no value had a source, and every frame was one of neither kind."""
  predictions = {"original": write_planted(tmp_path / "blind", "blind", corpus, corpus)}
  settings = {"provenance": True, "bootstrap_samples": 0}
  reports = []
  for gold in (None, gold_frames(corpus.dialogues("test"))):
    scored = score_predictions(corpus, "test", predictions, gold=gold, **settings)
    reports.append(score_report(scored))
  assert reports[0] == reports[1]


def test_the_tables(corpus, tmp_path, capsys):
  predictions = write_planted(tmp_path / "blind", "blind", corpus, corpus)
  options = ("--predictions", f"original={predictions}", "--bootstrap-samples", 0)
  assert sgdx("score", "--corpus", corpus.origin, *options, "--provenance") == 0
  out = capsys.readouterr().out
  assert "slot accuracy by provenance of the value (%)" in out
  assert ["carried", "0.0"] in [line.split()[:2] for line in out.splitlines()]


def test_the_report_has_the_tables(corpus, tmp_path):
  predictions = write_planted(tmp_path / "blind", "blind", corpus, corpus)
  options = ("--predictions", f"original={predictions}", "--bootstrap-samples", 0, "--provenance")
  assert sgdx("score", "--corpus", corpus.origin, *options, "--json", tmp_path / "a.json") == 0
  assert sgdx("report", tmp_path / "a.json", "--out", tmp_path / "report") == 0
  page = (tmp_path / "report" / "report.html").read_text()
  assert "Provenance of values" in page
  assert "a: slot accuracy by provenance, where values enter (%)" in page
