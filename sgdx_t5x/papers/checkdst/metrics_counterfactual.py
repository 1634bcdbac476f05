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
from typing import Any

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.metrics import fuzzy
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.slots import right_slots
from sgdx_t5x.papers.checkdst.ratios import Ratio, share

COUNTERFACTUAL: dict[str, Ratio] = {
  "kept_accuracy": share("goal_kept_right", "goal_kept"),
  "changed_accuracy": share("goal_changed_right", "goal_changed"),
  "added_accuracy": share("goal_added_right", "goal_added"),
  "dropped_left": share("goal_dropped_left", "goal_dropped"),
  "rest_accuracy": share("goal_rest_right", "goal_rest"),
  "goal_reverted": share("goal_reverted", "goal_changed"),
}


@dataclasses.dataclass(frozen=True)
class GoalEdit:
  """How the slots that a user turn informs were edited.

  Attributes:
    service: service of the edited frame.
    retained: slots informed as before.
    changed: slot -> its old value.
    dropped: slots no longer informed.
    added: slots newly informed.
  """

  service: str
  retained: frozenset[str]
  changed: Mapping[str, str]
  dropped: frozenset[str]
  added: frozenset[str]

  @classmethod
  def of(cls, line: Mapping[str, Any]) -> "GoalEdit":
    """Returns the edit that a line of changes.jsonl describes."""
    return cls(
      line["service"],
      frozenset(line["kept"]),
      {slot: old_value for slot, (old_value, _) in line["changed"].items()},
      frozenset(line["dropped"]),
      frozenset(line["added"]),
    )

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
  """Returns the counts of an edited frame: name -> number.

  Args:
    service: the frame's service, in the original schema.
    gold: the gold state after the counterfactual turn.
    state: the predicted state.
    edit: the edit of the turn.
    backend: see `fuzzy.match`.
  """
  correct = right_slots(service, gold, state, backend)
  informed = edit.retained.union(edit.changed, edit.added, edit.dropped)
  rest_slots = [slot for slot in gold if slot in service.slot_index and slot not in informed]
  counts: dict[str, float] = {"goal_dropped": len(edit.dropped)}
  counts["goal_dropped_left"] = sum(slot in state and slot not in correct for slot in edit.dropped)
  unedited = {"kept": edit.retained, "rest": rest_slots}
  for name, slots in {**unedited, "changed": edit.changed, "added": edit.added}.items():
    counts[f"goal_{name}"] = len(slots)
    counts[f"goal_{name}_right"] = sum(slot in correct for slot in slots)
  counts["goal_reverted"] = sum(
    slot not in correct and bool(state.get(slot)) and fuzzy.equal(value, state[slot][0], backend)
    for slot, value in edit.changed.items()
  )
  return counts
