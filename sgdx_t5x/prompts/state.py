"""The whole state of a frame in one answer, by the names of its slots: the format "state".

Generative trackers such as SimpleTOD (Hosseini-Asl et al. 2020, arXiv:2005.00796) write the state
so. They know their slots from training; here the prompt begins with the service and its slots, so
that services which were not trained on can be read:

  Restaurants : find and reserve a table [slot] city : where it is [slot] time : ... [user] ...
  city = San Jose || time = 7:30 pm
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import ClassVar

from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.corpus.schema import DONTCARE, Slot
from sgdx_t5x.metrics.predicted_frame import PredictedFrame
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, ServicePair, turn_writer
from sgdx_t5x.prompts.t5dst.text import base_name
from sgdx_t5x.prompts.values import NONE, checked_fields, loose, matching_value

_BETWEEN = "||"  # " | " also occurs inside values of SGD


@checked_fields
@dataclasses.dataclass(frozen=True)
class StateStyle:
  """What a prompt shows.

  Attributes:
    descriptions: show the descriptions of the service and its slots.
    values: show the possible values of categorical slots.
  """

  descriptions: bool = True
  values: bool = True


@dataclasses.dataclass(frozen=True)
class StateText(TextExamples):
  """One example per frame: the service, the history; every slot of the state with its value."""

  style: StateStyle = dataclasses.field(default_factory=StateStyle)
  name: ClassVar[str] = "state"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = 'the state, as in "city = San Jose || time = 7:30 pm", or "none"'

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The service with its slots, then the history."""
    turns = turn_writer(_turn_text, self.style)(history)
    return [Prompt(turns, before=_service_text(service, self.style))]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """The slots of the state in the schema's order, each with its first value."""
    texts = []
    for slot, reworded in zip(service.original.slots, service.variant.slots, strict=True):
      if values := state.slot_values.get(slot.name):
        texts.append(f"{_words(reworded)} = {values[0]}")
    return [f" {_BETWEEN} ".join(texts) or NONE]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> PredictedFrame:
    """The state, in original names; names that the service lacks are counted as ignored."""
    slots = _by_name(service)
    values: dict[str, tuple[str, ...]] = {}
    ignored = 0
    for part in text.split(_BETWEEN):
      name, equals, value = part.partition("=")
      slot = _named(name, slots)
      if slot is None and " = " in part:  # a name may have a "=" of its own
        name, _, value = part.partition(" = ")
        slot = _named(name, slots)
      value = " ".join(value.split())
      if slot is None or not value:
        ignored += bool(equals)
      elif slot.name not in values:  # the first value counts
        values[slot.name] = (_read_value(value, slot),)
    return PredictedFrame(values, ignored=ignored)


def _turn_text(speaker: str, text: str, style: StateStyle) -> str:
  return f"{'[user]' if speaker == USER else '[system]'} {text}"


def _words(slot: Slot) -> str:
  return slot.name.replace("_", " ")


@functools.lru_cache(maxsize=4096)  # services of all variants, which recur in dialogues
def _service_text(service: ServicePair, style: StateStyle) -> tuple[str, ...]:
  """Returns the service, and the slots that a state can have, as parts of the prompt."""
  service_shown = service.variant
  texts = [base_name(service_shown.name)]
  if style.descriptions:
    texts[0] += f" : {service_shown.description}"
  for place in service.original.tracked_slots:
    slot = service_shown.slots[place]
    text = f"[slot] {_words(slot)}"
    if style.descriptions:
      text += f" : {slot.description}"
    if style.values and slot.choices:
      text += f" [PVs] {', '.join(slot.choices)}"
    texts.append(text)
  return tuple(" ".join(part.split()) for part in texts)


@functools.lru_cache(maxsize=4096)
def _by_name(service: ServicePair) -> dict[str, Slot]:
  """Returns the name of each slot, as a prompt shows it -> the slot."""
  pairs = zip(service.original.slots, service.variant.slots, strict=True)
  return {_words(reworded): slot for slot, reworded in pairs}


def _named(name: str, slots: Mapping[str, Slot]) -> Slot | None:
  """Returns the slot that an answer names. Args: slots, of `_by_name`."""
  shown = matching_value(name.strip(), slots)
  return None if shown is None else slots[shown]


def _read_value(text: str, slot: Slot) -> str:
  """Returns a categorical value as the schema writes it; a wrong one, or free text, as it is."""
  if loose(text) == DONTCARE:
    return DONTCARE
  return (matching_value(text, slot.possible_values) if slot.is_categorical else None) or text
