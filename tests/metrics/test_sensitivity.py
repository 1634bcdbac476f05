"""Schema sensitivity: hand-computed values, conventions, and the SeqIO metric functions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import frame_cov, relative_difference, summarise
from sgdx_t5x.metrics import seqio_metrics as sm

# By hand: n of 5 variants right, p = n/5, s = sqrt(5/4 * p(1-p)), CoV = s/p = sqrt(5(1-p)/(4p)):
# sqrt(5), sqrt(15/8), sqrt(5/6), sqrt(5/16), 0. Field notes, section 2, list the same.
BINARY_COV = {1: 2.2361, 2: 1.3693, 3: 0.9129, 4: 0.5590, 5: 0.0}


def of_variants(scores, zero_mean="zero"):
  """Returns the row of [K, F] scores, without those of the original schema."""
  return summarise({f"own_{k}": row for k, row in enumerate(scores)}, zero_mean)


def schema_sensitivity(scores, zero_mean="zero"):
  return of_variants(scores, zero_mean)["ss_jga"]


def right(n):
  return [1.0] * n + [0.0] * (5 - n)


@pytest.mark.parametrize(("n", "cov"), BINARY_COV.items())
def test_cov_of_binary_scores(n, cov):
  column = np.array([right(n)]).T
  assert frame_cov(column)[0] == pytest.approx(cov, abs=5e-5)
  assert schema_sensitivity(column) == pytest.approx(cov, abs=5e-5)


def test_sensitivity_by_hand():
  # Frames with 5, 4, 1 and 0 of 5 right: CoV 0, .5590, 2.2361 and 0/0.
  scores = np.array([right(5), right(4), right(1), right(0)]).T
  assert schema_sensitivity(scores, "zero") == pytest.approx(2.7951 / 4, abs=5e-5)
  assert schema_sensitivity(scores, "exclude") == pytest.approx(2.7951 / 3, abs=5e-5)
  assert of_variants(scores)["zero_mean_share"] == 0.25
  assert of_variants(scores)["jga_reworded"] == 0.5


def test_sensitivity_of_fuzzy_scores_by_hand():
  # .8 and .4: mean .6, s = sqrt((.04 + .04) / 1) = .28284, CoV = .47140
  assert schema_sensitivity(np.array([[0.8], [0.4]])) == pytest.approx(0.47140, abs=5e-6)


def test_fewer_than_two_variants_give_no_sensitivity():
  for num_variants in (0, 1):
    assert math.isnan(schema_sensitivity(np.ones((num_variants, 3))))
  assert np.isnan(frame_cov(np.ones((1, 3)))).all()
  assert math.isnan(schema_sensitivity(np.ones((5, 0))))


def test_a_frame_without_a_score_in_one_variant_is_left_out():
  scores = np.array([[1.0, 1.0], [0.0, np.nan]])
  assert schema_sensitivity(scores) == pytest.approx(math.sqrt(2))
  assert of_variants(scores)["zero_mean_share"] == 0.0


def test_unknown_rule_is_refused():
  with pytest.raises(SgdxError, match=r"(?s)zero_mean = 'max'.*zero, exclude"):
    schema_sensitivity(np.ones((2, 2)), "max")


def test_relative_difference():
  # T5DST in the paper's Table 2: 72.6 -> 64.0 is -11.8 (printed -11.9, from unrounded numbers).
  assert relative_difference(0.726, 0.640) == pytest.approx(-0.118457, abs=1e-6)
  assert math.isnan(relative_difference(0.0, 0.5))


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(SCORES, st.sampled_from(["v1", "v2", "v5", "original"]))
def test_fewer_than_five_variants_have_no_sensitivity(scores, variant):
  row = summarise({variant: np.array(scores)})
  for key in ("jga_v1_5", "diff_rel", "ss_jga", "ss_jga_exclude", "zero_mean_share", "cjga_all"):
    assert np.isnan(row[key])
  for key in ("retained", "lost", "gained", "worst", "spread"):
    assert np.isnan(row[key])
  assert np.isnan(schema_sensitivity(np.array([scores])))


def test_frames_without_a_score_in_one_variant_are_left_out_of_all():
  nan = float("nan")
  jga = {"original": np.array([0.0, 1.0]), "v1": np.array([nan, 1.0])}
  row = summarise(jga)
  assert (row["jga_orig"], row["jga_v1"], row["cjga_v1"]) == (1.0, 1.0, 1.0)


def test_a_row_of_the_table():
  jga = {f"v{k}": np.array(x) for k, x in enumerate(zip(right(5), right(4), strict=True), 1)}
  row = summarise({"original": np.array([1.0, 1.0]), **jga})
  assert row == {
    "jga_orig": 1.0,
    **dict.fromkeys(("jga_v1", "jga_v2", "jga_v3", "jga_v4"), 1.0),
    "jga_v5": 0.5,
    "jga_v1_5": pytest.approx(0.9),
    "diff_rel": pytest.approx(-0.1),
    "ss_jga": pytest.approx(0.5590 / 2, abs=5e-5),
    "ss_jga_exclude": pytest.approx(0.5590 / 2, abs=5e-5),
    "zero_mean_share": 0.0,
    **dict.fromkeys(("cjga_v1", "cjga_v2", "cjga_v3", "cjga_v4"), 1.0),
    **dict.fromkeys(("cjga_v5", "cjga_all"), 0.5),
    # Both frames are right with the original; of their ten chances one is lost.
    "retained": pytest.approx(0.9),
    "lost": pytest.approx(0.1),
    "gained": 0.0,
    "worst": 0.5,
    "spread": 0.5,
  }


def test_without_v1_to_v5_a_row_is_over_the_other_variants():
  """By hand: of two frames, mine loses the second; a reworded schema of SGD-X takes precedence."""
  scores = {"original": np.ones(2), "mine": np.array([1.0, 0.0]), "yours": np.ones(2)}
  row = summarise(scores)
  assert (row["jga_mine"], row["cjga_mine"], row["jga_yours"]) == (0.5, 0.5, 1.0)
  assert (row["jga_reworded"], row["diff_rel"], row["worst"]) == (0.75, -0.25, 0.5)
  assert row["ss_jga"] == pytest.approx(2**0.5 / 2)  # CoV of 1 and 0: sqrt(2); of 1 and 1: 0
  assert row["retained"] == 0.75
  beside = summarise({**scores, "v1": np.zeros(2)})
  assert (beside["jga_mine"], beside["jga_v1"]) == (0.5, 0.0)
  assert math.isnan(beside["jga_v1_5"])
  assert math.isnan(beside["worst"])


def test_what_lacks_a_variant_is_nan():
  row = summarise({"v1": np.ones(3), "v2": np.ones(3)})
  assert {key for key, value in row.items() if not math.isnan(value)} == {"jga_v1", "jga_v2"}


SCORES = hnp.arrays(
  float,
  hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
  elements=st.sampled_from([0.0, 0.25, 0.67, 1.0]),
)


@settings(deadline=None)  # the machine may be busy
@given(SCORES, st.randoms())
def test_order_never_matters(scores, random):
  rows, columns = list(range(scores.shape[0])), list(range(scores.shape[1]))
  random.shuffle(rows)
  random.shuffle(columns)
  shuffled = scores[rows][:, columns]
  for rule in ("zero", "exclude"):
    expected = schema_sensitivity(scores, rule)
    assert schema_sensitivity(shuffled, rule) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(deadline=None)  # the machine may be busy
@given(SCORES)
def test_bounds_and_the_link_between_the_two_rules(scores):
  zero, share = schema_sensitivity(scores, "zero"), of_variants(scores)["zero_mean_share"]
  assert 0 <= zero <= math.sqrt(len(scores)) + 1e-12
  if share < 1:
    assert zero == pytest.approx(schema_sensitivity(scores, "exclude") * (1 - share))


# --- SeqIO metric functions ----------------------------------------------------------------


def example(variant, frame, slot, values, seen=True, slots=2):
  return {
    "id": f"{variant}/dev/{frame}/{slot}",
    "values": values,
    "service_slots": slots,
    "categorical": slot == "kind",
    "seen": seen,
  }


def test_joint_goal_accuracy_of_a_task():
  targets = [
    example("v1", "a-000-B_1", "kind", ["x"]),
    example("v1", "a-000-B_1", "to", []),
    example("v1", "b-000-C_1", "kind", [], seen=False),
    example("v1", "b-000-C_1", "to", ["Hanna"], seen=False),
    example("v1", "c-000-C_1", "to", ["Hanna"], seen=False),  # cut: `kind` is missing
  ]
  found = sm.joint_goal_accuracy(targets, ["x", None, None, "Anna", "Hanna"])
  assert found == {  # frame a scores 1, frame b 1 * 0.89 (test_goals)
    "jga": pytest.approx((1 + 0.89) / 2),
    "jga_seen": 1.0,
    "jga_unseen": 0.89,
    "slot_accuracy": pytest.approx((1 + 1 + 1 + 0.89) / 4),
    "num_frames": 2.0,
    "num_frames_incomplete": 1.0,
  }


def test_nothing_complete_gives_counts_only():
  counts = {"num_frames": 0.0, "num_frames_incomplete": 1.0}
  targets = [example("v1", "a-000-B_1", "kind", ["x"])]
  assert sm.joint_goal_accuracy(targets, ["x"]) == counts
  assert sm.schema_sensitivity(targets, ["x"]) == counts
  assert sm.joint_goal_accuracy([], []) == {"num_frames": 0.0, "num_frames_incomplete": 0.0}


def sensitivity_task(wrong):
  """Five variants, a seen and an unseen frame; `wrong`: the (variant, frame) pairs to get wrong."""
  targets = [
    example(f"v{k}", frame, "kind", ["x"], seen=frame[0] == "a", slots=1)
    for k in range(1, 6)
    for frame in ("a-000-B_1", "b-000-C_1")
  ]
  answers = [None if tuple(t["id"].split("/")[::2]) in wrong else "x" for t in targets]
  return targets, answers


def test_schema_sensitivity_of_a_task():
  targets, answers = sensitivity_task({("v2", "b-000-C_1")})
  found = sm.schema_sensitivity(targets, answers)
  assert found["jga_v1"] == 1.0
  assert found["jga_v2"] == 0.5
  assert found["jga_v1_5"] == pytest.approx(0.9)
  assert found["ss_jga"] == pytest.approx(0.5590 / 2, abs=5e-5)  # 5 and 4 of 5 right
  assert found["ss_jga_seen"] == 0.0
  assert found["ss_jga_unseen"] == pytest.approx(0.5590, abs=5e-5)
  assert found["zero_mean_share"] == 0.0
  assert (found["num_frames"], found["num_frames_seen"]) == (2.0, 1.0)
  assert "jga_orig" not in found  # nan is left out
  assert not any(math.isnan(v) for v in found.values())


def test_a_cut_evaluation_of_several_variants_is_counted():
  targets, answers = sensitivity_task(set())
  found = sm.schema_sensitivity(targets[:-1], answers[:-1])  # v5 of frame b is missing
  assert (found["num_frames"], found["num_frames_incomplete"]) == (1.0, 1.0)
  assert found["ss_jga"] == 0.0


@settings(deadline=None)  # the machine may be busy
@given(st.randoms())
def test_the_order_of_examples_never_matters(random):
  targets, answers = sensitivity_task({("v2", "b-000-C_1"), ("v5", "a-000-B_1")})
  pairs = list(zip(targets, answers, strict=True))
  random.shuffle(pairs)
  expected = sm.schema_sensitivity(targets, answers)
  assert sm.schema_sensitivity(*map(list, zip(*pairs, strict=True))) == expected


def test_what_would_be_a_wrong_number_is_refused():
  one = example("v1", "a-000-B_1", "kind", ["x"])
  with pytest.raises(SgdxError, match="v1/dev/a-000-B_1/kind occurs twice"):
    sm.joint_goal_accuracy([one, one], ["x", "x"])
  with pytest.raises(SgdxError, match="2 variants"):
    sm.joint_goal_accuracy([one, example("v2", "a-000-B_1", "kind", [])], ["x", None])
  with pytest.raises(SgdxError, match="1 targets and 0 predictions"):
    sm.joint_goal_accuracy([one], [])
  with pytest.raises(SgdxError, match="example id 'x'"):
    sm.schema_sensitivity([{**one, "id": "x"}], ["x"])
