"""Official active intent accuracy of one frame.

Follows rule and name of the official scorer (google-research, schema_guided_dst/metrics.py,
get_active_intent_accuracy); SGD paper (Rastogi et al. 2020), section 5.2.
"""

INTENT_METRICS = ("active_intent_accuracy",)


def intent_score(gold: str, predicted: str | None) -> float:
  """Returns 1.0 for the correct intent (it may be "NONE"), else 0.0; nan without a prediction."""
  return float("nan") if predicted is None else float(gold == predicted)
