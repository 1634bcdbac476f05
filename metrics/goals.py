"""Official goal accuracies of one frame, which compare the predicted with the gold dialogue state.

Follows rules and names of the official scorer (google-research, schema_guided_dst/metrics.py,
get_average_and_joint_goal_accuracy); SGD paper (Rastogi et al. 2020), section 5.2.
"""

import math
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics.fuzzy import match

JOINT_GOAL = "joint_goal_accuracy"
GOAL_METRICS = (
  "average_goal_accuracy",
  "average_cat_accuracy",
  "average_noncat_accuracy",
  JOINT_GOAL,
  "joint_cat_accuracy",
  "joint_noncat_accuracy",
)
JOINT_METRICS = (JOINT_GOAL, "joint_cat_accuracy", "joint_noncat_accuracy")
NA = float("nan")  # the official scorer writes "NA" and excludes it from averages


def slot_score(
  gold: Sequence[str], predicted: Sequence[str], categorical: bool, backend: str = "difflib"
) -> float:
  """Returns the score of one slot of one frame, from 0 to 1.

  Args:
    gold: acceptable values; empty if the slot is not in the gold state.
    predicted: predicted values, of which only the first is scored; empty if there is none.
    categorical: a categorical value must equal the first gold value, case-sensitively; others get
      their best fuzzy match among the gold values. "dontcare" is treated like any other value.
    backend: see `fuzzy.match`.
  """
  if not gold or not predicted:
    return float(not gold and not predicted)  # right if neither has a value
  # Equal values, the usual case, need no fuzzy match.
  if categorical or gold[0] == predicted[0]:
    return float(gold[0] == predicted[0])
  return max(match(value, predicted[0], backend) for value in gold)


def goal_scores(
  service: Service,
  gold: Mapping[str, Sequence[str]],
  predicted: Mapping[str, Sequence[str]],
  backend: str = "difflib",
) -> dict[str, float]:
  """Returns the six official goal metrics of one frame.

  "average" is the mean over slots of the gold state, "joint" the product over all slots of
  the service, so JGA is fractional with a fuzzy back end. "cat" and "noncat" are restricted to
  categorical and non-categorical slots.

  Args:
    service: the frame's service in the original schema. Slots it lacks are ignored.
    gold: slot -> acceptable values, for slots in the gold state.
    predicted: slot -> predicted values, for slots in the predicted state.
    backend: see `fuzzy.match`.

  Returns:
    `GOAL_METRICS` -> a number from 0 to 1, or NA (nan): "joint" where the service has no
    slot of the kind, "average" where the gold state has none.
  """
  joint = {True: 1.0, False: 1.0}
  active: dict[bool, list[float]] = {True: [], False: []}
  for name, categorical in service.slot_kinds:
    if name in gold:
      score = slot_score(gold[name], predicted.get(name, ()), categorical, backend)
      active[categorical].append(score)
    elif name in predicted:
      score = slot_score((), predicted[name], categorical, backend)
    else:
      continue  # a score of 1 does not change the product
    joint[categorical] *= score
  noncategorical = len(service.noncategorical_slots)
  return {
    "average_goal_accuracy": _mean(active[True] + active[False]),
    "average_cat_accuracy": _mean(active[True]),
    "average_noncat_accuracy": _mean(active[False]),
    JOINT_GOAL: joint[True] * joint[False] if service.slots else NA,
    "joint_cat_accuracy": joint[True] if noncategorical < len(service.slots) else NA,
    "joint_noncat_accuracy": joint[False] if noncategorical else NA,
  }


def _mean(scores: list[float]) -> float:
  return math.fsum(scores) / len(scores) if scores else NA
