"""Statistics of paired cases, against published tables, textbook numbers and simulations."""

import math

import numpy as np
import pytest

from sgdx_t5x.tools.check import statistics

SUITES = 20_000


def simulated_flips(cases, churn, drop, suites=SUITES, seed=0):
  """Broken and fixed cases of suites in which a drop happens, and else only churn."""
  probabilities = [churn + drop, churn, 1 - 2 * churn - drop]
  return np.random.default_rng(seed).multinomial(cases, probabilities, size=suites)[:, :2]


def test_mcnemar_against_the_binomial_by_hand():
  """Six heads in a row, either way: 2 / 2^6. The notes of issue 68 have .125 for 4 and 0."""
  assert statistics.mcnemar_p(6, 0) == statistics.mcnemar_p(0, 6) == 2 / 64
  assert statistics.mcnemar_p(4, 0) == 0.125
  assert statistics.mcnemar_p(8, 1) == 2 * (1 + 9) / 2**9
  assert statistics.mcnemar_p(0, 0) == statistics.mcnemar_p(3, 3) == 1
  assert 0 < statistics.mcnemar_p(1000, 800) < 1e-5


def test_broken_cases_beside_harmless_changes():
  """Each of 8 cases is wrong once, after the change, of three times: 1 / 3^8."""
  right, wrong = [True] * 8, [False] * 8
  assert statistics.broken_p(right, wrong, [right, right]) == pytest.approx(3**-8)
  assert statistics.broken_p(right, wrong, [right]) == pytest.approx(2**-8)
  # Two of 8 waver: (1/3)^6 * (2/3)^2. What was wrong before says nothing.
  wavering = [False] * 2 + [True] * 6
  found = statistics.broken_p([*right, False], [*wrong, False], [[*wavering, True], [*right, True]])
  assert found == pytest.approx((1 / 3) ** 6 * (2 / 3) ** 2)
  # One of three cases: 1 - P(none) = 1 - 2/3.
  assert statistics.broken_p([True] * 3, [False, True, True], [[True] * 3] * 2) == pytest.approx(
    1 / 3
  )
  assert statistics.broken_p(right, right, [right]) == 1
  assert statistics.broken_p(right, wrong, []) == 1


def test_holm_against_the_example_of_the_article():
  """The least p times 4, the next times 3 ..., and never below the one before."""
  assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
  assert statistics.holm([0.6, 0.9]) == [1, 1]
  assert statistics.holm([]) == []


def test_edited_tools_and_others_have_half_of_alpha_each():
  """By hand: twice Holm's p within each group; one group alone is Holm's."""
  p_values, is_edited = [0.005, 0.01, 0.04, 0.03], [True, False, False, False]
  adjusted = statistics.holm_in_halves(p_values, is_edited)
  assert adjusted == pytest.approx([0.01, 0.06, 0.12, 0.12])
  for alone in (True, False):
    assert statistics.holm_in_halves(p_values, [alone] * 4) == statistics.holm(p_values)
  assert statistics.holm_in_halves([], []) == []


def test_wilson_against_published_intervals():
  """Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81/263, 15/148, 0/20, 1/29."""
  for right, cases, low, high in (
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
  ):
    assert statistics.wilson_interval(right, cases) == pytest.approx((low, high), abs=1e-4)


def test_outcomes_of_paired_cases():
  before = [True] * 20 + [False] * 4
  after = [False] * 5 + [True] * 16 + [False] * 3
  outcomes = statistics.paired_outcomes(before, after)
  assert (outcomes.cases, outcomes.right_before, outcomes.right_after) == (24, 20, 16)
  assert (outcomes.broken, outcomes.fixed, outcomes.flips) == (5, 1, 6)
  assert outcomes.difference == pytest.approx(outcomes.after - outcomes.before)
  low, high = outcomes.interval
  assert low < outcomes.difference < high
  assert outcomes.p == 2 * (1 + 6) / 2**6
  assert outcomes.bootstrap_p < outcomes.p  # why the exact one decides where few cases flip
  assert math.isnan(statistics.paired_outcomes([True], [False]).interval[0])


@pytest.mark.parametrize("cases", [24, 100])
@pytest.mark.parametrize("churn", [0, 0.03, 0.08])
def test_power_is_the_share_of_simulated_suites_that_find_the_drop(cases, churn):
  drop = statistics.detectable_drop(cases, churn)
  flips = simulated_flips(cases, churn, drop)
  distinct, counts = np.unique(flips, axis=0, return_counts=True)
  found = [b > f and statistics.mcnemar_p(int(b), int(f)) <= 0.05 for b, f in distinct]
  share = counts[found].sum() / SUITES
  assert statistics.power(cases, churn, drop) == pytest.approx(share, abs=0.01)
  assert 0.8 <= statistics.power(cases, churn, drop) < 0.82


def test_the_cases_needed_are_the_fewest_that_suffice():
  for drop, churn in ((0.2, 0), (0.1, 0.03), (0.05, 0.08)):
    needed = statistics.cases_needed(drop, churn)
    assert statistics.power(needed, churn, drop) >= 0.8
    assert statistics.power(needed - 1, churn, drop) < 0.8
  assert statistics.detectable_drop(5, 0) == 1  # five coins alike: p = 2 / 32


def test_noise_is_the_flips_of_harmless_changes():
  kept, lost = [True] * 50, [False] * 2 + [True] * 48
  outcomes = {
    "order": statistics.paired_outcomes(kept, lost),
    "white space": statistics.paired_outcomes(kept, kept),
  }
  noise = statistics.Noise(outcomes)
  assert noise.churn == 2 / (2 * 100)
  assert noise.floor == 2 / 50
  assert statistics.Noise({}).churn == statistics.Noise({}).floor == 0
