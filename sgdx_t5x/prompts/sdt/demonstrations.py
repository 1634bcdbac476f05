"""Demonstrations of "Show, Don't Tell": what they are, and the JSONL files that hold them.

A line is {"service", "text", "slots", "active_intent"}, with names of the original schema, and
optionally "intents" (their order in prompts) and "source" (who wrote it).
"""

import dataclasses
import functools
import importlib.resources
import itertools
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import SYSTEM, USER
from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Schema, Service
from sgdx_t5x.errors import SgdxError, malformed, nearest
from sgdx_t5x.files.reading import decode_lines, is_text, read_input
from sgdx_t5x.files.writing import json_line
from sgdx_t5x.prompts.values import NONE

SAMPLE = "sample"
USER_TAG, SYSTEM_TAG = "[user]", "[system]"
_SAMPLE_ORIGIN = "sample/demonstrations.jsonl"
_TAG = re.compile(r"(\[user\]|\[system\])")
_FORM = '{"service", "text", "slots": {slot: value}, "active_intent"}, all strings'


@dataclasses.dataclass(frozen=True)
class Demonstration:
  """A short annotated dialogue with one service.

  Attributes:
    service: original name.
    text: "[user] ... [system] ... [user] ...".
    slots: every tracked slot, by its original name, in the order shown -> its value at the end of
      the dialogue, as the schema writes it if it is categorical; "none" if it has none.
    active_intent: original name, or "NONE".
    intents: original names in the order shown; () for the schema's order.
    source: who wrote it.
  """

  service: str
  text: str
  slots: Mapping[str, str]
  active_intent: str
  intents: tuple[str, ...] = ()
  source: str = ""

  def __hash__(self) -> int:
    return hash((self.service, self.text))  # the rest need not be hashable

  def to_json(self) -> dict[str, Any]:
    """Returns its line in a file."""
    data = dataclasses.asdict(self) | {"slots": dict(self.slots), "intents": list(self.intents)}
    return {key: value for key, value in data.items() if value or key == "slots"}

  @functools.cached_property
  def turns(self) -> tuple[tuple[str, str], ...]:
    """(speaker, utterance) of its turns; what precedes the first tag is the user's."""
    turns = []
    _, *pieces = _TAG.split(f"{USER_TAG} {self.text}")  # then a tag and a text alternate
    for tag, text in zip(pieces[::2], pieces[1::2], strict=True):
      if text.strip():  # a text that begins with a tag has two
        turns.append((USER if tag == USER_TAG else SYSTEM, text.strip()))
    return tuple(turns)


@dataclasses.dataclass(frozen=True, eq=False)
class Demonstrations:
  """The demonstrations of a file; compared by identity.

  Attributes:
    origin: the file, for errors.
    by_service: original name -> its demonstrations, in their order.
    crc: 8 hex digits of the file's CRC-32.
  """

  origin: str
  by_service: Mapping[str, tuple[Demonstration, ...]]
  crc: str

  @property
  def source(self) -> str:
    """Who wrote them, for signatures."""
    demos = itertools.chain.from_iterable(self.by_service.values())
    return "+".join(sorted({demo.source or "own" for demo in demos}))

  def of(self, service: Service) -> tuple[Demonstration, ...]:
    """Returns the demonstrations of a service of an original schema, after checking them.

    Raises:
      SgdxError: there is none, or one does not match the service.
    """
    demos = self.by_service.get(service.name, ())
    if not demos:
      raise SgdxError(
        f"{self.origin}: no demonstration of service {service.name}",
        expected="at least one for every service in the prompts",
        available=nearest(service.name, self.by_service),
        fix="write one (docs/demonstrations.md), or take them from a corpus: sgdx data demos make "
        "--corpus CORPUS --split SPLIT --out demos.jsonl, with a split that has the service",
      )
    for number, demo in enumerate(demos):
      check_demonstration(demo, service, f"{self.origin}: demonstration {number} of {service.name}")
    return demos


def load_demonstrations(demos: str | os.PathLike) -> Demonstrations:
  """Returns the demonstrations of a style's `demos`.

  Raises:
    SgdxError: no such file, or a line that cannot be read.
  """
  if os.fspath(demos) == SAMPLE:
    file = importlib.resources.files("sgdx_t5x.corpus.sample") / "demonstrations.jsonl"
    return parse_demonstrations(file.read_bytes(), _SAMPLE_ORIGIN)
  path = os.path.expandvars(demos)
  if not os.path.exists(path) and (variable := re.search(r"\$\{?(\w+)\}?", path)):
    value = "demos.jsonl" if variable[0] == path else "FOLDER"  # if it is only a part of the path
    raise SgdxError(
      f"demos={demos}: the environment variable is not set",
      expected="the path of a demonstration file",
      fix="sgdx data demos make --corpus CORPUS --split train --out demos.jsonl; "
      f"export {variable[1]}={value}",
    )
  return parse_demonstrations(read_input(path, 'a demonstration file, or "sample"'), path)


def parse_demonstrations(text: bytes, origin: str) -> Demonstrations:
  """Reads the text of a file. Raises SgdxError naming the line that cannot be read."""
  by_service: dict[str, tuple[Demonstration, ...]] = {}
  for place, data in decode_lines(text, origin, f"a demonstration: {_FORM}"):
    demo = _demonstration(data, place)
    by_service[demo.service] = (*by_service.get(demo.service, ()), demo)
  if not by_service:
    raise SgdxError(
      f"{origin}: no demonstrations",
      expected=f"a line per demonstration: {_FORM}",
      fix="write the file with `sgdx data demos import` or `sgdx data demos make`",
    )
  return Demonstrations(origin, by_service, f"{zlib.crc32(text):08x}")


def demonstrations_text(demos: Iterable[Demonstration]) -> str:
  """Returns demonstrations as the text of a file."""
  return "".join(json_line(demo.to_json()) for demo in demos)


def check_demonstration(demo: Demonstration, service: Service, place: str) -> None:
  """Refuses a demonstration that does not fit its service in the original schema.

  Raises:
    SgdxError: an unknown or missing slot or intent, or a value that the slot cannot have.
  """
  tracked = [service.slots[i].name for i in service.tracked_slots]
  for slot, value in demo.slots.items():
    if slot not in tracked:
      fix = "rename it, or omit it; a slot that no intent takes cannot be in a state"
      raise _wrong(f"{place}: slot {slot!r}", "a tracked slot of the service", slot, tracked, fix)
    choices = service.slots[service.slot_index[slot]].choices
    if choices and value not in (*choices, DONTCARE, NONE):
      problem = f"{place}: value {value!r} of slot {slot!r}"
      fix = "write it as the schema does"
      raise _wrong(problem, "a possible value, dontcare or none", value, choices, fix)
  # Answers name the slots that demonstrations show, so that others could never be predicted.
  if missing := [slot for slot in tracked if slot not in demo.slots]:
    raise SgdxError(
      f"{place}: no value for slot {missing[0]!r}",
      expected=f"a value for each of {', '.join(tracked)}: answers cannot name other slots",
      fix='add one; "none" is the value of a slot that the dialogue does not set',
    )
  for intent in (demo.active_intent, *demo.intents):
    if intent not in service.intent_index and intent != NO_INTENT:
      fix = "rename the intent"
      expected = "an intent of the service, or NONE"
      raise _wrong(f"{place}: intent {intent!r}", expected, intent, service.intent_index, fix)
  if demo.intents and sorted(demo.intents) != sorted(service.intent_index):
    raise SgdxError(
      f"{place}: intents {', '.join(demo.intents)}",
      expected="all intents of the service, each once, or no list",
      available=", ".join(service.intent_index),
      fix="complete the list, or omit it",
    )


def check_services(demos: Demonstrations, schemas: Iterable[Schema]) -> None:
  """Refuses demonstrations of services that none of the original schemas has."""
  names: set[str] = set()
  for schema in schemas:
    names.update(schema.names)
  for name in demos.by_service:
    if name not in names:
      fix = (
        "pass demonstrations of this corpus: "
        "sgdx data demos make --corpus CORPUS --out demos.jsonl; "
        "--prompt-style format=sdt demos=demos.jsonl"
        if demos.origin == _SAMPLE_ORIGIN
        else "rename the service, use the corpus for which the demonstrations were written, or "
        "remove its demonstrations"
      )
      problem = f"{demos.origin}: a demonstration of service {name!r}"
      raise _wrong(problem, "services of the corpus", name, sorted(names), fix)


def _wrong(problem: str, expected: str, name: str, names: Iterable[str], fix: str) -> SgdxError:
  return SgdxError(problem, expected=expected, available=nearest(name, names), fix=fix)


def _demonstration(data: Any, place: str) -> Demonstration:
  try:
    slots, intents = data["slots"], data.get("intents", [])
    texts = [data["service"], data["text"], *slots, *slots.values(), *intents]
    intent, source = data.get("active_intent", NO_INTENT), data.get("source", "")
    if not all(map(is_text, [*texts, intent, source])):
      raise TypeError("a value is not a string")
    text = " ".join(data["text"].split("\n")).strip()
    if not text or "|" in source:  # it separates the fields of a signature
      raise TypeError('an empty text, or a source that contains "|"')
    return Demonstration(data["service"], text, dict(slots), intent, tuple(intents), source)
  except (KeyError, TypeError, AttributeError) as e:
    raise SgdxError(
      f"{place}: {malformed(e)}",
      expected=f"a demonstration: {_FORM}",
      fix="correct the line; docs/demonstrations.md describes it",
    ) from None
