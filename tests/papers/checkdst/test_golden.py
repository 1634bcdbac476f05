"""A mini corpus of our own invention, its perturbed twins, and numbers of both.

`expected.json` in tests/papers/fixtures/perturb is from a reference that shares no code with ours,
with `--fuzzy exact`; tests/papers/checkdst/checks/test_check.py compares its metrics.
"""

import json

import pytest
from places import ROOT

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.write import changed_frames, write_perturbed

GOLDEN = ROOT / "tests/papers/fixtures/perturb"


def _dialogues(name: str) -> list[dict]:
  return list(Split(open_corpus(GOLDEN / name), "test").dialogues())


@pytest.fixture(scope="module")
def expected() -> dict:
  return json.loads((GOLDEN / "expected.json").read_text())


def test_entity_slots(expected):
  schema = open_corpus(GOLDEN / "original").schema("test")
  found = [f"{service}.{slot}" for service, slots in entity_slots(schema).items() for slot in slots]
  assert sorted(found) == expected["entity_slots"]


@pytest.mark.parametrize("kind", ["ned", "pi", "sdi"])
def test_changed_frames(expected, kind):
  found = [
    frame
    for data, before in zip(_dialogues(kind), _dialogues("original"), strict=True)
    for frame in changed_frames(data, before, by_state=kind == "ned")
  ]
  assert found == expected["changed"][kind]


@pytest.mark.parametrize("kind", ["original", "ned", "pi", "sdi"])
def test_every_gold_entity_is_said(kind):
  slots = entity_slots(open_corpus(GOLDEN / "original").schema("test"))
  assert all(gold_factuality(data, slots)[1] == [] for data in _dialogues(kind))


@pytest.mark.parametrize("kind", ["ned", "pi", "sdi", "vs"])
def test_the_mini_corpus_can_be_perturbed(kind, tmp_path):
  split = Split(open_corpus(GOLDEN / "original"), "test")
  write_perturbed(KINDS[kind](split, 0), split, 0, tmp_path / kind)
  assert open_corpus(tmp_path / kind).manifest("test").kind == kind
