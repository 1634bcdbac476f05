"""What a tracker may know, and what it may not."""

import dataclasses

import pytest
from tiny_corpus import write_corpus

from sgdx_t5x.corpus.dialogue import ACTS, Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import Act, Span, check_acts, gold_turns, user_turns

INTENT = {"is_transactional": False, "result_slots": []}


def free(name):
  return {"name": name, "description": "", "is_categorical": False, "possible_values": []}


SCHEMA = parse_schema(
  [
    {
      "service_name": "Cafes_1",
      "description": "",
      "slots": [free("city"), free("phone"), free("intent")],
      "intents": [
        {
          "name": "FindCafe",
          "description": "",
          "required_slots": ["city"],
          "optional_slots": {"intent": "dontcare"},
          **INTENT,
        }
      ],
    },
    {
      "service_name": "Taxis_1",
      "description": "",
      "slots": [free("to")],
      "intents": [
        {
          "name": "Ride",
          "description": "",
          "required_slots": ["to"],
          "optional_slots": {},
          **INTENT,
        }
      ],
    },
  ],
  "schema",
)


def act(name, slot="", *values):
  return {"act": name, "slot": slot, "values": list(values), "canonical_values": []}


def user(text, **frames):
  found = [
    {
      "service": service,
      "slots": spans,
      "state": {"active_intent": intent, "requested_slots": asked, "slot_values": values},
    }
    for service, (spans, intent, asked, values) in frames.items()
  ]
  return {"speaker": "USER", "utterance": text, "frames": found}


def system(text, **frames):
  found = [
    {"service": service, "slots": spans, "actions": actions}
    for service, (spans, actions) in frames.items()
  ]
  return {"speaker": "SYSTEM", "utterance": text, "frames": found}


def span(slot, start, end):
  return {"slot": slot, "start": start, "exclusive_end": end}


DIALOGUE = Dialogue.from_json(
  {
    "dialogue_id": "1_00000",
    "services": ["Cafes_1", "Taxis_1"],
    "turns": [
      user("A cafe, please.", Cafes_1=([], "FindCafe", [], {})),
      system(
        "In Rome? Call 5-5.",
        Cafes_1=(
          [span("city", 3, 7), span("phone", 14, 17)],
          [act("CONFIRM", "city", "Rome"), act("INFORM", "phone", "5-5")],
        ),
      ),
      user(
        "Yes, in Rome.", Cafes_1=([span("city", 8, 12)], "FindCafe", ["phone"], {"city": ["Rome"]})
      ),
      system(
        "Roma, a ride?",
        Cafes_1=([span("city", 0, 4)], [act("OFFER_INTENT", "intent", "FindCafe")]),
        Taxis_1=([span("to", 0, 4)], [act("INFORM_COUNT", "count", "3"), act("REQUEST", "to")]),
      ),
      user("Go.", Taxis_1=([], "NONE", [], {"to": ["Rome"]}), Cafes_1=([], "FindCafe", [], {})),
    ],
  }
)


def test_what_may_be_known_of_each_frame():
  first, second, third = user_turns(DIALOGUE, SCHEMA)
  assert [(k.frame_id, k.turn, k.service, k.system, k.user, k.acts) for k in first] == [
    ("1_00000-000-Cafes_1", 0, 0, "", "A cafe, please.", ())
  ]
  confirm = Act(1, 0, turns.CONFIRM, 0, ("Rome",))
  inform = Act(1, 0, turns.INFORM, 1, ("5-5",))
  assert second[0].acts == (confirm, inform)
  assert second[0].system == "In Rome? Call 5-5."
  assert [k.service for k in third] == [1, 0]
  assert third[0].turn_services == (1, 0)
  # OFFER_INTENT refers to an intent, not to the slot called intent; a count is no slot either.
  assert third[0].acts == (
    confirm,
    inform,
    Act(3, 0, turns.OFFER_INTENT, 0),
    Act(3, 1, turns.SYSTEM_ACTS.index("INFORM_COUNT"), turns.NONE),
    Act(3, 1, turns.REQUEST, 0),
  )


def test_acts_that_offer_one_slot_in_turn_are_one():
  acts = [act("OFFER", "city", "Rome"), act("OFFER", "city", "Oslo"), act("OFFER", "phone", "5")]
  acts += [act("OFFER", "city", "Bern"), act("REQUEST", "city"), act("REQUEST", "city")]
  asked, answer = DIALOGUE.to_json()["turns"][0], user("Go.", Cafes_1=([], "FindCafe", [], {}))
  turns_ = [asked, system("?", Cafes_1=([], acts)), answer]
  data = {"dialogue_id": "1", "services": ["Cafes_1"], "turns": turns_}
  *_, (context,) = user_turns(Dialogue.from_json(data), SCHEMA)
  assert [(x.act, x.slot, x.values) for x in context.acts] == [
    (turns.OFFER, 0, ("Rome", "Oslo")),
    (turns.OFFER, 1, ("5",)),
    (turns.OFFER, 0, ("Bern",)),
    (turns.REQUEST, 0, ()),
    (turns.REQUEST, 0, ()),
  ]


def test_what_is_to_be_found():
  _, second, third = gold_turns(DIALOGUE, SCHEMA)
  (gold,) = second
  assert (gold.intent, gold.requested, gold.values) == (0, (1,), {0: ("Rome",)})
  assert gold.spans == (Span(0, True, 8, 12), Span(0, False, 3, 7), Span(1, False, 14, 17))
  assert (third[0].intent, third[0].spans) == (turns.NONE, (Span(0, False, 0, 4),))
  assert third[1].spans == (Span(0, False, 0, 4),)


def test_gold_does_not_reach_what_may_be_known():
  turned = [
    dataclasses.replace(
      turn,
      frames=tuple(
        dataclasses.replace(
          frame,
          slots=[] if frame.slots else frame.slots,
          state=frame.state
          and dataclasses.replace(
            frame.state, active_intent="NONE", requested_slots=(), slot_values={}
          ),
        )
        for frame in turn.frames
      ),
    )
    for turn in DIALOGUE.turns
  ]
  bare = dataclasses.replace(DIALOGUE, turns=tuple(turned))
  assert list(user_turns(bare, SCHEMA)) == list(user_turns(DIALOGUE, SCHEMA))


def test_numbers_of_acts_are_those_of_records():
  assert turns.SYSTEM_ACTS == (
    "INFORM",
    "REQUEST",
    "CONFIRM",
    "OFFER",
    "NOTIFY_SUCCESS",
    "NOTIFY_FAILURE",
    "INFORM_COUNT",
    "OFFER_INTENT",
    "REQ_MORE",
    "GOODBYE",
  )
  assert set(turns.SYSTEM_ACTS) == set(ACTS["SYSTEM"])


def test_dialogues_without_acts_are_refused_by_name(tmp_path):
  corpus = open_corpus(write_corpus(tmp_path))
  dialogue = next(corpus.dialogues("test"))
  with pytest.raises(SgdxError) as e:
    check_acts(dialogue, "mine.json", "SpanDST")
  assert e.value.found == (
    "mine.json, dialogue 1_00000, turn 1: the system's acts are not annotated"
  )
  assert "SpanDST" in e.value.expected
  assert "T5DST" in e.value.available
  check_acts(DIALOGUE, "mine.json", "SpanDST")
