"""The style options of D3ST."""

import dataclasses

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.values import check_choices, checked_fields

_CHOICES = {
  "description": ("description", "name", "both"),
  "values": ("1a", "a", "none"),
  "slots": ("all", "tracked"),
  "order": ("fixed", "schema"),
  "level": ("states+intent+requests", "states"),
  "join": (" || ", " | ", "first"),
  "frames": ("each", "last"),
}


@checked_fields
@dataclasses.dataclass(frozen=True)
class D3stStyle:
  """What a D3ST prompt shows and what its target is.

  The defaults are Google's recipe (descriptions, choices as "1a", shuffled, all slots, intents
  and requests) without the defects of Google's script; docs/formats.md compares the two.

  Attributes:
    description: what represents a slot or an intent: its "description", its "name" (with the
      service's, "banks_1-amount", as in Google's item_name), or "both".
    values: how the choices of a categorical slot are written: "1a" ("2a) small 2b) large"), "a"
      ("a) small b) large"), "none" (not at all; the target is the value itself).
    numeric_choices: show choices even if all of a slot's possible values are numbers.
    slots: "all" slots of the service, or the "tracked" ones, which alone can be in a state.
    order: "fixed": slots, choices and intents in an order drawn from the frame's id and the
      seed, the same in every variant; "schema": in the order of the schema.
    seed: another number draws other orders.
    level: "states+intent+requests" or "states".
    join: separator of several gold values of a slot without letters; "first" writes only the first.
      Google's " | " also occurs inside values.
    lowercase: lower-case prompts and targets.
    delimiter: between an index and what it stands for.
    frames: "last" reproduces a defect of Google's script, only to compare with its files: every
      frame of a turn gives the example of the last one.
    cumulate: reproduces another: what a dialogue's state once held stays in it.
  """

  description: str = "description"
  values: str = "1a"
  numeric_choices: bool = False
  slots: str = "all"
  order: str = "fixed"
  seed: int = 0
  level: str = "states+intent+requests"
  join: str = " || "
  lowercase: bool = True
  delimiter: str = "="
  frames: str = "each"
  cumulate: bool = False

  def __hash__(self):
    return hash(self.seed)  # hashing all fields would take longer than the cached work

  def __post_init__(self):
    check_choices(self, _CHOICES)
    if not self.delimiter or any(c.isspace() or c.isalnum() for c in self.delimiter):
      raise SgdxError(
        f"D3stStyle.delimiter = {self.delimiter!r}",
        expected='punctuation after an index, no blanks, letters or digits, as in "1=small"',
        fix='set delimiter to "=" or "->"',
      )
