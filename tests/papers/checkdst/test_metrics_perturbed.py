"""Metrics of perturbed frames: their counts by hand, and identities on random predictions."""

import dataclasses
import math

import numpy as np
import pytest

from sgdx_t5x.corpus.provenance import Origin
from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.metrics import GoldFrame, goal_scores
from sgdx_t5x.papers.checkdst.metrics_factuality import History
from sgdx_t5x.papers.checkdst.metrics_perturbed import (
  ALONE,
  COUNTS,
  PAIRED,
  Before,
  FrameFacts,
  frame_counts,
  mapped,
)
from sgdx_t5x.papers.checkdst.ratios import Counts, ratios

SERVICE = Service(
  "Stays_1",
  "",
  (
    Slot("city", "", False),
    Slot("name", "", False),
    Slot("pool", "", True, ("True", "False")),
  ),
  (),
)
NAMES = frozenset({"city", "name"})
SAID = History(("A place in Ropmelt.", "How about Quiet Heron?", "Yes."))


def gold_frame(values, turn=2, **origins):
  origins = {slot: Origin(*origin) for slot, origin in origins.items()}
  values = {slot: (value,) for slot, value in values.items()}
  return GoldFrame(f"d-{turn:03d}-Stays_1", "d", turn, "Stays_1", values, 0, origins=origins)


def count(gold, state, before=None, facts=None, backend="exact"):
  state = {slot: (value,) for slot, value in state.items()}
  jga = goal_scores(SERVICE, gold.slot_values, state, backend)["joint_goal_accuracy"]
  found = frame_counts(SERVICE, gold, state, jga, before, facts or FrameFacts(SAID), backend)
  return {key: number for key, number in found.items() if number}


def test_slots_and_coreference():
  gold = gold_frame(
    {"city": "Ropmelt", "name": "Quiet Heron", "pool": "True"},
    city=("carried", 0),
    name=("carried", 2),
    pool=("informed", 0),
  )
  found = count(gold, {"city": "Ropmelt", "name": "Quiet", "pool": "True", "other": "x"})
  assert found == {
    "scored": 1,
    "predicted_slots": 3,  # slots that the service lacks do not count
    "gold_slots": 3,
    "right_slots": 2,
    "carried": 2,
    "carried_right": 1,
    "carried_new": 1,
    "coref_frames": 1,
  }
  accepted = gold_frame({"name": "Quiet Heron"}, name=("accepted", 2))
  found = count(dataclasses.replace(accepted, is_sticky=True), {"name": "Quiet Heron"})
  assert (found["accepted_frames"], found["accepted_right"]) == (1, 1)
  assert (found["sticky_frames"], found["sticky_right"]) == (1, 1)
  assert "coref_frames" not in found


def test_names_that_were_said_and_others():
  facts = FrameFacts(SAID, NAMES, in_train=lambda value: value == "Elmport")
  found = count(gold_frame({}, turn=0), {"city": "ropmelt", "name": "Quiet Heron"}, facts=facts)
  assert (found["entities"], found["factual"]) == (2, 1)  # the name is said a turn later
  assert "factual_part" not in found
  found = count(gold_frame({}), {"city": "Elmport", "name": "dontcare"}, facts=facts)
  assert found["entities"] == found["looked_up"] == found["from_train"] == 1
  found = count(gold_frame({}), {"city": "Elmport"}, facts=FrameFacts(SAID, NAMES))
  assert "looked_up" not in found  # the values of train are unknown


def test_a_pair_of_frames():
  names = {"Elmport": "Ropmelt", "Hartwick": "Ckwirhat"}
  before = Before({"city": ("Elmport",)}, 1.0, True, names)
  facts = FrameFacts(SAID, NAMES, NAMES)
  gold = gold_frame({"city": "Ropmelt"})
  found = count(gold, {"city": "Ropmelt"}, before, facts)
  for key in ("changed", "right_before", "right_after", "right_both", "compared", "agreeing"):
    assert found[key] == 1
  assert found["changed_entities"] == 1
  assert "reverted" not in found
  found = count(gold, {"city": "Elmport"}, before, facts)
  assert found["reverted"] == 1
  assert "right_both" not in found
  assert "agreeing" not in found
  # Case is ignored if the comparison of values ignores it.
  assert count(gold, {"city": "elmport"}, before, facts, "difflib")["reverted"] == 1
  assert "reverted" not in count(gold, {"city": "elmport"}, before, facts, "exact")
  unchanged = Before({"city": ("Elmport",)}, 1.0, False, names)
  assert "changed" not in count(gold, {"city": "Ropmelt"}, unchanged, facts)
  assert "changed" not in count(gold, {}, Before({}, math.nan, True), facts)


def test_what_is_expected_of_a_prediction_whose_names_are_replaced():
  names = {"SF": "Fs", "San Francisco": "Asn Cnafrisoc"}
  before = Before(
    {"city": ("SF", "San Francisco"), "pool": ("True",), "other": ("SF",)},
    1.0,
    True,
    names,
    {"pool": {"True": "False", "False": "True"}},
  )
  expected = {"city": ("Fs", "Asn Cnafrisoc"), "pool": ("False",), "other": ("SF",)}
  assert mapped(before, {}, NAMES) == expected
  after = {"city": ("Asn Cnafrisoc", "Fs")}  # sorted: another form is first
  assert mapped(before, after, NAMES)["city"] == after["city"]
  assert mapped(Before({"city": ("sf",)}, 1.0, True, names), {}, NAMES)["city"] == ("Fs",)
  assert mapped(Before({"city": ("sf",)}, 1.0, True, names), {}, NAMES, "exact")["city"] == ("sf",)


def test_a_value_that_was_taken_back():
  facts = FrameFacts(SAID, repairs={"city": "Oslo", "name": "Inn"})
  found = count(gold_frame({}), {"city": "Oslo"}, facts=facts)
  assert (found["repairs"], found["repairs_taken"]) == (2, 1)


@pytest.mark.parametrize("seed", range(20))
def test_identities_on_random_predictions(seed):
  rng = np.random.default_rng(seed)
  rows = []
  for _ in range(200):
    gold = {"city": "Ropmelt"} if rng.random() < 0.5 else {"city": "Ropmelt", "pool": "True"}
    states = [
      {k: v for k, v in gold.items() if rng.random() < 0.8}
      | ({"name": "x"} if rng.random() < 0.1 else {})
      for _ in range(2)
    ]
    jga = [float(state == gold) for state in states]
    old = {slot: (value,) for slot, value in states[0].items()}
    before = Before(old, jga[0], bool(rng.random() < 0.7))
    rows.append(count(gold_frame(gold), states[1], before))
  values = np.array([[row.get(name, 0) for name in COUNTS] for row in rows], dtype=float).T
  found = ratios({**PAIRED, **ALONE}, Counts(COUNTS, values, np.array(["d"] * 200)))
  before, after, cjga = found["before"], found["perturbed"], found["cjga"]
  assert after == pytest.approx(before - found["broken"] + found["fixed"])
  assert cjga <= min(before, after, 1 - abs(before - after)) + 1e-12
  assert found["retained"] == pytest.approx(cjga / before)
  assert found["conditional"] == pytest.approx(cjga / (before + after - cjga))
  assert found["drop"] == pytest.approx((after - before) / before)
  assert found["agreement"] >= cjga  # if both are right, they agree
  changed = values[COUNTS.index("changed")] > 0
  same = values[COUNTS.index("agreeing")] > 0
  before_right, after_right = (values[COUNTS.index(f"right_{x}")] for x in ("before", "after"))
  assert (before_right == after_right)[changed & same].all()
