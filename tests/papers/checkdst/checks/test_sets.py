"""What was replaced in a perturbed set, read from the dialogues where no file tells it."""

import dataclasses

import pytest

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst import ned
from sgdx_t5x.papers.checkdst.checks.sets import changes_of, open_sets, read_gold
from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.write import write_perturbed


@pytest.mark.parametrize("seed", [0, 1])
def test_replacements_are_those_recorded(tmp_path, seed):
  """Regression: the forms of a value are sorted, so replacements stand in another order there."""
  corpus = open_corpus("sample")
  split, slots = Split(corpus, "test"), entity_slots(corpus.schema("test"))
  write_perturbed(ned.perturber(split, seed), split, seed, tmp_path / "ned")
  sets = open_sets(corpus, "test", {"ned": tmp_path / "ned"})
  original, gold = (read_gold(x, "test", slots, lambda *_: None) for x in sets.values())
  states = [x for x in original.frames if any(len(v) > 1 for v in x.slot_values.values())]
  assert len(states) > 10
  recorded = changes_of(sets["ned"], "test", original, gold).names
  unrecorded = dataclasses.replace(sets["ned"], manifest=None)
  found = changes_of(unrecorded, "test", original, gold).names
  pairs = [(key, *pair) for key, names in found.items() for pair in names.items()]
  assert len(pairs) > 300
  assert [x for x in pairs if recorded[x[0]].get(x[1]) != x[2]] == []
