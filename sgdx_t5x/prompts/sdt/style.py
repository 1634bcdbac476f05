"""How "Show, Don't Tell" prompts look: the style options of the format."""

import dataclasses

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.values import check_choices, checked_fields

ALL = -1  # as `SdtStyle.demo`: every demonstration of a service
_CHOICES = {
  "values": ("letters", "list"),
  "intents": ("absent", "letters", "list"),
  "target": ("all", "active"),
  "order": ("fixed", "demonstration"),
}


@checked_fields
@dataclasses.dataclass(frozen=True)
class SdtStyle:
  """What a prompt shows and what its target is.

  Google's command (`--prompt_indices=0 --mcq_cat_vals`) without its shuffling is
  `SdtStyle(order="demonstration")`.

  Attributes:
    demos: where the demonstrations are: "sample" (those of the sample corpus), or a JSONL file of
      `sgdx data demos`, whose path may name environment variables ("$SGDX_DEMOS").
    demo: which demonstration of a service a prompt shows, from 0; -1 shows all of them, and with
      order="demonstration" the target answers for each in turn, as Google's script does.
    values: possible values of a categorical slot, numbers included: "letters" ("b of possible
      values a) small b) large", the target being the letter) or "list" ("large of possible values
      small, large"). In lower case, "list" cannot tell a possible value "None" from no value.
    intents: whether the active intent is shown and asked for, and how its choices are written.
    target: "all" (every slot of the demonstration, "none" where it is not set) or "active".
    slot_ids: numbers instead of the names of slots.
    descriptions: descriptions of slots (and intents, if they are asked for) precede the
      demonstration.
    order: of slots, possible values and intents: "fixed" (drawn from the frame's id and the
      seed, the same in every variant) or "demonstration" (of slots as there, of values as in the
      schema).
    seed: another number gives another fixed order.
    lowercase: lower-case everything; reading restores the case of possible values and intents.
  """

  demos: str = dataclasses.field(default="sample", metadata={"file": True})
  demo: int = 0
  values: str = "letters"
  intents: str = "absent"
  target: str = "all"
  slot_ids: bool = False
  descriptions: bool = False
  order: str = "fixed"
  seed: int = 0
  lowercase: bool = True

  def __hash__(self):
    return hash(self.seed)  # hashing all fields would take longer than the cached work

  def __post_init__(self):
    check_choices(self, _CHOICES)
    if self.demo < ALL or not self.demos:
      name = "demos" if not self.demos else "demo"
      raise SgdxError(
        f"SdtStyle.{name} = {getattr(self, name)!r}",
        expected="demos: sample or a file; demo: 0 for the first of a service, -1 for all",
        fix=f"omit {name}, or correct it",
      )
