"""Verdicts: what each says, and how often they are wrong on simulated suites."""

import numpy as np
import pytest

from sgdx_t5x.tools.check.statistics import (
  TOOL_ALPHA,
  Noise,
  PairedOutcomes,
  broken_p,
  detectable_drop,
  holm,
  mcnemar_p,
)
from sgdx_t5x.tools.check.verdict import Decision, Verdict, decide, exit_code, is_difference, worst

SUITES = 4_000


def outcomes(cases, right_before, broken, fixed):
  """Outcomes without a bootstrap, which no verdict reads."""
  none = (float("nan"), float("nan"))
  right_after, p = right_before - broken + fixed, mcnemar_p(broken, fixed)
  return PairedOutcomes(cases, right_before, right_after, broken, fixed, none, p, float("nan"))


def share_with_a_difference(cases, churn, drop):
  """Share of suites, in which a drop happens and everything that is asked has churn."""
  rng = np.random.default_rng(cases)
  change = rng.multinomial(cases, [churn + drop, churn, 1 - 2 * churn - drop], size=SUITES)
  placebo = rng.multinomial(cases, [churn, churn, 1 - 2 * churn], size=SUITES)
  suites = np.hstack([change[:, :2], placebo[:, :2]])
  distinct, counts = np.unique(suites, axis=0, return_counts=True)
  differ = []
  for broken, fixed, placebo_broken, placebo_fixed in distinct.tolist():
    noise = Noise({"order": outcomes(cases, cases, placebo_broken, placebo_fixed)})
    differ.append(is_difference(outcomes(cases, cases, broken, fixed), noise))
  return counts[differ].sum() / SUITES


@pytest.mark.parametrize("cases", [24, 50, 100, 200])
@pytest.mark.parametrize("churn", [0, 0.02, 0.05, 0.08])
def test_false_alarms_and_twice_the_detectable_drop(cases, churn):
  """The marks of issue 68: at most 5% of suites without an effect, at least 95% of these drops."""
  assert share_with_a_difference(cases, churn, 0) <= 0.05
  drop = 2 * detectable_drop(cases, churn)
  if drop + 2 * churn < 0.95:  # there are no more cases to lose
    assert share_with_a_difference(cases, churn, drop) >= 0.95


@pytest.mark.parametrize(
  ("found", "expected"),
  [
    (outcomes(96, 84, 8, 1), "BROKEN: 8 cases broke, 1 were fixed"),
    (outcomes(96, 70, 1, 8), "BETTER: 1 cases broke, 8 were fixed"),
    (outcomes(96, 84, 3, 2), "SAME: a drop of 8 points would have shown"),
    (
      outcomes(24, 5, 2, 3),
      "CANNOT TELL: 5 of 24 right before; a model this weak shows nothing about wording",
    ),
    (outcomes(96, 30, 20, 0), "CANNOT TELL: 30 of 96 right before; a model this weak shows "),
    (outcomes(96, 30, 1, 40), "BETTER: 1 cases broke, 40 were fixed"),
    (
      outcomes(24, 21, 4, 0),
      "CANNOT TELL: 24 cases show drops of 31 points or more; add about 15 to see one of 20",
    ),
    (outcomes(5, 4, 1, 0), "CANNOT TELL: 5 cases show no drop; add about 34 to see one of 20"),
    (
      outcomes(40, 40, 0, 0),
      "CANNOT TELL: 40 cases, and all cases are too easy for this model: add harder ones",
    ),
    (outcomes(200, 200, 0, 0), "SAME: a drop of 4 points would have shown"),
  ],
)
def test_each_verdict_says_why(found, expected):
  assert str(decide(found, Noise({}))).startswith(expected)


def test_a_loss_that_harmless_changes_have_too_is_none():
  noise = Noise({"order": outcomes(96, 84, 11, 3)})
  decision = decide(outcomes(96, 84, 8, 1), noise)
  assert decision.verdict is Verdict.SAME
  assert "no more than harmless changes do" in decision.reason


def test_a_broken_tool_is_broken_although_the_whole_is_not():
  decision = decide(outcomes(96, 84, 8, 4), Noise({}), ["a", "b", "c", "d"])
  assert str(decision) == "BROKEN: 8 cases broke, 4 were fixed; a, b, c, ..."


@pytest.mark.parametrize("cases", [24, 96, 200])
@pytest.mark.parametrize("churn", [0.02, 0.08])
def test_false_alarms_of_the_whole_and_of_tools_together(cases, churn):
  """Each answer of a case flips by chance: before, after, and under two harmless changes."""
  suites, of_tool = 400, 8
  rng = np.random.default_rng(cases)
  usual = rng.random((suites, 1, cases)) < 0.9
  flips = rng.random((suites, 4, cases)) < churn
  alarms = 0
  for before, after, *controls in (usual ^ flips).tolist():
    counts = [0, 0]
    for was_right, is_right in zip(before, after, strict=True):
      counts[0] += was_right and not is_right
      counts[1] += is_right and not was_right
    p_values = []
    for start in range(0, cases, of_tool):
      tool = slice(start, start + of_tool)
      p_values.append(broken_p(before[tool], after[tool], [x[tool] for x in controls]))
    noise = Noise({"order": outcomes(cases, cases, 0, 0)})
    is_alarm = is_difference(outcomes(cases, cases, *counts), noise)
    alarms += is_alarm or min(holm(p_values)) <= TOOL_ALPHA
  assert alarms / suites <= 0.05


def test_exit_codes():
  assert exit_code(Verdict.BROKEN, ("broken",)) == 1
  assert exit_code(Verdict.CANNOT_TELL, ("broken",)) == 0
  assert exit_code(Verdict.CANNOT_TELL, ("broken", "cannot-tell")) == 1
  assert exit_code(Verdict.NO_CALLS, ()) == 1
  assert exit_code(None, ("broken",)) == 0


def test_the_worst_of_several():
  decisions = [Decision(Verdict.SAME, "a"), Decision(Verdict.BROKEN, "b")]
  assert worst(decisions).reason == "b"
