"""Error types of slots: what lowers joint goal accuracy.

The SGD-X paper (Lee et al. 2022, section 5 and Table 4) categorizes errors manually; these types
are ours. A slot is an error in a frame if its official score is below 1, so a frame's joint goal
accuracy is below 1 if and only if at least one of its slots is an error.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, Service, Slot
from sgdx_t5x.metrics.goals import slot_score

MISSED = "missed"
SPURIOUS = "spurious"
WRONG_VALUE = "wrong value"
WRONG_CHOICE = "wrong categorical choice"
OTHER_SLOT = "value of another slot"
KINDS = (MISSED, SPURIOUS, WRONG_VALUE, WRONG_CHOICE, OTHER_SLOT)

State = Mapping[str, Sequence[str]]  # slot -> values, for slots that are in the state


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
  """A slot of a frame that is an error under at least one variant.

  Attributes:
    slot: original name.
    gold: acceptable values; empty if the slot is not in the gold state.
    predicted: variant -> the value that is scored, None if the slot is not in the predicted state.
    kinds: variant -> one of `KINDS`, for the variants under which the slot is an error.
  """

  slot: str
  gold: tuple[str, ...]
  predicted: Mapping[str, str | None]
  kinds: Mapping[str, str]


def slot_failures(
  service: Service, gold: State, predicted: Mapping[str, State], backend: str = "difflib"
) -> tuple[Failure, ...]:
  """Returns the slots of a frame that are errors, in schema order.

  Args:
    service: the frame's service in the original schema.
    gold: the gold state.
    predicted: variant -> predicted state, in original names.
    backend: see `fuzzy.match`.
  """
  if all(state == gold for state in predicted.values()):  # most frames
    return ()
  failures = []
  for slot in service.slots:
    gold_values, values, kinds = gold.get(slot.name, ()), {}, {}
    for variant, state in predicted.items():
      predicted_values = state.get(slot.name, ())
      values[variant] = predicted_values[0] if predicted_values else None
      if slot_score(gold_values, predicted_values, slot.is_categorical, backend) < 1:
        kinds[variant] = _kind(slot, gold, predicted_values)
    if kinds:
      failures.append(Failure(slot.name, tuple(gold_values), values, kinds))
  return tuple(failures)


def _kind(slot: Slot, gold: State, predicted: Sequence[str]) -> str:
  """Returns the error type; "value of another slot" takes precedence over "spurious"."""
  if not predicted:
    return MISSED
  if _is_of_another(slot, gold, predicted[0]):
    return OTHER_SLOT
  if not gold.get(slot.name):
    return SPURIOUS
  return WRONG_CHOICE if slot.is_categorical else WRONG_VALUE


def _is_of_another(slot: Slot, gold: State, value: str) -> bool:
  """Whether a value is another slot's; never for "dontcare" or a possible value of the slot."""
  if value == DONTCARE or (slot.is_categorical and value in slot.possible_values):
    return False
  # Such as the city of departure where that of arrival is asked for.
  return any(value in values for name, values in gold.items() if name != slot.name)
