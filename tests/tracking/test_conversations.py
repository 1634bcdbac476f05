"""One dialogue at a time: in Python, and typed in a terminal."""

import dataclasses
import gzip
import io
import json
import os
import pty
import select
import subprocess
import sys

import pytest
from commands import assert_four_parts, sgdx
from hotels import BARE, OFFER, SAID, SCHEMA, service
from places import SUPPORT
from rule_tracker import RuleTracker

from sgdx_t5x.cli import track as cli_track
from sgdx_t5x.cli.conversation import Conversation, _rows
from sgdx_t5x.corpus.dialogue import Dialogue, Turn
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tracking.conversations import (
  DialogueTracker,
  checked_view,
  from_utterances,
  read_acts,
  read_schema,
)
from sgdx_t5x.tracking.protocol import TrackedFrame


def test_states_after_every_user_turn():
  tracker = DialogueTracker(RuleTracker())
  first, second = tracker.track(SAID, SCHEMA, services=["Hotels_1"])
  assert first["Hotels_1"].slot_values == {"stars": ("five stars",)}
  expected = {"stars": ("two stars",), "hotel": ("Ramada",), "pool": ("No",)}
  assert second["Hotels_1"].slot_values == expected
  # All services by default; an act about one of them does not apply to the other.
  about = ("The Ramada?", [{**OFFER, "service": "Hotels_2"}])
  *_, last = tracker.track([SAID[0], about, SAID[2]], SCHEMA)
  assert "hotel" not in last["Hotels_1"].slot_values
  assert last["Hotels_2"].slot_values["hotel"] == ("Ramada",)
  *_, last = tracker.track(SAID, SCHEMA, variant=BARE, services=["Hotels_1"])
  assert last["Hotels_1"].slot_values == {"hotel": ("Ramada",)}


def test_a_dialogue_of_the_house_is_tracked_as_its_utterances(tmp_path):
  (tmp_path / "mine.json").write_text(json.dumps(SCHEMA))
  tracker = DialogueTracker(RuleTracker())
  dialogue = from_utterances(SAID, read_schema(SCHEMA))
  assert isinstance(dialogue, Dialogue)
  assert tracker.track(dialogue, tmp_path / "mine.json") == tracker.track(SAID, SCHEMA)


def test_all_turns_of_a_counterfactual_dialogue_are_tracked():
  dialogue = from_utterances(SAID, read_schema(SCHEMA))
  last_only = dataclasses.replace(dialogue, last_only=True)
  tracker = DialogueTracker(RuleTracker())
  assert tracker.track(last_only, SCHEMA) == tracker.track(dialogue, SCHEMA)


@pytest.mark.parametrize(
  ("dialogue", "how", "words"),
  [
    ("hello", {}, "dialogue is of type str"),
    (SAID, {"services": ["Hotels_3"]}, "Hotels_3"),
    (SAID, {"services": []}, "no services"),
    (SAID, {"variant": SCHEMA[:1]}, "1 services"),
    (SAID, {"variant": "nowhere.json"}, "nowhere.json"),
    (["Hi", ("?", [{**OFFER, "act": "OFER"}]), "Yes"], {}, "nearest: OFFER"),
    (["Hi", ("?", [{**OFFER, "slot": "hotl"}]), "Yes"], {}, "nearest: hotel"),
    (["Hi", ("?", [{**OFFER, "values": "Ramada"}]), "Yes"], {}, "not a list"),
    (["Hi", ("?", [{**OFFER, "values": [2]}]), "Yes"], {}, "not a list of strings"),
    (["Hi", ("?", ["OFFER"]), "Yes"], {}, "a str, not a dictionary"),
    (["Hi", ("?", [{**OFFER, "service": "Hotels1"}]), "Yes"], {}, "nearest: Hotels_1"),
    (
      ["Hi", ("?", [{"act": "OFFER_INTENT", "slot": "intent", "values": ["Fnid"]}]), "Yes"],
      {},
      "FindHotel",
    ),
    (from_utterances(SAID, read_schema([service("Hotels_7")])), {}, "unknown service 'Hotels_7'"),
    (Dialogue("7", ("Hotels_1",), (Turn("user", "Hi", ()),)), {}, "dialogue 7, turn 0"),
    (3, {}, "dialogue is of type int"),
    ({"Hi": 1}, {}, "dialogue is of type dict"),
    ((text for text in ["Hi"]), {}, "dialogue is of type generator"),
    ([("Hi", [OFFER])], {}, "utterance 0 is the user's"),
    (["Hi", 3], {}, "utterance 1 is of type int"),
    (["Hi", ("?", "acts")], {}, "utterance 1 is of type tuple"),
    (["Hi", ("?", [{**OFFER, "slot": ["hotel"]}]), "Yes"], {}, "slot=['hotel'], which is not"),
    (SAID, {"services": [["Hotels_1"]]}, "a service of type list"),
    (SAID, {"variant": 3}, "variant is of type int"),
    (SAID, {"variant": SCHEMA[0]}, "a single service"),
    (SAID, {"variant": {"services": SCHEMA}}, "an object"),
    (SAID, {"variant": []}, "no services"),
    (SAID, {"services": "Hotels_1"}, "services is of type str"),
    (SAID, {"servces": ["Hotels_1"]}, "nearest: services"),
  ],
)
def test_what_does_not_fit(dialogue, how, words):
  with pytest.raises(SgdxError) as e:
    DialogueTracker(RuleTracker()).track(dialogue, SCHEMA, **how)
  assert_four_parts(e.value.text, words)


def test_services_that_are_not_tracked_need_no_slots():
  intent = {**service("Alarm_1")["intents"][0], "required_slots": [], "optional_slots": {}}
  schema = [*SCHEMA, {**service("Alarm_1"), "slots": [], "intents": [intent]}]
  said, tracker = SAID[:1], DialogueTracker(RuleTracker())
  assert [*tracker.track(said, schema, services=["Hotels_1"])[0]] == ["Hotels_1"]
  with pytest.raises(SgdxError, match="Alarm_1 has no slots") as error:
    tracker.track(said, schema)
  assert "--service" in error.value.fix


# --- the terminal --------------------------------------------------------------------------


def converse(monkeypatch, capsys, *lines, reads_acts=True, services=("Hotels_1",)):
  original, tracker = read_schema(SCHEMA), RuleTracker(reads_acts)
  shown = {"original": checked_view(tracker, original, "original")}
  shown["bare"] = checked_view(tracker, original, "bare", read_schema(BARE))
  monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
  Conversation(tracker, shown, services).run()
  return capsys.readouterr()


def test_states_stand_side_by_side(monkeypatch, capsys):
  out = converse(monkeypatch, capsys, "Five stars", "The Ramada? {OFFER hotel=Ramada}", "ok").out
  assert "{OFFER hotel_name=Ramada" in out  # the help of a tracker that reads acts
  lines = [line.split() for line in out.splitlines()]
  assert ["stars", "five", "stars", "-", "*"] in lines
  assert ["hotel", "Ramada", "Ramada"] in lines
  assert max(map(len, out.splitlines())) <= 80
  bare = converse(monkeypatch, capsys, "Hm", reads_acts=False).out
  assert "OFFER" not in bare
  assert "Hotels_1: nothing yet" in bare


@pytest.mark.parametrize("typed", ["OFFER_INTENT FindHotel", "OFFER_INTENT intent=FindHotel"])
def test_an_offered_intent_is_named(typed):
  schema = read_schema(SCHEMA)
  found = [{"act": "OFFER_INTENT", "slot": "intent", "values": ["FindHotel"]}]
  assert read_acts(typed, schema, ["Hotels_1"]) == found
  dialogue = from_utterances(["Hi", ("One?", found)], schema, ["Hotels_1"])
  assert list(dialogue.turns[1].frames[0].actions) == found
  for wrong in ("OFFER_INTENT FindBoat", "OFFER_INTENT"):
    with pytest.raises(SgdxError, match="unknown intent"):
      read_acts(wrong, schema, ["Hotels_1"])


def test_a_count_is_of_its_act_alone():
  schema = read_schema(SCHEMA)
  found = [{"act": "INFORM_COUNT", "slot": "count", "values": ["3"]}]
  assert read_acts("INFORM_COUNT count=3", schema, ["Hotels_1"]) == found
  assert from_utterances(["Hi", ("Three.", found)], schema)
  with pytest.raises(SgdxError, match=r"available: .*[a-z]\n"):
    read_acts("OFFER count=3", schema, ["Hotels_1"])
  with pytest.raises(SgdxError, match="cannot be read"):
    from_utterances(["Hi", ("Three.", [{**found[0], "act": "OFFER"}])], schema)


def test_a_service_named_twice_is_shown_once(monkeypatch, capsys, tmp_path):
  (tmp_path / "mine.json").write_text(json.dumps(SCHEMA))
  monkeypatch.setattr(cli_track, "_open", lambda args: RuleTracker())
  monkeypatch.setattr(sys, "stdin", io.StringIO("Five stars\n"))
  assert sgdx("track", "--schema", tmp_path / "mine.json", "--service", *["Hotels_1"] * 2) == 0
  assert capsys.readouterr().out.count("five stars") == 1


def test_slots_that_no_intent_has_are_said(monkeypatch, capsys, tmp_path):
  """States never have them: without a word, a schema with a slip seems not to be understood."""
  untaken = service("Hotels_1")
  del untaken["intents"][0]["optional_slots"]["pool"]
  (tmp_path / "mine.json").write_text(json.dumps([untaken, SCHEMA[1]]))
  monkeypatch.setattr(cli_track, "_open", lambda args: RuleTracker())
  monkeypatch.setattr(sys, "stdin", io.StringIO("Five stars\n"))
  assert sgdx("track", "--schema", tmp_path / "mine.json") == 0
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("never filled")
  assert line.endswith("no intent of Hotels_1 has them: pool")


def test_a_dash_as_a_value_is_not_the_lack_of_one():
  frames = [TrackedFrame({"hotel": ("-",)}), TrackedFrame({})]
  assert _rows(frames) == (("hotel", "-", "-", "*"),)


def test_commands_and_slips(monkeypatch, capsys):
  slip, unknown = "It is {OFFR hotel=x}", "It is {OFFER motel=x}"
  typed = ("", "Five stars", slip, unknown, "/undo", "two stars", "", "/what", "/reset", "pool")
  out, err = converse(monkeypatch, capsys, *typed)
  assert_four_parts(err, "'OFFR'", "'motel'", "nearest: OFFER")
  # An empty line is ignored for the user, and means silence for the system.
  assert out.count("user> ") == 6
  assert out.count("system> ") == 5 + 2  # the help, shown twice, contains one
  assert "unknown command /what" in out
  states = out[out.index("0 lines left") :]
  assert "two stars" in states
  assert "a new dialogue" in states
  assert "nothing yet" in states[states.index("a new dialogue") :]


def test_a_schema_may_be_compressed(tmp_path):
  path = tmp_path / "schema.json.gz"
  path.write_bytes(gzip.compress(json.dumps(SCHEMA).encode()))
  assert read_schema(path).services == read_schema(SCHEMA).services


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # the latter in C.UTF-8
def test_a_line_in_another_encoding_is_said(monkeypatch, errors):
  tracker, original = RuleTracker(), read_schema(SCHEMA)
  lines = io.TextIOWrapper(io.BytesIO(b"Five stars\nCaf\xe9\n"), "utf-8", errors)
  monkeypatch.setattr(sys, "stdin", lines)
  with pytest.raises(SgdxError) as e:
    Conversation(tracker, {"x": checked_view(tracker, original, "x")}, ["Hotels_1"]).run()
  assert_four_parts(e.value.text, "not UTF-8")


def test_in_a_terminal(tmp_path):
  """Through a pseudo-terminal of 80 columns: the prompt comes, Ctrl-D ends it."""
  (tmp_path / "mine.json").write_text(json.dumps(SCHEMA))
  code = (
    "import sys; from rule_tracker import RuleTracker; from sgdx_t5x.tracking.conversations import"
    " *; from sgdx_t5x.cli.conversation import Conversation\n"
    "schema, tracker = read_schema(sys.argv[1]), RuleTracker()\n"
    "views = {'original': checked_view(tracker, schema, 'original')}\n"
    "Conversation(tracker, views, ['Hotels_1']).run()\n"
  )
  ours, theirs = pty.openpty()
  path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
  run = subprocess.Popen(
    [sys.executable, "-c", code, tmp_path / "mine.json"],
    env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80", "TERM": "xterm"},
    stdin=theirs,
    stdout=theirs,
    stderr=theirs,
  )
  os.close(theirs)
  shown, seen = "", 0

  def until(text):
    nonlocal shown, seen
    while text not in shown[seen:]:
      assert select.select([ours], [], [], 60)[0], shown
      shown += os.read(ours, 4096).decode()
    seen = shown.index(text, seen) + len(text)

  until("NOTIFY_SUCCESS")
  until("user> ")
  os.write(ours, b"Five stars\n")
  until("five stars")
  until("system> ")
  os.write(ours, b"\x04")
  assert run.wait() == 0
  os.close(ours)
