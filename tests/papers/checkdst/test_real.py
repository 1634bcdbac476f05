"""The targets on the real test split at hand, with seed 0."""

import collections
import copy
import dataclasses

import pytest
from undo import undo_dialogue

from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.checkdst.invariants import _annotation
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.mapping import SHORTEST_MENTION
from sgdx_t5x.papers.checkdst.split import Split, changed
from sgdx_t5x.papers.checkdst.texts import whole_words
from sgdx_t5x.papers.checkdst.write import count
from sgdx_t5x.papers.coco.coco import Coco, counterfactuals
from sgdx_t5x.papers.coco.coco_combinations import count_combinations
from sgdx_t5x.papers.coco.coco_filters import known_values
from sgdx_t5x.papers.coco.coco_goals import Rules
from sgdx_t5x.papers.coco.coco_values import value_source
from sgdx_t5x.papers.coco.coco_words import generator

pytestmark = [pytest.mark.real, pytest.mark.long]
# Of 2,921 dialogues; `sgdx data verify` counts the same in the archive.
REMARKS = {"empty-utterance": 2, "state-keeps": 55, "result-free": 703, "result-source": 8}
EVERY = 8  # every 8th dialogue is undone and compared: all of them take a minute


@pytest.fixture(scope="module")
def split(real_archive) -> Split:
  corpus = open_corpus(real_archive)
  if corpus.checksum() != "57490eb8b9895e7f":
    pytest.skip("the counts below are of the partial archive")
  return Split(corpus, "test")


def _leaks(data: dict, strings: dict[str, str]) -> int:
  """Counts replaced strings of four characters or more that still occur in a dialogue."""
  pattern = whole_words(text for text in strings if len(text) >= SHORTEST_MENTION)
  said = (turn["utterance"] for turn in data["turns"] if pattern)
  return len({match for text in said for match in pattern.findall(text)})


def _perturbed(split: Split, kind: str, **options) -> collections.Counter:
  """Perturbs the split, tests what must hold, and returns the counts."""
  perturber = KINDS[kind](split, 0, **options)
  schema, remarks = split.schema, {}
  check, slots = validate_annotation(schema, remarks), entity_slots(schema)
  manifest = Manifest(kind=kind, options={}, seed=0, split="test", of={"corpus": ""},
                      counts={"dialogues": 0}, files={}, complete=False, version="",
                      slots=perturber.slots)  # fmt: skip
  counts = collections.Counter()
  for number, data in enumerate(split.dialogues()):
    before = copy.deepcopy(data)
    lines = changed(perturber, data, counts)
    count(counts, data, before, bool(perturber.slots))
    check(Dialogue.from_json(data), schema, "test")
    total, unsaid = gold_factuality(data, slots)
    assert not unsaid
    counts["entity values"] += total
    counts["leaks"] += sum(_leaks(data, line.get("strings", {})) for line in lines)
    if number % EVERY == 0:
      if not perturber.slots:
        assert [*map(_annotation, data["turns"])] == [*map(_annotation, before["turns"])]
      assert undo_dialogue(data, lines, manifest) == before
  assert {rule: remark.count for rule, remark in remarks.items()} == REMARKS
  assert counts["entity values"] == 38_591
  return counts


def test_ned(split):
  counts = _perturbed(split, "ned")
  assert counts["strings_mapped"] >= 0.999 * counts["strings"] == 0.999 * 14_122
  assert counts["frames_changed"] >= 23_150
  assert counts["leaks"] <= 10


def test_sdi(split):
  counts = _perturbed(split, "sdi")
  assert counts["turns_changed"] >= 0.98 * counts["user_turns"]
  assert 2_000 <= counts["repairs"] <= 2_800


@pytest.mark.parametrize(
  ("provider", "turns", "overlap"), [("exchange", 21_000, 0.15), ("templates", 23_000, 0.25)]
)
def test_pi(split, provider, turns, overlap):
  counts = _perturbed(split, "pi", provider=provider)
  assert counts["turns_changed"] >= turns
  assert counts["overlap"] / counts["turns_changed"] <= overlap
  assert counts["kept", "carried"] == 1_386


def test_coco(split):
  """Templates cover at least 90% of the turns that inform, for each set of combinations."""
  combinations, schema = count_combinations(split), split.schema
  shared = (value_source("out", split, combinations.earlier), combinations)
  words, known, remarks = generator("templates", split, {}), known_values(split), {}
  check, found = validate_annotation(schema, remarks), {}
  for which in ("freq", "neutral", "rare"):
    options = {"slots": which, "generator": "templates", "plus": False}
    coco = Coco(options, 0, Rules(), *shared, words, known)
    counts = collections.Counter()
    for data in split.dialogues():
      for made in counterfactuals(coco, data, counts):
        if which == "freq" and made.change["turn"] % EVERY == 0:  # all rules but the ending
          dialogue = Dialogue.from_json(made.dialogue)
          check(dataclasses.replace(dialogue, last_only=True), schema, "test")
    assert counts["eligible"] == 9_862
    found[which] = counts["source", "templates"], counts["slots_added"]
  assert found == {"freq": (9_589, 4_698), "neutral": (9_585, 8_317), "rare": (9_569, 1_378)}
