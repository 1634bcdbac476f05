"""Services, slots and intents: read, check, look up, align by position.

A *service* is one API; a *schema* is the ordered list of services in one
`schema.json` (SGD paper, section 3.1). SGD-X variants and back-translations reword a
schema and keep the order of its services, slots and intents, so position
aligns them (SGD-X paper, section 3.2).
"""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import checked_list, converted_item, decode_json, is_text

NO_INTENT = "NONE"
DONTCARE = "dontcare"
_EXPECTED = "a list of services in SGD's form; docs/first-hour.md shows one"
_FIX = "correct the schema, or restore SGD's file from the archive"


@dataclasses.dataclass(frozen=True)
class Slot:
  """A parameter of a service.

  Unless it is categorical, `possible_values` are examples, if any: Restaurants_1's five cuisines in
  SGD.
  """

  name: str
  description: str
  is_categorical: bool
  possible_values: tuple[str, ...] = ()

  @property
  def choices(self) -> tuple[str, ...]:
    """The values that it is limited to; () for free text, whatever examples it has."""
    return self.possible_values if self.is_categorical else ()

  def to_json(self) -> dict[str, Any]:
    """Returns the slot in the form of an SGD schema file."""
    return {**dataclasses.asdict(self), "possible_values": list(self.possible_values)}


@dataclasses.dataclass(frozen=True)
class Intent:
  """A call a service offers; `optional_slots` maps a slot to its default value."""

  name: str
  description: str
  is_transactional: bool
  required_slots: tuple[str, ...]
  optional_slots: Mapping[str, str]
  result_slots: tuple[str, ...] = ()

  def to_json(self) -> dict[str, Any]:
    """Returns the intent in the form of an SGD schema file."""
    data = dataclasses.asdict(self)
    return {key: list(x) if isinstance(x, tuple) else x for key, x in data.items()}


@dataclasses.dataclass(frozen=True)
class Service:
  """One API: its slots and intents in the order of the schema file."""

  name: str
  description: str
  slots: tuple[Slot, ...]
  intents: tuple[Intent, ...]

  @functools.cached_property
  def slot_index(self) -> dict[str, int]:
    """Slot name -> position."""
    return {slot.name: i for i, slot in enumerate(self.slots)}

  @functools.cached_property
  def intent_index(self) -> dict[str, int]:
    """Intent name -> position."""
    return {intent.name: i for i, intent in enumerate(self.intents)}

  @functools.cached_property
  def noncategorical_slots(self) -> frozenset[str]:
    """Names of the slots whose values are words of the dialogue."""
    return frozenset(slot.name for slot in self.slots if not slot.is_categorical)

  @functools.cached_property
  def categorical_values(self) -> dict[str, frozenset[str]]:
    """Categorical slot -> its possible values."""
    return {x.name: frozenset(x.possible_values) for x in self.slots if x.is_categorical}

  @functools.cached_property
  def slot_kinds(self) -> tuple[tuple[str, bool], ...]:
    """(name, whether it is categorical) of each slot, in order."""
    return tuple((slot.name, slot.is_categorical) for slot in self.slots)

  @functools.cached_property
  def tracked_slots(self) -> tuple[int, ...]:
    """Positions of slots that an intent requires or accepts.

    Only these can be in a dialogue state: in SGD every slot of every
    `slot_values` is one of them, so a tracker need not be asked for others.
    """
    names = set()  # results alone are not tracked
    for intent in self.intents:
      names.update(intent.required_slots, intent.optional_slots)
    return tuple(i for i, slot in enumerate(self.slots) if slot.name in names)

  @property
  def domain(self) -> str:
    """The name before the first underscore ("Banks_1" -> "Banks")."""
    return self.name.split("_")[0]

  def to_json(self) -> dict[str, Any]:
    """Returns the service in the form of an SGD schema file."""
    return {
      "service_name": self.name,
      "description": self.description,
      "slots": [slot.to_json() for slot in self.slots],
      "intents": [intent.to_json() for intent in self.intents],
    }


class Schema:
  """The services of one schema file, in order and by name."""

  def __init__(self, services: Sequence[Service], origin: str = "schema"):
    """Args: services in file order; origin names them in errors."""
    self.services = tuple(services)
    self.origin = origin
    self._by_name = {service.name: service for service in self.services}
    # The table has lost all but the last service of a name.
    _refuse_duplicates([s.name for s in self.services], "service", origin)

  def __iter__(self) -> Iterator[Service]:
    return iter(self.services)

  def __len__(self) -> int:
    return len(self.services)

  def __contains__(self, name: object) -> bool:
    return name in self._by_name

  def __getitem__(self, name: str) -> Service:
    """Returns the service of that name. Raises SgdxError if there is none."""
    try:
      return self._by_name[name]
    except KeyError:
      raise SgdxError(
        f"unknown service {name!r}",
        expected=f"a service of {self.origin}",
        available=nearest(name, self.names),
        fix="correct the name; or pass the schema of the same split and variant as the dialogues",
      ) from None

  @property
  def names(self) -> tuple[str, ...]:
    """Service names in file order."""
    return tuple(self._by_name)

  def to_json(self) -> list[dict[str, Any]]:
    """Returns the schema in the form of an SGD schema file."""
    return [service.to_json() for service in self.services]


@dataclasses.dataclass(frozen=True)
class _ServiceItem:
  """A service in a schema file, which calls its name `service_name`."""

  service_name: str
  description: str
  slots: tuple[Slot, ...]
  intents: tuple[Intent, ...]


def parse_schema(data: Any, origin: str) -> Schema:
  """Checks a decoded `schema.json` and returns it. Args: origin, the file's name, for errors.

  Raises:
    SgdxError: missing or unknown keys, duplicate names, a categorical slot without values, a
      service without intents, or an intent that names a slot the service does not have.
  """
  _check_kind(data, origin)
  services = []
  for item_data in checked_list(data, origin, _EXPECTED, _FIX):
    item = converted_item(item_data, _ServiceItem, "service_name", origin, _EXPECTED, _FIX)
    service = Service(item.service_name, item.description, item.slots, item.intents)
    place = f"{origin}, service {service.name}"
    # Converting ignores unknown keys.
    _check_keys(item_data, _ServiceItem, place)
    for part, kind in (("slots", Slot), ("intents", Intent)):
      for element in item_data[part]:
        _check_keys(element, kind, f"{place}, {element['name']}")
    _check_service(service, place)
    services.append(service)
  return Schema(services, origin)


def load_schema(text: str | bytes, origin: str) -> Schema:
  """Decodes and checks the text of a schema file. Raises SgdxError if it is invalid."""
  return parse_schema(decode_json(text, origin, _EXPECTED, _FIX), origin)


def _check_kind(data: Any, origin: str) -> None:
  """Refuses a single service, and files of annexes: likely mistakes."""
  first = data[0] if isinstance(data, list) and data else data
  if not isinstance(first, Mapping):
    return
  if "service_name" in first:
    if first is data:
      fix = "put it into a list: [SERVICE]"
      raise SgdxError(f"{origin}: a single service", expected=_EXPECTED, fix=fix)
    return
  for key, (what, fix) in annexes.table("OTHER_SCHEMAS").items():
    if key in first:
      raise SgdxError(f"{origin}: {what}", expected=_EXPECTED, fix=fix)


def _check_keys(data: Mapping[str, Any], kind: type, place: str) -> None:
  """Refuses keys that the format does not have: a misspelt one would count as left out."""
  keys = [field.name for field in dataclasses.fields(kind)]
  for key in data:
    if key not in keys:
      raise SgdxError(
        f"{place}: unknown key {key!r}",
        expected=f"the keys of SGD's schema.json: {', '.join(keys)}",
        available=nearest(key, keys),
        fix="correct the key, or remove it",
      )


def check_slot_names(schema: Schema) -> None:
  """Refuses names of slots that the ids of examples could not hold, see `example_id`."""
  for service in schema:
    for slot in service.slots:
      if "/" in slot.name:
        raise SgdxError(
          f"{schema.origin}: slot {slot.name!r} of {service.name} has a / in its name",
          expected="names without /, which separates the parts of an example's id",
          fix="rename the slot in the schema and in the dialogues; variants may have a /",
        )


def check_aligned(source: Schema, target: Schema) -> None:
  """Refuses two schemas whose services, slots or intents do not match by position.

  Raises:
    SgdxError: naming the first list whose lengths differ, or the first slot or intent that differs
      in more than its wording: in its flags, possible values, or an intent's slots.
  """
  _same_length("services", source, source.origin, target, target.origin)
  for a, b in zip(source, target, strict=True):
    # Lengths first: with one slot missing, every later one would seem to differ.
    place_a, place_b = f"{source.origin} {a.name}", f"{target.origin} {b.name}"
    _same_length("slots", a.slots, place_a, b.slots, place_b)
    _same_length("intents", a.intents, place_a, b.intents, place_b)
    items: list[tuple[Slot | Intent, Slot | Intent]] = [*zip(a.slots, b.slots, strict=True)]
    items += zip(a.intents, b.intents, strict=True)
    for x, y in items:
      if _shape(a, x) != _shape(b, y):
        kind, parts = ("slot", "values") if isinstance(x, Slot) else ("intent", "kind or slots")
        raise SgdxError(
          f"{place_b}: {kind} {y.name!r} differs in {parts} from {x.name!r} of {a.name} at the "
          "same position",
          expected="a paraphrase of the original: the same order, values, flags and intent slots",
          fix="restore the order; a variant may reword names and descriptions, nothing else",
        )


def _shape(service: Service, item: Slot | Intent) -> tuple:
  """Returns what variants of a slot or an intent have in common: all but the wording."""
  if isinstance(item, Slot):  # values are not reworded: those of the dialogues stay
    return (item.is_categorical, item.possible_values)
  # Names differ between variants, and the order in which an intent lists its slots may.
  position = service.slot_index.__getitem__
  return (
    item.is_transactional,
    sorted(map(position, item.required_slots)),
    sorted(map(position, item.optional_slots)),
    sorted(map(position, item.result_slots)),
  )


def _same_length(kind: str, a: Sized, place_a: str, b: Sized, place_b: str) -> None:
  if len(a) != len(b):
    raise SgdxError(
      f"{place_b} has {len(b)} {kind}",
      expected=f"{len(a)}, as many as {place_a}: variants are aligned by position",
      fix="restore the variant's schema; it may reword elements, not add, drop or reorder them",
    )


def _check_service(service: Service, place: str) -> None:
  """Refuses what the types of a service allow and its meaning does not."""
  # Prompts and ids, which are UTF-8, are made of these texts.
  elements: tuple[Service | Slot | Intent, ...] = (service, *service.slots, *service.intents)
  for element in elements:
    values = element.possible_values if isinstance(element, Slot) else ()
    for text in (element.name, element.description, *values):
      if not is_text(text):
        problem = f"{place}: {text!r} holds half a character (a lone surrogate)"
        raise SgdxError(problem, expected="texts that UTF-8 can encode", fix=_FIX)
  _refuse_duplicates([slot.name for slot in service.slots], "slot", place)
  _refuse_duplicates([intent.name for intent in service.intents], "intent", place)
  for slot in service.slots:
    if slot.is_categorical and not slot.possible_values:
      raise SgdxError(
        f"{place}, slot {slot.name!r}: categorical, but without possible_values",
        expected="the values that a categorical slot is limited to",
        fix='list them, or set "is_categorical": false if its values are free text',
      )
  if NO_INTENT in service.intent_index:
    raise SgdxError(
      f"{place}: an intent called {NO_INTENT}",
      expected=f"intents with other names: states say {NO_INTENT} where none is active",
      fix="rename the intent, or remove it",
    )
  if not service.intents:  # states hold only slots that an intent takes, so all would be empty
    raise SgdxError(
      f"{place}: no intents",
      expected="at least one intent, whose required_slots and optional_slots are tracked",
      fix="add an intent that takes the slots, or remove the service",
    )
  for intent in service.intents:
    for name in (*intent.required_slots, *intent.optional_slots, *intent.result_slots):
      if name not in service.slot_index:
        raise SgdxError(
          f"{place}, intent {intent.name!r}: unknown slot {name!r}",
          expected="a slot of this service",
          available=nearest(name, service.slot_index),
          fix="rename it in the intent, or add the slot",
        )


def _refuse_duplicates(names: Sequence[str], kind: str, place: str) -> None:
  for name, number in collections.Counter(names).items():
    if number > 1:
      raise SgdxError(
        f"{place}: {kind} {name!r} occurs twice",
        expected=f"each {kind} name once",
        fix="rename or remove one of the two",
      )
