"""Intervals and paired tests: cases small enough to list every sample, and simulations."""

import math

import numpy as np
import pytest

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import summarise
from sgdx_t5x.metrics.bootstrap import (
  BootstrapSamples,
  interval,
  mean_difference,
  mean_interval,
  paired_differences,
  summary_intervals,
  summary_samples,
)

VARIANTS = ("v1", "v2", "v3", "v4", "v5")
# All draws of two out of two dialogues: aa, ab, ba, bb.
TWO = BootstrapSamples(np.array(["a", "b"]), np.array([[2.0, 0], [1, 1], [1, 1], [0, 2]]))


def right(*counts):
  """Scores of frames, each right in this many of the five variants, and in the original."""
  scores = {f"v{k}": np.array([float(n >= k) for n in counts]) for k in range(1, 6)}
  return {"original": np.ones(len(counts)), **scores}


def random_scores(rng, num_frames, variants=("original", *VARIANTS), missing=0.0):
  scores = {v: rng.choice([0.0, 0.93, 1.0], num_frames) for v in variants}
  return {v: np.where(rng.random(num_frames) < missing, np.nan, x) for v, x in scores.items()}


# --- bootstrap samples ---------------------------------------------------------------------


def test_draws_are_of_dialogues_each_as_likely():
  drawn = BootstrapSamples.draw(np.array(["b", "a", "b", "c", "a"]), bootstrap_samples=5000)
  assert drawn.dialogue_ids.tolist() == ["a", "b", "c"]
  assert (drawn.weights.sum(axis=1) == 3).all()
  # Of the 27 draws of three, 3! contain each dialogue once; 1 contains a given one three times.
  # Standard deviations of the shares: .0059 and .0027.
  assert (drawn.weights == 1).all(axis=1).mean() == pytest.approx(6 / 27, abs=0.02)
  assert (drawn.weights == 3).mean(axis=0) == pytest.approx([1 / 27] * 3, abs=0.01)


def test_draws_depend_on_the_dialogues_and_the_seed_only():
  ids = np.array(["a", "b", "b", "c"])
  first = BootstrapSamples.draw(ids, 50, seed=3)
  again = BootstrapSamples.draw(ids[[3, 2, 0, 1, 1]], 50, seed=3)
  assert np.array_equal(first.weights, again.weights)
  assert not np.array_equal(first.weights, BootstrapSamples.draw(ids, 50, seed=4).weights)


def test_means_by_hand():
  # a has the scores 1, 0 and b has 1; the second statistic lacks one of a's.
  values = np.array([[1.0, 0.0, 1.0], [0.5, np.nan, 0.0]])
  means = TWO.means(values, np.array(["a", "a", "b"]))
  assert means[:, 0] == pytest.approx([1 / 2, 2 / 3, 2 / 3, 1])
  assert means[:, 1] == pytest.approx([1 / 2, 1 / 4, 1 / 4, 0])


def test_means_of_some_of_the_dialogues():
  """A sample without any of them has no mean."""
  weights = np.array([[1.0, 1, 1], [0, 0, 3], [2, 1, 0]])
  drawn = BootstrapSamples(np.array(["a", "b", "c"]), weights)
  means = drawn.means(np.array([[0.0, 0.6]]), np.array(["b", "a"]))[:, 0]
  assert means == pytest.approx([0.3, np.nan, 0.4], nan_ok=True)


def test_one_dialogue_gives_no_interval():
  assert np.isnan(TWO.means(np.array([[1.0, 0.0]]), np.array(["b", "b"]))).all()
  alone = BootstrapSamples.draw(np.array(["a", "a"]), 10)
  found = summary_intervals(right(5, 0), np.array(["a", "a"]), alone)
  assert all(math.isnan(low) and math.isnan(high) for low, high in found.values())


def test_a_dialogue_that_was_not_drawn_from_is_refused():
  with pytest.raises(SgdxError, match="dialogue c is not among the resampled dialogues"):
    TWO.means(np.ones((1, 2)), np.array(["a", "c"]))


def test_percentiles_by_hand():
  # Of 0, 1, ... 40, 2.5% lie below 1 and above 39; nan is not counted.
  samples = np.array([np.nan, *range(40, -1, -1), np.nan])
  assert interval(samples) == pytest.approx((1.0, 39.0))
  assert interval(samples, level=0.5) == pytest.approx((10.0, 30.0))
  assert all(math.isnan(x) for x in interval(np.array([np.nan])))


# --- the numbers of summarise --------------------------------------------------------------


def test_every_number_in_every_bootstrap_sample_by_hand():
  # a: one of five variants right, CoV sqrt(5); b: all right, CoV 0.
  found = summary_samples(right(1, 5), np.array(["a", "b"]), TWO)
  expected = {
    "jga_orig": [1, 1, 1, 1],
    "jga_v1": [1, 1, 1, 1],
    **{f"jga_v{k}": [0, 0.5, 0.5, 1] for k in range(2, 6)},
    "jga_v1_5": [0.2, 0.6, 0.6, 1],
    "diff_rel": [-0.8, -0.4, -0.4, 0],
    "ss_jga": np.sqrt(5) * np.array([1, 0.5, 0.5, 0]),
    "ss_jga_exclude": np.sqrt(5) * np.array([1, 0.5, 0.5, 0]),
    "zero_mean_share": [0, 0, 0, 0],
    "cjga_v1": [1, 1, 1, 1],
    **{f"cjga_v{k}": [0, 0.5, 0.5, 1] for k in range(2, 6)},
    "cjga_all": [0, 0.5, 0.5, 1],
    "retained": [0.2, 0.6, 0.6, 1],
    "lost": [0.8, 0.4, 0.4, 0],
    "gained": [0, 0, 0, 0],
    "worst": [0, 0.5, 0.5, 1],
    "spread": [1, 0.5, 0.5, 0],
  }
  assert set(found) == set(expected)
  for key, samples in expected.items():
    assert found[key] == pytest.approx(samples), key


def test_zero_mean_rules_in_bootstrap_samples():
  # a: CoV sqrt(5), b: all right, c: all wrong. The draw ccc has no CoV under "exclude".
  weights = np.array([[1.0, 1, 1], [0, 0, 3], [2, 0, 1]])
  drawn = BootstrapSamples(np.array(["a", "b", "c"]), weights)
  ids = drawn.dialogue_ids
  by_rule = {
    rule: summary_samples(right(1, 5, 0), ids, drawn, rule) for rule in ("zero", "exclude")
  }
  root = math.sqrt(5)
  assert by_rule["zero"]["ss_jga"] == pytest.approx([root / 3, 0, 2 * root / 3])
  assert by_rule["exclude"]["ss_jga"] == pytest.approx([root / 2, np.nan, root], nan_ok=True)
  assert by_rule["zero"]["ss_jga_exclude"] == pytest.approx(
    by_rule["exclude"]["ss_jga"], nan_ok=True
  )
  assert by_rule["zero"]["zero_mean_share"] == pytest.approx([1 / 3, 1, 1 / 3])


@pytest.mark.parametrize("zero_mean", ["zero", "exclude"])
@pytest.mark.parametrize(
  ("variants", "name", "missing"),
  [
    (("original", *VARIANTS), "jga", 0.0),
    (("original", *VARIANTS), "jga", 0.1),
    (VARIANTS, "average_goal_accuracy", 0.1),
    (("original", "v2", "v5"), "jga", 0.0),
    (("v4",), "jga", 0.0),
  ],
)
def test_each_dialogue_once_is_summarise(variants, name, missing, zero_mean):
  rng = np.random.default_rng(5)
  scores = random_scores(rng, 60, variants, missing)
  ids = rng.choice(["a", "b", "c", "d"], 60)
  once = BootstrapSamples(np.unique(ids), np.ones((1, 4)))
  found = summary_samples(scores, ids, once, zero_mean, name)
  expected = summarise(scores, zero_mean, name)
  assert {k: x[0] for k, x in found.items()} == pytest.approx(expected, nan_ok=True)
  intervals = summary_intervals(scores, ids, once, zero_mean, name)
  assert {k: low for k, (low, _) in intervals.items()} == pytest.approx(expected, nan_ok=True)


def test_order_and_sharding_of_frames_do_not_matter():
  rng = np.random.default_rng(6)
  scores, other = random_scores(rng, 300), random_scores(rng, 300)
  ids = np.sort(rng.choice([f"1_{i:05d}" for i in range(40)], 300))
  shards = np.concatenate([np.arange(s, 300, 7) for s in range(7)])
  found = []
  for order in (slice(None), slice(None, None, -1), shards):
    a, b = ({v: x[order] for v, x in s.items()} for s in (scores, other))
    drawn = BootstrapSamples.draw(ids[order], 200)
    found.append(
      (summary_intervals(a, ids[order], drawn), paired_differences(a, b, ids[order], drawn))
    )
  for intervals, differences in found[1:]:
    for key, ends in found[0][0].items():
      assert intervals[key] == pytest.approx(ends, abs=1e-12)
    for key, difference in found[0][1].items():
      assert differences[key].p == difference.p
      assert differences[key].low == pytest.approx(difference.low, abs=1e-11)


def test_worst_and_spread_are_of_each_bootstrap_sample_by_hand():
  """v1 is right in a only, v2 in b only: the worst variant in aa is not the one in bb."""
  scores = {v: np.ones(2) for v in ("original", *VARIANTS)}
  scores["v1"], scores["v2"] = np.array([1.0, 0.0]), np.array([0.0, 1.0])
  found = summary_samples(scores, np.array(["a", "b"]), TWO)
  assert found["worst"] == pytest.approx([0, 0.5, 0.5, 0])
  assert found["spread"] == pytest.approx([1, 0.5, 0.5, 1])


def test_retained_of_samples_without_a_frame_to_retain():
  """Of a and b, only a is right with the original: the draw bb has nothing to retain or to lose."""
  scores = {"original": np.array([1.0, 0, 1]), **{v: np.array([1.0, 1, 0]) for v in VARIANTS}}
  ids = np.array(["a", "b", "c"])
  drawn = BootstrapSamples(ids, np.array([[1.0, 1, 1], [0, 3, 0], [2, 1, 0]]))
  found = summary_samples(scores, ids, drawn)
  assert found["retained"] == pytest.approx([1 / 2, np.nan, 1], nan_ok=True)
  assert found["lost"] == pytest.approx([1 / 2, np.nan, 0], nan_ok=True)
  assert found["gained"] == pytest.approx([1 / 3, 1, 1 / 3])


def test_interval_and_difference_of_any_mean_by_hand():
  """As for agreement: a has frames of 1 and 0, b has one of .4, or .8 in the other system."""
  ids, a, b = np.array(["a", "a", "b"]), np.array([1.0, 0.0, 0.4]), np.array([1.0, 0.0, 0.8])
  # Means in the draws aa, ab, ba, bb: 1/2, 7/15, 7/15, 2/5; their differences 0, 2/15, 2/15, .4.
  assert mean_interval(a, ids, TWO) == interval(np.array([1 / 2, 7 / 15, 7 / 15, 2 / 5]))
  found = mean_difference(a, b, ids, TWO)
  assert (found.a, found.b) == pytest.approx((7 / 15, 9 / 15))
  assert found.difference == pytest.approx(2 / 15)
  assert (found.low, found.high) == pytest.approx(interval(np.array([0, 2 / 15, 2 / 15, 0.4])))
  assert found.p == pytest.approx(0.8)  # 2 (1 + 1) / 5: one difference is <= 0
  assert mean_difference(a, a, ids, TWO).p == 1.0
  known = mean_difference(np.array([np.nan, 0.0, 0.4]), b, ids, TWO)
  assert (known.a, known.b) == pytest.approx((0.2, 0.4))


# --- two systems ---------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("b", "difference", "p"),
  [
    # Differences in aa, ab, ba, bb; p = 2 (1 + the fewer of those <= 0 and those >= 0) / 5.
    ([1.0, 1.0], 1.0, 0.5),  # 1, 1, 1, 1: .4, but with two dialogues p is at least 2 / 2^2
    ([1.0, 0.0], 0.5, 0.8),  # 1, .5, .5, 0
    ([0.2, 0.0], 0.1, 0.8),
    ([0.0, 0.0], 0.0, 1.0),
  ],
)
def test_paired_difference_by_hand(b, difference, p):
  a = {"original": np.zeros(2)}
  found = paired_differences(a, {"original": np.array(b)}, np.array(["a", "b"]), TWO)["jga_orig"]
  assert (found.a, found.b) == (0.0, pytest.approx(np.mean(b)))
  assert found.difference == pytest.approx(difference)
  assert found.p == pytest.approx(p)


def test_dialogues_in_which_a_statistic_is_undefined_are_no_evidence():
  """Of 12 dialogues, two are ever right: what is retained depends on these alone."""
  ids = np.repeat([f"{i:02d}" for i in range(12)], 5)
  right = np.where(np.arange(60) < 10, 1.0, 0.0)
  a = {"original": right, **{f"v{k}": np.zeros(60) for k in range(1, 6)}}
  b = {variant: right for variant in a}

  def p_of(frames):
    x, y = ({v: scores[frames] for v, scores in system.items()} for system in (a, b))
    drawn = BootstrapSamples.draw(ids[frames], 500)
    return {k: d.p for k, d in paired_differences(x, y, ids[frames], drawn).items()}

  all_dialogues, two = p_of(slice(None)), p_of(slice(10))
  assert all_dialogues["retained"] == two["retained"] == 0.5  # 2 / 2^2
  assert all_dialogues["jga_v1_5"] < two["jga_v1_5"] == 0.5
  some = np.where(right > 0, right, np.nan)
  drawn = BootstrapSamples.draw(ids, 500)
  assert mean_difference(some - 1, some, ids, drawn).p == 0.5
  assert paired_differences({}, {}, ids, drawn).keys() == all_dialogues.keys()


def test_opposite_differences_are_no_difference():
  a, b = ({"original": np.array(x)} for x in ([0.0, 1.0], [1.0, 0.0]))
  found = paired_differences(a, b, np.array(["a", "b"]), TWO)["jga_orig"]  # 1, 0, 0, -1
  assert (found.difference, found.p) == (0.0, 1.0)
  assert (found.low, found.high) == pytest.approx((-0.925, 0.925))  # at 1/40 from rank 0 to 3


def test_equal_systems_differ_by_nothing_and_not_by_rounding():
  rng = np.random.default_rng(7)
  scores = random_scores(rng, 200, missing=0.05)
  ids = np.repeat([f"{i:02d}" for i in range(20)], 10)
  # The same scores within each dialogue, so equal sums up to rounding.
  swapped = {v: x.reshape(20, 10)[:, ::-1].ravel() for v, x in scores.items()}
  again = {v: np.where(np.isnan(swapped[v]), np.nan, x) for v, x in scores.items()}
  swapped = {v: np.where(np.isnan(scores[v]), np.nan, x) for v, x in swapped.items()}
  found = paired_differences(again, swapped, ids, BootstrapSamples.draw(ids, 200))
  assert {(x.difference, x.low, x.high, x.p) for x in found.values()} == {(0.0, 0.0, 0.0, 1.0)}


def test_differences_of_sensitivity_are_paired():
  """The systems share most errors, so their difference has a narrower interval than either."""
  rng = np.random.default_rng(8)
  scores = random_scores(rng, 400)
  better = {v: np.where(rng.random(400) < 0.1, 1.0, x) for v, x in scores.items()}
  ids = rng.choice([f"{i:02d}" for i in range(60)], 400)
  drawn = BootstrapSamples.draw(ids, 500)
  found = paired_differences(scores, better, ids, drawn)["ss_jga"]
  assert (found.a, found.b) == (summarise(scores)["ss_jga"], summarise(better)["ss_jga"])
  assert found.low < found.difference < found.high < 0
  assert found.p == pytest.approx(2 / 501)
  low, high = summary_intervals(scores, ids, drawn)["ss_jga"]
  assert found.high - found.low < 0.7 * (high - low)


def test_differences_of_retained_are_paired():
  """Both are right on the original in the same frames; b loses a tenth of what a retains."""
  rng = np.random.default_rng(11)
  a = {v: rng.choice([0.0, 1.0], 400) for v in ("original", *VARIANTS)}
  b = {v: np.where(rng.random(400) < 0.1, 0.0, x) for v, x in a.items()} | {
    "original": a["original"]
  }
  ids = rng.choice([f"{i:02d}" for i in range(60)], 400)
  drawn = BootstrapSamples.draw(ids, 500)
  found = paired_differences(a, b, ids, drawn)
  difference = found["retained"]
  assert (difference.a, difference.b) == (summarise(a)["retained"], summarise(b)["retained"])
  assert difference.low < difference.difference < difference.high < 0
  assert difference.p == pytest.approx(2 / 501)
  low, high = summary_intervals(a, ids, drawn)["retained"]
  assert difference.high - difference.low < 0.7 * (high - low)
  assert found["lost"].difference == pytest.approx(-difference.difference)
  assert (found["lost"].low, found["lost"].high) == pytest.approx(
    (-difference.high, -difference.low)
  )


def test_frames_and_variants_of_one_system_only_are_left_out():
  a = {"original": np.array([1.0, np.nan, 0.0, 0.5]), "v1": np.ones(4)}
  b = {"original": np.array([1.0, 1.0, np.nan, 1.0])}
  ids = np.array(["a", "a", "b", "b"])
  found = paired_differences(a, b, ids, TWO)
  assert (found["jga_orig"].a, found["jga_orig"].b) == (0.75, 1.0)
  assert math.isnan(found["jga_v1"].a)
  assert math.isnan(found["jga_v1"].p)


# --- simulations ---------------------------------------------------------------------------


def _simulated(rng, dialogues=60, frames=8):
  """Scores with expectation .7, correlated within a dialogue."""
  ease = rng.beta(0.7, 0.3, dialogues)  # mean .7, variance .105: strongly correlated
  ids = np.repeat([f"{i:03d}" for i in range(dialogues)], frames)
  return (rng.random(len(ids)) < np.repeat(ease, frames)).astype(float), ids


def test_intervals_hold_the_true_mean_as_often_as_they_say():
  rng = np.random.default_rng(9)
  covered = {"dialogues": 0, "frames": 0}
  for seed in range(200):
    scores, ids = _simulated(rng)
    units = {"dialogues": ids, "frames": np.arange(len(ids)).astype(str)}
    for unit, names in units.items():
      drawn = BootstrapSamples.draw(names, 150, seed)
      low, high = summary_intervals({"original": scores}, names, drawn)["jga_orig"]
      covered[unit] += low <= 0.7 <= high
  # The percentile interval over 60 dialogues covers it slightly less often than 95%; standard
  # deviation of the share 1.6%. Resampling frames treats correlated ones as independent.
  assert 0.91 <= covered["dialogues"] / 200 <= 0.985
  assert covered["frames"] / 200 < 0.75


def test_p_is_small_as_seldom_as_it_says():
  rng = np.random.default_rng(10)
  found = []
  for seed in range(300):
    (a, ids), (b, _) = _simulated(rng), _simulated(rng)
    drawn = BootstrapSamples.draw(ids, 200, seed)
    difference = paired_differences({"original": a}, {"original": b}, ids, drawn)["jga_orig"]
    if difference.p < 0.05:
      assert not difference.low <= 0 <= difference.high
    found.append(difference.p)
  assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.04)
  assert np.mean(np.array(found) < 0.5) == pytest.approx(0.5, abs=0.09)
