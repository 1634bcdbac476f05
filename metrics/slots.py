"""Correct slots of a frame, the basis of slot accuracy, precision, recall and F1 of states.

A slot is right if the official scorer gives it 1 (`goals.slot_score`), as a frame is right if its
JGA is 1: a partial fuzzy match is wrong. Micro-averaged over all frames,

  precision = #(right slots) / #(slots of predicted states)
  recall    = #(right slots) / #(slots of gold states)
  F1        = 2 #(right slots) / (#(slots of predicted states) + #(slots of gold states))
"""

from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics.goals import slot_score


def right_slots(
  service: Service,
  gold: Mapping[str, Sequence[str]],
  predicted: Mapping[str, Sequence[str]],
  backend: str = "difflib",
) -> frozenset[str]:
  """Returns the slots in both the gold and the predicted state with the right value.

  Args:
    service: the frame's service in the original schema; slots that it lacks are ignored.
    gold: slot -> acceptable values.
    predicted: slot -> predicted values, of which the first is scored.
    backend: see `fuzzy.match`.
  """
  right = set()
  for slot in service.slots:
    if slot.name in gold and slot.name in predicted:
      values = gold[slot.name], predicted[slot.name]
      if slot_score(*values, slot.is_categorical, backend) >= 1:
        right.add(slot.name)
  return frozenset(right)
