"""Which slots a counterfactual goal has: as CoCo chooses them, and as we do.

CoCo's own choices are in tests/papers/fixtures/coco_goals.json: how often its generator (d092bb4 of
salesforce/coco-dst; each operation on, values `out_domain_test`) chose each set of slots for four
turns, with three tables of combinations, in 300 seeds each.
"""

import json
import random

import pytest
from places import ROOT

from sgdx_t5x.corpus.schema import Schema, Service, Slot
from sgdx_t5x.papers.checkdst.pi_words import Exchange
from sgdx_t5x.papers.coco.coco_goals import Belief, Rules, choose_slots
from sgdx_t5x.papers.coco.coco_turns import UserTurn, belief_of, original_goal

GOALS = ROOT / "tests/papers/fixtures/coco_goals.json"
# The order of CoCo's dictionaries; the pairs of its tables that the turns look up.
ORDER = {
  "hotel": ("internet", "type", "parking", "pricerange", "book day", "book people", "book stay",
            "area", "stars", "name"),
  "restaurant": ("area", "food", "pricerange", "name", "book day", "book people", "book time"),
}  # fmt: skip
BOOKING = {"book day", "book people", "book stay", "book time"}
# In freq, descriptive slots combine with descriptive ones, and booking with booking; in rare, the
# other way round; in neutral, all that these turns look up except food with a restaurant's name.
NEVER = {("food", "name")}


def _allowed(table: str, domain: str):
  def allowed(slot: str, other: str) -> bool:
    slot, other = (name.partition("-")[2] for name in (slot, other))
    if table == "neu":
      return (slot, other) not in NEVER
    if slot == "name":  # descriptive, but bookings need it
      describes = {"freq": set(), "rare": {"pricerange", "stars", "area", "internet", "parking"}}
      return other in (describes[table] if table == "rare" else BOOKING)
    same = (slot in BOOKING) == (other in BOOKING)
    if other == "name":
      return table == "rare" and (domain, slot) not in {("restaurant", "food"), ("hotel", "type")}
    return same if table == "freq" else not same

  return allowed


@pytest.mark.parametrize("table", ["freq", "neu", "rare"])
@pytest.mark.parametrize("case", ["one", "two", "in_system", "overwrite"])
def test_like_coco_the_slot_sets_are_those_of_its_generator(case, table):
  turn = json.loads(GOALS.read_text())[case]
  told, domain = turn["told"], turn["domain"]
  belief = Belief(
    tuple(told),
    frozenset(slot for slot, value in told.items() if value in turn["system"]),
    in_state=frozenset(turn["held"]),
    addable=[f"{domain}-{name}" for name in ORDER[domain]],
  )
  rules, found = Rules(order="dictionary"), set()
  for seed in range(50):
    choice = choose_slots(belief, _allowed(table, domain), rules, random.Random(seed))
    found.add(" + ".join(sorted((*choice.retained, *choice.added))))
  assert found == set(turn["slot_sets"][table])


def _choices(belief: Belief, rules: Rules, number: int = 200):
  return [choose_slots(belief, lambda *_: True, rules, random.Random(i)) for i in range(number)]


TURN = Belief(("city", "date"), in_state=frozenset({"city", "date", "stars"}),
              addable=("city", "date", "stars", "rooms", "pets", "wifi"))  # fmt: skip


def test_what_is_added_is_drawn_new_and_room_is_kept():
  found = _choices(TURN, Rules())
  assert {slot for choice in found for slot in choice.added} == {"rooms", "pets", "wifi"}
  for choice in found:
    assert len(choice.retained) == len(choice.dropped) == 1
    assert len(choice.added) == 2
    assert choice.changed == set(choice.retained)
  assert {choice.dropped for choice in found} == {("city",), ("date",)}


def test_the_flow_of_a_dialogue_keeps_what_the_system_asked_for():
  belief = Belief(("city", "date"), requested=frozenset({"city"}))
  assert {choice.dropped for choice in _choices(belief, Rules())} == {("date",)}
  loose = {choice.dropped for choice in _choices(belief, Rules(flow="loose"))}
  assert loose == {("city",), ("date",)}


def test_values_that_the_system_said_stay():
  belief = Belief(("city", "date"), fixed=frozenset({"city", "date"}))
  for choice in _choices(belief, Rules(), 20):
    assert (choice.dropped, choice.changed, choice.retained) == ((), frozenset(), ("city", "date"))


def test_operations_have_probabilities():
  only_change = _choices(TURN, Rules(p_drop=0, p_add=0))
  assert all(choice.retained == ("city", "date") and not choice.added for choice in only_change)
  drops = sum(bool(choice.dropped) for choice in _choices(TURN, Rules(p_drop=0.3), 1000))
  assert 250 < drops < 350  # 300 expected, standard deviation 14.5
  nothing = _choices(TURN, Rules(p_drop=0, p_change=0, p_add=0), 1)[0]
  assert nothing.retained == ("city", "date")
  assert not (nothing.changed)
  assert not (nothing.added)


# By the last lines of CoCo's `counterfactual_goal_generator`.
def test_like_coco_a_drop_is_undone_only_if_nothing_can_be_added():
  turn = Belief(("city", "date"), in_state=frozenset({"city", "date"}), addable=("city", "date"))
  for choice in _choices(turn, Rules(order="dictionary", p_add=0), 20):
    assert (len(choice.retained), len(choice.dropped)) == (1, 1)
  for choice in _choices(turn, Rules(order="dictionary"), 20):  # the dropped slot is added again
    assert set(choice.retained) == choice.changed == {"city", "date"}
  rules = Rules(order="dictionary", p_change=0)
  for i in range(20):
    choice = choose_slots(turn, lambda *_: False, rules, random.Random(i))
    assert (set(choice.retained), choice.dropped) == ({"city", "date"}, ())
    assert choice.changed == frozenset()


@pytest.mark.parametrize(
  ("heard", "value", "stays"),
  [
    ("What place do you want?", "LA", False),  # part of a word
    ("I found 10 options.", "1", False),
    ("You want to fly to  la, right?", "LA", True),
    ("Which city?", "dontcare", True),
  ],
)
def test_the_system_says_a_value_as_whole_words(heard, value, stays):
  act = {"act": "INFORM", "slot": "city", "values": [value]}
  state = {"active_intent": "NONE", "requested_slots": [], "slot_values": {"city": [value]}}
  frame = {"service": "Flights_1", "actions": [act], "state": state}
  data = {
    "dialogue_id": "1_00000",
    "turns": [
      {"speaker": "SYSTEM", "utterance": heard, "frames": []},
      {"speaker": "USER", "utterance": f"To {value}.", "frames": [frame]},
    ],
  }
  turn = UserTurn(Exchange.of(data), 1, original_goal(data["turns"][1]), {})
  schema = Schema([Service("Flights_1", "", (Slot("city", "", False),), ())])
  assert belief_of(turn, schema).fixed == ({"city"} if stays else set())
