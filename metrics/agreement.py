"""Agreement: how often two schema variants lead to the same predicted state. Needs no gold labels.

For a frame with predicted states s_1 ... s_K under K variants, in original names,

  agreement = #(pairs i < j whose states are equal) / (K (K - 1) / 2)

and the metric is its mean over frames; scores use K = 5, v1 to v5, hence ten pairs. Two states are
equal if each would score 1 against the other as gold under the official comparison: the same slots
have a value, categorical values are equal, and others have match score 1 (`fuzzy.equal`). As in
that comparison, only the first value of a slot counts, and slots not in the service are ignored.
"""

import itertools
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics import fuzzy
from sgdx_t5x.metrics.failures import State


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
  scored = [_scored_values(service, state) for state in states]
  pairs = list(itertools.combinations(scored, 2))
  return sum(_equal(service, *pair, backend) for pair in pairs) / len(pairs)


def _scored_values(service: Service, state: State) -> dict[str, str]:
  """Returns the value that is scored of each of the service's slots in the state."""
  slots = service.slot_index
  return {slot: values[0] for slot, values in state.items() if values and slot in slots}


def _equal(service: Service, a: Mapping[str, str], b: Mapping[str, str], backend: str) -> bool:
  if a == b:
    return True
  if a.keys() != b.keys():
    return False
  for slot, value in a.items():
    # A categorical value has one spelling, so another one is another value.
    is_text = slot in service.noncategorical_slots
    if value != b[slot] and not (is_text and fuzzy.equal(value, b[slot], backend)):
      return False
  return True
