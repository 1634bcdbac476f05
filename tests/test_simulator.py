"""The simulator and the sample: reproducible, valid, held-out values really held out."""

import hashlib
import random
import re

import pytest

from sgdx_t5x import sample
from sgdx_t5x.corpus import open_corpus
from sgdx_t5x.dialogue import USER, write_dialogues
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.simulator.values import KINDS, parse_pool


@pytest.fixture(scope="module")
def test_dialogues():
  return list(sample.dialogues("test"))


def test_same_seed_same_dialogues(test_dialogues):
  assert list(sample.dialogues("test")) == test_dialogues


def test_dialogues_of_this_version_do_not_change(test_dialogues):
  """If this fails, raise sample.VERSION: published sample scores no longer compare."""
  text = write_dialogues(test_dialogues).encode()
  assert (sample.VERSION, hashlib.sha256(text).hexdigest()[:16]) == ("1", "0582e64c8ee885f9")


def test_spans_are_exact(test_dialogues):
  num_spans = 0
  for dialogue in test_dialogues:
    for turn in dialogue.turns:
      said = {(a["slot"], v) for a in turn.frames[0].actions for v in a["values"]}
      for span in turn.frames[0].slots:
        text = turn.utterance[span["start"] : span["exclusive_end"]]
        # The first letter of an utterance is capitalised, whatever it is.
        assert {(span["slot"], text), (span["slot"], text[:1].lower() + text[1:])} & said
        num_spans += 1
  assert num_spans > 900


def test_new_values_were_said(test_dialogues):
  """A free value enters the state only in a turn where somebody said it."""
  schema = sample.schema("test")
  for dialogue in test_dialogues:
    known, heard = {}, ""
    for turn in dialogue.turns:
      heard = heard + " " + turn.utterance.lower()
      if turn.speaker != USER:
        continue
      frame = turn.frames[0]
      service = schema[frame.service]
      for slot, (value,) in frame.state.slot_values.items():
        if known.get(slot) == value or value == "dontcare":
          continue
        if not service.slots[service.slot_index[slot]].is_categorical:
          assert value.lower() in heard, (dialogue.dialogue_id, slot, value)
      known = {s: v[0] for s, v in frame.state.slot_values.items()}


def test_utterances_read_like_text(test_dialogues):
  for dialogue in test_dialogues:
    for turn in dialogue.turns:
      assert not re.search(r"[{}]|  |\.\.| [.,?]", turn.utterance), turn.utterance


def test_held_out_values_do_not_occur_in_train():
  pool = parse_pool({"kind": "city"}, "here")
  rng = random.Random(0)
  train = {pool.draw(rng) for _ in range(3000)}
  held_out = {pool.draw(rng, held_out=True) for _ in range(3000)}
  assert not train & held_out
  assert len(held_out) > 50


def test_unknown_kinds_are_refused():
  with pytest.raises(SgdxError, match="value kind 'town'") as error:
    parse_pool({"kind": "town"}, "Ferries_1.port")
  assert all(kind in str(error.value) for kind in KINDS)
  with pytest.raises(SgdxError, match=r"Ferries_1.port"):
    parse_pool({}, "Ferries_1.port")


def test_every_version_rewords_every_slot_and_intent():
  """SGD-X: all names and descriptions differ from the original in every variant."""
  original = sample.schema("test")
  for variant in ("v1", "v2", "v3", "v4", "v5"):
    for a, b in zip(original, sample.schema("test", variant), strict=True):
      assert b.name == a.name + variant[1]
      for x, y in zip((*a.slots, *a.intents), (*b.slots, *b.intents), strict=True):
        assert x.name != y.name
        assert x.description != y.description


def test_the_sample_has_what_the_issue_asks_for():
  corpus = open_corpus("sample")
  assert len(corpus.schema("train")) >= 8
  assert len(set(corpus.schema("test").names) - corpus.seen_services("test")) >= 4
  assert corpus.variants == (
    "original", "v1", "v2", "v3", "v4", "v5", "bt_zh", "bt_ja", "bt_ko",
  )  # fmt: skip
  for split in corpus.splits:
    for variant in corpus.variants:
      corpus.schema(split, variant)  # aligned, names unique


def test_the_vocabulary_is_what_its_script_makes(tmp_path):
  import sentencepiece

  from sgdx_t5x.sample.train_vocabulary import NUM_PIECES, VOCABULARY, train

  train(tmp_path / "again.model", NUM_PIECES)
  again, kept = (
    sentencepiece.SentencePieceProcessor(model_file=str(path))
    for path in (tmp_path / "again.model", VOCABULARY)
  )
  assert [again.id_to_piece(i) for i in range(NUM_PIECES)] == [
    kept.id_to_piece(i) for i in range(NUM_PIECES)
  ]
