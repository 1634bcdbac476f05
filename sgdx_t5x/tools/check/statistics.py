"""Statistics of the same cases under two wordings: what changed, and what a suite can show.

A case is right or wrong under each wording. Those that flip say everything about a difference:
broken (right, then wrong) and fixed (wrong, then right).
"""

import bisect
import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import mean_difference

ALPHA = 0.05
TOOL_ALPHA = 0.025  # of all tools together; one-sided
POWER = 0.8
FEW_FLIPS = 20  # below, the bootstrap's p is too small, and the exact one is shown beside it
_Z = 1.959964  # quantile of the normal distribution for 95%
_MOST_CASES = 100_000
_NEGLIGIBLE = 1e-9  # probability

Outcomes = Sequence[bool] | np.ndarray  # [N] bool: which cases are right


@dataclasses.dataclass(frozen=True)
class PairedOutcomes:
  """The same cases under two wordings.

  Attributes:
    cases: how many there are.
    right_before, right_after: how many are right under each.
    broken: right before, wrong after.
    fixed: wrong before, right after.
    interval: 95% interval of `difference`, by bootstrap over cases; (nan, nan) for one case.
    p: of McNemar's exact test; adjusted if it is one of several.
    bootstrap_p: of the paired bootstrap.
  """

  cases: int
  right_before: int
  right_after: int
  broken: int
  fixed: int
  interval: tuple[float, float]
  p: float
  bootstrap_p: float

  @property
  def before(self) -> float:
    """Share of cases right before."""
    return self.right_before / self.cases

  @property
  def after(self) -> float:
    """Share of cases right after."""
    return self.right_after / self.cases

  @property
  def difference(self) -> float:
    """After minus before: a fraction, negative if more broke than were fixed."""
    return (self.fixed - self.broken) / self.cases

  @property
  def flips(self) -> int:
    """Cases that are right under one wording only."""
    return self.broken + self.fixed


def paired_outcomes(right_before: Outcomes, right_after: Outcomes) -> PairedOutcomes:
  """Compares outcomes. Args: [N] bool each, N at least 1, of the same cases in the same order."""
  baseline, reworded = np.asarray(right_before, bool), np.asarray(right_after, bool)
  ids = np.arange(len(baseline)).astype(str)
  sampled = mean_difference(
    baseline.astype(float), reworded.astype(float), ids, BootstrapSamples.draw(ids)
  )
  broken, fixed = int((baseline & ~reworded).sum()), int((~baseline & reworded).sum())
  return PairedOutcomes(
    cases=len(baseline),
    right_before=int(baseline.sum()),
    right_after=int(reworded.sum()),
    broken=broken,
    fixed=fixed,
    interval=(sampled.low, sampled.high),
    p=mcnemar_p(broken, fixed),
    bootstrap_p=sampled.p,
  )


def mcnemar_p(broken: int, fixed: int) -> float:
  """Returns the two-sided p of McNemar's test, exactly.

  If wording changes nothing, a case that flips does so either way with probability 1/2: p is twice
  the probability that a fair coin, thrown as often as there are flips, falls so often or more
  often on the more frequent side (McNemar 1947; the binomial instead of chi-squared).
  """
  flips = broken + fixed
  tail = sum(math.comb(flips, k) for k in range(min(broken, fixed) + 1))
  return min(1.0, 2 * tail / 2**flips)


def holm(p_values: Sequence[float]) -> list[float]:
  """Returns p-values adjusted for their number, in the same order (Holm 1979).

  The least is multiplied by their number m, the next by m - 1, ..., and none becomes less than the
  one before it. Deciding by them keeps the chance of any false alarm at alpha.
  """
  adjusted, largest = [1.0] * len(p_values), 0.0
  by_size = sorted(range(len(p_values)), key=lambda i: p_values[i])
  for rank, i in enumerate(by_size):
    largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
    adjusted[i] = largest
  return adjusted


def holm_in_halves(p_values: Sequence[float], is_first: Sequence[bool]) -> list[float]:
  """Returns Holm's p-values within two groups, each of which has half of alpha.

  The chance of any false alarm stays at alpha, and a small group is not lost among many others.

  Args:
    p_values: [N].
    is_first: [N], which group each is in; if all are in one, it has the whole of alpha.
  """
  adjusted = [1.0] * len(p_values)
  share = len({*is_first}) or 1
  for group in {*is_first}:
    places = [i for i, kind in enumerate(is_first) if kind == group]
    for i, p in zip(places, holm([p_values[i] for i in places]), strict=True):
      adjusted[i] = min(1.0, share * p)
  return adjusted


def broken_p(right_before: Outcomes, right_after: Outcomes, controls: Sequence[Outcomes]) -> float:
  """Returns the one-sided p that a change broke cases, beside what harmless changes do to them.

  A case that was right before has one answer after the change, and one after each of C harmless
  changes. If the change is harmless too, any of these C + 1 answers could be the one after it: if w
  of them are wrong, it is with probability w / (C + 1). p is the probability that as many cases, or
  more, are wrong after the change (a permutation test within cases, Fisher 1935). Cases that waver
  anyway count little, and a tool with few cases can be found: 8 of 8 broken, and none of them by
  two harmless changes, has p = 1 / 3^8.

  Args:
    right_before: [N] bool; the other cases say nothing.
    right_after: [N] bool, right after the change.
    controls: C times [N] bool, right after a harmless change.
  """
  probabilities = np.ones(1)  # of 0, 1, ... wrong cases after the change
  wrong_after = 0
  for i, was_right in enumerate(right_before):
    if was_right:
      wrong_after += not right_after[i]
      num_wrong = (not right_after[i]) + sum(not control[i] for control in controls)
      share = num_wrong / (len(controls) + 1)
      probabilities = np.convolve(probabilities, [1 - share, share])
  return float(min(1.0, probabilities[wrong_after:].sum()))


def wilson_interval(num_right: int, cases: int) -> tuple[float, float]:
  """Returns the 95% interval of a share of at least one case (Wilson 1927)."""
  share, spread = num_right / cases, _Z**2 / cases
  middle = share + spread / 2
  half = _Z * math.sqrt(share * (1 - share) / cases + spread / (4 * cases))
  return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


# --- power ---------------------------------------------------------------------------------


def power(cases: int, churn: float, drop: float) -> float:
  """Returns the probability that McNemar's exact test finds a drop.

  A case breaks with probability churn + drop and is fixed with probability churn. The number of
  flips is binomial, and so is, given that, the number broken; the test finds a drop if enough of
  the flips are broken ones (Connor 1987 has the approximation; this is the sum itself).

  Args:
    cases: how many there are.
    churn: share of cases that flip each way without a cause.
    drop: share of cases that break because of the wording.
  """
  flipping = min(1.0, 2 * churn + drop)
  broken_share = (churn + drop) / (2 * churn + drop) if flipping else 0.5
  detected = 0.0
  for flips, probability in enumerate(_binomial(cases, flipping)):
    if probability > _NEGLIGIBLE:
      detected += probability * _binomial(flips, broken_share)[_least_broken(flips) :].sum()
  return float(detected)


def detectable_drop(cases: int, churn: float) -> float:
  """Returns the least drop that is found with a power of 80% at alpha .05.

  It is a share of cases; 1 if there are too few cases for any.
  """
  low, high = 0.0, 1 - 2 * churn
  if power(cases, churn, high) < POWER:
    return 1.0
  while high - low > 0.001:
    middle = (low + high) / 2
    if power(cases, churn, middle) < POWER:
      low = middle
    else:
      high = middle
  return high


def cases_needed(drop: float, churn: float) -> int:
  """Returns how many cases find a drop with a power of 80%, at most 100,000. Args: shares."""
  low, high = 1, 2
  while high < _MOST_CASES and power(high, churn, drop) < POWER:
    low, high = high, 2 * high
  between = range(low + 1, high)
  return low + 1 + bisect.bisect_left(between, POWER, key=lambda n: power(n, churn, drop))


@functools.lru_cache(maxsize=4096)
def _least_broken(flips: int) -> int:
  """Returns how many of these flips must be broken cases for p <= .05; flips + 1 if none do."""
  at_least = np.cumsum(_binomial(flips, 0.5)[::-1])[::-1]  # P(broken >= k), k from 0 to flips
  return flips + 1 - int((2 * at_least <= ALPHA).sum())


def _binomial(trials: int, probability: float) -> np.ndarray:
  """Returns the probabilities of 0 to `trials` successes: [trials + 1] float."""
  probability = min(max(probability, 1e-12), 1 - 1e-12)  # the logarithms of 0 and 1 are no use
  successes = np.arange(trials + 1)
  ways = _log_factorials(trials)
  logs = ways[-1] - ways - ways[::-1]
  logs = logs + successes * math.log(probability) + successes[::-1] * math.log1p(-probability)
  return np.exp(logs)


@functools.lru_cache(maxsize=4096)
def _log_factorials(largest: int) -> np.ndarray:
  """Returns the logarithms of 0! to `largest`!."""
  return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


# --- noise ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Noise:
  """What changes that mean nothing do: tools in another order, white space, a second run.

  Attributes: outcomes, name of a harmless change -> the cases without and with it.
  """

  outcomes: dict[str, PairedOutcomes]

  @property
  def churn(self) -> float:
    """Share of cases that flip each way; 0 if nothing is known."""
    pairs = sum(outcomes.cases for outcomes in self.outcomes.values())
    flips = sum(outcomes.flips for outcomes in self.outcomes.values())
    return flips / (2 * pairs) if pairs else 0.0

  @property
  def floor(self) -> float:
    """The largest loss or gain of a harmless change: a fraction."""
    return max((abs(outcomes.difference) for outcomes in self.outcomes.values()), default=0.0)
