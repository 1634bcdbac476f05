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
from sgdx_t5x.records.turns import Gold, Known
from sgdx_t5x.spandst.answers import DONTCARE as ANY
from sgdx_t5x.spandst.answers import SPAN, VALUE
from sgdx_t5x.spandst.choices import Choices
from sgdx_t5x.spandst.spandst import Choice

NOTHING_OFFERED = Choices({}, ())  # the baseline reads nothing but the two utterances
UNFOUND = Choice(SPAN)  # an active slot whose value is in neither utterance, or not a possible one


@dataclasses.dataclass(frozen=True)
class BaselineStyle:
  """Switches of the input.

  Attributes:
    names: show the names of intents and slots with their descriptions, as the code does; the
      paper's Table 3 has descriptions only.
  """

  names: bool = True


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
) -> dict[int, Choice]:
  """Returns the gold answers for the slots of a frame's state update.

  Args:
    service: the frame's, in the original schema.
    known: the frame.
    gold: its labels.
    before: values of the service after its last frame.

  Returns:
    Position of each updated slot that an intent takes -> its answer, `UNFOUND` if none gives its
    value. All other slots keep their values.
  """
  tracked, update = set(service.tracked_slots), state_update(gold, before)
  return {
    slot: _right(service.slots[slot], slot, known, gold, values)
    for slot, values in update.items()
    if slot in tracked
  }


def _right(slot: Slot, position: int, known: Known, gold: Gold, values: Sequence[str]) -> Choice:
  if values[0] == DONTCARE:
    return Choice(ANY)
  if slot.is_categorical:
    if values[0] not in slot.possible_values:
      return UNFOUND
    return Choice(VALUE, slot.possible_values.index(values[0]))
  for by_user in (True, False):  # the user's words first
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
