"""Agreement: how often two schema variants lead to the same predicted state. Needs no gold labels.

For a frame with predicted states s_1 ... s_K under K variants, in original names,

  agreement = #(pairs i < j whose states are equal) / (K (K - 1) / 2)

and the metric is its mean over frames; scores use K = 5, v1 to v5, hence ten pairs. Two states are
equal if each would score 1 against the other as gold under the official comparison: the same slots
have a value, categorical values are equal, and others have match score 1, whichever is the gold
one. Only the first value of a slot counts, and slots not in the service are ignored.
"""

import itertools
from collections.abc import Sequence

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.goals import slot_score


def frame_agreement(service: Service, states: Sequence[State], backend: str = "difflib") -> float:
  """Returns the share of equal pairs among a frame's predicted states.

  Args:
    service: the frame's service in the original schema.
    states: one per variant, in original names: slot -> values.
    backend: see `fuzzy.match`.

  Returns:
    0 to 1, higher is more robust. nan for fewer than two states, and for a service without slots,
    which has no JGA either.
  """
  if len(states) < 2 or not service.slots:
    return float("nan")
  if states.count(states[0]) == len(states):  # most frames
    return 1.0
  pairs = list(itertools.combinations(states, 2))
  return sum(_equal(service, *pair, backend) for pair in pairs) / len(pairs)


def _equal(service: Service, a: State, b: State, backend: str) -> bool:
  for name, categorical in service.slot_kinds:
    first, second = a.get(name, ())[:1], b.get(name, ())[:1]  # what is scored
    if first != second and (
      slot_score(first, second, categorical, backend) < 1
      or slot_score(second, first, categorical, backend) < 1
    ):
      return False
  return True
