"""The SGD paper's zero-shot baseline: the gold answers for a frame, and their ceiling.

Rastogi et al. 2020 (arXiv:1909.05855, section 5.1) and the code released with it. The baseline
reads the last two utterances and predicts the *state update*: for each slot none, dontcare or
active, and for an active one a possible value, or a span of the utterances. Updates accumulate over
the dialogue. Values in neither utterance cannot be found, and nothing is ever removed, so gold
answers reach a JGA of 64.79 on SGD's dev split.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, Service, Slot
from sgdx_t5x.records.turns import Gold, Known, ServiceState
from sgdx_t5x.spandst.answers import DONTCARE as ANY
from sgdx_t5x.spandst.answers import SPAN, VALUE
from sgdx_t5x.spandst.choices import Choices
from sgdx_t5x.spandst.spandst import Choice

NOTHING_OFFERED = Choices({}, ())  # the baseline reads nothing but the two utterances
UNFOUND = Choice(SPAN)  # an active slot whose value is in neither utterance, or not a possible one


@dataclasses.dataclass(frozen=True)
class BaselineStyle:
  """Switches of the input and of the labels.

  Attributes:
    official: as in the released code, bugs included. A value in both utterances is labelled in the
      system's (two arguments are swapped there); in the labels, a service without a frame in the
      previous user turn starts from an empty state; overlong utterances are truncated at the end.
      False labels the user's utterance, uses the service's last frame, and truncates at the
      beginning, which keeps the newest words.
    names: show the names of intents and slots with their descriptions, as the code does; the
      paper's Table 3 has descriptions only.
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
  """Returns position -> values of slots that were empty or whose first old value is not gold."""
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
  """Returns the gold answers for the slots of a frame's state update.

  Args:
    service: the frame's, in the original schema.
    known: the frame.
    gold: its labels.
    before: from `values_before`.
    official: see `BaselineStyle`.

  Returns:
    Position of each updated slot that an intent takes -> its answer, `UNFOUND` if none gives its
    value. All other slots keep their values.
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
