"""Tool-call runs in the report next to trackers, and a check of one's own tools beside them."""

import copy
import csv
import json

import pytest
import tiny_corpus as tiny
from assistant_server import AssistantServer
from commands import assert_four_parts, sgdx
from simulated_assistant import SimulatedAnswers, cases, toolset, verbs

from sgdx_t5x.corpus.dialogue import State
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.report import plot_style
from sgdx_t5x.tools.calls import state_calls

VARIANTS = ("original", *tiny.VARIANTS)


@pytest.fixture(autouse=True)
def plots_in_the_page_only(monkeypatch):
  monkeypatch.setattr(plot_style, "FILE_FORMATS", ())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
  """Scores of a tracker, and of calls with two deliveries, all right except one under v2."""
  folder = tmp_path_factory.mktemp("runs")
  corpus = str(tiny.write_corpus(folder / "tiny"))
  states = copy.deepcopy(tiny.GOLD)
  states["1_00000"][1]["Banks_1"] = {}
  predicted = str(tiny.write_dialogues(folder / "tracker", states))
  predictions = {"tracker": [f"{variant}={predicted}" for variant in VARIANTS]}
  rows = [{"id": key, "calls": calls} for key, calls in answers(open_corpus(corpus))]
  for name, end in (("calls", ""), ("many", "@distractors:2")):
    shown = [{**row, "id": row["id"] + end} for row in rows]
    file = tiny.write_rows(folder / f"{name}.jsonl", shown)
    predictions[name] = [f"all={file}"]
  for name, given in predictions.items():
    kept = ("--json", folder / f"{name}.json", "--per-frame", folder / f"{name}.frames.jsonl")
    command = ("score",) if name == "tracker" else ("tools", "score")
    assert not sgdx(*command, "--corpus", corpus, "--predictions", *given, *kept)
  return folder


def answers(corpus):
  for variant in VARIANTS:
    pairs = service_pairs(corpus.schema("test"), corpus.schema("test", variant))
    for dialogue_id, turns in tiny.GOLD.items():
      for i, frames in enumerate(turns):
        for service, values in frames.items():
          calls = state_calls(pairs[service], State("Do", (), values))
          if (variant, service, values) == ("v2", "Banks_1", {}):
            calls = [{**calls[0], "arguments": {"colour": "red"}}]
          yield f"{variant}/test/{dialogue_id}-{2 * i:03d}-{service}/*", calls


def test_calls_stand_beside_a_tracker(runs, tmp_path):
  out = tmp_path / "out"
  given = [f"{name}={runs / name}.json" for name in ("tracker", "calls")]
  assert sgdx("report", *given, "--out", out) == 0
  page = (out / "report.html").read_text()
  assert "NOT COMPARABLE" not in page
  assert "no paired comparison" not in page
  with (out / "tables" / "tool-calls.csv").open() as file:
    found = {(row["row"], row["column"]): row["value"] for row in csv.DictReader(file)}
  # One of v2's 10 arguments is invented; the other variants have none.
  assert float(found["calls, all, v1-5", "invented"]) == pytest.approx(1 / 10 / 5)
  assert float(found["calls, all, original", "intent"]) == 1
  assert found["calls, unseen, v1-5", "delivery"] == "gold"
  assert not any(row.startswith("tracker") for row, _ in found)
  by_variant = (out / "tables" / "calls-calls-all-services.md").read_text()
  assert "| arguments that the tool does not have | 0.0 | 0.0 | 10.0 | 0.0 |" in by_variant


def test_calls_that_saw_other_tools_are_not_comparable(runs, tmp_path, capsys):
  given = [f"{name}={runs / name}.json" for name in ("tracker", "many")]
  assert sgdx("report", *given, "--out", tmp_path / "out") == 1
  assert "many has delivery:distractors:2" in capsys.readouterr().err
  assert sgdx("diff", *(runs / f"{name}.frames.jsonl" for name in ("tracker", "many"))) == 1
  assert sgdx("diff", *(runs / f"{name}.frames.jsonl" for name in ("tracker", "calls"))) == 0


@pytest.fixture
def check(tmp_path):
  """JSON of a check of 3 tools under a rewording that loses one: "tool_01" of the base."""
  suite, words = tmp_path / "suite", verbs(3)
  suite.mkdir()
  (suite / "tools.json").write_text(json.dumps(toolset(words).for_openai()))
  tiny.write_rows(suite / "cases.jsonl", [case.row() for case in cases(words, 10)])
  replaced = {"/tool_01": "other", "/tool_01/description": "Lists."}
  tiny.write_rows(suite / "rewordings.jsonl", [{"name": "cruel", "replaced": replaced}])
  out = tmp_path / "check.json"
  with AssistantServer(SimulatedAnswers()) as server:
    args = ("--endpoint", server.url, "--model", "m", "--reword", "1", "--json", out)
    assert sgdx("tools", "check", suite, *args) == 1
  return out


def test_a_check_stands_beside_the_services_of_sgdx(runs, check, tmp_path):
  out = tmp_path / "out"
  given = [f"{name}={runs / name}.json" for name in ("tracker", "calls")]
  assert sgdx("report", *given, "--tools-check", check, "--out", out) == 0
  page = (out / "report.html").read_text()
  assert "BROKEN: 10 cases broke, 0 were fixed; tool_01" in page
  assert "SGD-X with calls: JGA_orig 100.0, where predicting nothing has" in page
  assert "SGD-X with tracker" not in page
  tools = (out / "tables" / "the-same-by-tool-the-most-fragile-first.md").read_text()
  assert "| tool_01 | 10 | 0.0 | [0.0, 0.0] | 0.0 | tool_02 |" in tools
  services = "sgd-x-s-services-with-calls-states-right-before-and-still-ri.md"
  # What is invented with v2 is no part of a state.
  assert "| Banks_1 | 4 | 100.0 | 100.0 | 100.0 |" in (out / "tables" / services).read_text()


def test_another_file_is_no_check(runs, tmp_path, capsys):
  given = f"{runs / 'calls'}.json"
  assert sgdx("report", given, "--tools-check", given, "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, "format")
