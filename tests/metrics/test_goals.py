"""Goal metrics per frame and their aggregation: hand-computed values, then properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x import metrics
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import seqio_metrics

SERVICE = Service(
  "Banks_1",
  "a bank",
  (
    Slot("kind", "account", True, ("Checking", "Savings")),
    Slot("to", "recipient", False),
    Slot("amount", "how much", False),
  ),
  (),
)
NO_CAT = Service("Taxi_1", "a taxi", SERVICE.slots[1:], ())
SCHEMA = Schema([SERVICE, NO_CAT])


def scores(gold, predicted, service=SERVICE, backend="difflib"):
  return metrics.goal_scores(service, gold, predicted, backend)


def test_gold_is_right():
  gold = {"kind": ["Savings"], "to": ["Anna Lee", "Anna"]}
  assert set(scores(gold, gold).values()) == {1.0}


def test_wrong_values_by_hand():
  # kind right (1); to: "Anna" against "Anna Lee" = 0.67 (test_fuzzy) and against "Hanna":
  # 2 * 4 / 9 = 0.889 -> 89, the best counts; amount predicted but not in gold (0).
  gold = {"kind": ["Savings"], "to": ["Anna Lee", "Hanna"]}
  found = scores(gold, {"kind": ["Savings"], "to": ["Anna"], "amount": ["$5"]})
  assert found == {
    "average_goal_accuracy": pytest.approx((1 + 0.89) / 2, abs=1e-12),
    "average_cat_accuracy": 1.0,
    "average_noncat_accuracy": pytest.approx(0.89, abs=1e-12),
    "joint_goal_accuracy": 0.0,
    "joint_cat_accuracy": 1.0,
    "joint_noncat_accuracy": 0.0,
  }


def test_joint_is_a_fraction_with_a_fuzzy_back_end():
  gold = {"to": ["Hanna"], "amount": ["Anna Lee"]}
  found = scores(gold, {"to": ["Anna"], "amount": ["Anna"]})
  assert found["joint_goal_accuracy"] == pytest.approx(0.89 * 0.67, abs=1e-12)
  assert scores(gold, {"to": ["Anna"], "amount": ["Anna"]}, backend="exact")[
    "joint_goal_accuracy"
  ] == pytest.approx(0.0)


@pytest.mark.parametrize("value", ["savings", "SAVINGS ", "Checking", "dontcare"])
def test_a_categorical_value_must_be_equal(value):
  assert scores({"kind": ["Savings"]}, {"kind": [value]})["joint_cat_accuracy"] == 0.0


def test_only_the_first_predicted_and_the_first_categorical_gold_value_count():
  assert scores({"to": ["Anna"]}, {"to": ["xyz", "Anna"]})["joint_goal_accuracy"] == 0.0
  assert scores({"kind": ["a", "b"]}, {"kind": ["b"]})["joint_goal_accuracy"] == 0.0


def test_not_applicable_is_nan():
  empty = scores({}, {})
  assert empty["joint_goal_accuracy"] == empty["joint_cat_accuracy"] == 1.0
  assert all(math.isnan(v) for key, v in empty.items() if key.startswith("average"))
  assert math.isnan(scores({}, {}, NO_CAT)["joint_cat_accuracy"])
  no_slots = scores({}, {}, Service("Ping_1", "", (), ()))
  assert all(math.isnan(v) for v in no_slots.values())


def frame(key, service, values, **more):
  return metrics.GoldFrame(key, key.split("-")[0], 0, service, values, 0, **more)


def predicted(states):
  return {key: metrics.PredictedFrame(values) for key, values in states.items()}


def test_aggregation_by_hand():
  gold = [
    frame("a-000-Banks_1", "Banks_1", {"kind": ["Savings"]}),
    frame("b-000-Banks_1", "Banks_1", {}),
    frame("c-000-Taxi_1", "Taxi_1", {"to": ["Hanna"]}),
  ]
  states = {
    "a-000-Banks_1": {"kind": ["Savings"]},
    "b-000-Banks_1": {"to": ["Anna"]},
    "c-000-Taxi_1": {"to": ["Anna"]},
  }
  result = metrics.score_frames(gold, predicted(states), SCHEMA, {"Banks_1"})
  found = metrics.official_scores(result)
  joint = {key: group["joint_goal_accuracy"] for key, group in found.items()}
  assert joint == {  # frames score 1, 0 and 0.89
    "#ALL_SERVICES": pytest.approx((1 + 0 + 0.89) / 3, abs=1e-12),
    "#SEEN_SERVICES": 0.5,
    "#UNSEEN_SERVICES": 0.89,
    "Banks": 0.5,
    "Banks_1": 0.5,
    "Taxi": 0.89,
    "Taxi_1": 0.89,
  }
  # NA is skipped: frame b has no active slot, frame c's service no categorical one.
  assert found["#ALL_SERVICES"]["average_goal_accuracy"] == pytest.approx((1 + 0.89) / 2)
  assert found["#ALL_SERVICES"]["joint_cat_accuracy"] == 1.0
  assert math.isnan(found["Taxi"]["joint_cat_accuracy"])
  assert result.dialogue_ids.tolist() == ["a", "b", "c"]
  assert result.seen.tolist() == [True, True, False]


def test_groups_without_frames_have_no_key():
  result = metrics.score_frames([frame("a-000-Taxi_1", "Taxi_1", {})], {}, SCHEMA, ())
  assert len(result) == 0
  assert metrics.official_scores(result) == {}


def test_common_frames_are_in_one_order():
  gold = [frame(f"{c}-000-Taxi_1", "Taxi_1", {}) for c in "abc"]
  states = metrics.predict_nothing(gold)
  one = metrics.score_frames(gold, states, SCHEMA, ())
  del states["b-000-Taxi_1"]
  other = metrics.score_frames(gold[::-1], states, SCHEMA, ())
  common = metrics.common_frames({"v1": one, "v2": other})
  assert [s.frame_ids.tolist() for s in common.values()] == [["a-000-Taxi_1", "c-000-Taxi_1"]] * 2


def test_a_frame_that_occurs_twice_is_refused():
  state = {"active_intent": "NONE", "requested_slots": [], "slot_values": {}}
  frames = [{"service": "Taxi_1", "state": state}]
  turn = {"speaker": "USER", "utterance": "hi", "frames": frames}
  dialogue = Dialogue.from_json({"dialogue_id": "1", "services": [], "turns": [turn]})
  with pytest.raises(SgdxError, match="1-000-Taxi_1 occurs twice"):
    metrics.gold_frames([dialogue, dialogue])


VALUES = st.lists(st.sampled_from(["Savings", "Checking", "Anna", "Anna Lee", "$5"]), min_size=1)
STATES = st.dictionaries(st.sampled_from(["kind", "to", "amount"]), VALUES)


@settings(deadline=None)  # the machine may be busy
@given(STATES, STATES, st.randoms())
def test_scores_are_fractions_and_ignore_the_order_of_slots(gold, predicted, random):
  items = list(predicted.items())
  random.shuffle(items)
  found = scores(gold, predicted)
  np.testing.assert_equal(found, scores(gold, dict(items)))
  assert all(0 <= v <= 1 for v in found.values() if not math.isnan(v))


NAMES = st.lists(st.sampled_from(["kind", "to", "amount"]), max_size=4)
SPANS = st.lists(st.tuples(st.sampled_from(["kind", "to"]), st.text(max_size=3)), max_size=4)


@settings(deadline=None)  # the machine may be busy
@given(STATES, st.sampled_from(["NONE", "Do"]), NAMES, SPANS)
def test_gold_scores_exactly_one(values, intent, requested, spans):
  one = {"active_intent": intent, "requested_slots": tuple(requested), "spans": tuple(spans)}
  gold = frame("a-000-Banks_1", "Banks_1", values, **one)
  said = {gold.frame_id: metrics.PredictedFrame(values, intent, tuple(requested), tuple(spans))}
  for backend in metrics.BACKENDS:
    found = metrics.score_frames([gold], said, SCHEMA, (), backend).metrics
    assert all(v[0] == 1.0 or math.isnan(v[0]) for v in found.values())
    assert found["joint_goal_accuracy"] == [1.0]


@settings(deadline=None)  # the machine may be busy
@given(STATES, STATES)
def test_the_product_over_asked_slots_is_the_official_jga(gold, said):
  """A task that asks for tracked slots only: here `amount` is untracked, in no state."""
  gold.pop("amount", None)
  said.pop("amount", None)
  frames = [frame("a-000-Banks_1", "Banks_1", gold)]
  official = metrics.score_frames(frames, predicted({"a-000-Banks_1": said}), SCHEMA, ())
  targets = [
    {
      "id": f"v1/test/a-000-Banks_1/{slot}",
      "values": list(gold.get(slot, [])),
      "service_slots": 2,
      "categorical": slot == "kind",
      "seen": True,
    }
    for slot in ("kind", "to")
  ]
  answers = [said[slot][0] if slot in said else None for slot in ("kind", "to")]
  found = seqio_metrics.joint_goal_accuracy(targets, answers)
  assert found["jga"] == official.metrics["joint_goal_accuracy"][0]


@pytest.mark.real
def test_gold_scores_one_on_the_real_test_files(real_archive):
  corpus = open_corpus(real_archive)
  gold = metrics.gold_frames(corpus.dialogues("test"))
  assert len(gold) == 26_802  # user frames of the 24 test files at hand (README beside them)
  states = {
    f.frame_id: metrics.PredictedFrame(f.slot_values, f.active_intent, f.requested_slots, f.spans)
    for f in gold
  }
  seen = corpus.seen_services("test")
  assert len(seen) == 6  # field notes, section 1
  result = metrics.score_frames(gold, states, corpus.schema("test"), seen)
  for values in metrics.official_scores(result).values():
    assert all(v == 1.0 or math.isnan(v) for v in values.values())
  for key, values in result.metrics.items():
    assert np.all((values == 1.0) | np.isnan(values)), key
  assert np.all(result.metrics["joint_goal_accuracy"] == 1.0)
