"""The numbers of a check and their headings in tables; the keys are those of JSON.

`metrics_perturbed` and `metrics_counterfactual` define them.
"""

JGA = {"jga": "JGA"}
CHANGED = {  # over the frames that a perturbation changed
  "before": "before",
  "perturbed": "perturbed",
  "cjga": "cJGA",
  "broken": "broken",
  "fixed": "fixed",
  "retained": "retained",
  "agreement": "agree",
  "drop": "drop",
}
MEMORY = {  # with the key of the count that each is over
  "factuality": "num_entities",
  "from_train": "num_hallucinated",
  "reverted": "num_changed_entities",
  "repair_taken": "num_repairs",
}
SLOTS = {"slot_precision": "precision", "slot_recall": "recall", "slot_f1": "F1"}
COREFERENCE = {
  "coref_jga": "coref JGA",
  "coref_slot_accuracy": "slots",
  "coref_new_slot_accuracy": "new",
  "accepted_jga": "accepted JGA",
}
CHECKDST = {  # by CheckDST's own definitions
  **JGA,
  "conditional": "conditional",
  "coref_jga_sticky": "CorefJGA",
  "factuality_part": "factuality",
}
GOALS = {  # of counterfactual turns
  "kept_accuracy": "kept",
  "changed_accuracy": "changed",
  "added_accuracy": "added",
  "rest_accuracy": "rest",
  "dropped_left": "dropped, left",
  "goal_reverted": "reverted",
}
# All numbers, in the order in which they are listed with their intervals.
ALL = (
  *("jga", *CHANGED, "conditional", *MEMORY, *SLOTS, *COREFERENCE),
  *("coref_jga_sticky", "factuality_part", *GOALS),
)


def row_label(key: str) -> str:
  """Returns a number's name among those of all tables: not "JGA" but its key."""
  return CHANGED.get(key, key)
