"""Official F1 scores of one frame: requested slots and slot tagging.

Follows rules and names of the official scorer (google-research, schema_guided_dst/metrics.py,
compute_f1, get_requested_slots_f1, get_slot_tagging_f1). If gold and prediction are both empty, the
score is 1 and counts; the SGD paper says that such turns are skipped, but its scorer counts them.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

REQUESTED_METRICS = tuple(f"requested_slots_{m}" for m in ("f1", "precision", "recall"))
TAGGING_METRICS = tuple(f"slot_tagging_{m}" for m in ("f1", "precision", "recall"))
_NAN = float("nan")


def multiset_f1(
  gold: Sequence[Hashable], predicted: Sequence[Hashable] | None
) -> tuple[float, float, float]:
  """Returns (F1, precision, recall) of two multisets, each from 0 to 1.

  Args:
    gold: names of requested slots, or (slot, text) of spans.
    predicted: the same; None if the tracker does not predict them, which gives nan.

  Returns:
    Precision is 1 if `predicted` is empty, recall 1 if `gold` is empty, F1 0 if both are 0.
  """
  if predicted is None:
    return _NAN, _NAN, _NAN
  if gold == predicted:  # most frames: a shortcut
    return 1.0, 1.0, 1.0
  hits = sum((Counter(gold) & Counter(predicted)).values())
  precision = hits / len(predicted) if predicted else 1.0
  recall = hits / len(gold) if gold else 1.0
  total = precision + recall
  return (2.0 * precision * recall / total if total else 0.0), precision, recall
