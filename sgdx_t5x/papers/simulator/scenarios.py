"""Scenarios: which intents a user has, in which order, and what links them.

The SGD paper seeds the user agent with a *scenario*, "a sequence of intents and slots"
over one or several services (section 3.2).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Schema, Service
from sgdx_t5x.errors import nearest
from sgdx_t5x.files.reading import json_type

MAX_INTENTS = 5


@dataclasses.dataclass(frozen=True)
class Link:
  """A value carried over from one (service, slot) to another; `say`: phrases that refer to it."""

  source: tuple[str, str]
  target: tuple[str, str]
  say: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Step:
  """One intent of a scenario. `of_selected`: it acts on the result of the previous step."""

  service: Service
  intent: Intent
  of_selected: bool
  links: tuple[Link, ...]


@dataclasses.dataclass(frozen=True)
class Scenario:
  """The steps of a dialogue, and the scenario's sampling weight."""

  steps: tuple[Step, ...]
  weight: float

  @property
  def services(self) -> tuple[str, ...]:
    """Names of its services, in order of appearance."""
    return tuple(dict.fromkeys(step.service.name for step in self.steps))


def parse_scenarios(
  data: Any, schema: Schema, origin: str, problems: list[str]
) -> tuple[Scenario, ...]:
  """Parses decoded scenarios. Errors are appended to `problems`."""
  before = len(problems)
  if not isinstance(data, dict) or not isinstance(data.get("scenarios"), list):
    problems.append(f'{origin}: not of the form {{"links": [...], "scenarios": [...]}}')
    return ()
  unknown = set(data) - {"links", "scenarios"}
  problems.extend(f"{origin}: unknown key {key!r}" for key in sorted(unknown))
  if not data["scenarios"]:
    problems.append(f"{origin}: no scenarios")
  links, written = [], data.get("links", [])
  if not isinstance(written, list):
    problems.append(f"{origin}: links is {json_type(written)}, not a list")
    written = []
  for number, link in enumerate(written, start=1):
    where = f"{origin}: link {number}"
    found = list(_link_problems(link, schema))
    problems.extend(f"{where}: {text}" for text in found)
    if not found:
      source, target = (_split(link[end], schema) for end in ("from", "to"))
      links.append(Link(source, target, tuple(link.get("say", ()))))
  for number, scenario in enumerate(data["scenarios"], start=1):
    found = _scenario_problems(scenario, schema)
    problems.extend(f"{origin}: scenario {number}: {text}" for text in found)
  if len(problems) > before:
    return ()
  return tuple(_scenario(scenario, schema, links) for scenario in data["scenarios"])


def follow_up(service: Service, intent: Intent) -> Intent | None:
  """The transaction that the system proposes after a search.

  It is the one that requires most of the search's result slots and fewest others; None if none
  requires any, or after a transaction.
  """
  found = set(intent.result_slots)
  scores = {
    i: sum(1 if slot in found else -1 for slot in other.required_slots)
    for i, other in enumerate(service.intents)
    if other.is_transactional and found & set(other.required_slots)
  }
  if intent.is_transactional or not scores:
    return None
  return service.intents[max(scores, key=scores.__getitem__)]


def intent_problems(service: Service, intent: Intent) -> Iterator[str]:
  """Yields why an intent cannot be used in a dialogue."""
  if not intent.is_transactional:
    if not intent.result_slots:
      yield "a search without result_slots returns nothing"
    return
  if not intent.required_slots and not set(intent.optional_slots.values()) - {DONTCARE}:
    yield "a transaction needs a required slot, or a default other than dontcare, to confirm"
  for name, default in intent.optional_slots.items():  # which are confirmed as values
    slot = service.slots[service.slot_index[name]]
    if not default.strip():
      yield f"the default of {name} is empty; use dontcare if there is none"
    elif slot.is_categorical and default not in (*slot.possible_values, DONTCARE):
      close = nearest(default, slot.possible_values)
      yield f"the default {default!r} of {name} is not one of its possible_values; {close}"


def _scenario(data: Mapping[str, Any], schema: Schema, links: Sequence[Link]) -> Scenario:
  steps: list[Step] = []
  for name in data["intents"]:
    service_name, intent_name = _split(name, schema)
    service = schema[service_name]
    intent = service.intents[service.intent_index[intent_name]]
    last = steps[-1] if steps else None
    of_selected = (
      last is not None
      and last.service is service
      and intent.is_transactional
      and not last.intent.is_transactional
    )
    earlier = {step.service.name for step in steps}
    taken = {*intent.required_slots, *intent.optional_slots}
    own = tuple(
      link
      for link in links
      if link.target[0] == service_name and link.target[1] in taken and link.source[0] in earlier
    )
    steps.append(Step(service, intent, of_selected, own))
  return Scenario(tuple(steps), data.get("weight", 1))


def _split(name: str, schema: Schema) -> tuple[str, str]:
  """Splits "SERVICE.NAME", at the first dot after which SERVICE is known: "Boats.v1.FindBoat"."""
  parts = name.split(".")
  ends = [n for n in range(1, len(parts)) if ".".join(parts[:n]) in schema] or [1]
  return ".".join(parts[: ends[0]]), ".".join(parts[ends[0] :])


def _scenario_problems(data: Any, schema: Schema) -> Iterator[str]:
  if not isinstance(data, dict) or not isinstance(data.get("intents"), list):
    yield 'not of the form {"intents": ["SERVICE.INTENT", ...], "weight": 1}'
    return
  for key in sorted(set(data) - {"intents", "weight"}):
    yield f"unknown key {key!r}"
  weight = data.get("weight", 1)
  if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < 1e9:
    yield f"weight {weight!r} is not a positive number"
  if not 1 <= len(data["intents"]) <= MAX_INTENTS:
    yield f"{len(data['intents'])} intents, not 1 to {MAX_INTENTS}"
  for name in data["intents"]:
    yield from _name_problems(name, schema, "intent", lambda service: service.intent_index)


def _link_problems(data: Any, schema: Schema) -> Iterator[str]:
  if not isinstance(data, dict) or not {"from", "to"} <= set(data) <= {"from", "to", "say"}:
    yield 'not of the form {"from": "SERVICE.SLOT", "to": "SERVICE.SLOT", "say": ["there"]}'
    return
  for key in ("from", "to"):
    problems = list(_name_problems(data[key], schema, "slot", lambda service: service.slot_index))
    yield from problems
    if not problems and not _is_used(schema, *_split(data[key], schema), returned=key == "from"):
      uses = "takes or returns" if key == "from" else "takes"
      yield f"{data[key]!r}: no intent {uses} it"
  say = data.get("say", [])
  if not isinstance(say, list) or not all(isinstance(s, str) and s for s in say):
    yield f"say {say!r} is not a list of strings"


def _is_used(schema: Schema, service: str, slot: str, *, returned: bool) -> bool:
  """Whether an intent takes a slot, or, if `returned`, takes or returns it."""
  return any(
    slot in (*i.required_slots, *i.optional_slots, *(i.result_slots if returned else ()))
    for i in schema[service].intents
  )


def _name_problems(
  name: Any, schema: Schema, what: str, known: Callable[[Service], Mapping[str, int]]
) -> Iterator[str]:
  service, found = _split(name, schema) if isinstance(name, str) else ("", "")
  if service not in schema:
    yield f"{name!r}: unknown service; {nearest(service, schema.names)}"
  elif found not in known(schema[service]):
    yield f"{name!r}: unknown {what} {found!r}; {nearest(found, known(schema[service]))}"
