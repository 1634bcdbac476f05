"""Annotation rules: each is broken once in a good dialogue; counts for the real SGD."""

import copy
import json

import pytest
from places import DOCS

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.annotation import annotation_violations, validate_annotation
from sgdx_t5x.corpus.annotation_rules import ERRORS, WARNINGS
from sgdx_t5x.corpus.corpus import count
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.errors import SgdxError

PAGE = DOCS / "dialogue-checks.md"
# What `sgdx data verify` finds in the real archive (24 of test's 34 files).
REAL = {
  "train": {
    "overlap": 2,
    "span-slot-state": 39,
    "act-value": 1,
    "state-keeps": 139,
    "call-required": 18,
    "result-free": 1743,
    "result-all-slots": 1,
    "result-value": 11,
    "result-source": 81,
  },
  "dev": {"result-free": 429, "result-value": 6},
  "test": {"empty-utterance": 2, "state-keeps": 55, "result-free": 703, "result-source": 8},
}


def service(name, slots, intents):
  return {
    "service_name": name,
    "description": name,
    "slots": [
      {"name": s, "description": s, "is_categorical": bool(v), "possible_values": v}
      for s, v in slots.items()
    ],
    "intents": [
      {
        "name": intent,
        "description": intent,
        "is_transactional": transactional,
        "required_slots": required,
        "optional_slots": dict.fromkeys(optional, "dontcare"),
        "result_slots": results,
      }
      for intent, transactional, required, optional, results in intents
    ],
  }


BOAT_SLOTS = {"port": [], "seats": ["1", "2"], "boat": [], "time": [], "phone": []}
SCHEMA = [
  service(
    "Boats_1",
    BOAT_SLOTS,
    [
      ("FindBoat", False, ["port"], ["seats"], list(BOAT_SLOTS)),
      ("BookBoat", True, ["boat", "seats"], ["time"], list(BOAT_SLOTS)),
    ],
  ),
  service("Inns_1", {"town": []}, [("FindInn", False, ["town"], [], ["town"])]),
]
ROW = {"port": "Oakham", "seats": "2", "boat": "Tern", "time": "09:00", "phone": "555"}


def act(name, slot="", *values, canonical=()):
  return {
    "act": name,
    "slot": slot,
    "values": list(values),
    "canonical_values": list(canonical or values),
  }


def turn(utterance, actions, service="Boats_1", spans=(), state=None, requested=(), **call):
  """A turn of one frame; spans are (slot, text); state is (intent, slot values)."""
  slots = [
    {"slot": s, "start": utterance.index(t), "exclusive_end": utterance.index(t) + len(t)}
    for s, t in spans
  ]
  frame = {"service": service, "slots": slots, "actions": actions, **call}
  if state is not None:
    intent, values = state
    frame["state"] = {
      "active_intent": intent,
      "requested_slots": list(requested),
      "slot_values": {slot: [value] for slot, value in values.items()},
    }
  speaker = "SYSTEM" if state is None else "USER"
  return {"speaker": speaker, "utterance": utterance, "frames": [frame]}


def good() -> dict:
  """Returns a dialogue of two services that follows every rule."""
  found = {"port": "Oakham", "seats": "2"}
  chosen = {**found, "boat": "Tern", "time": "9 am"}
  turns = [
    turn(
      "I need a boat from Oakham.",
      [act("INFORM_INTENT", "intent", "FindBoat"), act("INFORM", "port", "Oakham")],
      spans=[("port", "Oakham")],
      state=("FindBoat", {"port": "Oakham"}),
    ),
    turn("For how many?", [act("REQUEST", "seats")]),
    turn("Two.", [act("INFORM", "seats", "Two", canonical=["2"])], state=("FindBoat", found)),
    turn(
      "There is one, the Tern, at 9 am.",
      [
        act("INFORM_COUNT", "count", "1"),
        act("OFFER", "boat", "Tern"),
        act("OFFER", "time", "9 am", canonical=["09:00"]),
      ],
      spans=[("boat", "Tern"), ("time", "9 am")],
      service_call={"method": "FindBoat", "parameters": found},
      service_results=[ROW],
    ),
    turn(
      "Fine, book it, and find me an inn.",
      [act("SELECT"), act("INFORM_INTENT", "intent", "BookBoat")],
      state=("BookBoat", chosen),
    ),
    turn(
      "The Tern for two, right?",
      [act("CONFIRM", "boat", "Tern"), act("CONFIRM", "seats", "two", canonical=["2"])],
      spans=[("boat", "Tern")],
    ),
    turn(
      "Yes. What is the phone number?",
      [act("AFFIRM"), act("REQUEST", "phone")],
      state=("BookBoat", chosen),
      requested=["phone"],
    ),
    turn(
      "Done. It is 555.",
      [act("NOTIFY_SUCCESS"), act("INFORM", "phone", "555")],
      spans=[("phone", "555")],
      service_call={
        "method": "BookBoat",
        "parameters": {"boat": "Tern", "seats": "2", "time": "09:00"},
      },
      service_results=[ROW],
    ),
    turn("Thanks.", [act("THANK_YOU")], state=("NONE", chosen)),
    turn("Goodbye.", [act("GOODBYE")]),
  ]
  inn = turn("", [act("INFORM_INTENT", "intent", "FindInn")], "Inns_1", state=("FindInn", {}))
  turns[4]["frames"] += inn["frames"]
  return {"dialogue_id": "1_00000", "services": ["Boats_1", "Inns_1"], "turns": turns}


def check(*dialogues):
  """Returns rule -> count of remarks; raises as the check does."""
  schema, remarks = parse_schema(SCHEMA, "schema.json"), {}
  deep = validate_annotation(schema, remarks)
  for data in dialogues:
    deep(Dialogue.from_json(copy.deepcopy(data)), schema, "dialogues_001.json")
  return {rule: remark.count for rule, remark in remarks.items()}


def frame(data, number):
  return data["turns"][number]["frames"][0]


def put(number, **changes):
  """Returns a function that changes the first frame of a turn."""
  return lambda data: frame(data, number).update(changes)


def put_action(number, index, **changes):
  return lambda data: frame(data, number)["actions"][index].update(changes)


def put_span(number, **changes):
  return lambda data: frame(data, number)["slots"][0].update(changes)


def put_values(number, **changes):
  return lambda data: frame(data, number)["state"]["slot_values"].update(changes)


def put_parameters(number, **changes):
  return lambda data: frame(data, number)["service_call"]["parameters"].update(changes)


def put_result(number, **changes):
  return put(number, service_results=[{**ROW, **changes}])


def test_a_good_dialogue_has_no_remarks():
  assert check(good()) == {}


def test_empty_lists_of_acts_everywhere_are_none():
  """As in MultiWOZ 2.2; one empty list beside others is a fault."""
  data = good()
  for part in data["turns"][::2]:
    for found in part["frames"]:
      found["actions"] = []
  assert check(data) == {}


def test_the_older_release_lacks_keys_and_passes():
  data = good()
  for number, part in enumerate(data["turns"]):
    for found in part["frames"]:
      for key in ("service_call", "service_results", *(["actions"] if number % 2 == 0 else [])):
        found.pop(key, None)
      for action in found.get("actions", ()):
        canonical = action.pop("canonical_values")
        if action["slot"] == "seats":  # there, these are the values of categorical slots
          action["values"] = canonical
  assert check(data) == {}


BROKEN = [
  ("id", lambda d: d.update(dialogue_id="1/2"), "dialogue 1/2"),
  ("services", lambda d: d["services"].pop(), "Inns_1"),
  ("services", lambda d: d["services"].append("Inns_1"), "Inns_1"),
  ("ending", lambda d: d["turns"].pop(), "9 turns"),
  ("ending", put_action(1, 0, act="GOODBYE", slot=""), "[1, 9]"),
  ("frames", lambda d: d["turns"][1].update(frames=[]), "turn 1: frames of no service"),
  ("frames", lambda d: d["turns"][0]["frames"].append(frame(d, 0)), "Boats_1, Boats_1"),
  ("system-frame", put(7, service="Inns_1"), "turn 7: frames of Inns_1"),
  ("keys", lambda d: frame(d, 1).pop("slots"), "turn 1: service Boats_1"),
  ("keys", lambda d: put(1, state=frame(d, 0)["state"])(d), "turn 1"),
  ("keys", put(0, service_results=[]), "turn 0"),
  ("span-slot", put_span(0, slot="seats"), "turn 0: a span of slot 'seats'"),
  ("span-offsets", put_span(0, exclusive_end=27), "span 19..27 in 26 characters"),
  ("span-offsets", put_span(0, exclusive_end=19), "span 19..19"),
  ("span-state", put_span(0, start=18), "' Oakham'"),
  ("span-act", put(3, slots=[]), "slot 'boat': 'Tern' of service Boats_1: act without span"),
  (
    "span-act",
    lambda d: frame(d, 7)["actions"].pop(),
    "'555' of service Boats_1: span without act",
  ),
  ("act", put_action(1, 0, act="SELECT"), "SYSTEM's act 'SELECT'"),
  ("act-form", put_action(1, 0, slot="deck"), "REQUEST, slot 'deck'"),
  ("act-form", put_action(6, 0, slot="boat"), "AFFIRM, slot 'boat'"),
  ("act-form", put_action(3, 0, values=[], canonical_values=[]), "INFORM_COUNT, slot 'count'"),
  ("canonical", put_action(2, 0, canonical_values=[]), "INFORM, slot 'seats'"),
  ("act-intent", put_action(0, 0, values=["BookBoat"]), "INFORM_INTENT 'BookBoat'"),
  ("act-intent", put_action(1, 0, act="OFFER_INTENT", slot="intent", values=["Sail"],
                            canonical_values=["Sail"]), "OFFER_INTENT 'Sail'"),
  ("act-state", put_action(2, 0, canonical_values=["1"]), "INFORM, slot 'seats': '1'"),
  ("requested", lambda d: frame(d, 6)["state"].update(requested_slots=[]), "turn 6"),
  ("requested", lambda d: frame(d, 6)["state"].update(requested_slots=["phone"] * 2), "turn 6"),
  ("intent-change", lambda d: frame(d, 4)["actions"].pop(), "'BookBoat' after 'FindBoat'"),
  ("state-slot", put_values(8, phone=["555"]), "slot 'phone' in the state"),
  ("state-categorical", put_values(2, seats=["2", "1"]), "slot 'seats': 2, 1"),
  ("state-categorical", put_values(4, seats=["3"]), "slot 'seats': 3"),
  ("state-free", put_values(4, boat=["Tern", "tern"]), "slot 'boat': Tern, tern"),
  ("state-free", put_values(4, boat=["Tern", "dontcare"]), "slot 'boat': Tern, dontcare"),
  ("state-said", put_values(0, seats=["1"]), "slot 'seats': 1"),
  ("call-intent", lambda d: frame(d, 3)["service_call"].update(method="BookBoat"), "FindBoat"),
  ("call-slots", put_parameters(3, time="9 am"), "FindBoat called with port, seats, time"),
  ("call-values", put_parameters(3, seats="1"), "slot 'seats': '1'"),
  ("call-affirmed", put_action(6, 0, act="NEGATE"), "a call to 'BookBoat'"),
  ("results", lambda d: frame(d, 3).pop("service_results"), "without results"),
  ("results", lambda d: frame(d, 3).pop("service_call"), "results without a call"),
  ("results", put(3, service_results=[ROW] * 11), "11 results of FindBoat"),
  ("results", put(7, service_results=[ROW] * 2), "2 results of BookBoat"),
  ("result-slots", put_result(3, deck="1"), "slots deck in a result"),
  ("result-match", put_result(3, seats="1"), "slot 'seats': '1' in a result"),
  ("notify", put(7, service_results=[]), "0 results and acts NOTIFY_SUCCESS"),
  ("notify", put(3, service_results=[]), "0 results and acts INFORM_COUNT"),
  ("transaction", lambda d: frame(d, 7)["actions"].pop(0), "acts INFORM, service call"),
  ("transaction", lambda d: frame(d, 9)["actions"].append(act("NOTIFY_SUCCESS")),
   "acts GOODBYE, NOTIFY_SUCCESS, no service call"),
  ("count", put_action(3, 0, values=["2"]), "1 results"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change", "words"), BROKEN)
def test_errors(rule, change, words):
  data = good()
  change(data)
  with pytest.raises(SgdxError) as error:
    check(data)
  for word in (words, "dialogues_001.json", f"{ERRORS[rule]} (rule {rule})", "fix:"):
    assert word in str(error.value)


@pytest.mark.parametrize(("rule", "change"), [broken[:2] for broken in BROKEN])
def test_violations_are_listed_where_they_are_not_refused(rule, change):
  if rule in ("id", "ending"):
    return  # no perturbation changes them
  data = good()
  change(data)
  violations = annotation_violations(parse_schema(SCHEMA, "schema.json"))(Dialogue.from_json(data))
  assert rule in {violation.rule for violation in violations}


def test_an_id_can_be_encoded():
  with pytest.raises(SgdxError, match="half a character in the id"):
    check(good() | {"dialogue_id": "a\ud800"})


def test_an_id_occurs_once():
  with pytest.raises(SgdxError, match="dialogue 1_00000: duplicate id"):
    check(good(), good())


def remove_seats(data):
  for number in (4, 6, 8):
    del frame(data, number)["state"]["slot_values"]["seats"]
  del frame(data, 7)["service_call"]["parameters"]["seats"]


REMARKED = {  # rule: change, how often it is counted
  "empty-utterance": (lambda d: d["turns"][1].update(utterance=" "), 1),
  "overlap": (lambda d: frame(d, 0)["slots"].append(frame(d, 0)["slots"][0]), 1),
  "span-slot-state": (
    lambda d: d["turns"].__setitem__(
      6,
      turn(
        "Yes. Is it 555?",
        [act("AFFIRM"), act("REQUEST", "phone", "555")],
        spans=[("phone", "555")],
        state=("BookBoat", {"port": "Oakham", "seats": "2", "boat": "Tern", "time": "9 am"}),
        requested=["phone"],
      ),
    ),
    1,
  ),
  "act-value": (put_action(5, 1, canonical_values=["two"]), 1),
  "result-free": (put_result(7, time="10:00"), 1),
  "result-all-slots": (put(3, service_results=[{s: v for s, v in ROW.items() if s != "phone"}]), 1),
  "result-source": (put_action(3, 1, canonical_values=["tern"]), 1),
}


@pytest.mark.parametrize("rule", REMARKED)
def test_remarks_are_counted(rule):
  data = good()
  change, times = REMARKED[rule]
  change(data)
  assert check(data) == {rule: times}


def test_remarks_that_come_together():
  data = good()
  remove_seats(data)
  assert check(data) == {"state-keeps": 1, "call-required": 1}
  data = good()
  frame(data, 2)["state"]["slot_values"]["seats"] = ["dontcare"]
  frame(data, 2)["actions"][0].update(values=["dontcare"], canonical_values=["dontcare"])
  del frame(data, 3)["service_call"]["parameters"]["seats"]
  put_result(3, seats="dontcare")(data)
  del frame(data, 4)["state"]["slot_values"]["seats"]
  del frame(data, 6)["state"]["slot_values"]["seats"]
  del frame(data, 7)["service_call"]["parameters"]["seats"]
  frame(data, 8)["state"]["slot_values"]["seats"] = ["dontcare"]
  assert check(data) == {"result-value": 1, "state-keeps": 1, "call-required": 1}


def test_every_rule_is_tested_and_written_down():
  assert {rule for rule, _, _ in BROKEN} == set(ERRORS)
  assert {*REMARKED, "state-keeps", "call-required", "result-value"} == set(WARNINGS)
  text = PAGE.read_text()
  for rule, meaning in {**ERRORS, **WARNINGS}.items():
    assert f"| `{rule}` | {meaning}" in text


@pytest.mark.parametrize(
  ("change", "place"),
  [
    (
      lambda d: frame(d, 0)["slots"][0].pop("start"),
      "missing required field `start` - at `$.turns[0].frames[0]",
    ),
    (put_span(0, start="19"), "$.turns[0].frames[0].slots[0].start"),
    (lambda d: frame(d, 1)["actions"][0].pop("slot"), "turn 1: missing key 'slot'"),
    (put(3, service_results=["Tern"]), "$.turns[3].frames[0].service_results"),
    (put_result(3, phone=555), "turn 3: wrong type: result 'phone': 555 is not a string"),
    (put_parameters(3, port=1), "turn 3: wrong type: parameter 'port'"),
    (lambda d: d["turns"][1].update(utterance=None), "$.turns[1].utterance"),
    (lambda d: d["turns"].clear(), "services"),
  ],
)
def test_broken_forms_are_errors_with_their_place(change, place):
  data = good()
  change(data)
  with pytest.raises(SgdxError) as error:
    check(data)
  assert place in str(error.value)


def write_corpus(root, *dialogues):
  (root / "train").mkdir(parents=True)
  (root / "train/schema.json").write_text(json.dumps(SCHEMA))
  (root / "train/dialogues_001.json").write_text(json.dumps(dialogues))
  return ["data", "verify", "--corpus", str(root)]


def test_verify_prints_remarks_within_80_columns(tmp_path, capsys):
  remarked = {**good(), "dialogue_id": "1_00001"}
  remove_seats(remarked)
  assert main(write_corpus(tmp_path / "mine", good(), remarked)) == 0
  out = capsys.readouterr().out
  lines = [line.split() for line in out.splitlines()]
  assert ["state-keeps", "1", "train", "1_00001,", "turn", "4"] in lines
  assert f"call-required: {WARNINGS['call-required']}" in out
  assert max(len(line) for line in out.splitlines()) <= 80
  assert main(write_corpus(tmp_path / "clean", good())) == 0
  assert "annotation warnings: none" in capsys.readouterr().out


def test_verify_refuses_what_reading_does_not(tmp_path, capsys):
  data = good()
  put_span(0, exclusive_end=99)(data)
  arguments = write_corpus(tmp_path / "mine", data)
  assert count(open_corpus(tmp_path / "mine").dialogues("train")).dialogues == 1
  assert main(arguments) == 1
  error = capsys.readouterr().err
  for word in ("train/dialogues_001.json, dialogue 1_00000, turn 0", "slot 'port'", "fix:"):
    assert word in error


@pytest.mark.real
def test_real_sgd_breaks_no_rule_of_errors_and_these_of_remarks(real_pass):
  for split, expected in REAL.items():
    assert real_pass.remarks[split] == expected
