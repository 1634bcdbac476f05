"""Readers of predictions and scores: see test_corpora.py."""

import dataclasses
import gzip
import itertools
import json

import pytest
import tiny_corpus as tiny
from fuzzing import Document, run

from sgdx_t5x import metrics, scoring
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import gold_frames
from sgdx_t5x.report.runs import read_run
from sgdx_t5x.scoring import compare, score_files
from sgdx_t5x.scoring.predictions import read_all_variants, read_predictions
from sgdx_t5x.scoring.predictions.files import Selection

pytestmark = pytest.mark.long


@pytest.fixture
def selection(tmp_path):
  corpus = open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  return Selection(corpus, "test", gold_frames(corpus.dialogues("test")))


def score(found, selection):
  states = {key: frame.slot_values for key, frame in found.frames.items()}
  metrics.score_frames(selection.gold, found.frames, selection.schema, ["Banks_1"])
  for frame in selection.gold:
    if frame.frame_id in states:
      service = selection.schema[frame.service]
      metrics.slot_failures(service, frame.slot_values, {"v3": states[frame.frame_id]})


def test_dialogue_predictions(folder, selection):
  path = folder / "dialogues_all.json"
  path.touch()
  some = dataclasses.replace(selection, allow_missing=True)
  data = [tiny.dialogue(name, turns, "v3") for name, turns in tiny.GOLD.items()]
  data[0]["turns"][2]["frames"][0]["slots"] = [{"slot": "amount", "start": 0, "exclusive_end": 4}]

  def read(data):
    path.write_bytes(data)
    score(read_predictions(path, "v3", selection if data[-2:] == b"]\n" else some), selection)

  run("dialogue_predictions", Document(data), read, folder)


def test_predictions_read_in_c_are_those_read_in_python(folder, selection, monkeypatch):
  """Read item by item, which says what is wrong, they are the same."""
  path = folder / "dialogues_all.json"
  path.touch()
  data = [tiny.dialogue(name, turns, "v3") for name, turns in tiny.GOLD.items()]
  data[0]["turns"][2]["frames"][0]["slots"] = [{"slot": "amount", "start": 0, "exclusive_end": 4}]

  def refuse(*args, **kwargs):
    raise ValueError

  def outcome():
    try:
      return read_predictions(path, "v3", selection), None
    except SgdxError as e:
      return e.text, e

  def read(data):
    path.write_bytes(data)
    fast, error = outcome()
    with monkeypatch.context() as patch:
      patch.setattr("msgspec.json.decode", refuse)
      assert fast == outcome()[0]
    if error:
      raise error

  run("predictions_twice", Document(data), read, folder)


def test_prediction_rows(folder, selection):
  path = folder / "p.jsonl"
  path.touch()
  some = dataclasses.replace(selection, allow_missing=True)
  infer = tiny.example_rows(tiny.GOLD, "v1")
  logger = [
    {"input": row["inputs"], "output": row["prediction"], "prediction": row["prediction"]}
    for row in tiny.example_rows(tiny.GOLD, "original")
  ]
  key = "example_id_pretokenized"
  plain = [{"id": r["inputs"][key], "prediction": r["prediction"]} for r in infer]
  rows = (Document(infer, True), Document(logger, True), Document(plain, True))

  def read(data):
    path.write_bytes(data)
    for found in read_all_variants(path, selection if len(data) % 2 else some).values():
      score(found, selection)

  run("prediction_rows", lambda rng: rng.choice(rows)(rng), read, folder)


@pytest.fixture
def scores(tmp_path, folder, selection):
  """Writes a report and scores per frame with the scorer. Returns their paths."""
  nothing = {name: [{s: {} for s in t} for t in turns] for name, turns in tiny.GOLD.items()}
  rows = [row for v in ("original", "v1") for row in tiny.example_rows(nothing, v)]
  predictions = tiny.write_rows(tmp_path / "all.jsonl", rows)
  scored = scoring.score_predictions(
    selection.corpus, "test", {"all": predictions}, bootstrap_samples=100
  )
  paths = folder / "a.json", folder / "a.jsonl"
  score_files.save(scoring.score_report(scored), scored.table(paths[1]), *paths)
  return paths


def test_score_reports(folder, scores):
  path, zipped = scores[0], folder / "a.json.gz"
  data = json.loads(path.read_text())
  data["metrics"] = dict(list(data["metrics"].items())[:2])
  make = Document(data)
  zipped.touch()
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    if next(count) % 8:
      run = read_run("a", path)
    else:
      packed = gzip.compress(data, 1)
      zipped.write_bytes(packed if data[-2:] == b"}\n" else packed[: len(packed) // 2])
      run = read_run("a", zipped)
    assert run.signature is not None
    assert run.variants
    for rows in (run.rows, run.floor):
      for _, _, row in rows.items():
        for key in row.values:
          assert row.cell_with_interval(key) is not None

  run("score_reports", make, read, folder)


def test_frame_scores(folder, scores):
  path = scores[1]
  other = score_files.read_frames(path)
  make = Document([json.loads(line) for line in path.read_text().splitlines()], lines=True)
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    compared = compare.compare(score_files.read_frames(path), other, allow_missing=True)
    list(compare.flips(compared))
    if next(count) % 50 == 0:
      compare.comparison_report(compared, 100)

  run("frame_scores", make, read, folder)
