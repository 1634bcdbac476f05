"""Outlines: paths forced by transitions and worked out by hand, and what holds on every path."""

import random

import pytest
from boat_schema import intent
from boats import BOATS, FIND, RENT, SCHEMA, TRAM, TRAMS, lines, simulation

from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.corpus.schema import DONTCARE
from sgdx_t5x.papers.simulator.backend import ServiceTable
from sgdx_t5x.papers.simulator.generate import MAX_TURNS, outline, simulate
from sgdx_t5x.papers.simulator.transitions import parse_transitions

# The user tells all there is, the system asks for all that is missing, and nothing else happens.
FORCED = {
  "user": {
    "START": {"INFORM_INTENT INFORM": 1},
    "OFFER": {"SELECT": 1, "SELECT INFORM_INTENT INFORM": 0},
    "CONFIRM": {"AFFIRM": 1},
    "NOTIFY_SUCCESS": {"THANK_YOU GOODBYE": 1},
    "OFFER_INTENT": {"AFFIRM_INTENT": 1, "NEGATE_INTENT": 1},
  },
  "system": {
    "SEARCH": {"INFORM_COUNT OFFER": 1},
    "SELECT": {"OFFER_INTENT": 1},
    "AFFIRM": {"NOTIFY_SUCCESS": 1},
  },
  "counts": {"informs": {"9": 1}, "requests": {"9": 1}, "offers": {"1": 1}, "questions": {"1": 1}},
  "chances": dict.fromkeys(parse_transitions({}).chances, 0),
}
ONE_BOAT = ServiceTable(BOATS.columns, BOATS.open, BOATS.rows[:1])  # Heron in Elmport
ONE_TRAM = ServiceTable(TRAMS.columns, TRAMS.open, TRAMS.rows[1:2])  # to 12 Hill Street at 18:30


def forced(**situations):
  """FORCED with other moves in some situations: user_OFFER={...}, system_SEARCH={...}."""
  changed = {part: dict(moves) for part, moves in FORCED.items()}
  for name, moves in situations.items():
    part, _, situation = name.partition("_")
    changed[part][situation] = moves
  return changed


def outlines(made, number=100):
  for n in range(number):
    rng = random.Random(n)
    scenario = made.scenarios[n % len(made.scenarios)]
    yield scenario, outline(scenario, made.backends, made.transitions, rng)


def acts_of(frame):
  return [act.act for act in frame.acts]


def values_of(frame, act):
  return {a.slot: a.values[0] for a in frame.acts if a.act == act}


@pytest.fixture(scope="module")
def all_outlines():
  return list(outlines(simulation(), 600))


# --- paths worked out by hand ----------------------------------------------------------------


def test_a_search_and_a_booking_of_what_was_found():
  made = simulation((FIND, RENT), transitions=FORCED, boats=ONE_BOAT)
  ((_, turns),) = outlines(made, 1)
  assert lines(turns) == [
    "U Boats_1 FindBoat: INFORM boat_type sailing, INFORM town Elmport,"
    " INFORM_INTENT intent FindBoat | boat_type=sailing, town=Elmport",
    "S Boats_1: INFORM_COUNT count 1, OFFER boat_name Heron"
    " | FindBoat(boat_type=sailing, town=Elmport) 1",
    "U Boats_1 FindBoat: SELECT | boat_name=Heron, boat_type=sailing, town=Elmport",
    "S Boats_1: OFFER_INTENT intent RentBoat",
    "U Boats_1 RentBoat: AFFIRM_INTENT | boat_name=Heron, boat_type=sailing, town=Elmport",
    "S Boats_1: REQUEST rental_date",
    "U Boats_1 RentBoat: INFORM rental_date 2019-03-05"
    " | boat_name=Heron, boat_type=sailing, rental_date=2019-03-05, town=Elmport",
    # Two guests are RentBoat's default: nobody mentioned them.
    "S Boats_1: CONFIRM boat_name Heron, CONFIRM guests 2, CONFIRM rental_date 2019-03-05",
    "U Boats_1 RentBoat: AFFIRM"
    " | boat_name=Heron, boat_type=sailing, guests=2, rental_date=2019-03-05, town=Elmport",
    "S Boats_1: NOTIFY_SUCCESS | RentBoat(boat_name=Heron, guests=2, rental_date=2019-03-05) 1",
    "U Boats_1 RentBoat: GOODBYE, THANK_YOU"
    " | boat_name=Heron, boat_type=sailing, guests=2, rental_date=2019-03-05, town=Elmport",
    "S Boats_1: GOODBYE",
  ]


def test_a_value_carried_to_another_service():
  transitions = forced(
    user_OFFER={"SELECT INFORM_INTENT INFORM": 1}, user_NOTIFY_SUCCESS={"THANK_YOU": 1}
  )
  made = simulation((FIND, TRAM), transitions=transitions, boats=ONE_BOAT, trams=ONE_TRAM)
  ((_, turns),) = outlines(made, 1)
  assert lines(turns)[2:] == [
    "U Boats_1 FindBoat: SELECT | boat_name=Heron, boat_type=sailing, town=Elmport",
    # Elmport is in the state, but in no act.
    "U Trams_1 BuyTicket: INFORM departure_time 18:30, INFORM_INTENT intent BuyTicket"
    " | departure_time=18:30, destination=Elmport",
    "S Trams_1: CONFIRM departure_time 18:30, CONFIRM destination Elmport",
    "U Trams_1 BuyTicket: AFFIRM | departure_time=18:30, destination=Elmport",
    "S Trams_1: NOTIFY_SUCCESS | BuyTicket(departure_time=18:30, destination=Elmport) 1",
    "U Trams_1 BuyTicket: THANK_YOU | departure_time=18:30, destination=Elmport",
    "S Trams_1: REQ_MORE",
    "U Trams_1 NONE: NEGATE, THANK_YOU | departure_time=18:30, destination=Elmport",
    "S Trams_1: GOODBYE",
  ]
  # The open column echoes what the caller gave, the fare is the row's.
  assert turns[5].frames[0].results == [
    {"destination": "Elmport", "departure_time": "18:30", "fare": "$4"}
  ]


def test_a_proposal_that_is_not_wanted_and_questions():
  transitions = forced(
    user_OFFER={"REQUEST": 1, "SELECT": 1e-6}, user_OFFER_INTENT={"NEGATE_INTENT": 1}
  )
  made = simulation((FIND,), transitions=transitions, boats=ONE_BOAT)
  ((_, turns),) = outlines(made, 1)
  text = lines(turns)
  # has_cabin and price are what the offer did not say; then there is nothing left to ask.
  asked = {text[2].split(":")[1].split()[1], text[4].split(":")[1].split()[1]}
  assert asked == {"has_cabin", "price"}
  assert {"S Boats_1: INFORM price $25", "S Boats_1: INFORM has_cabin True"} == {text[3], text[5]}
  assert [line.partition(" | ")[0] for line in text[6:]] == [
    "U Boats_1 FindBoat: SELECT",
    "S Boats_1: OFFER_INTENT intent RentBoat",
    "U Boats_1 NONE: NEGATE_INTENT",
    "S Boats_1: REQ_MORE",
    "U Boats_1 NONE: NEGATE, THANK_YOU",
    "S Boats_1: GOODBYE",
  ]
  assert "has_cabin" not in text[6]  # slots that were only asked about do not enter the state


def test_a_user_who_asks_for_more_than_there_is():
  transitions = forced(user_OFFER={"REQUEST_ALTS": 1})
  transitions["chances"] = {**FORCED["chances"], "asks_beyond_last": 1}
  # A failed search removes the booking of its result from the scenario.
  made = simulation((FIND, RENT), transitions=transitions, boats=ONE_BOAT)
  ((_, turns),) = outlines(made, 1)
  assert [line.partition(": ")[2] for line in lines(turns)[2:]] == [
    "REQUEST_ALTS | boat_type=sailing, town=Elmport",
    "NOTIFY_FAILURE, REQ_MORE | FindBoat(boat_type=sailing, town=Elmport) 0",
    "NEGATE, THANK_YOU | boat_type=sailing, town=Elmport",
    "GOODBYE",
  ]


def test_nobody_talks_for_ever():
  # Every confirmation is refused, and the date can always be changed again.
  rows = tuple((*BOATS.rows[0][:4], f"2019-03-{n:02}", "2", "$1") for n in range(1, 31))
  boats = ServiceTable(BOATS.columns, BOATS.open, rows)
  made = simulation((RENT,), transitions=forced(user_CONFIRM={"NEGATE INFORM": 1}), boats=boats)
  check = validate_annotation(made.schema, {})
  dialogues = list(simulate(made, numbers=range(30), seed="s"))
  for dialogue in dialogues:
    check(dialogue, made.schema, "here")  # one rule: only the last turn says GOODBYE
  longest = max(dialogues, key=lambda dialogue: len(dialogue.turns))
  assert len(longest.turns) == MAX_TURNS
  assert [a["act"] for a in longest.turns[-2].frames[0].actions] == ["GOODBYE"]


# --- on every path -----------------------------------------------------------------------------


def test_offers_are_the_results_one_after_the_other(all_outlines):
  num_alternatives = 0
  for _, turns in all_outlines:
    results, number = [], 0
    for user, system in zip(turns[::2], turns[1::2], strict=True):
      (frame,) = system.frames
      if frame.service != "Boats_1" or "NOTIFY_FAILURE" in acts_of(frame):
        continue
      if frame.call is not None and frame.call[0] == "FindBoat":
        results, number = frame.results, 0
      if offer := values_of(frame, "OFFER"):
        assert offer.items() <= results[number].items()
        assert "boat_name" in offer  # RentBoat requires it
        assert not offer.items() & user.frames[-1].values.items()  # nothing that is in the state
        num_alternatives += number > 0
        number += 1
  assert num_alternatives > 20


def test_a_refused_confirmation_is_corrected(all_outlines):
  num_corrected = 0
  for _, turns in all_outlines:
    for i, turn in enumerate(turns):
      frame = turn.frames[0]
      if "NEGATE" not in acts_of(frame) or not (changed := values_of(frame, "INFORM")):
        continue
      num_corrected += 1
      ((slot, value),) = changed.items()
      assert turns[i - 2].frames[-1].values[slot] != value
      # Only the corrected slot is confirmed again.
      assert [tuple(act) for act in turns[i + 1].frames[0].acts] == [("CONFIRM", slot, (value,))]
      if acts_of(turns[i + 2].frames[0])[0] == "AFFIRM":
        assert turns[i + 3].frames[0].call[1][slot] == value
  assert num_corrected > 50


def test_a_failed_transaction_may_have_an_alternative(all_outlines):
  answers = []
  for _, turns in all_outlines:
    for i, turn in enumerate(turns):
      frame = turn.frames[0]
      if "NOTIFY_FAILURE" not in acts_of(frame) or "OFFER" not in acts_of(frame):
        continue
      offer, answer = values_of(frame, "OFFER"), turns[i + 1].frames[0]
      (other,) = (slot for slot, value in frame.call[1].items() if offer[slot] != value)
      assert other in ("rental_date", "destination", "departure_time")  # non-categorical and open
      assert offer.items() <= frame.results[0].items()
      answers.append(acts_of(answer)[0])
      if answers[-1] == "AFFIRM":
        assert turns[i + 2].frames[0].call[1] == offer
        assert answer.values[other] == offer[other]
      else:
        assert answer.values[other] != offer[other]
  assert answers.count("AFFIRM") > 5
  assert answers.count("NEGATE") > 0


def test_proposals_are_affirmed_if_the_user_had_it_in_mind(all_outlines):
  answers = {True: set(), False: set()}
  for scenario, turns in all_outlines:
    steps = [step.intent.name for step in scenario.steps]
    for i, turn in enumerate(turns):
      if "OFFER_INTENT" in acts_of(turn.frames[0]):
        answers["RentBoat" in steps].update(acts_of(turns[i + 1].frames[0])[:1])
  assert answers == {True: {"AFFIRM_INTENT"}, False: {"NEGATE_INTENT"}}


def test_a_second_booking_is_about_the_second_search():
  made = simulation((FIND, RENT, FIND, RENT))
  num_second = 0
  for _, turns in outlines(made, 300):
    offered, rows, searches = {}, iter(()), 0
    for turn in turns[1::2]:
      frame = turn.frames[0]
      name = frame.call and frame.call[0]
      if name == "RentBoat":
        assert frame.call[1]["boat_name"] == offered["boat_name"]
        num_second += searches > 1
      if name == "FindBoat" and frame.results:
        rows, searches = iter(frame.results), searches + 1
      if "OFFER" in acts_of(frame) and name != "RentBoat":
        offered = next(rows)
  assert num_second > 100


def test_what_users_do_not_mind_is_not_asked_of_the_service():
  made = simulation((FIND,), transitions={"chances": {"does_not_care": 1, "wants_optional": 0}})
  num_told = 0
  for _, turns in outlines(made, 60):
    for user, system in zip(turns[::2], turns[1::2], strict=True):
      state, call = user.frames[0].values, system.frames[0].call
      num_told += values_of(user.frames[0], "INFORM").get("has_cabin") == DONTCARE
      assert state.get("has_cabin", DONTCARE) == DONTCARE or "SELECT" in acts_of(user.frames[0])
      if call is not None:
        assert set(call[1]) == {"town", "boat_type"}
  assert num_told > 20


def test_what_is_carried_may_be_impossible_there():
  # Two of the three destinations have no boats: users then name another town.
  links = [{"from": "Trams_1.destination", "to": "Boats_1.town"}]
  made = simulation((TRAM, FIND), links=links)
  towns = {(True, "Elmport"): 0, (False, "Elmport"): 0, (False, "New York"): 0}
  for _, turns in outlines(made, 300):
    last = turns[-1].frames[0]
    if last.service != "Boats_1":
      continue
    frames = [f for t in turns for f in t.frames if f.service == "Boats_1"]
    destination = next(
      f.values["destination"]
      for t in reversed(turns)
      for f in t.frames
      if t.speaker == USER and f.service == "Trams_1"
    )
    was_carried = bool(frames[0].carried)
    assert was_carried == (destination == "Elmport")
    first = next(f for f in frames if f.call is not None)
    assert not was_carried or frames[0].values["town"] == "Elmport"
    towns[was_carried, first.call[1]["town"]] += 1
  assert min(towns.values()) > 5


def test_what_a_user_does_not_mind_is_not_carried():
  links = [{"from": "Boats_1.has_cabin", "to": "Trams_1.destination"}]
  transitions = {"chances": {"does_not_care": 0.5, "wants_optional": 0.3, "asks_for_linked": 0}}
  made = simulation((FIND, TRAM), links=links, transitions=transitions)
  carried = {DONTCARE: set(), "True": set(), "False": set()}
  for _, turns in outlines(made, 100):
    frames = [f for t in turns[::2] for f in t.frames]
    cabins = [f.values.get("has_cabin") for f in frames if f.service == "Boats_1"]
    trams = [f for f in frames if f.service == "Trams_1"]
    if trams and cabins[-1]:
      carried[cabins[-1]].add(bool(trams[0].carried))
      assert trams[-1].values["destination"] != DONTCARE
  assert carried == {DONTCARE: {False}, "True": {True}, "False": {True}}


def test_what_was_carried_is_not_taken_back():
  transitions = {"user": {"CONFIRM": {"NEGATE INFORM": 1, "AFFIRM": 1}}}
  made = simulation((FIND, TRAM), transitions=transitions)
  changed = set()
  for _, turns in outlines(made, 100):
    frames = [f for t in turns[::2] for f in t.frames if f.service == "Trams_1"]
    if frames and frames[0].carried:
      assert {f.values["destination"] for f in frames} == {frames[0].values["destination"]}
      changed.update(s for f in frames if "NEGATE" in acts_of(f) for s in values_of(f, "INFORM"))
  assert changed == {"departure_time"}


def test_of_things_of_one_name_the_one_that_was_selected_is_booked():
  rows = tuple((*BOATS.rows[0][:4], "2019-03-05", "2", f"${n}") for n in range(1, 9))
  made = simulation((FIND, RENT), boats=ServiceTable(BOATS.columns, BOATS.open, rows))
  prices = set()
  for _, turns in outlines(made, 200):
    offered, results = -1, []
    for turn in turns[1::2]:
      (frame,) = turn.frames
      name = frame.call and frame.call[0]
      if name == "FindBoat" and frame.results:
        offered, results = -1, frame.results
      if name == "RentBoat" and "NOTIFY_SUCCESS" in acts_of(frame):
        assert frame.results[0]["price"] == results[offered]["price"]
        prices.add(frame.results[0]["price"])
      elif "OFFER" in acts_of(frame) and "NOTIFY_FAILURE" not in acts_of(frame):
        offered += 1
  assert len(prices) > 3


def test_questions_are_about_the_service_that_was_asked():
  """Both services have a price; questions about one must not be answered with the other's."""
  schema = [SCHEMA[0], {**SCHEMA[1], "slots": [*SCHEMA[1]["slots"], SCHEMA[0]["slots"][6]]}]
  schema[1]["intents"] = [
    intent("BuyTicket", True, ["destination", "departure_time"], {}, ["fare", "price"])
  ]
  trams = ServiceTable(
    (*TRAMS.columns, "price"), TRAMS.open, tuple((*r, "$99") for r in TRAMS.rows)
  )
  transitions = {
    "user": {"CONFIRM": {"AFFIRM REQUEST": 1}},
    "system": {"AFFIRM": {"NOTIFY_FAILURE REQ_MORE": 1, "NOTIFY_SUCCESS": 1}},
    "counts": {"offers": {"5": 1}},
  }
  made = simulation((FIND, TRAM), transitions=transitions, schema=schema, trams=trams)
  prices = set()
  for _, turns in outlines(made, 200):
    for turn in turns[1::2]:
      if turn.frames[0].service == "Trams_1":
        prices.add(values_of(turn.frames[0], "INFORM").get("price"))
  assert prices == {None, "$99"}


# --- transitions -------------------------------------------------------------------------------


def test_situations_that_are_not_given_are_the_defaults():
  rng, default = random.Random(0), parse_transitions({})
  made = parse_transitions({"user": {"OFFER": {"SELECT": 2}}})
  assert {made.user["OFFER"].draw(rng) for _ in range(50)} == {("SELECT",)}
  assert {made.user["START"].draw(rng) for _ in range(50)} == {
    default.user["START"].draw(rng) for _ in range(50)
  }
  assert made.chances == default.chances


def test_weights_are_frequencies():
  moves = parse_transitions({"user": {"OFFER": {"SELECT": 1, "REQUEST": 3}}}).user
  rng = random.Random(0)
  drawn = [moves["OFFER"].draw(rng) for _ in range(4000)]
  # Standard deviation of the share: sqrt(.25 * .75 / 4000) = .0068.
  assert drawn.count(("SELECT",)) / 4000 == pytest.approx(0.25, abs=0.03)
  firsts = [list(moves["OFFER"].shuffled(rng)) for _ in range(4000)]
  assert sum(a == ("SELECT",) for a, _ in firsts) / 4000 == pytest.approx(0.25, abs=0.03)
