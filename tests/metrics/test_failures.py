"""Kinds of errors: each rule by hand, and that every wrong frame has at least one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x import metrics
from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.metrics import KINDS, slot_failures
from sgdx_t5x.metrics.goals import JOINT_GOAL, goal_scores

SERVICE = Service(
  "Trips_1",
  "",
  (
    Slot("from", "", False),
    Slot("to", "", False),
    Slot("seats", "", True, ("1", "2", "3")),
    Slot("rooms", "", True, ("1", "2")),
    Slot("class", "", True, ("Economy", "Business")),
  ),
  (),
)
GOLD = {"from": ["Rome", "Roma"], "seats": ["2"]}


def kinds(predicted, gold=GOLD):
  """Failing slot -> kind of its error, for one prediction."""
  found = slot_failures(SERVICE, gold, {"v1": predicted})
  return {failure.slot: failure.kinds["v1"] for failure in found}


@pytest.mark.parametrize(
  ("predicted", "expected"),
  [
    (GOLD, {}),
    ({"from": ["roma"], "seats": ["2"]}, {}),  # another gold value; official matching ignores case
    ({"seats": ["2"]}, {"from": "missed"}),
    ({"from": [], "seats": ["2"]}, {"from": "missed"}),
    ({**GOLD, "to": ["Oslo"]}, {"to": "spurious"}),
    ({**GOLD, "to": ["Roma"]}, {"to": "value of another slot"}),  # inactive, but has from's value
    ({**GOLD, "from": ["2"]}, {"from": "value of another slot"}),
    ({**GOLD, "from": ["Rom"]}, {"from": "wrong value"}),  # nearly right fails too
    ({**GOLD, "seats": ["3"]}, {"seats": "wrong categorical choice"}),
    ({**GOLD, "seats": ["Rome"]}, {"seats": "value of another slot"}),
    ({**GOLD, "rooms": ["2"]}, {"rooms": "spurious"}),  # a possible value of rooms, too
    ({**GOLD, "class": ["Rome"]}, {"class": "value of another slot"}),
    ({**GOLD, "seats": ["dontcare"]}, {"seats": "wrong categorical choice"}),
    ({"to": ["Rome"], "seats": ["2"]}, {"from": "missed", "to": "value of another slot"}),
  ],
)
def test_each_kind(predicted, expected):
  assert kinds(predicted) == expected


def test_dontcare_is_no_slots_value():
  gold = {"from": ["dontcare"]}
  assert kinds({"from": ["dontcare"], "to": ["dontcare"]}, gold) == {"to": "spurious"}


def test_versions_stand_side_by_side():
  states = {"original": GOLD, "v1": {"seats": ["2"]}, "v2": {**GOLD, "from": ["Roma"]}}
  (failure,) = slot_failures(SERVICE, GOLD, states)
  assert failure == metrics.Failure(
    "from",
    ("Rome", "Roma"),
    {"original": "Rome", "v1": None, "v2": "Roma"},
    {"v1": "missed"},
  )


VALUES = st.sampled_from(["Rome", "Roma", "rome", "Oslo", "1", "2", "3", "Economy", "dontcare", ""])
STATES = st.dictionaries(
  st.sampled_from([slot.name for slot in SERVICE.slots]), st.lists(VALUES, max_size=2)
)


@given(gold=STATES, predicted=STATES, backend=st.sampled_from(metrics.BACKENDS))
def test_a_frame_is_wrong_if_and_only_if_a_slot_fails(gold, predicted, backend):
  found = slot_failures(SERVICE, gold, {"v1": predicted}, backend)
  jga = goal_scores(SERVICE, gold, predicted, backend)[JOINT_GOAL]
  assert (jga < 1) == bool(found)
  assert all(failure.kinds["v1"] in KINDS for failure in found)
