"""Counterfactual turns in a report: what the error browser shows of them."""

import json
import re

import pytest
from commands import sgdx
from planted import write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.report import plot_style

pytest.importorskip("matplotlib", reason="plots need the extra `report`")


def test_counterfactual_turns_stand_in_the_browser_with_their_edit(tmp_path, monkeypatch):
  """The tracker predicts the original goal everywhere: wrong in each frame whose goal changed."""
  monkeypatch.setattr(plot_style, "FILE_FORMATS", ())  # they take most of the time
  corpus = open_corpus(write_sample(tmp_path / "sample", {"train": 20, "dev": 0, "test": 12}))
  common = ("--corpus", corpus.origin, "--bootstrap-samples", 100)
  made = ("--slots", "neutral", "--out", tmp_path / "coco")
  assert sgdx("coco", "perturb", *common[:2], *made) == 0
  places = {"original": corpus.origin, **{x: tmp_path / x for x in ("coco", "coco_ori")}}
  named = [
    f"{name}={write_planted(tmp_path / 'p' / name, 'frozen', corpus, open_corpus(place))}"
    for name, place in places.items()
  ]
  sets = [f"{name}={places[name]}" for name in ("coco", "coco_ori")]
  written = ("--json", tmp_path / "check.json", "--per-frame", tmp_path / "check.jsonl")
  given = ("--perturbed", *sets, "--predictions", *named)
  assert sgdx("checkdst", "check", *common, *given, *written) == 0
  written = ("--json", tmp_path / "s.json", "--per-frame", tmp_path / "s.jsonl")
  assert sgdx("score", *common, "--predictions", named[0], *written) == 0
  out = tmp_path / "out"
  given = ("--check", tmp_path / "check.json", "--perturbed", *sets)
  scores = f"frozen={tmp_path / 's.json'}"
  assert sgdx("report", scores, *common[:2], *given, "--out", out) == 0
  text = (out / "report.html").read_text()
  (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
  data = json.loads(data)
  assert {total["variant"] for total in data["totals"]} == {"coco"}
  lines = [json.loads(x) for x in (tmp_path / "coco/test/changes.jsonl").read_text().splitlines()]
  by_place = {(line["of"], line["turn"]): line for line in lines}
  goals = {d.dialogue_id: d.turns[-1] for d in open_corpus(tmp_path / "coco").dialogues("test")}
  assert len(data["frames"]) > 10
  for frame in data["frames"]:
    line = by_place[frame["dialogue"], frame["turn"]]
    edit = data["dialogues"][frame["dialogue"]][frame["turn"]][3]["coco"]
    said = goals[line["dialogue_id"]].utterance
    assert "".join(text for _, text in edit["parts"]) == said
    found = {slot: (status, old, new) for status, slot, old, new in edit["slots"]}
    for slot, values in line["changed"].items():
      assert found[slot] == ("changed", *values)
    assert {x: found[x][::2] for x in line["added"]} == {
      slot: ("added", new) for slot, new in line["added"].items()
    }
    assert all(found[x][::2] == ("dropped", None) and found[x][1] for x in line["dropped"])
    assert all(found[x][0] == "kept" and found[x][1] == found[x][2] for x in line["kept"])
    wanted = {new for status, _, new in found.values() if status in ("changed", "added")}
    marked = {text for status, text in edit["parts"] if status in ("changed", "added")}
    assert {text.lower() for text in marked} <= {text.replace("_", " ").lower() for text in wanted}
    for failure in frame["failures"]:  # what is predicted is right in the original
      if failure["slot"] in line["changed"]:
        assert failure["predicted"]["coco"] == line["changed"][failure["slot"]][0]
        assert failure["gold"] != failure["gold_there"]["coco"]
      assert (failure["slot"] in line["added"]) <= (failure["gold"] == [])
