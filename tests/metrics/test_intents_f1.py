"""Intent accuracy, requested slots and slot tagging of a frame: values by hand, properties."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x import metrics
from sgdx_t5x.corpus.schema import Schema, Service, Slot

SERVICE = Service("Banks_1", "", (Slot("kind", "", True, ("a", "b")), Slot("to", "", False)), ())
SCHEMA = Schema([SERVICE])


@pytest.mark.parametrize(
  ("gold", "predicted", "expected"),  # F1, precision, recall
  [
    ("", "", (1, 1, 1)),  # nothing to find and nothing found counts as right
    ("a", "", (0, 1, 0)),
    ("", "a", (0, 0, 1)),
    ("a", "b", (0, 0, 0)),
    ("ab", "bc", (1 / 2, 1 / 2, 1 / 2)),
    ("ab", "ba", (1, 1, 1)),
    ("aab", "abb", (2 / 3, 2 / 3, 2 / 3)),  # a multiset: one a and one b are hits
    ("abc", "a", (1 / 2, 1, 1 / 3)),
  ],
)
def test_f1_by_hand(gold, predicted, expected):
  assert metrics.multiset_f1(tuple(gold), tuple(predicted)) == pytest.approx(expected)


def test_what_is_not_predicted_is_na():
  assert all(map(math.isnan, metrics.multiset_f1(("a",), None)))
  assert math.isnan(metrics.intent_score("Transfer", None))


def test_intents_are_equal_or_not():
  scores = [metrics.intent_score("NONE", said) for said in ("NONE", "none", "", "Transfer")]
  assert scores == [1.0, 0.0, 0.0, 0.0]


LETTERS = st.lists(st.sampled_from("abc"))


@settings(deadline=None)  # the machine may be busy
@given(LETTERS, LETTERS)
def test_f1_is_symmetric_and_swaps_precision_and_recall(gold, predicted):
  f1, precision, recall = metrics.multiset_f1(gold, predicted)
  assert metrics.multiset_f1(predicted, gold) == (f1, recall, precision)
  assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12


def test_a_frame_by_hand():
  gold = metrics.GoldFrame(
    "d-000-Banks_1",
    "d",
    0,
    "Banks_1",
    {},
    0,
    active_intent="Transfer",
    requested_slots=("kind", "to"),
    spans=(("to", "Anna"), ("kind", "a")),
  )
  said = metrics.PredictedFrame({}, "Transfer", ("to",), (("to", "Anna"), ("kind", "b")))
  found = metrics.score_frames([gold], {gold.frame_id: said}, SCHEMA, ()).metrics
  assert list(found) == list(metrics.OFFICIAL_METRICS)
  assert found["active_intent_accuracy"] == [1.0]
  assert found["requested_slots_precision"] == [1.0]
  assert found["requested_slots_recall"] == [0.5]
  assert found["requested_slots_f1"] == pytest.approx(2 / 3)
  assert found["slot_tagging_f1"] == [1.0]  # spans of categorical slots do not count
