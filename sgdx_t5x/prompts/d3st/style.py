"""The style of D3ST's prompts, and what they show of a service in it, and in which order."""

import dataclasses
import functools
import zlib

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.values import check_choices, check_letters, checked_fields

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


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class ServiceParts:
  """The texts of a service in a style, in the order of its schema; compared by identity.

  Attributes:
    originals: the shown slots, of the original schema.
    slots: the text of each of them.
    choices: what follows the letters of the possible values of each of them, ") small"; () for
      free text.
    intents: the text of each intent.
    num_choices: number of choices of each slot.
  """

  originals: tuple[Slot, ...]
  slots: tuple[str, ...]
  choices: tuple[tuple[str, ...], ...]
  intents: tuple[str, ...]
  num_choices: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
  """The order in which a frame shows the parts of its service.

  Attributes:
    slots: index in the prompt -> number of the slot in `ServiceParts`.
    choices: index of a slot in the prompt -> letter -> number of the possible value.
    intents: index in the prompt -> number of the intent.
  """

  slots: tuple[int, ...]
  choices: tuple[tuple[int, ...], ...]
  intents: tuple[int, ...]


@functools.lru_cache(maxsize=4096)  # all services in all variants
def service_parts(pair: ServicePair, style: D3stStyle) -> ServiceParts:
  """Returns what a service shows. Raises SgdxError if a slot has more choices than letters."""
  original, variant = pair.original, pair.variant
  tracked = style.slots == "tracked"
  originals, slots, choices = [], [], []
  for i in original.tracked_slots if tracked else range(len(original.slots)):
    slot = variant.slots[i]
    originals.append(original.slots[i])
    slots.append(_shown(variant, slot.name, slot.description, style))
    choices.append(tuple(clean(f") {value}", style) for value in shown_choices(slot, style)))
  intents = tuple(_shown(variant, x.name, x.description, style) for x in variant.intents)
  num_choices = tuple(map(len, choices))
  return ServiceParts(tuple(originals), tuple(slots), tuple(choices), intents, num_choices)


def shown_choices(slot: Slot, style: D3stStyle) -> tuple[str, ...]:
  """Returns the possible values that a prompt lists with letters; () for a free-text answer."""
  values = slot.possible_values
  if not slot.is_categorical or style.values == "none":
    return ()
  if not style.numeric_choices and all(value.isdigit() for value in values):
    return ()
  check_letters(f"slot {slot.name!r}", len(values), "use values=none, which shows no choices")
  return values


def _shown(service: Service, name: str, description: str, style: D3stStyle) -> str:
  full_name = f"{service.name}-{name}"
  texts = {"name": full_name, "description": description, "both": f"{full_name} {description}"}
  return after_delimiter(texts[style.description], style)


def after_delimiter(text: str, style: D3stStyle) -> str:
  """Like `clean`, but of white space at the beginning one space stays, as in Google's script.

  The script separates the words of a finished line, where "0=" and what follows are one text.
  """
  words = clean(text, style)
  return f" {words}" if words and text[0].isspace() else words


def clean(text: str, style: D3stStyle) -> str:
  """Returns a text with single spaces, and in the style's case."""
  text = " ".join(text.split())
  return text.lower() if style.lowercase else text


def frame_order(frame: ExampleId, service_texts: ServiceParts, style: D3stStyle) -> Order:
  """Returns the order in which a frame shows its service: the only source of indices and letters.

  An order does not depend on the variant. If it did, schema sensitivity would attribute
  the effects of another order to another wording.
  """
  num_choices, num_intents = service_texts.num_choices, len(service_texts.intents)
  if style.order == "schema":
    choices = tuple(tuple(range(n)) for n in num_choices)
    return Order(tuple(range(len(num_choices))), choices, tuple(range(num_intents)))
  return _drawn_order(f"{style.seed}/{frame.split}/{frame.frame_id}", num_choices, num_intents)


@functools.lru_cache(maxsize=64)  # a frame's prompts in all variants, and its targets, share one
def _drawn_order(key: str, num_choices: tuple[int, ...], num_intents: int) -> Order:
  slots, state = _shuffled(len(num_choices), zlib.crc32(key.encode()))
  choices = []
  for slot in slots:
    order: tuple[int, ...] = ()
    if num_choices[slot]:
      order, state = _shuffled(num_choices[slot], state)
    choices.append(order)
  return Order(slots, tuple(choices), _shuffled(num_intents, state)[0])


def _shuffled(count: int, state: int) -> tuple[tuple[int, ...], int]:
  """Returns a permutation (Fisher-Yates), and the generator's last number.

  Numbers are below 2**32 and the same in every process: a linear congruential generator with the
  constants of Numerical Recipes (Press et al., 2nd edition, section 7.1). Its high bits are the
  most random.
  """
  order = list(range(count))
  for remaining in range(count, 1, -1):
    state = (1664525 * state + 1013904223) & 0xFFFFFFFF
    j = state * remaining >> 32
    order[remaining - 1], order[j] = order[j], order[remaining - 1]
  return tuple(order), state
