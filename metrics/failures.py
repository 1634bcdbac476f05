"""What is wrong with a slot: the kinds of failure behind a joint goal accuracy.

SGD-X paper (Lee et al. 2022), section 5 and Table 4, tells errors by hand; these kinds are ours.
A slot fails in a frame where its official score is below 1, so a frame's joint goal accuracy is
below 1 if and only if one of its slots fails.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from sgdx_t5x.data.schema import DONTCARE, Service, Slot
from sgdx_t5x.metrics.goals import slot_score

MISSED = "missed"
SPURIOUS = "spurious"
WRONG_VALUE = "wrong value"
WRONG_CHOICE = "wrong categorical choice"
OTHER_SLOT = "value of another slot"
KINDS = (MISSED, SPURIOUS, WRONG_VALUE, WRONG_CHOICE, OTHER_SLOT)

State = Mapping[str, Sequence[str]]  # slot -> values, of slots that are in the state


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
  """A slot of a frame that fails with one schema version or more.

  Attributes:
    slot: original name.
    gold: acceptable values; empty if the slot is not in the gold state.
    predicted: version -> the value that counts, None if the slot is not in that state.
    kinds: version -> one of `KINDS`, of the versions with which the slot fails.
  """

  slot: str
  gold: tuple[str, ...]
  predicted: Mapping[str, str | None]
  kinds: Mapping[str, str]


def slot_failures(
  service: Service, gold: State, predicted: Mapping[str, State], backend: str = "difflib"
) -> tuple[Failure, ...]:
  """Returns the slots of a frame that fail, in the order of the schema.

  Args:
    service: the frame's, in the original schema.
    gold: the gold state.
    predicted: version -> predicted state, in original names.
    backend: see `fuzzy.match`.
  """
  if all(state == gold for state in predicted.values()):
    return ()
  failures = []
  for slot in service.slots:
    right, kinds = gold.get(slot.name, ()), {}
    for version, state in predicted.items():
      found = state.get(slot.name, ())
      if slot_score(right, found, slot.is_categorical, backend) < 1:
        kinds[version] = _kind(slot, gold, found)
    if kinds:
      values = {v: next(iter(state.get(slot.name, ())), None) for v, state in predicted.items()}
      failures.append(Failure(slot.name, tuple(right), values, kinds))
  return tuple(failures)


def _kind(slot: Slot, gold: State, found: Sequence[str]) -> str:
  """The kind of a failure. Another slot's value tells more than that it should not be here."""
  if not found:
    return MISSED
  if _is_of_another(slot, gold, found[0]):
    return OTHER_SLOT
  if not gold.get(slot.name):
    return SPURIOUS
  return WRONG_CHOICE if slot.is_categorical else WRONG_VALUE


def _is_of_another(slot: Slot, gold: State, value: str) -> bool:
  """Whether a value is another slot's. "dontcare", or one that a categorical slot may have, not."""
  if value == DONTCARE or (slot.is_categorical and value in slot.possible_values):
    return False
  return any(value in values for name, values in gold.items() if name != slot.name)
