"""What SpanDST shows of a service, in pieces: its name, slots, values and intents."""

import dataclasses
import functools
import re
from typing import Any

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.spandst.vocab_file import WordPieceFile

SERVICE, SLOT, VALUE, INTENT, MEMORY = range(1, 6)  # numbers of the markers
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclasses.dataclass(frozen=True)
class SpanStyle:
  """Switches of the input.

  Attributes:
    all_slots: also show slots that no intent takes: they are never filled, but may be requested.
    intents: show the intents.
    memory: maximum number of values of other services.
    description_tokens: maximum pieces of a name and description.
    shuffle: shuffle slots, values and intents in each training frame: SGD and all of its variants
      share one order, which a model would memorize.
    plain_text: share of the training frames that are read without the system's annotated acts, as
      a dialogue of plain text has none.
  """

  all_slots: bool = True
  intents: bool = True
  memory: int = 12
  description_tokens: int = 30
  shuffle: bool = True
  plain_text: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class ServicePieces:
  """A service of a variant in pieces, each part after its marker.

  Attributes:
    head: the service.
    slots: its slots; empty for those that the style leaves out.
    values: of each slot, its possible values; none for those.
    intents: its intents.
    tracked: positions of the slots that an intent takes.
    required: of each intent, positions of its required slots.
    optional: of each intent, positions of its optional slots.
  """

  head: list[int]
  slots: list[list[int]]
  values: list[list[list[int]]]
  intents: list[list[int]]
  tracked: frozenset[int]
  required: list[frozenset[int]]
  optional: list[frozenset[int]]

  @functools.cached_property
  def length(self) -> int:
    """Total pieces of all parts."""
    length = len(self.head) + sum(map(len, (*self.slots, *self.intents)))
    for values in self.values:
      length += sum(map(len, values))
    return length


def readable(name: str) -> str:
  """Returns the words of a name: `FindBus` and `num_seats` are two each."""
  return _CAMEL.sub(" ", name.replace("_", " "))


def service_pieces(
  service: Service, vocabulary: WordPieceFile, style: SpanStyle, limit: int
) -> ServicePieces:
  """Returns a service in pieces. Args: limit, maximum pieces of a description or value."""

  def marked(number: int, text: str) -> list[int]:
    return [vocabulary.marker(number), *vocabulary.cut(text).ids[:limit]]

  def described(number: int, element: Any, name: str) -> list[int]:
    return marked(number, f"{readable(name)} : {element.description}")

  index, tracked = service.slot_index, frozenset(service.tracked_slots)
  slots, values = [], []
  for position, slot in enumerate(service.slots):
    # Slots that are not shown take no room, but lists keep the positions of the schema.
    is_shown = style.all_slots or position in tracked
    slots.append(described(SLOT, slot, slot.name) if is_shown else [])
    values.append([marked(VALUE, value) for value in slot.choices] if is_shown else [])
  intents, required, optional = [], [], []
  for intent in service.intents:
    if style.intents:
      intents.append(described(INTENT, intent, intent.name))
    # Also of intents that are not shown: an active one still marks its slots.
    required.append(frozenset(index[name] for name in intent.required_slots))
    optional.append(frozenset(index[name] for name in intent.optional_slots))
  # The number that tells services of one kind apart, "Hotels_4", says nothing about them.
  head = described(SERVICE, service, re.sub(r"_\d+$", "", service.name))
  return ServicePieces(head, slots, values, intents, tracked, required, optional)
