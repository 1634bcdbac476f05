"""T5DST as a prompt format: one example per (frame, slot), answers parsed into values.

  [USER] i need cash [SYSTEM] how much? [USER] fifty dollars [domain] Banks
  [slot] amount Amount of money to withdraw [PVs] ...

The SGD-X paper (section 4.1, Figure 3) gives T5DST the dialogue history, the service
and the slot's name and description, and asks for the value or "none". Tags and the list
of possible values follow DST-as-Prompting (Lee et al. 2021), on which it is based. Where
replications differ, `PromptStyle` has a switch.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

from sgdx_t5x.corpus.dialogue import USER, State, example_pick
from sgdx_t5x.corpus.example_id import SLOT, ExampleId, Unit
from sgdx_t5x.corpus.schema import DONTCARE, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, ServicePair, turn_writer
from sgdx_t5x.prompts.values import (
  LETTERS,
  NONE,
  check_choices,
  check_letters,
  checked_fields,
  choice_of_letter,
  matching_value,
)

JOIN = " || "
_CHOICES = {
  "values": ("list", "letters", "absent"),
  "target": ("first", "sample", "join"),
  "slots": ("tracked", "all"),
}


@checked_fields
@dataclasses.dataclass(frozen=True)
class PromptStyle:
  """What a prompt shows and what its target is. Defaults: the paper's Figure 3, plus values.

  Attributes:
    service_name: show the service's name, without its number.
    service_description: show the service's description.
    slot_name: show the slot's name, underscores as spaces.
    slot_description: show the slot's description.
    values: possible values of a categorical slot: "list" ("[PVs] small, large"),
      "letters" ("a) small b) large", the target being the letter), "absent".
    lowercase: lower-case everything; reading restores the case of possible values.
    target: which gold value is the target if there are several: "first", "sample" (one,
      chosen by the frame's `pick`), "join" (all, joined by " || ").
    slots: "tracked" (those an intent requires or accepts: only they can be in a state)
      or "all".
  """

  service_name: bool = True
  service_description: bool = False
  slot_name: bool = True
  slot_description: bool = True
  values: str = "list"
  lowercase: bool = False
  target: str = "first"
  slots: str = "tracked"

  def __post_init__(self):
    check_choices(self, _CHOICES)
    if not (self.slot_name or self.slot_description):
      raise SgdxError(
        "PromptStyle without slot_name and slot_description",
        expected="at least one of them, so that the prompt identifies its slot",
        fix="set one of the two",
      )


@dataclasses.dataclass(frozen=True)
class T5DST(TextExamples):
  """One example per tracked slot of a frame."""

  style: PromptStyle = dataclasses.field(default_factory=PromptStyle)
  name: ClassVar[str] = "t5dst"
  unit: ClassVar[Unit] = SLOT
  answer: ClassVar[str] = 'the value, or "none" if the slot is not set'

  def asked(self, service: Service) -> tuple[str, ...]:
    """Original names of the slots asked for."""
    return tuple(service.slots[i].name for i in slot_indices(service, self.style))

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The history, then the slot; rows for language models name its possible values."""
    turns = turn_writer(utterance_text, self.style)(history)
    return [
      Prompt(turns, after=text, row={"possible_values": list(answers)} if answers else {})
      for text, answers in slot_prompts(service, self.style)
    ]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """One value per slot, or "none"."""
    original, variant = service.original, service.variant
    pick = example_pick(frame.frame_id)
    texts = []
    for i in slot_indices(original, self.style):
      values = state.slot_values.get(original.slots[i].name, ())
      texts.append(target_text(variant.slots[i], values, self.style, pick))
    return texts

  def read(self, text: str, example: ExampleId, service: ServicePair) -> str | None:
    """The value of the slot, or None. Possible values are the same in every variant."""
    if example.slot is None:
      raise ValueError(f"{example} asks for a whole frame")
    original = service.original
    return read_value(text, original.slots[original.slot_index[example.slot]], self.style)


@functools.lru_cache(maxsize=4096)  # services of all variants, which recur in dialogues
def slot_prompts(
  service: ServicePair, style: PromptStyle
) -> tuple[tuple[str, tuple[str, ...]], ...]:
  """Returns the slot prompts of a service, one entry per slot asked for.

  Returns:
    (slot prompt, possible values as the style writes them; () if it is not categorical).

  Raises:
    SgdxError: a slot has more possible values than the style can show.
  """
  slots = []
  for i in slot_indices(service.original, style):
    slot = service.variant.slots[i]  # variants align by position
    values = tuple(target_text(slot, [value], style) for value in slot.choices)
    slots.append((slot_text(service.variant, slot, style), values))
  return tuple(slots)


def slot_indices(service: Service, style: PromptStyle) -> tuple[int, ...]:
  """Positions of the slots that a frame of this service is asked for."""
  return tuple(range(len(service.slots))) if style.slots == "all" else service.tracked_slots


def utterance_text(speaker: str, utterance: str, style: PromptStyle) -> str:
  """Returns one turn of the history, with its speaker tag."""
  return _case(f"{'[USER]' if speaker == USER else '[SYSTEM]'} {utterance.strip()}", style)


def slot_text(service: Service, slot: Slot, style: PromptStyle) -> str:
  """Returns the part of the prompt that asks for a slot; it follows the history."""
  texts = []
  if style.service_name or style.service_description:
    texts.append("[domain]")
  if style.service_name:
    texts.append(base_name(service.name))
  if style.service_description:
    texts.append(service.description)
  texts.append("[slot]")
  if style.slot_name:
    texts.append(slot.name.replace("_", " "))
  if style.slot_description:
    texts.append(slot.description)
  if slot.is_categorical and style.values == "list":
    texts.append("[PVs] " + ", ".join(_shown(v, style) for v in slot.possible_values))
  elif slot.is_categorical and style.values == "letters":
    for letter, value in zip(_letters(slot), slot.possible_values, strict=True):
      texts.append(f"{letter}) {value}")
  # With single spaces, at which texts are split to be tokenised.
  return " ".join(_case(" ".join(texts), style).split())


def target_text(slot: Slot, values: Sequence[str], style: PromptStyle, pick: int = 0) -> str:
  """Returns the target text.

  Args:
    values: acceptable gold values, empty if the slot is not in the state.
    pick: a number that is fixed for the frame, see `corpus.dialogue.example_pick`.
  """
  if not values:
    return NONE
  if style.target == "join":
    return JOIN.join(_value_target(slot, v, style) for v in values)
  value = values[pick % len(values)] if style.target == "sample" else values[0]
  return _value_target(slot, value, style)


def read_value(text: str, slot: Slot, style: PromptStyle) -> str | None:
  """Reads generated text back into a value of the schema.

  A categorical value is matched by its letter, or with the list ignoring case, spacing and
  punctuation, and returned as the schema writes it. Text that fits no possible value
  is returned as it is: it is a wrong answer, not an absent one.

  Returns:
    The value, DONTCARE, or None where the slot is said to be inactive.
  """
  text = " ".join(text.split())
  if style.target == "join":  # several values are alternatives: the first is the answer
    text = text.split(JOIN.strip())[0].strip()
  if style.values != "letters" and not style.lowercase and text in slot.possible_values:
    return text  # before "none": SGD has a possible value "None"
  if not text or text.lower() == NONE:
    return None
  if text.lower() == DONTCARE:
    return DONTCARE
  if not slot.is_categorical:
    return text
  number = len(_letters(slot)) if style.values == "letters" else 0
  if (choice := choice_of_letter(text, number)) is not None:
    return slot.possible_values[choice]
  return matching_value(text, slot.possible_values, lambda value: _shown(value, style)) or text


def base_name(service_name: str) -> str:
  """Drops the number of a service: "Banks_21" -> "Banks"."""
  head, _, tail = service_name.rpartition("_")
  return head if head and tail.isdigit() else service_name


def _letters(slot: Slot) -> str:
  number = len(slot.possible_values)
  check_letters(f"slot {slot.name!r}", number, 'use PromptStyle(values="list")')
  return LETTERS[:number]


def _value_target(slot: Slot, value: str, style: PromptStyle) -> str:
  if slot.is_categorical and style.values == "letters" and value in slot.possible_values:
    return _letters(slot)[slot.possible_values.index(value)]
  return _case(_shown(value, style) if slot.is_categorical else value, style)


def _shown(value: str, style: PromptStyle) -> str:
  """A possible value as prompts write it: one called "None" must not read as "none"."""
  if style.lowercase and value != DONTCARE and value.lower() in (NONE, DONTCARE):
    return f"({value})"
  return value


def _case(text: str, style: PromptStyle) -> str:
  return text.lower() if style.lowercase else text
