"""Reading answers of "Show, Don't Tell" models. Nothing raises; unknown names are ignored.

Google's converter writes possible values in lower case, which the official scorer counts as wrong.
Here values and intents get the schema's spelling, and names are those of the variant's schema.
"""

import functools
import re
from collections.abc import Sequence

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.sdt.demonstrations import NONE
from sgdx_t5x.prompts.sdt.layout import Layout
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.sdt.text import INTENT_TAG, STATE_TAG, ordered_values, slot_names
from sgdx_t5x.prompts.values import choice_of_letter, matching_value


def read_answer(text: str, service: ServicePair, layout: Layout, style: SdtStyle) -> PredictedFrame:
  """Reads an answer.

  Args:
    text: what a model generated.
    service: its variant names the slots.
    layout: of the prompt that was answered.
    style: of that prompt.

  Returns:
    The state, in original names, and the active intent if the style asks for it; `ignored` counts
    the slots and intents that the prompt did not have.
  """
  text, _, intent_text = text.partition(INTENT_TAG)
  intent, ignored = None, 0
  if style.intents != "absent":
    intent = _read_intent(intent_text, service, layout, style)
    ignored += intent is None and intent_text.strip().lower() not in ("", NONE)
    intent = intent or NO_INTENT
  text = text.partition(STATE_TAG)[2] if STATE_TAG in text else text
  # An answer is in lower case where the style's prompts are.
  names = slot_names(service.variant, layout.target_slots, style)
  slots = dict(zip(map(str.lower, names), layout.target_slots, strict=True))
  state, answered = {}, set()
  # Text before the first name belongs to none; then name and value alternate.
  _, *pieces = _names(tuple(slots)).split(text)
  for name, answer in zip(pieces[::2], pieces[1::2], strict=True):
    slot = slots.get(name.lower())
    ignored += slot is None
    if slot is not None and slot not in answered:  # the first answer counts
      answered.add(slot)
      value = read_value(answer, service, slot, layout, style)
      if value is not None:
        state[service.original.slots[slot].name] = (value,)
  return PredictedFrame(state, intent, ignored=ignored)


@functools.lru_cache(maxsize=1024)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
  """Matches a name and "="; an unknown name ends the previous answer too, and is dropped.

  Known names are tried first, as they need not be one word; of these, the longest first.
  """
  longest_first = sorted(names, key=len, reverse=True)
  alternatives = "|".join(map(re.escape, longest_first))
  return re.compile(rf"(?:^|(?<=\s))({alternatives}|\w+)=", re.IGNORECASE)


def read_value(
  text: str, service: ServicePair, slot: int, layout: Layout, style: SdtStyle
) -> str | None:
  """Returns the value of a slot as the schema writes it, or None for "none"."""
  text = " ".join(text.split())
  possible = ordered_values(service.original, slot, layout.values.get(slot))
  if style.values == "list" and not style.lowercase and text in possible:
    return text  # before "none": SGD has a possible value "None"
  if not text or text.lower() == NONE:
    return None
  if text.lower() == DONTCARE:
    return DONTCARE
  return _choice(text, possible, style.values) or text


def _read_intent(text: str, service: ServicePair, layout: Layout, style: SdtStyle) -> str | None:
  intents = [service.original.intents[i].name for i in layout.intents]
  names = [service.variant.intents[i].name for i in layout.intents]
  name = _choice(" ".join(text.split()), names, style.intents)
  return None if name is None else intents[names.index(name)]


def _choice(text: str, choices: Sequence[str], style: str) -> str | None:
  """Returns the chosen option: by its letter, or by its name ignoring case and punctuation."""
  if style == "letters" and (letter := choice_of_letter(text, len(choices))) is not None:
    return choices[letter]
  return matching_value(text, choices)
