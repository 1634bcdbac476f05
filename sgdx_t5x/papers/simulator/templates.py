"""Templates, the wording of acts: parsing, validation, defaults, and preparation for drawing.

Three layers: phrases for acts that all services share (`templates.json`, or the user's
"acts"), words for a service's slots and intents, and a service's own phrases for acts, with
slots in braces. What is not given is derived from names and descriptions (`default_words`).
"""

import dataclasses
import functools
import importlib.resources
import itertools
import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Schema, Service, Slot
from sgdx_t5x.errors import nearest
from sgdx_t5x.files.reading import json_type
from sgdx_t5x.papers.simulator.default_words import (
  BOOLEAN,
  default_intent_words,
  default_slot_words,
  slot_kind,
)

# Placeholders that the phrases of an act must have; other acts have none.
_PLACEHOLDERS = {
  "user": {"INFORM": {"value"}, "INFORM_DONTCARE": set(), "REQUEST": {"noun"}},
  "system": {
    "INFORM": {"value"},
    "REQUEST": {"noun"},
    "REQUEST_CHOICES": {"choices"},
    "CONFIRM": {"slots"},
    "OFFER": {"slots"},
    "INFORM_COUNT": {"count"},
    "OFFER_INTENT": {"do"},
  },
}
_MAY_HAVE_NOUN = ("INFORM", "INFORM_DONTCARE", "REQUEST", "REQUEST_CHOICES")
_ACTS_WITH_SLOTS = ("OFFER", "CONFIRM", "INFORM")
_OWN_ACTS = (*_ACTS_WITH_SLOTS, "NOTIFY_SUCCESS", "NOTIFY_FAILURE")  # all are system acts
_SLOT_PARTS, _INTENT_PARTS = ("noun", "tell", "ask", "say"), ("open", "do")

Fragment = tuple[str, str]  # the text before and after a value


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
  """All phrases of a service. `phrases`: act -> its own templates, as (text, slot) pieces."""

  slots: Mapping[str, SlotWords]
  open: Mapping[str, tuple[str, ...]]
  do: Mapping[str, tuple[str, ...]]
  acts: Mapping[str, Mapping[str, tuple[str, ...]]]
  phrases: Mapping[str, tuple[tuple[tuple[str, str], ...], ...]]


def read_words(
  data: Any, schema: Schema, services: Iterable[str], origin: str, problems: list[str]
) -> dict[str, Words]:
  """Makes the words of services from decoded templates.

  Args:
    data: decoded templates; {} for all defaults.
    schema: schema with the services.
    services: names of the services whose words are needed.
    origin: file name, for error messages.
    problems: errors are appended here.

  Returns:
    Words by service; empty if there were errors.
  """
  found = list(_problems(data, schema))
  problems.extend(f"{origin}: {text}" for text in found)
  if found:
    return {}
  acts = {
    side: {**shared, **data.get("acts", {}).get(side, {})} for side, shared in _shared().items()
  }
  written = data.get("services", {})
  return {name: _words(schema[name], written.get(name, {}), acts) for name in services}


@functools.cache
def _shared() -> Mapping[str, Mapping[str, list[str]]]:
  return json.loads((importlib.resources.files(__package__) / "templates.json").read_text("utf-8"))


def _words(service: Service, written: Mapping[str, Any], acts: Mapping[str, Any]) -> Words:
  slots, intents = written.get("slots", {}), written.get("intents", {})
  intent_words = {
    i.name: {**default_intent_words(i), **intents.get(i.name, {})} for i in service.intents
  }
  return Words(
    slots={
      s.name: _slot_words(s, _merged(default_slot_words(s), slots.get(s.name, {})), acts)
      for s in service.slots
    },
    open={name: tuple(words["open"]) for name, words in intent_words.items()},
    do={name: tuple(words["do"]) for name, words in intent_words.items()},
    acts={
      side: {act: tuple(texts) for act, texts in table.items()} for side, table in acts.items()
    },
    phrases={
      act: tuple(tuple((text, slot or "") for text, slot in _pieces(t)) for t in texts)
      for act, texts in written.get("acts", {}).items()
    },
  )


def _merged(default: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a slot's parts as written; missing parts, and values in `say`, as by default."""
  return {**default, **written, "say": {**default["say"], **written.get("say", {})}}


def _slot_words(slot: Slot, words: Mapping[str, Any], acts: Mapping[str, Any]) -> SlotWords:
  def named(side: str, act: str) -> tuple[str, ...]:
    """The shared phrases of an act, filled with this slot's nouns."""
    pairs = itertools.product(acts[side][act], words["noun"])
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
    ask=tuple(words["ask"]) or named("system", "REQUEST"),
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
  return tuple(f"{lead} one {way}?" for lead in ("Is it", "Can you say if it is") for way in yes)


def _fragment(template: str) -> Fragment:
  before, _, after = template.partition("{value}")
  return before, after


def _pieces(template: str) -> Iterator[tuple[str, str | None]]:
  """Yields (text, name in braces after it or None). Raises ValueError for unmatched braces."""
  return ((text, name) for text, name, _, _ in string.Formatter().parse(template))


# --- what can be wrong -----------------------------------------------------------------------


def _problems(data: Any, schema: Schema) -> Iterator[str]:
  yield from _unknown_keys("", data, ("acts", "services"))
  if not isinstance(data, dict):
    return
  for part in ("acts", "services"):
    yield from _unknown_keys(part, data.get(part, {}), None)
  for side, table in _entries(data.get("acts", {})):
    if side not in _shared():
      yield f"acts.{side}: not user or system"
    else:
      yield from _unknown_keys(f"acts.{side}", table, _shared()[side])
      for act, texts in _entries(table):
        may = {"noun"} if act in _MAY_HAVE_NOUN else set()
        must = _PLACEHOLDERS[side].get(act, set())
        yield from _text_problems(f"acts.{side}.{act}", texts, must, may)
  for name, written in _entries(data.get("services", {})):
    if name in schema:
      yield from _service_problems(f"services.{name}", written, schema[name])
    else:
      yield f"services.{name}: unknown service; {nearest(name, schema.names)}"


def _service_problems(where: str, written: Any, service: Service) -> Iterator[str]:
  yield from _unknown_keys(where, written, ("slots", "intents", "acts"))
  written = written if isinstance(written, dict) else {}
  slots = written.get("slots", {})
  yield from _unknown_keys(f"{where}.slots", slots, service.slot_index, "slot")
  for name, words in _entries(slots):
    if name in service.slot_index:
      yield from _slot_problems(f"{where}.slots.{name}", words, service, name)
  intents = written.get("intents", {})
  yield from _unknown_keys(f"{where}.intents", intents, service.intent_index, "intent")
  for name, words in _entries(intents):
    yield from _unknown_keys(f"{where}.intents.{name}", words, _INTENT_PARTS)
    for part, texts in _entries(words):
      yield from _text_problems(f"{where}.intents.{name}.{part}", texts, set(), set())
  acts = written.get("acts", {})
  yield from _unknown_keys(f"{where}.acts", acts, _OWN_ACTS, "act")
  for act, texts in _entries(acts):
    may = set(service.slot_index) if act in _ACTS_WITH_SLOTS else set()
    problems = list(_text_problems(f"{where}.acts.{act}", texts, set(), may))
    yield from problems
    for text in texts if act == "INFORM" and not problems else ():
      if sum(name is not None for _, name in _pieces(text)) != 1:
        yield f"{where}.acts.INFORM: {text!r} does not contain exactly one slot, such as {{price}}"


def _slot_problems(where: str, words: Any, service: Service, name: str) -> Iterator[str]:
  yield from _unknown_keys(where, words, _SLOT_PARTS)
  slot = service.slots[service.slot_index[name]]
  for part, texts in _entries(words):
    if part == "say":
      yield from _unknown_keys(f"{where}.say", texts, None)
      for value, ways in _entries(texts):
        if slot.is_categorical and value not in slot.possible_values:
          yield f"{where}.say: unknown value {value!r}; {nearest(value, slot.possible_values)}"
        ways = [ways] if isinstance(ways, str) else ways
        yield from _text_problems(f"{where}.say.{value}", ways, set(), set())
    elif part == "ask" and texts == []:
      continue
    else:
      yield from _text_problems(
        f"{where}.{part}", texts, {"value"} if part == "tell" else set(), set()
      )


def _text_problems(where: str, texts: Any, must: set[str], may: set[str]) -> Iterator[str]:
  """Yields errors: not a non-empty list of strings, or missing or unknown placeholders."""
  if (
    not isinstance(texts, list)
    or not texts
    or not all(isinstance(t, str) and t.strip() for t in texts)
  ):
    yield f"{where}: not a list of non-empty strings"
    return
  for text in texts:
    try:
      names = [name for _, name in _pieces(text) if name is not None]
    except ValueError as e:
      yield f"{where}: {text!r}: {e}"
      continue
    plain = sum(text.count(f"{{{name}}}") for name in set(names))
    if not plain == text.count("{") == text.count("}"):
      yield f"{where}: {text!r} has braces that are not part of a placeholder"
    for name in sorted({name for name in names if names.count(name) > 1}):
      yield f"{where}: {text!r} contains {{{name}}} twice"
    for name in sorted(set(names) - must - may):
      close = nearest(name, must | may)
      yield f"{where}: {text!r} contains the unknown placeholder {{{name}}}; {close}"
    for name in sorted(must - set(names)):
      yield f"{where}: {text!r} lacks the placeholder {{{name}}}"


def _unknown_keys(
  where: str, data: Any, known: Iterable[str] | None, what: str = "key"
) -> Iterator[str]:
  """Yields errors for a non-object or unknown keys; `known` None allows any keys."""
  lead = f"{where}: " if where else ""
  if not isinstance(data, dict):
    yield f"{lead}{json_type(data)}, not an object"
    return
  for key in () if known is None else data:
    if key not in known:
      yield f"{lead}unknown {what} {key!r}; {nearest(key, known)}"


def _entries(data: Any) -> Sequence[tuple[str, Any]]:
  return tuple(data.items()) if isinstance(data, dict) else ()
