"""One word on a change of wording, and the exit code that follows from it."""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Sequence

from sgdx_t5x.tools.check.statistics import (
  ALPHA,
  Noise,
  PairedOutcomes,
  cases_needed,
  detectable_drop,
)

LARGEST_DROP = 0.2  # that may go unseen by default
_FLOOR = 0.5
_MOST_NAMES = 3
_CEILING = 0.98
_FEW_AT_CEILING = 50  # cases; with more, that nothing broke says something


class Verdict(enum.StrEnum):
  """From the worst to the best."""

  NO_CALLS = "NO CALLS"
  BROKEN = "BROKEN"
  CANNOT_TELL = "CANNOT TELL"
  SAME = "SAME"
  BETTER = "BETTER"


@dataclasses.dataclass(frozen=True)
class Decision:
  """A verdict. Attributes: reason, one sentence without a full stop."""

  verdict: Verdict
  reason: str

  def __str__(self) -> str:
    return f"{self.verdict}: {self.reason}"


def is_difference(outcomes: PairedOutcomes, noise: Noise) -> bool:
  """Whether McNemar's test finds a difference at .05, and no harmless change makes so large a one.

  Args: see `decide`.
  """
  return outcomes.p <= ALPHA and abs(outcomes.difference) > noise.floor


def decide(
  outcomes: PairedOutcomes,
  noise: Noise,
  broken_tools: Sequence[str] = (),
  largest_drop: float = LARGEST_DROP,
) -> Decision:
  """Returns what can be said of a change.

  Without a difference, see `is_difference`, the verdict depends on what the cases could have shown.

  Args:
    outcomes: the cases before and after the change.
    noise: what harmless changes do.
    broken_tools: tools whose cases broke, each by a test of its own: one tool of many can be lost
      without a trace in the whole.
    largest_drop: the largest drop that may go unseen; a suite that misses larger ones is too small.
  """
  counts = f"{outcomes.broken} cases broke, {outcomes.fixed} were fixed"
  if broken_tools:
    names = ", ".join(broken_tools[:_MOST_NAMES])
    ellipsis = ", ..." if len(broken_tools) > _MOST_NAMES else ""
    return Decision(Verdict.BROKEN, f"{counts}; {names}{ellipsis}")
  is_real = is_difference(outcomes, noise)
  if is_real and outcomes.difference > 0:
    return Decision(Verdict.BETTER, counts)
  # A gain or a broken tool counts in any case; to get worse, a model must have been right before.
  if outcomes.before < _FLOOR:
    reason = f"{outcomes.right_before} of {outcomes.cases} right before"
    return Decision(Verdict.CANNOT_TELL, f"{reason}; a model this weak shows nothing about wording")
  if is_real:
    return Decision(Verdict.BROKEN, counts)
  least_right = min(outcomes.before, outcomes.after)
  if least_right > _CEILING and outcomes.cases < _FEW_AT_CEILING:
    reason = "all cases are too easy for this model" if least_right == 1 else "nearly all are right"
    return Decision(Verdict.CANNOT_TELL, f"{outcomes.cases} cases, and {reason}: add harder ones")
  # No difference was found: was there a chance to see one?
  detectable = detectable_drop(outcomes.cases, noise.churn)
  if detectable > largest_drop:
    shows = "no drop" if detectable >= 1 else f"drops of {100 * detectable:.0f} points or more"
    num_missing = cases_needed(largest_drop, noise.churn) - outcomes.cases
    reason = f"{outcomes.cases} cases show {shows}; add about {num_missing:,}"
    return Decision(Verdict.CANNOT_TELL, f"{reason} to see one of {100 * largest_drop:.0f}")
  reason = f"a drop of {100 * detectable:.0f} points would have shown"
  if outcomes.p <= ALPHA:
    reason = f"{counts}, no more than harmless changes do; {reason}"
  return Decision(Verdict.SAME, reason)


def worst(decisions: Iterable[Decision]) -> Decision:
  """Returns the worst of some decisions, the first if several are."""
  order = list(Verdict)
  return min(decisions, key=lambda decision: order.index(decision.verdict))


def exit_code(verdict: Verdict | None, fail_on: Collection[str]) -> int:
  """Returns 1 for NO CALLS and for what `--fail-on` names, else 0. Args: None if none was asked."""
  option = verdict.lower().replace(" ", "-") if verdict else ""
  return int(verdict is Verdict.NO_CALLS or option in fail_on)
