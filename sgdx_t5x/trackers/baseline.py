"""The SGD paper's zero-shot baseline: what is right to answer in a frame, and what it reaches.

Rastogi et al. 2020 (arXiv:1909.05855, section 5.1) and the code released with it. The baseline
reads the last two utterances and predicts the *state update*: for each slot none, dontcare or
active, and for an active one a possible value, or a span of the utterances. Updates add up over the
dialogue. What stands in neither utterance cannot be found, nor is anything ever removed, so that
right answers reach a JGA of 64.79 on SGD's dev split.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from sgdx_t5x.data.schema import DONTCARE, Service, Slot
from sgdx_t5x.encoder.answers import DONTCARE as ANY
from sgdx_t5x.encoder.answers import SPAN, VALUE
from sgdx_t5x.trackers.choices import Choices
from sgdx_t5x.trackers.spandst import Choice
from sgdx_t5x.trackers.turns import Gold, Known, ServiceState

NOTHING_OFFERED = Choices({}, ())  # the baseline reads nothing but the two utterances
UNFOUND = Choice(SPAN)  # an active slot of free text whose value is in neither utterance


@dataclasses.dataclass(frozen=True)
class BaselineStyle:
  """Switches of the input and of the labels.

  Attributes:
    official: as the released code, slips included. A value that both utterances hold is labelled in
      the system's (two arguments are swapped there); a service without a frame in the user turn
      before starts from an empty state in the labels; utterances that are too long lose their ends.
      False labels the user's utterance, goes by the service's last frame, and cuts beginnings: the
      newest words stay.
    names: show the names of intents and slots with their descriptions, as the code does; the
      paper's Table 3 has descriptions alone.
  """

  official: bool = False
  names: bool = True


def values_before(
  state: ServiceState | None, turn: int, official: bool = False
) -> Mapping[int, Sequence[str]]:
  """Returns the values that a state update is relative to.

  Args:
    state: of the service after its last user frame, or None.
    turn: of the frame.
    official: see `BaselineStyle`.
  """
  if state is None or (official and state.turn != turn - 2):
    return {}
  return state.values


def state_update(gold: Gold, before: Mapping[int, Sequence[str]]) -> dict[int, tuple[str, ...]]:
  """Returns position -> values of the slots whose first value before is not among those now."""
  return {
    slot: values
    for slot, values in gold.values.items()
    if slot not in before or before[slot][0] not in values
  }


def right_answers(
  service: Service,
  known: Known,
  gold: Gold,
  before: Mapping[int, Sequence[str]],
  official: bool = False,
) -> dict[int, Choice]:
  """Returns the right answers for the slots of a frame's state update.

  Args:
    service: the frame's, in the original schema.
    known: the frame.
    gold: what is to be found in it.
    before: from `values_before`.
    official: see `BaselineStyle`.

  Returns:
    Position of each slot that is updated and that an intent takes -> its answer, `UNFOUND` if
    nothing leads to its value. All other slots keep what they have.
  """
  tracked, update = set(service.tracked_slots), state_update(gold, before)
  return {
    slot: _right(service.slots[slot], slot, known, gold, values, official)
    for slot, values in update.items()
    if slot in tracked
  }


def _right(
  slot: Slot, position: int, known: Known, gold: Gold, values: Sequence[str], official: bool
) -> Choice:
  if values[0] == DONTCARE:
    return Choice(ANY)
  if slot.is_categorical:
    if values[0] not in slot.possible_values:
      return UNFOUND
    return Choice(VALUE, slot.possible_values.index(values[0]))
  for by_user in (False, True) if official else (True, False):
    text = known.user if by_user else known.system
    spans = {
      text[span.start : span.end]: Choice(SPAN, int(by_user), span.start, span.end)
      for span in gold.spans
      if span.slot == position and span.by_user == by_user
    }
    for value in values:
      if value in spans:
        return spans[value]
  return UNFOUND
