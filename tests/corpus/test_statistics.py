"""`sgdx data stats`: numbers by hand, SGD's numbers from its paper, and the command."""

import argparse
import dataclasses
import json

import pytest
import tiny_corpus as tiny

from sgdx_t5x.cli.data import stats
from sgdx_t5x.corpus import statistics
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError


def turn(speaker, utterance, service, acts, values=None):
  """Returns a turn of one frame. Args: acts, act names; values, the state, for user turns."""
  frame = {"service": service, "slots": [], "actions": [{"act": act} for act in acts]}
  if values is not None:
    frame["state"] = {"active_intent": "Do", "requested_slots": [], "slot_values": values}
  return {"speaker": speaker, "utterance": utterance, "frames": [frame]}


def train_dialogue():
  """Two of its values occur in tiny's test: one in another case, one for another service."""
  kind, item = {"kind": ["CHECKING"], "amount": ["dontcare"]}, {"item": ["Anna"]}
  turns = [
    turn("USER", "Hello hello , a cheque", "Banks_1", ["INFORM_INTENT", "INFORM"], kind),
    turn("SYSTEM", "HELLO there", "Banks_1", ["REQUEST"]),
    turn("USER", "For Anna", "Shops_1", ["INFORM"], item),
    turn("SYSTEM", "bye", "Shops_1", ["OFFER", "OFFER", "OFFER"]),
  ]
  return {"dialogue_id": "9_00000", "services": ["Banks_1", "Shops_1"], "turns": turns}


@pytest.fixture
def root(tmp_path):
  """tiny_corpus with a train dialogue, and a fourth test dialogue that has Checking again."""
  tiny.write_corpus(tmp_path)
  tiny.write_json(tmp_path / "train" / "dialogues_001.json", [train_dialogue()])
  more = tiny.dialogue("2_00001", [{"Banks_1": {"kind": ["Checking"]}}])
  tiny.write_json(tmp_path / "test" / "dialogues_003.json", [more])
  return tmp_path


def run(*argv):
  parser = argparse.ArgumentParser()
  stats.add_verb(parser.add_subparsers())
  args = parser.parse_args(["stats", *map(str, argv)])
  return args.run(args)


# --- by hand -------------------------------------------------------------------------------


def test_a_system_turns_state_is_no_user_frame(root):
  path = root / "train/dialogues_001.json"
  without = statistics.report(open_corpus(root))["splits"]["train"]
  [dialogue] = json.loads(path.read_text())
  for frame in (turn["frames"][0] for turn in dialogue["turns"] if turn["speaker"] == "SYSTEM"):
    frame["state"] = {"active_intent": "Do", "requested_slots": [], "slot_values": {}}
  tiny.write_json(path, [dialogue])
  assert statistics.report(open_corpus(root))["splits"]["train"] == without


def test_train_by_hand(root):
  """4 turns of 5, 2, 2 and 1 words; hello, comma, a, cheque, there, for, anna, bye."""
  found = statistics.report(open_corpus(root))["splits"]["train"]
  acts, provenance = found.pop("acts"), found.pop("provenance")
  # Three values enter a state; the system's acts have no values, the user's no slots.
  assert {key: number for key, number in provenance.items() if number} == {
    "entered": 3,
    "unknown": 3,
  }
  assert found == {
    "complete": True,
    "dialogues": 1,
    "single_domain": 0,
    "multi_domain": 1,
    "services_per_dialogue": 2,
    "turns": 4,
    "turns_per_dialogue": 4,
    "tokens_per_turn": 10 / 4,
    "unique_tokens": 8,
    "domains": 2,
    "services": 2,
    "intents": 2,
    "slots": 5,
    "slot_values": 2,  # dontcare does not count
    "user_frames": 2,
    "active_slots_per_frame": 3 / 2,  # but its slot is active
    "unseen_domains": 0,
    "unseen_services": 0,
    "unseen_dialogues": 0,
    "unseen_frames": 0,
    **dict.fromkeys(
      ("oov_values", "oov_uses", "oov_values_noncategorical", "oov_uses_noncategorical")
    ),
  }
  user = {"frames": 2, "frames_without_acts": 0, "actions": {"INFORM": 2, "INFORM_INTENT": 1}}
  system = {"frames": 2, "frames_without_acts": 0, "actions": {"OFFER": 3, "REQUEST": 1}}
  assert acts == {"user": user, "system": system}


def test_test_by_hand(root):
  """Values: Checking (in two dialogues), Savings, rent; free: Anna Lee, Anna, $50, Soho | West."""
  found = statistics.report(open_corpus(root))["splits"]["test"]
  assert (found["dialogues"], found["single_domain"], found["multi_domain"]) == (4, 3, 1)
  assert found["services_per_dialogue"] == 5 / 4
  assert (found["turns"], found["turns_per_dialogue"]) == (12, 3)
  assert found["tokens_per_turn"] == (6 * 5 + 6 * 2) / 12
  assert found["user_frames"] == 7
  assert found["active_slots_per_frame"] == (0 + 2 + 3 + 1 + 1 + 2 + 1) / 7
  assert (found["services"], found["slots"], found["slot_values"]) == (2, 6, 7)
  # Homes_2 is unseen: one of two services and domains, two of four dialogues, two of seven frames.
  assert (found["unseen_services"], found["unseen_domains"]) == (1, 1)
  assert (found["unseen_dialogues"], found["unseen_frames"]) == (2 / 4, 2 / 7)
  # Train has CHECKING, and Anna as a value of another service.
  assert found["oov_values"] == 5 / 7
  assert found["oov_uses"] == 5 / 8
  assert found["oov_values_noncategorical"] == found["oov_uses_noncategorical"] == 3 / 4
  nothing = {"frames": 7, "frames_without_acts": 7, "actions": {}}
  assert found["acts"]["user"] == nothing


def test_without_train_nothing_is_said_of_what_it_lacks(tmp_path):
  """First train's dialogues are missing, then its schema too."""
  tiny.write_corpus(tmp_path)
  found = statistics.report(open_corpus(tmp_path))
  assert found["complete"]
  assert found["splits"]["train"]["turns_per_dialogue"] is None
  assert found["splits"]["test"]["oov_values"] is None
  assert found["splits"]["test"]["unseen_services"] == 1
  (tmp_path / "train" / "schema.json").unlink()
  found = statistics.report(open_corpus(tmp_path))
  assert list(found["splits"]) == ["test"]
  assert found["splits"]["test"]["unseen_services"] is None
  assert found["splits"]["test"]["unseen_frames"] is None


def test_what_is_wrong_is_named(root):
  data = train_dialogue()
  del data["turns"][1]["frames"][0]["actions"][0]["act"]
  with pytest.raises(SgdxError, match="9_00000: missing key 'act'"):
    statistics.count([Dialogue.from_json(data)])


# --- the command ---------------------------------------------------------------------------


def test_text(root, capsys):
  assert run("--corpus", root) == 0
  out = capsys.readouterr().out
  lines = out.splitlines()
  assert max(map(len, lines[:-1])) < 80  # all but the signature
  assert "PARTIAL" not in out
  cells = {line[:32].strip(): line[32:].split() for line in lines}
  assert cells["turns per dialogue"] == ["20.44", "4.00", "3.00"]
  assert cells["slot values not in train"] == ["-", "-", "71.4%"]
  assert cells["values that enter a state"] == ["3", "8"]
  assert ["INFORM_INTENT", "14.2", "33.3", "-"] in [line.split() for line in lines]
  assert "test: 7 of 7 user frames have no acts" in out


def test_partial_splits_say_so(root, capsys, monkeypatch):
  monkeypatch.setattr(Corpus, "is_complete", lambda self, split, number: split != "test")
  run("--corpus", root)
  out = capsys.readouterr().out
  assert out.startswith("PARTIAL: test: 4 dialogues, which are not all")
  assert "train test PARTIAL" in out
  assert "PARTIAL signature: " in out


def test_markdown_and_json(root, capsys):
  run("--corpus", root, "--format", "md")
  assert (
    "|  | SGD paper, train | train | test |\n| --- | ---: | ---: | ---: |"
    in capsys.readouterr().out
  )
  run("--corpus", root, "--format", "json")
  found = json.loads(capsys.readouterr().out)
  assert found == statistics.report(open_corpus(root))
  assert found["signature"].startswith("sgdx|corpus:")
  assert "|splits:train+test|tokens:white-space|complete|" in found["signature"]


def test_sample():
  found = statistics.report(open_corpus("sample"))
  assert found["complete"]
  for split in ("dev", "test"):
    numbers = found["splits"][split]
    assert numbers["unseen_services"] > 0
    assert 0.1 < numbers["oov_values_noncategorical"] < 0.6
    assert numbers["acts"]["user"]["frames_without_acts"] == 0


# --- SGD -----------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.long
def test_sgd(real_archive):
  """Frames and dialogues: README of the data; unseen services: SGD-X paper; train: SGD paper."""
  found = statistics.report(open_corpus(real_archive))
  assert found["warnings"] == ["test: 2,921 of the 4,201 published dialogues"]
  train, dev, test = found["splits"].values()
  for key, paper in statistics.PAPER.items():
    if key != "slots":  # the paper has 214; the released schema has one more
      assert round(train[key], 2) == paper, key
  assert train["slots"] == 215
  assert (dev["dialogues"], test["dialogues"]) == (2_482, 2_921)
  assert [x["user_frames"] for x in (train, dev, test)] == [175_780, 26_077, 26_802]
  assert [x["unseen_services"] for x in (train, dev, test)] == [0, 8, 15]
  # 31 train files and 3 dev files are of an older release without user acts.
  assert [x["acts"]["user"]["frames_without_acts"] for x in (train, dev, test)] == [57613, 5535, 0]
  # Each train dialogue ends with the system's GOODBYE.
  assert train["acts"]["system"]["actions"]["GOODBYE"] == 16_142
  for speaker, shares in statistics.SGD_ACTS.items():
    actions = train["acts"][speaker]["actions"]
    total = sum(actions.values())
    assert shares == {act: pytest.approx(n / total, abs=6e-4) for act, n in actions.items()}
  assert 0.29 < test["oov_values"] < 0.31
  assert test["provenance"] == {
    "entered": 20_037,
    "informed": 14_771,
    "accepted": 3_699,
    "accepted_last_turn": 2_808,
    "accepted_earlier": 891,
    "carried": 1_567,
    "carried_state": 1_414,
    "carried_system": 153,
    "own": 0,
    "unknown": 0,
    "accepted_frames": 10_307,
    "carried_frames": 5_684,
    "carried_slots": 6_822,
    "carried_dialogues": 959,
    "sticky_frames": 7_338,
  }
  assert dev["provenance"]["entered"] == 19_656
  assert dev["provenance"]["unknown"] == 839  # spans give the source of 1,744 values in old files


def test_of_counterfactual_dialogues_only_scored_frames_count(root):
  """As in `provenance.count`: their shares are of the same frames."""
  dialogues = list(open_corpus(root).dialogues("test"))
  cut = [
    d.turns[: d.turns.index([t for t in d.turns if t.speaker == "USER"][-1]) + 1] for d in dialogues
  ]
  last = [
    dataclasses.replace(d, turns=turns, last_only=True)
    for d, turns in zip(dialogues, cut, strict=True)
  ]
  counts = statistics.count(last)
  assert counts.user_frames.total() == sum(len(turns[-1].frames) for turns in cut)


def test_a_dialogue_without_frames_is_of_no_domain(root):
  [dialogue, *_] = open_corpus(root).dialogues("test")
  bare = tuple(dataclasses.replace(turn, frames=()) for turn in dialogue.turns)
  counts = statistics.count([dataclasses.replace(dialogue, turns=bare)])
  found = statistics.summarise(counts, open_corpus(root).schema("test"), None, None)
  assert (found["dialogues"], found["single_domain"], found["multi_domain"]) == (1, 0, 0)
