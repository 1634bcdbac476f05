"""Templates, the wording of acts: parsing, validation, defaults, and preparation for drawing.

Two layers: phrases for acts that all services share (`templates.json`), and words for a service's
slots and intents. What is not given is derived from names and descriptions (`default_words`).
"""

import dataclasses
import functools
import importlib.resources
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from sgdx_t5x.corpus.schema import Schema, Service, Slot
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.papers.simulator.default_words import (
  BOOLEAN,
  default_intent_words,
  default_slot_words,
  slot_kind,
)

Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Annotated[list[Text], msgspec.Meta(min_length=1)]  # ways to say one thing
Fragment = tuple[str, str]  # the text before and after a value


class SlotTemplates(msgspec.Struct, forbid_unknown_fields=True):
  """Words of a slot in templates.json; docs/papers/simulator.md describes them."""

  noun: Texts | None = None
  tell: Texts | None = None
  ask: Texts | None = None
  say: dict[str, Text | Texts] = {}


class IntentTemplates(msgspec.Struct, forbid_unknown_fields=True):
  """Words of an intent in templates.json."""

  open: Texts | None = None
  do: Texts | None = None


class ServiceTemplates(msgspec.Struct, forbid_unknown_fields=True):
  """Words of a service in templates.json."""

  slots: dict[str, SlotTemplates] = {}
  intents: dict[str, IntentTemplates] = {}


class Templates(msgspec.Struct, forbid_unknown_fields=True):
  """The content of templates.json; what is missing is derived from names and descriptions."""

  services: dict[str, ServiceTemplates] = {}


@dataclasses.dataclass(frozen=True)
class SlotWords:
  """Phrases for one slot; a Fragment surrounds a value."""

  noun: tuple[str, ...]
  tell: tuple[Fragment, ...]
  say: Mapping[str, tuple[str, ...]]
  inform: tuple[Fragment, ...]
  does_not_matter: tuple[str, ...]
  question: tuple[str, ...]
  ask: tuple[str, ...]
  ask_choices: tuple[str, ...]
  answer: tuple[Fragment, ...]
  answer_boolean: Mapping[str, tuple[Fragment, ...]]  # by value, to "is it one with a car?"
  is_boolean: bool  # its values are worded as phrases ("with a car"), not as a noun's value


@dataclasses.dataclass(frozen=True)
class Words:
  """All phrases of a service; `acts` has those that services share, by speaker."""

  slots: Mapping[str, SlotWords]
  open: Mapping[str, tuple[str, ...]]
  do: Mapping[str, tuple[str, ...]]
  acts: Mapping[str, Mapping[str, tuple[str, ...]]]


def read_words(
  templates: Templates, schema: Schema, services: Iterable[str], origin: str
) -> dict[str, Words]:
  """Makes the words of services.

  Args:
    templates: the words that are given.
    schema: schema with the services.
    services: names of the services whose words are needed.
    origin: file name, for error messages.

  Returns:
    Words by service.

  Raises:
    SgdxError: a service, slot, intent or possible value that the schema does not have; no place
      for a value, or one where none goes.
  """
  for name, custom in templates.services.items():
    _check_known(f"{origin}: services", name, schema.names)
    _check(f"{origin}: services.{name}", custom, schema[name])
  return {
    name: _words(schema[name], templates.services.get(name, ServiceTemplates()))
    for name in services
  }


@functools.cache
def _shared() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
  text = (importlib.resources.files(__package__) / "templates.json").read_text("utf-8")
  return msgspec.json.decode(text, type=dict[str, dict[str, tuple[str, ...]]])


def _words(service: Service, custom: ServiceTemplates) -> Words:
  slots: dict[str, SlotWords] = {}
  for slot in service.slots:
    authored = custom.slots.get(slot.name, SlotTemplates())
    slots[slot.name] = _slot_words(slot, _merged(default_slot_words(slot), authored))
  openings: dict[str, tuple[str, ...]] = {}
  actions: dict[str, tuple[str, ...]] = {}
  for intent in service.intents:
    authored_intent = custom.intents.get(intent.name, IntentTemplates())
    words = _merged(default_intent_words(intent), authored_intent)
    openings[intent.name], actions[intent.name] = tuple(words["open"]), tuple(words["do"])
  return Words(slots, openings, actions, _shared())


def _merged(default: Mapping[str, Any], custom: SlotTemplates | IntentTemplates) -> dict[str, Any]:
  """Returns the parts as written; missing parts, and values in `say`, as by default."""
  present = {part: texts for part, texts in msgspec.structs.asdict(custom).items() if texts}
  merged = {**default, **present}
  if "say" in present:
    merged["say"] = {**default["say"], **present["say"]}
  return merged


def _slot_words(slot: Slot, words: Mapping[str, Any]) -> SlotWords:
  def named(side: str, act: str) -> tuple[str, ...]:
    """The shared phrases of an act, filled with this slot's nouns."""
    pairs = itertools.product(_shared()[side][act], words["noun"])
    return tuple(dict.fromkeys(phrase.replace("{noun}", noun) for phrase, noun in pairs))

  is_boolean = slot_kind(slot) == BOOLEAN
  say = {v: (ways,) if isinstance(ways, str) else tuple(ways) for v, ways in words["say"].items()}
  return SlotWords(
    noun=tuple(words["noun"]),
    tell=tuple(map(_fragment, words["tell"])),
    say=say,
    inform=tuple(map(_fragment, named("user", "INFORM"))),
    does_not_matter=named("user", "INFORM_DONTCARE"),
    question=_whether(say) if is_boolean else named("user", "REQUEST"),
    ask=tuple(words["ask"]),
    ask_choices=named("system", "REQUEST_CHOICES"),
    answer=(("It is one ", "."),)
    if is_boolean
    else tuple(map(_fragment, named("system", "INFORM"))),
    answer_boolean={
      value: (("Yes, " if value.lower() == "true" else "No, ", "."),)
      for value in slot.possible_values
    },
    is_boolean=is_boolean,
  )


def _whether(say: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
  """Questions about a boolean slot, whose noun ("refundable") often cannot have an article."""
  yes = next((ways for value, ways in say.items() if value.lower() == "true"), ("of that kind",))
  leads = ("Is it", "Can you say if it is")
  return tuple(f"{lead} one {way}?" for lead, way in itertools.product(leads, yes))


def _fragment(template: str) -> Fragment:
  start, _, end = template.partition("{value}")
  return start, end


def _check(place: str, custom: ServiceTemplates, service: Service) -> None:
  """Raises SgdxError for names that a service does not have, and places where no value goes."""
  for intent, words_of_intent in custom.intents.items():
    _check_known(f"{place}.intents", intent, service.intent_index)
    _check_places(f"{place}.intents.{intent}", words_of_intent)
  for slot, words in custom.slots.items():
    _check_known(f"{place}.slots", slot, service.slot_index)
    _check_places(f"{place}.slots.{slot}", words)
    if choices := service.slots[service.slot_index[slot]].choices:
      for value in words.say:
        _check_known(f"{place}.slots.{slot}.say", value, choices)


def _check_places(place: str, words: SlotTemplates | IntentTemplates) -> None:
  """Raises SgdxError unless each text of `tell` has {value} once, and no other any braces."""
  for part, texts in msgspec.structs.asdict(words).items():
    all_texts = texts.values() if isinstance(texts, dict) else texts or ()
    for text in itertools.chain.from_iterable([x] if isinstance(x, str) else x for x in all_texts):
      places = re.findall(r"{.*?}", text)
      if places != (["{value}"] if part == "tell" else []):
        raise SgdxError(
          f"{place}.{part}: {text!r}",
          expected="a text with {value} once, where the value goes"
          if part == "tell"
          else "a text without {...}: only `tell` has a place, for the value",
          fix="correct the templates",
        )


def _check_known(place: str, name: str, names: Iterable[str]) -> None:
  if name not in names:
    raise SgdxError(
      f"{place}: unknown name {name!r}",
      expected="names of the schema",
      available=nearest(name, names),
      fix="correct the templates",
    )
