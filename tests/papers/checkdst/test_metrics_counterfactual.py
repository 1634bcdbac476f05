"""Slots of one counterfactual frame, counted by hand."""

from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.papers.checkdst.metrics_counterfactual import GoalEdit, goal_counts

STAYS = Service(
  "Stays_1", "", tuple(Slot(x, "", False) for x in ("city", "date", "time", "stars", "pets")), ()
)
EDIT = GoalEdit(
  "Stays_1", frozenset({"city"}), {"date": "May 1st"}, frozenset({"time"}), frozenset({"pets"})
)
GOLD = {"city": ("Oslo",), "date": ("June 2nd",), "pets": ("cats",), "stars": ("4",)}


def _counts(state):
  found = goal_counts(STAYS, GOLD, state, EDIT, "exact")
  return {key.removeprefix("goal_"): n for key, n in found.items()}


def test_the_gold_state_is_right_in_every_slot():
  found = _counts(GOLD)
  for status in ("kept", "changed", "added", "rest"):
    assert found[status] == found[f"{status}_right"] == 1
  assert (found["dropped"], found["dropped_left"], found["reverted"]) == (1, 0, 0)


def test_the_state_of_the_original_turn_is_reverted_and_keeps_what_was_dropped():
  found = _counts({"city": ("Oslo",), "date": ("May 1st",), "time": ("6 pm",), "stars": ("4",)})
  right = [found[f"{status}_right"] for status in ("kept", "changed", "added", "rest")]
  assert right == [1, 0, 0, 1]
  assert (found["dropped_left"], found["reverted"]) == (1, 1)


def test_another_wrong_value_is_wrong_and_not_reverted():
  found = _counts({"date": ("July 3rd",)})
  assert (found["changed_right"], found["reverted"], found["dropped_left"]) == (0, 0, 0)


def test_a_dropped_slot_that_had_a_value_before_is_right_with_that_value():
  gold = {**GOLD, "time": ("noon",)}
  for value, left in (("noon", 0), ("6 pm", 1)):
    found = goal_counts(STAYS, gold, {"time": (value,)}, EDIT, "exact")
    assert found["goal_dropped_left"] == left
