"""Retained, lost, gained, worst and spread: hand-computed values, then properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sgdx_t5x.metrics import retained, summarise

NAN = float("nan")
VARIANTS = ("v1", "v2", "v3", "v4", "v5")


def of_variants(original, variants):
  """Returns the row of [F] and [K, F] scores."""
  by_variant = {f"own_{number}": row for number, row in enumerate(variants)}
  return summarise({"original": original, **by_variant})


def lost(original, variants):
  return of_variants(original, variants)["lost"]


def gained(original, variants):
  return of_variants(original, variants)["gained"]


def worst_and_spread(variants):
  row = of_variants(np.ones(variants.shape[1]), variants)
  return row["worst"], row["spread"]


def test_retained_lost_and_gained_by_hand():
  # Frames 1 to 3 are right with the original. v1 keeps two of them, v2 one: 3 of 6 chances.
  # Frame 4 is gained by v1, frame 5 by neither: 1 of 10.
  original = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
  variants = np.array([[1.0, 1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
  assert retained(original, variants) == 3 / 6
  assert lost(original, variants) == 3 / 6
  assert gained(original, variants) == 1 / 10
  # One variant alone: v1 keeps 2 of 3, and gains 1 of 5 frames.
  assert retained(original, variants[:1]) == pytest.approx(2 / 3)
  assert gained(original, variants[:1]) == 1 / 5


def test_a_near_match_is_not_right():
  """A score of .97 is wrong: nothing to retain on the original, lost on a variant."""
  assert math.isnan(retained(np.array([0.97]), np.array([[1.0]])))
  assert gained(np.array([0.97]), np.array([[1.0]])) == 1.0
  assert lost(np.array([1.0]), np.array([[0.97]])) == 1.0
  assert gained(np.array([0.0]), np.array([[0.97]])) == 0.0


def test_a_frame_without_a_score_in_one_row_is_left_out():
  original = np.array([1.0, 1.0, NAN, 0.0])
  variants = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, NAN, 1.0, 0.0]])
  assert retained(original, variants) == 1 / 2  # of the first frame
  assert lost(original, variants) == 1 / 2
  assert gained(original, variants) == 1 / 4  # first and last frame, two variants


def test_what_has_no_denominator_is_nan():
  nothing_right = np.zeros(3), np.ones((5, 3))
  assert math.isnan(retained(*nothing_right))
  assert math.isnan(lost(*nothing_right))
  assert gained(*nothing_right) == 1.0
  for empty in ((np.zeros(0), np.zeros((5, 0))), (np.ones(3), np.zeros((0, 3)))):
    assert all(math.isnan(metric(*empty)) for metric in (retained, lost, gained))
    assert all(map(math.isnan, worst_and_spread(empty[1])))


def test_worst_and_spread_by_hand():
  # Means .5, 1 and .25; the last frame lacks a score.
  scores = np.array([[1, 0, 1, 0, 1], [1, 1, 1, 1, 1], [1, 0, 0, 0, NAN]])
  assert worst_and_spread(scores) == (0.25, 0.75)
  assert worst_and_spread(scores[:1]) == (pytest.approx(0.6), 0.0)


def test_partial_sets_of_variants():
  """All five need v1 to v5; only worst and spread do without the original."""
  ones = np.ones(2)
  every = summarise({v: ones for v in VARIANTS})
  assert (every["worst"], every["spread"]) == (1.0, 0.0)
  few = summarise({v: ones for v in ("original", *VARIANTS[:4])})
  for key in ("retained", "lost", "gained"):
    assert math.isnan(every[key])
    assert math.isnan(few[key])
  assert math.isnan(few["worst"])
  assert math.isnan(few["spread"])


def test_other_metrics_have_them_too():
  scores = {"original": np.array([1.0, 0.5]), **{v: np.array([1.0, 1.0]) for v in VARIANTS}}
  row = summarise({**scores, "v5": np.array([0.5, 0.5])}, name="requested_slots_f1")
  assert row["retained"] == pytest.approx(4 / 5)
  assert row["gained"] == pytest.approx(4 / 10)
  assert (row["worst"], row["spread"]) == (0.5, 0.5)


def scores(values):
  """[1 + K, F] scores: the original and K variants."""
  shape = st.tuples(st.integers(2, 6), st.integers(1, 8))
  return hnp.arrays(float, shape, elements=st.sampled_from(values))


@settings(deadline=None)  # the machine may be busy
@given(scores([0.0, 0.5, 1.0]))
def test_lost_and_retained_are_all_that_was_right(found):
  original, variants = found[0], found[1:]
  if not (original >= 1).any():
    assert math.isnan(retained(original, variants))
    return
  assert lost(original, variants) + retained(original, variants) == pytest.approx(1)
  assert of_variants(original, variants)["retained"] == retained(original, variants)
  nothing_lost = (variants[:, original >= 1] >= 1).all()
  assert (retained(original, variants) == 1) == nothing_lost
  assert (lost(original, variants) == 0) == nothing_lost


@settings(deadline=None)  # the machine may be busy
@given(scores([0.0, 1.0]))
def test_accuracy_is_what_is_retained_and_gained(found):
  """JGA_variant = retained * JGA_orig + gained, of each variant and on average."""
  original, variants = found[0], found[1:]
  for some in (variants, *variants[:, None]):
    kept = retained(original, some) if original.any() else 0.0
    assert some.mean() == pytest.approx(kept * original.mean() + gained(original, some))


@settings(deadline=None)  # the machine may be busy
@given(scores([0.0, 0.25, 0.67, 1.0]), st.randoms())
def test_order_and_repetition_never_matter(found, random):
  rows, columns = list(range(1, len(found))), list(range(found.shape[1]))
  random.shuffle(rows)
  random.shuffle(columns)
  again = np.tile(found[:, columns], 3)
  for metric in (retained, lost, gained):
    expected = metric(found[0], found[1:])
    assert metric(again[0], again[rows]) == pytest.approx(expected, nan_ok=True)
  assert worst_and_spread(again[rows]) == pytest.approx(worst_and_spread(found[1:]))


@settings(deadline=None)  # the machine may be busy
@given(scores([0.0, 0.5, 1.0]))
def test_bounds(found):
  variants = found[1:]
  worst, spread = worst_and_spread(variants)
  assert 0 <= worst <= variants.mean() + 1e-12
  assert 0 <= spread <= 1
  assert worst + spread == pytest.approx(variants.mean(axis=1).max())
  assert 0 <= gained(found[0], variants) <= (found[0] < 1).mean()
