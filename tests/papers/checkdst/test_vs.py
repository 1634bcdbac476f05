import random
import re

import pytest
from perturbed import perturbed_sample, sample_dialogues, sample_split

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.vs import _source
from sgdx_t5x.papers.simulator.variation import is_moment


@pytest.mark.parametrize("values", ["in", "out"])
def test_days_keep_their_order(values):
  _, _, lines, _ = perturbed_sample("vs", {"values": values})
  pairs = 0
  for (line,) in lines.values():
    days = sorted((a, b) for a, b in line["strings"].items() if is_moment(a) and "-" in a)
    assert [b for _, b in days] == sorted(b for _, b in days)
    pairs += len(days) > 1
  assert pairs or values == "out"


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


def test_invented_values_of_train_are_not_those_of_the_test_splits():
  found = {split: _invented(split) for split in ("train", "dev", "test")}
  assert min(map(len, found.values())) > 5
  assert found["train"].isdisjoint(found["dev"] | found["test"])


def _invented(split):
  """New values of free-text slots whose kinds are invented from words: titles."""
  source = _source(sample_split(split), free_slots(sample_split(split).schema), "out")
  draws = [draw for key, draw in source.draws.items() if key.startswith("title:")]
  return {draw(random.Random(i))[0] for draw in draws for i in range(40)}


def test_an_unknown_source_of_values_is_refused():
  with pytest.raises(SgdxError, match="values 'everywhere'"):
    perturbed_sample("vs", {"values": "everywhere"})
