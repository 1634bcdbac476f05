"""D3ST prompts and targets: one example per frame.

  0=date of the crossing 1=type of ticket 1a) car 1b) foot i0=book a crossing [user] i have a car
  [states] 1=1a [intents] i0 [req_slots]

Description-Driven Task-Oriented Dialog (Zhao et al. 2022, arXiv 2201.08904): indices stand for
slots and intents, so that the model never sees or writes a name. The text is that of the authors'
create_sgd_schemaless_data.py (google-research/task-oriented-dialogue).
"""

from collections.abc import Sequence

from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.schema import DONTCARE, Service, Slot
from sgdx_t5x.prompts.d3st.parts import Order, ServiceParts, after_delimiter, shown_choices
from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.values import LETTERS

STATES, INTENTS, REQUESTS = "[states]", "[intents]", "[req_slots]"


def utterance_text(speaker: str, utterance: str, style: D3stStyle) -> str:
  """Returns one turn of the history."""
  text = " ".join(("[user]" if speaker == USER else "[system]", *utterance.split()))
  return text.lower() if style.lowercase else text


def prefix_parts(service_texts: ServiceParts, order: Order, style: D3stStyle) -> tuple[str, ...]:
  """Returns what precedes the history, to be joined by spaces: slots, their choices, intents."""
  pieces = []
  for i, (slot, choices) in enumerate(zip(order.slots, order.choices, strict=True)):
    pieces.append(f"{i}{style.delimiter}{service_texts.slots[slot]}")
    number = i if style.values == "1a" else ""
    for letter, value in zip(LETTERS, choices, strict=False):
      pieces.append(f"{number}{letter}{service_texts.choices[slot][value]}")
  for j, intent in enumerate(order.intents):
    pieces.append(f"i{j}{style.delimiter}{service_texts.intents[intent]}")
  return tuple(pieces)


def target_text(
  service: Service, state: State, service_texts: ServiceParts, order: Order, style: D3stStyle
) -> str:
  """Returns the target text.

  Args:
    service: of the frame, in the original schema.
    state: the gold state, in original names.
    service_texts, order: what the prompt shows of the service, and how.
    style: the style.
  """
  pieces = [STATES]
  for i, number in enumerate(order.slots):
    if any(values := state.slot_values.get(service_texts.names[number], ())):  # not only ""
      slot = service.slots[service_texts.positions[number]]
      answer = _value_text(slot, values, i, order.choices[i], style)
      pieces.append(f"{i}{style.delimiter}{answer}")
  if style.level != "states":
    pieces.append(INTENTS)
    active = service.intent_index.get(state.active_intent)
    if active is not None:
      sign = style.delimiter[:-1]  # Google's script drops one character of it
      pieces.append(f"i{order.intents.index(active)}{sign}")
    pieces.append(REQUESTS)
    if state.requested_slots:
      requested = {service_texts.names[number]: str(i) for i, number in enumerate(order.slots)}
      pieces += [requested[name] for name in state.requested_slots if name in requested]
  return " ".join(pieces)


def _value_text(
  slot: Slot, values: Sequence[str], i: int, choices: Sequence[int], style: D3stStyle
) -> str:
  """Returns gold values as targets write them. Args: i, the slot's index; choices, their order."""
  value = values[0]
  if choices and value != DONTCARE and value in slot.possible_values:
    return f"{i}{LETTERS[choices.index(shown_choices(slot, style).index(value))]}"
  if choices or style.join == "first":
    return after_delimiter(value, style)
  return after_delimiter(style.join.join(values), style)
