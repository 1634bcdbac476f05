"""Provenance of values: each source by hand, and SGD's counts (../shared/notes, section 1.7)."""

import dataclasses

from sgdx_t5x import metrics
from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.dialogue import Dialogue


def user(frames, acts=(), spans=()):
  """Returns a user turn. Args: frames, service -> state; acts and spans, (service, slot) pairs."""
  return {
    "speaker": "USER",
    "utterance": "...",
    "frames": [
      {
        "service": service,
        "actions": [{"act": "INFORM", "slot": s} for of, s in acts if of == service],
        "slots": [{"slot": s, "start": 0, "exclusive_end": 1} for of, s in spans if of == service],
        "state": {"active_intent": "Do", "requested_slots": [], "slot_values": values},
      }
      for service, values in frames.items()
    ],
  }


def system(service, slot, value, canonical=None):
  action = {"act": "OFFER", "slot": slot, "values": [value], "canonical_values": [canonical]}
  if canonical is None:
    del action["canonical_values"]
  return {
    "speaker": "SYSTEM",
    "utterance": "...",
    "frames": [{"service": service, "actions": [action]}],
  }


def sources(*turns):
  """Returns (turn, service) -> slot -> (source, turn, detail)."""
  dialogue = Dialogue.from_json({"dialogue_id": "1_00000", "services": [], "turns": list(turns)})
  return {
    (turn, frame.service): {
      slot: (origin.source, origin.turn, origin.detail) for slot, origin in origins.items()
    }
    for turn, frame, origins in provenance.trace(dialogue)
  }


def test_each_source():
  found = sources(
    user({"A": {"city": ["Elmport"]}}, acts=[("A", "city")]),
    system("A", "name", "Quiet Heron"),
    user(
      {
        "A": {"city": ["Elmport"], "name": ["Quiet Heron"]},
        "B": {"to": ["Quiet Heron"], "town": ["elmport"]},
      }
    ),
    system("A", "street", "1 Bay Road"),
    user({"B": {"to": ["Quiet Heron"], "from": ["1 Bay Road"], "via": ["Quiet Heron"]}}),
  )
  assert found[0, "A"] == {"city": ("informed", 0, "")}
  assert found[2, "A"] == {"city": ("informed", 0, ""), "name": ("accepted", 2, "last_turn")}
  # Case matters: SGD's states copy a value unchanged.
  assert found[2, "B"] == {"to": ("carried", 2, "state"), "town": ("unknown", 2, "")}
  # The other service's state comes before the service's own other slot.
  assert found[4, "B"] == {
    "to": ("carried", 2, "state"),
    "from": ("carried", 4, "system"),
    "via": ("carried", 4, "state"),
  }


def test_another_slot_of_the_service_and_where_the_system_said_it():
  found = sources(
    user({"A": {"city": ["Elmport"]}}, acts=[("A", "city")]),
    system("A", "time", "7 pm", "19:00"),
    user({"A": {"city": ["Elmport"], "to": ["Elmport"], "near": ["Elmport"]}}),
    system("A", "other", "x"),
    user({"A": {"city": ["Elmport"], "time": ["19:00"]}}),
  )
  assert found[2, "A"]["to"] == found[2, "A"]["near"] == ("own", 2, "")
  assert found[4, "A"]["time"] == ("accepted", 4, "earlier")  # by its canonical value


def test_two_slots_that_enter_with_one_value_do_not_explain_each_other():
  found = sources(user({"A": {"x": ["1"], "y": ["1"]}}, acts=[("A", "z")]))
  assert found[0, "A"] == {"x": ("unknown", 0, ""), "y": ("unknown", 0, "")}


def test_a_new_form_does_not_enter_and_a_new_value_does():
  found = sources(
    user({"A": {"time": ["7 pm"]}}, acts=[("A", "time")]),
    system("A", "time", "19:00"),
    user({"A": {"time": ["19:00", "7 pm"]}}),
    system("A", "time", "20:00"),
    user({"A": {"time": ["20:00"]}}),
    system("A", "x", "y"),
    user({"A": {}}),
    system("A", "x", "y"),
    user({"A": {"time": ["20:00"]}}, acts=[("A", "time")]),
  )
  times = {turn: slots.get("time") for (turn, _), slots in found.items()}
  assert times == {
    0: ("informed", 0, ""),
    2: ("informed", 0, ""),
    4: ("accepted", 4, "last_turn"),
    6: None,
    8: ("informed", 8, ""),  # it left the state and enters again
  }


def test_a_value_keeps_its_source_while_it_stays():
  """SGD's test has one such dialogue, 24_00012: "1" is carried, and said again later."""
  found = sources(
    user({"A": {"seats": ["1"]}}, acts=[("A", "seats")]),
    system("A", "x", "y"),
    user({"B": {"adults": ["1"]}}),
    system("B", "x", "y"),
    user({"B": {"adults": ["1"]}}, acts=[("B", "adults")]),
  )
  assert found[4, "B"] == {"adults": ("carried", 2, "state")}


def test_spans_stand_in_where_a_dialogue_has_no_acts_of_the_user():
  turns = [user({"A": {"city": ["Elmport"], "pool": ["True"]}}, spans=[("A", "city")])]
  assert sources(*turns)[0, "A"] == {"city": ("informed", 0, ""), "pool": ("unknown", 0, "")}
  turns.append(system("A", "x", "y"))
  turns.append(user({"A": {"name": ["Heron"]}}, acts=[("A", "pool")], spans=[("A", "name")]))
  assert sources(*turns)[2, "A"] == {"name": ("unknown", 2, "")}  # with acts, spans are not used


def test_counts():
  turns = [
    user({"A": {"city": ["Elmport"]}}, acts=[("A", "city")]),
    system("A", "name", "Heron"),
    user({"A": {"city": ["Elmport"], "name": ["Heron"]}, "B": {"to": ["Heron"]}}),
    system("B", "x", "y"),
    user({"A": {}}),
  ]
  data = {"dialogue_id": "1_00000", "services": [], "turns": turns}
  assert provenance.count(Dialogue.from_json(data)) == {
    "entered": 3,
    "informed": 1,
    "accepted": 1,
    "accepted_last_turn": 1,
    "carried": 1,
    "carried_state": 1,
    "accepted_frames": 1,
    "carried_frames": 1,
    "carried_slots": 1,
    "carried_dialogues": 1,
    "sticky_frames": 2,  # from the frame with the carried value on
  }


def test_a_value_carried_before_the_only_scored_turn_counts():
  """A counterfactual dialogue is as sticky as the original up to its turn."""
  turns = [
    user({"A": {"city": ["Elmport"]}}, acts=[("A", "city")]),
    system("A", "x", "y"),
    user({"B": {"to": ["Elmport"]}}),
    system("B", "x", "y"),
    user({"C": {"seats": ["2"]}}, acts=[("C", "seats")]),
  ]
  data = {"dialogue_id": "1_00000", "services": [], "turns": turns}
  last_only = dataclasses.replace(Dialogue.from_json(data), last_only=True)
  [(turn, frame, _, sticky)] = provenance.trace_sticky(last_only)
  assert (turn, frame.service, sticky) == (4, "C", True)
  assert provenance.count(last_only) == {"entered": 1, "informed": 1, "sticky_frames": 1}
  [gold] = metrics.gold_frames([last_only], with_origins=True)
  assert gold.is_sticky
  assert gold.services == {"A", "B", "C"}  # what `calls.frame_counts` asks
