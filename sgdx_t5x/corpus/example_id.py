"""Ids of examples: which frame a prompt is about, for which variant, and which slot it asks for.

  unit "slot":   v3/dev/1_00000-002-Banks_2/account_type
  unit "frame":  v3/dev/1_00000-002-Banks_2/*

Names of services and slots are those of the original schema. The unit belongs to the prompt format:
it says how much of a frame one example asks for.
"""

import dataclasses
import re
from typing import Literal

from sgdx_t5x.errors import SgdxError

Unit = Literal["slot", "frame"]
SLOT: Unit = "slot"
FRAME: Unit = "frame"
FORMS = {
  SLOT: "variant/split/frame/slot, as in v3/dev/1_00000-002-Banks_2/account_type",
  FRAME: "variant/split/frame/*, as in v3/dev/1_00000-002-Banks_2/*",
}
_WHOLE_FRAME = "*"
_FRAME_ID = re.compile(r"(.+)-\d{3,}-(.+)")  # dialogue, turn, service: see `dialogue.frame_id`


@dataclasses.dataclass(frozen=True, slots=True)
class ExampleId:
  """The id of an example: of a slot of a frame in a variant, or of the whole frame.

  Attributes:
    variant: of the schema, "original" or "v1" to "v5", or another.
    split: "train", "dev" or "test".
    frame_id: dialogue-turn-service, see `dialogue.frame_id`; a dialogue id may hold slashes.
    slot: original name of the slot asked for; None where the example asks for the whole frame.
  """

  variant: str
  split: str
  frame_id: str
  slot: str | None = None

  def __str__(self) -> str:
    slot = _WHOLE_FRAME if self.slot is None else self.slot
    return f"{self.variant}/{self.split}/{self.frame_id}/{slot}"

  @property
  def unit(self) -> Unit:
    """What the example asks for."""
    return FRAME if self.slot is None else SLOT

  @property
  def service(self) -> str:
    """Original name of the frame's service."""
    return _frame_parts(self.frame_id)[1]

  @property
  def dialogue_id(self) -> str:
    """Id of the frame's dialogue; "" if the frame's id is malformed."""
    return _frame_parts(self.frame_id)[0]

  def with_slot(self, slot: str | None) -> "ExampleId":
    """Returns the id of an example of the same frame."""
    return ExampleId(self.variant, self.split, self.frame_id, slot)

  @classmethod
  def parse(cls, text: str, place: str = "") -> "ExampleId":
    """Reads an id. Args: place, file and line for errors. Raises SgdxError if it is malformed."""
    variant, _, remainder = text.partition("/")
    split, _, remainder = remainder.partition("/")
    frame, _, slot = remainder.rpartition("/")  # a dialogue's id may hold slashes, a slot may not
    if not (variant and split and frame and slot):
      raise SgdxError(
        f"{place}: example id {text!r}" if place else f"example id {text!r}",
        expected="; ".join(FORMS.values()),
        fix="run inference with a task of sgdx_t5x.tasks, or keep the ids from `sgdx prompts`",
      )
    return cls(variant, split, frame, None if slot == _WHOLE_FRAME else slot)


def _frame_parts(frame_id: str) -> tuple[str, str]:
  match = _FRAME_ID.fullmatch(frame_id)
  return (match[1], match[2]) if match else ("", "")
