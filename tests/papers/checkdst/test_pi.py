import pytest
from perturbed import perturbed_sample, sample_dialogues, sample_split
from undo import undo_words

from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.papers.checkdst import pi, pi_exchange
from sgdx_t5x.papers.checkdst.pi_words import Exchange


def _turn(text, spans=(), acts=(), state=None):
  slots = [{"slot": s, "start": text.index(v), "exclusive_end": text.index(v) + len(v)}
           for s, v in spans]  # fmt: skip
  actions = [{"act": a, "slot": s, "values": v, "canonical_values": v} for a, s, v in acts]
  frame = {"service": "S_1", "slots": slots, "actions": actions}
  if state is not None:
    frame["state"] = {"active_intent": "F", "requested_slots": [], "slot_values": state}
  return {"speaker": "SYSTEM" if state is None else "USER", "utterance": text, "frames": [frame]}


def _exchange(*turns) -> Exchange:
  return Exchange.of({"dialogue_id": "1_00000", "services": ["S_1"], "turns": list(turns)})


@pytest.mark.parametrize(
  ("act", "refers"), [("INFORM_INTENT", True), ("SELECT", False), ("AFFIRM", False)]
)
def test_a_turn_refers_if_its_acts_do_not_tell_a_value_of_its_state(act, refers):
  first = _turn("Hello.", state={})
  second = _turn("And a house there.", acts=[(act, "", [])], state={"city": ["Rome"]})
  exchange = _exchange(first, _turn("Hi."), second)
  assert pi.refers(exchange, 2) == refers
  informed = _turn("In Rome.", acts=[("INFORM", "city", ["Rome"])], state={"city": ["Rome"]})
  assert not pi.refers(_exchange(first, _turn("Hi."), informed), 2)
  # Another form of the same value is not a new value.
  known = _turn("Rome.", acts=[("INFORM", "city", ["Rome"])], state={"city": ["Rome"]})
  again = _turn("Yes.", acts=[("INFORM_INTENT", "", [])], state={"city": ["Roma", "Rome"]})
  assert not pi.refers(_exchange(known, _turn("Hi."), again), 2)


def test_words_that_refer_to_another_service_are_not_lent():
  """ "There" would mean nothing in another dialogue."""
  dialogues = sample_dialogues()
  donors = {
    (donor.dialogue_id, donor.turn)
    for found in pi_exchange.lenders(sample_split()).values()
    for donor in found
  }
  referring = {
    (data["dialogue_id"], number)
    for data in dialogues
    for number, turn in enumerate(data["turns"])
    if turn["speaker"] == "USER" and pi.refers(Exchange.of(data), number)
  }
  assert referring
  assert donors
  assert not donors & referring


def test_words_that_repeat_a_value_outside_its_span_are_not_lent():
  """ "I'm in London, so London, England" would be said of Paris."""
  service = {
    "service_name": "S_1",
    "description": "",
    "slots": [
      {"name": "city", "description": "", "is_categorical": False, "possible_values": []},
      {"name": "kind", "description": "", "is_categorical": True, "possible_values": ["Flat"]},
    ],
    "intents": [
      {"name": "F", "description": "", "is_transactional": False, "required_slots": ["city"],
       "optional_slots": {"kind": "dontcare"}, "result_slots": []}
    ],
  }  # fmt: skip
  schema = parse_schema([service], "schema")
  city, kind = ("INFORM", "city", ["London"]), ("INFORM", "kind", ["Flat"])
  state = {"city": ["London"], "kind": ["Flat"]}
  repeated = _turn(
    "In London, so London, England.", [("city", "London")], [city], {"city": ["London"]}
  )
  shared = _turn("In London. A flat, yes, a flat.", [("city", "London")], [city, kind], state)
  lent = [
    donor.turn
    for _, donor in pi_exchange._lent(_exchange(repeated, _turn("Ok."), shared).data, schema)
  ]
  assert lent == [2]


def test_another_users_words_get_this_turns_values():
  text = "From Oslo to Rome, please"
  own = _turn(text, [("to", "Rome"), ("from", "Oslo")], state={})
  donor = _turn("Take me to Bonn. I am in Bern now.", [("to", "Bonn"), ("from", "Bern")], state={})
  cuts = [pi_exchange.cut({"dialogue_id": "1", "turns": [t]}, 0) for t in (own, donor)]
  new = pi_exchange.filled(cuts[1], cuts[0], own)
  assert new.text == "Take me to Rome. I am in Oslo now."
  assert [new.text[a:b] for _, _, a, b in new.spans] == ["Rome", "Oslo"]
  line = pi.put(own, new)
  assert own["utterance"] == new.text
  spans = own["frames"][0]["slots"]
  assert [new.text[s["start"] : s["exclusive_end"]] for s in spans] == ["Rome", "Oslo"]
  undo_words(own, line)
  assert own == _turn(text, [("to", "Rome"), ("from", "Oslo")], state={})


@pytest.mark.parametrize("options", [{}, {"provider": "templates"}])
def test_lines_say_where_the_words_are_from_and_how_far(options):
  _, dialogues, lines, counts = perturbed_sample("pi", options)
  before = {d["dialogue_id"]: d for d in sample_dialogues()}
  users = {(d["dialogue_id"], i) for d in dialogues for i, t in enumerate(d["turns"]) if not i % 2}
  for name, found in lines.items():
    for line in found:
      assert line["utterance"] == before[name]["turns"][line["turn"]]["utterance"]
      assert 0 <= line["overlap"] <= 1
      if line["provider"] == "exchange":
        donor, _, turn = line["donor"].partition("/")
        assert donor != name
        assert (donor, int(turn)) in users
  kept = sum(n for key, n in counts.items() if isinstance(key, tuple))
  assert kept + sum(map(len, lines.values())) == len(users)
