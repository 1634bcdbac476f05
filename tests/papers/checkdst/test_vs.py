import re

from perturbed import perturbed_sample, sample_dialogues, sample_split

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
