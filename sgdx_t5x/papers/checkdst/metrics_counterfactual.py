"""The effect of counterfactual turns on a tracker, by what became of each slot of the user's goal.

CoCo (Li et al. 2021) edits what a user informs in one turn: slots are dropped, changed or added,
others kept. Over the edited frames,

  kept_accuracy, changed_accuracy, added_accuracy = #(right slots) / #(slots with that status)
  dropped_left = #(dropped slots that are predicted, except with the right value) / #(dropped)
  rest_accuracy = #(right slots) / #(slots of the state that the turn does not inform)
  goal_reverted = #(changed slots predicted with their old value) / #(changed slots)

A slot is right as in `metrics.slots`. Lower is better for `dropped_left` and `goal_reverted`: the
tracker predicted what was not said.
"""

import dataclasses
from collections.abc import Mapping

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics import fuzzy
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.ratios import Ratio, share
from sgdx_t5x.metrics.slots import right_slots

COUNTERFACTUAL: dict[str, Ratio] = {
  "kept_accuracy": share("goal_kept_right", "goal_kept"),
  "changed_accuracy": share("goal_changed_right", "goal_changed"),
  "added_accuracy": share("goal_added_right", "goal_added"),
  "dropped_left": share("goal_dropped_left", "goal_dropped"),
  "rest_accuracy": share("goal_rest_right", "goal_rest"),
  "goal_reverted": share("goal_reverted", "goal_changed"),
}
GOAL_COUNTS = tuple(
  dict.fromkeys(name for x in COUNTERFACTUAL.values() for name in (*x.whole, *x.part))
)


@dataclasses.dataclass(frozen=True)
class GoalEdit:
  """How the slots that a user turn informs were edited.

  Attributes:
    service: service of the edited frame.
    kept: slots informed as before.
    changed: slot -> its old value.
    dropped: slots no longer informed.
    added: slots newly informed.
  """

  service: str
  kept: frozenset[str]
  changed: Mapping[str, str]
  dropped: frozenset[str]
  added: frozenset[str]

  @property
  def is_empty(self) -> bool:
    """Whether the goal is unchanged, as in the control."""
    return not (self.changed or self.dropped or self.added)


def goal_counts(
  service: Service,
  gold: State,
  state: State,
  edit: GoalEdit,
  backend: str = "difflib",
) -> dict[str, float]:
  """Returns the counts of an edited frame: `GOAL_COUNTS` -> number.

  Args:
    service: the frame's service, in the original schema.
    gold: the gold state after the counterfactual turn.
    state: the predicted state.
    edit: the edit of the turn.
    backend: see `fuzzy.match`.
  """
  right = right_slots(service, gold, state, backend)
  told = edit.kept.union(edit.changed, edit.added, edit.dropped)
  rest = [slot for slot in gold if slot in service.slot_index and slot not in told]
  reverted = [
    slot
    for slot, old in edit.changed.items()
    if slot not in right and state.get(slot) and fuzzy.equal(old, state[slot][0], backend)
  ]
  return {
    "goal_kept": len(edit.kept),
    "goal_kept_right": len(right & edit.kept),
    "goal_changed": len(edit.changed),
    "goal_changed_right": len(right.intersection(edit.changed)),
    "goal_added": len(edit.added),
    "goal_added_right": len(right & edit.added),
    "goal_dropped": len(edit.dropped),
    "goal_dropped_left": sum(slot in state and slot not in right for slot in edit.dropped),
    "goal_rest": len(rest),
    "goal_rest_right": sum(slot in right for slot in rest),
    "goal_reverted": len(reverted),
  }
