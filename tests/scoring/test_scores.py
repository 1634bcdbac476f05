"""`sgdx_t5x.score` as a program uses it: predictions in memory, scores as a table."""

import importlib.util
import json
import sys

import pytest
import tiny_corpus as tiny

import sgdx_t5x
from sgdx_t5x.errors import SgdxError, UsageError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return sgdx_t5x.open_corpus(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def rows(variant):
  key = "example_id_pretokenized"
  return [
    {"id": row["inputs"][key], "prediction": row["prediction"]}
    for row in tiny.example_rows(tiny.GOLD, variant)
  ]


@pytest.mark.parametrize("name", ["v3", "all"])
def test_rows_in_memory_score_as_their_file(corpus, tmp_path, name):
  path = tiny.write_rows(tmp_path / "v3.jsonl", rows("v3"))
  expected = sgdx_t5x.score(corpus, "test", {name: path}, bootstrap_samples=0)
  scores = sgdx_t5x.score(corpus, "test", {name: rows("v3")}, bootstrap_samples=0)
  assert scores.report == expected.report
  assert scores.scored.frames["v3"].metrics["joint_goal_accuracy"].tolist() == [1.0] * 6


def test_dialogues_in_memory_score_as_their_file(corpus, tmp_path):
  folder = tiny.write_dialogues(tmp_path / "v1", tiny.GOLD, "v1")
  data = [item for path in folder.glob("*.json") for item in json.loads(path.read_text())]
  expected = sgdx_t5x.score(corpus, "test", {"v1": folder}, bootstrap_samples=0)
  scores = sgdx_t5x.score(corpus, "test", {"v1": data}, bootstrap_samples=0)
  assert scores.report == expected.report


@pytest.mark.parametrize(
  ("row", "words"),
  [
    ({"id": "v3/test/9_00000-000-Banks_1/kind", "prediction": "x"}, "row 1: unknown frame"),
    ({"id": 5, "prediction": "x"}, "row 1: no example id"),
    ({"id": {1, 2}, "prediction": "x"}, "row 1: Object of type set"),
  ],
)
def test_an_error_says_which_row_in_memory(corpus, row, words):
  with pytest.raises(SgdxError) as error:
    sgdx_t5x.score(corpus, "test", {"v3": [row]})
  assert error.value.found.startswith(f"predictions['v3'], {words}")


def test_scores_as_a_table(corpus, monkeypatch):
  scores = sgdx_t5x.score(corpus, "test", {"v3": rows("v3")}, bootstrap_samples=0)
  with pytest.raises(UsageError, match="to_frame: by = 'slot'"):
    scores.to_frame(by="slot")
  with monkeypatch.context() as patch:
    patch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SgdxError, match="pandas"):
      scores.to_frame()
  if importlib.util.find_spec("pandas"):  # optional
    frame = scores.to_frame(by="service")
    assert frame.index.tolist() == ["Banks_1", "Homes_2"]
    assert frame.loc["Banks_1", ["num_frames", "jga_v3"]].tolist() == [4, 1.0]
