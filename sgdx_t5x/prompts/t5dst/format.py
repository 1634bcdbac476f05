"""T5DST as a prompt format: see `protocol.PromptFormat`."""

import dataclasses
import functools
from typing import ClassVar

from sgdx_t5x.corpus.dialogue import State, example_pick
from sgdx_t5x.corpus.example_id import SLOT, ExampleId, Unit
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, ServicePair, turn_writer
from sgdx_t5x.prompts.t5dst.text import (
  PromptStyle,
  read_value,
  slot_indices,
  slot_text,
  target_text,
  utterance_text,
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
