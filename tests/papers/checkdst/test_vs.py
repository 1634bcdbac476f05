import collections
import json
import re

from perturbed import on_split, perturbed_sample, sample_dialogues, sample_split

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst import vs
from sgdx_t5x.papers.checkdst.split import Split, changed
from sgdx_t5x.papers.simulator.variation import is_moment


def test_days_keep_their_order():
  _, _, lines, _ = perturbed_sample("vs", {})
  pairs = 0
  for (line,) in lines.values():
    days = sorted((a, b) for a, b in line["strings"].items() if is_moment(a) and "-" in a)
    assert [b for _, b in days] == sorted(b for _, b in days)
    pairs += len(days) > 1
  assert pairs


def test_values_of_choices_are_exchanged_where_they_are_said():
  _, dialogues, lines, counts = perturbed_sample("vs", {})
  by_id = {data["dialogue_id"]: data for data in dialogues}
  before = {data["dialogue_id"]: data for data in sample_dialogues()}
  assert counts["categorical"] > 5
  for name, (line,) in lines.items():
    for place, pairs in line.get("categorical", {}).items():
      service, slot = place.rsplit(".", 1)
      possible = sample_split().schema[service].slots
      slot_values = next(x for x in possible if x.name == slot).possible_values
      for old, new in pairs.items():
        assert {old, new} <= set(slot_values)
        pattern = rf"\b{re.escape(new.replace('_', ' '))}\b"
        for d, is_said in ((before, False), (by_id, True)):
          text = " ".join(turn["utterance"] for turn in d[name]["turns"])
          assert bool(re.search(pattern, text, re.IGNORECASE)) == is_said


def test_choices_are_exchanged_though_a_schema_lists_dontcare(tmp_path):
  """Regression: none of such a slot were."""
  dialogues = sample_dialogues()
  split = on_split(dialogues, sample_split(), tmp_path)
  services = split.corpus.schema("test").to_json()
  for service in services:
    for slot in service["slots"]:
      slot["possible_values"] += ["dontcare"] if slot["is_categorical"] else []
  (tmp_path / "test/schema.json").write_text(json.dumps(services))
  perturber, counts = vs.perturber(Split(open_corpus(tmp_path), "test"), 0), collections.Counter()
  for data in dialogues:
    changed(perturber, data, counts)
  assert counts["categorical"] == perturbed_sample("vs", {})[3]["categorical"]
