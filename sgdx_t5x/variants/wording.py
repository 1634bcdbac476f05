"""The texts of a schema by element, and variants of a schema made from other texts.

An *element* is what SGD-X rewords: the name or the description of a service, a slot or an
intent (SGD-X paper, section 3.1). Values, flags and which slots an intent takes are not wording:
they are carried over, under the new names.
"""

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.corpus.schema import NO_INTENT, Intent, Schema, Service, Slot, check_aligned
from sgdx_t5x.errors import SgdxError, nearest

SERVICE, SLOT, INTENT = "service", "slot", "intent"
NAME, DESCRIPTION = "name", "description"
_LONGEST_NAME, _LONGEST_DESCRIPTION = 80, 1_000  # characters; SGD's longest have 31 and 92
_NUMBER = re.compile(r"_\d+$")  # of a service: "Banks_1"
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APOSTROPHES = re.compile("['\u2019]")
_KEY = re.compile(r"(.+?)/(service|slot|intent)/(.+)/(name|description)")
_IN_ASCII = str.maketrans({
  "ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L",
  "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i",
})  # fmt: skip
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
# Why a text could not be used unchanged. The name of an intent is not NONE, which says that there
# is none. A number is added as SGD would: "_2" for slots, "2" for intents and before a service's.
REPAIRS = {
  "collision": "another element already has this name: a number is appended",
  "empty": "there is no text: the original is kept",
  "not a name": "it cannot be used as a name: the original is kept",
  "too long": "over 80 characters (descriptions: 1,000): the original is kept",
}


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Element:
  """A text of a schema that can be reworded.

  Attributes:
    service: original name of the service.
    kind: "service", "slot" or "intent".
    name: original name of the slot or intent; of the service, if the element is the service's.
    field: "name" or "description".
  """

  service: str
  kind: str
  name: str
  field: str

  @property
  def key(self) -> str:
    """The element as a string: "Banks_1/slot/account_type/name"."""
    return f"{self.service}/{self.kind}/{self.name}/{self.field}"

  @classmethod
  def from_key(cls, key: str, place: str = "") -> "Element":
    """Parses a `key`. Raises SgdxError, beginning with `place`, if it is invalid."""
    if match := _KEY.fullmatch(key):
      return cls(*match.groups())
    raise SgdxError(
      f"{place}: element {key!r}".removeprefix(": "),
      expected="SERVICE/{service,slot,intent}/NAME/{name,description}",
      available=nearest(key.rpartition("/")[2], (NAME, DESCRIPTION)),
      fix="use the names of the original schema",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Repair:
  """A text for an element that could not be used unchanged.

  Attributes:
    element: the element.
    found: the text.
    made: the text in the schema instead.
    rule: why, see `REPAIRS`.
  """

  element: Element
  found: str
  made: str
  rule: str


def wording(schema: Schema, original: Schema | None = None) -> dict[Element, str]:
  """Returns element -> text of a schema, names as words ("account type").

  Args:
    original: aligned by position, names the elements; `schema` itself if None.

  Raises:
    SgdxError: the two do not align.
  """
  original = schema if original is None else original
  check_aligned(original, schema)
  texts: dict[Element, str] = {}
  for service, reworded in zip(original, schema, strict=True):
    for (kind, a), (_, b) in zip(_items(service), _items(reworded), strict=True):
      texts[Element(service.name, kind, a.name, NAME)] = name_words(b.name, kind)
      texts[Element(service.name, kind, a.name, DESCRIPTION)] = b.description
  return texts


def _items(service: Service) -> Iterator[tuple[str, Service | Slot | Intent]]:
  """Yields (kind, item) for what has a name and a description: a service and all in it."""
  yield SERVICE, service
  yield from itertools.product((SLOT,), service.slots)
  yield from itertools.product((INTENT,), service.intents)


def name_words(name: str, kind: str) -> str:
  """Splits a name into words: "account_type", "AccountType" or "AccountType_1"."""
  if kind == SERVICE:  # whose number tells it from others of its domain, and says nothing
    name = _NUMBER.sub("", name)
  return " ".join(_CAPITAL.sub(" ", name.replace("_", " ")).lower().split())


def join_words(words: str, kind: str, original: str) -> str:
  """Joins words into a name in SGD's style: account_type, AccountType, AccountType_1.

  Args:
    words: any text; accents and apostrophes are dropped, what is no letter separates words.
    kind: slots are written with underscores, intents and services with capitals.
    original: the original name; a service keeps its number.

  Returns:
    The name; "" if a letter is not of those of ASCII, no word is left, or it would begin with a
    digit.
  """
  plain = unicodedata.normalize("NFKD", _APOSTROPHES.sub("", words).translate(_IN_ASCII))
  plain = "".join(c for c in plain if not unicodedata.combining(c))  # "café" -> "cafe"
  name_parts = _NOT_IN_NAMES.sub(" ", plain).split()
  has_others = any(c.isalpha() and not c.isascii() for c in plain)
  if has_others or not name_parts or name_parts[0][0].isdigit():
    return ""
  if kind == SLOT:
    return "_".join(name_parts).lower()
  suffix = _NUMBER.search(original) if kind == SERVICE else None  # "_1"
  return "".join(p[0].upper() + p[1:] for p in name_parts) + (suffix[0] if suffix else "")


def reword(
  schema: Schema, texts: Mapping[Element, str], origin: str
) -> tuple[Schema, list[Repair]]:
  """Returns the schema with other texts, and what had to be repaired, see `REPAIRS`.

  Args:
    schema: the original.
    texts: element -> text, names as words. Elements that are not in it stay unchanged.
    origin: of the result, for errors.

  Raises:
    SgdxError: an element that the schema does not have.
  """
  elements = wording(schema)
  unknown = [element for element in texts if element not in elements]
  if unknown:
    raise SgdxError(
      f"{origin}: unknown element {unknown[0].key} ({len(unknown)} in all)",
      expected=f"elements of {schema.origin}",
      available=nearest(unknown[0].key, [element.key for element in elements]),
      fix="use texts that were made for this schema",
    )
  writer = _Writer(texts)
  used: set[str] = set()  # names of services; those of slots and intents are a service's own
  return Schema([writer.service(x, used) for x in schema], origin), writer.repairs


class _Writer:
  """Takes names and descriptions from texts, and notes repairs."""

  def __init__(self, texts: Mapping[Element, str]):
    self._texts = texts
    self.repairs: list[Repair] = []

  def service(self, service: Service, used: set[str]) -> Service:
    # All names before all descriptions: intents refer to slots by name.
    service_name = self._name(Element(service.name, SERVICE, service.name, NAME), used)
    slot_names = self._names(service, SLOT, service.slots)
    intent_names = self._names(service, INTENT, service.intents)
    service_description = self._description(service, SERVICE, service)
    slots = []
    for slot in service.slots:
      name, description = slot_names[slot.name], self._description(service, SLOT, slot)
      slots.append(dataclasses.replace(slot, name=name, description=description))
    intents = []
    for intent in service.intents:
      intents.append(
        Intent(
          intent_names[intent.name],
          self._description(service, INTENT, intent),
          intent.is_transactional,
          tuple(slot_names[name] for name in intent.required_slots),
          {slot_names[name]: value for name, value in intent.optional_slots.items()},
          tuple(slot_names[name] for name in intent.result_slots),
        )
      )
    return Service(service_name, service_description, tuple(slots), tuple(intents))

  def _names(self, service: Service, kind: str, items: Sequence[Slot | Intent]) -> dict[str, str]:
    used: set[str] = set()
    return {x.name: self._name(Element(service.name, kind, x.name, NAME), used) for x in items}

  def _name(self, element: Element, used: set[str]) -> str:
    name = element.name
    words = self._texts.get(element)
    # The same words need not give the same name again: a slot of one's own may be "checkIn".
    if words is not None and words != name_words(element.name, element.kind):
      joined = join_words(words, element.kind, element.name)
      rule = ""
      if not joined or (element.kind == INTENT and joined.upper() == NO_INTENT):
        rule = "not a name" if words.strip() else "empty"
      elif len(joined) > _LONGEST_NAME:
        rule = "too long"
      if rule:
        self.repairs.append(Repair(element, words, name, rule))
      else:
        name = joined
    unique, number = name, 2  # also of an original: an earlier element may have taken its name
    while unique in used:
      unique = _numbered(name, element.kind, number)
      number += 1
    if unique != name:
      self.repairs.append(Repair(element, self._texts.get(element, name), unique, "collision"))
    used.add(unique)
    return unique

  def _description(self, service: Service, kind: str, item: Service | Slot | Intent) -> str:
    element = Element(service.name, kind, item.name, DESCRIPTION)
    text = self._texts.get(element)
    if text is None:
      return item.description
    if not text.strip() or len(text) > _LONGEST_DESCRIPTION:
      rule = "too long" if text.strip() else "empty"
      self.repairs.append(Repair(element, text, item.description, rule))
      return item.description
    return " ".join(text.split())


def _numbered(name: str, kind: str, number: int) -> str:
  if kind == SLOT:
    return f"{name}_{number}"
  end = _NUMBER.search(name) if kind == SERVICE else None
  return f"{name.removesuffix(end[0])}{number}{end[0]}" if end else f"{name}{number}"
