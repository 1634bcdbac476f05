"""Dialogues: the DSTC8 format both ways, and what is refused."""

import json

import pytest

from sgdx_t5x.corpus.dialogue import (
  Dialogue,
  check_dialogue,
  frame_id,
  read_dialogues,
  write_dialogues,
)
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError


@pytest.fixture(scope="module")
def sample():
  return open_corpus("sample")


@pytest.fixture
def data(sample):
  return next(sample.dialogues("dev")).to_json()


def test_writes_what_it_read(sample):
  dialogues = list(sample.dialogues("dev"))
  text = write_dialogues(dialogues)
  assert list(read_dialogues(text, "file")) == dialogues


def test_keeps_absent_keys_absent(data):
  """31 train files are of an older release without service_call and canonical_values."""
  for turn in data["turns"]:
    for frame in turn["frames"]:
      frame.pop("service_call", None)
      frame.pop("actions", None)
  assert Dialogue.from_json(data).to_json() == data


def test_user_frames_count_all_turns(data):
  turns = [turn for turn, _ in Dialogue.from_json(data).user_frames()]
  assert turns == list(range(0, len(data["turns"]), 2))
  assert frame_id("1_00000", 2, "Banks_1") == "1_00000-002-Banks_1"  # the official form


def edit(data, change):
  change(data["turns"][0]["frames"][0])
  return data


@pytest.mark.parametrize(
  ("change", "words"),
  [
    (lambda f: f.update(service="Ferry_1"), ("unknown service 'Ferry_1'", "turn 0")),
    (lambda f: f["state"]["slot_values"].update(prot=["x"]), ("unknown slot 'prot'", "turn 0")),
    (lambda f: f["state"].update(active_intent="Fly"), ("unknown intent 'Fly'",)),
    (lambda f: f.pop("state"), ("user frame without a state",)),
  ],
)
def test_refuses_names_that_the_schema_lacks(sample, data, change, words):
  dialogue = Dialogue.from_json(edit(data, change))
  with pytest.raises(SgdxError) as error:
    check_dialogue(dialogue, sample.schema("dev"), "dialogues_001.json")
  for word in (*words, "dialogues_001.json", data["dialogue_id"], "expected:", "fix:"):
    assert word in str(error.value)


def test_refuses_turns_that_do_not_alternate(sample, data):
  del data["turns"][1]
  with pytest.raises(SgdxError, match="turn 1: speaker 'USER'"):
    check_dialogue(Dialogue.from_json(data), sample.schema("dev"), "file")


@pytest.mark.parametrize("values", [[], "Port", None])
def test_refuses_values_that_are_no_list(data, values):
  data["turns"][0]["frames"][0]["state"]["slot_values"]["x"] = values
  with pytest.raises(SgdxError, match=r"turns\[0\]\.frames\[0\]\.state\.slot_values"):
    Dialogue.from_json(data, "file")


@pytest.mark.parametrize(
  "item", [{"slot": "x", "copy_from": "y", "value": ["z"]}, {"slot": "x", "value": "z"}]
)
def test_refuses_items_of_slots_that_are_no_spans(data, item):
  """MultiWOZ 2.2 has them, with copy_from; regression: "missing key 'start'"."""
  data["turns"][2]["frames"][0]["slots"] = [item]
  with pytest.raises(SgdxError) as error:
    Dialogue.from_json(data, "file")
  place = "missing required field `start` - at `$.turns[2].frames[0].slots[0]`"
  assert f"file, dialogue {data['dialogue_id']}: " in error.value.found
  assert place in error.value.found
  assert "(MultiWOZ 2.2's with copy_from) can be left out" in error.value.expected
  assert error.value.available == f"it has {', '.join(map(repr, item))}"
  assert "leave it out" in error.value.fix


def test_says_nothing_of_spans_where_something_else_is_wrong(data):
  del data["turns"][2]["utterance"]
  with pytest.raises(SgdxError) as error:
    Dialogue.from_json(data, "file")
  assert error.value.available == "it has 'speaker', 'frames'"
  assert "copy_from" not in error.value.text


def test_refuses_json_cut_short(sample):
  text = write_dialogues(sample.dialogues("dev"))
  with pytest.raises(SgdxError, match=r"dialogues_001.json: not valid JSON"):
    list(read_dialogues(text[: len(text) // 2], "dialogues_001.json"))
  with pytest.raises(SgdxError, match="the top-level JSON value is an object"):
    list(read_dialogues(json.dumps({"turns": []}), "file"))


def test_only_a_user_frame_has_a_user_state(data):
  user, system = (turn.frames[0] for turn in Dialogue.from_json(data).turns[:2])
  assert user.user_state == user.state
  with pytest.raises(ValueError, match=f"the frame of {system.service} has no state"):
    _ = system.user_state
