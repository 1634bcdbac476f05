"""Scenarios: which intents a user has, in which order, and what links them.

The SGD paper seeds the user agent with a *scenario*, "a sequence of intents and slots"
over one or several services (section 3.2).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Schema, Service
from sgdx_t5x.errors import SgdxError, nearest

MAX_INTENTS = 5


class LinkEntry(msgspec.Struct, forbid_unknown_fields=True):
  """A link in scenarios.json, between "SERVICE.SLOT" and "SERVICE.SLOT"."""

  source: str = msgspec.field(name="from")
  target: str = msgspec.field(name="to")
  say: list[Annotated[str, msgspec.Meta(min_length=1)]] = []


class ScenarioEntry(msgspec.Struct, forbid_unknown_fields=True):
  """A scenario in scenarios.json: "SERVICE.INTENT", ..., and its weight."""

  intents: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_INTENTS)]
  weight: Annotated[float, msgspec.Meta(gt=0, lt=1e9)] = 1


class ScenarioFile(msgspec.Struct, forbid_unknown_fields=True):
  """The content of scenarios.json."""

  scenarios: Annotated[list[ScenarioEntry], msgspec.Meta(min_length=1)]
  links: list[LinkEntry] = []


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


def parse_scenarios(file: ScenarioFile, schema: Schema, origin: str) -> tuple[Scenario, ...]:
  """Returns the scenarios of a file. Raises SgdxError for names that the schema does not have."""
  links = [
    Link(
      _place(link.source, schema, "slot", origin),
      _place(link.target, schema, "slot", origin),
      tuple(link.say),
    )
    for link in file.links
  ]
  return tuple(_scenario(entry, schema, links, origin) for entry in file.scenarios)


def follow_up(service: Service, intent: Intent) -> Intent | None:
  """The transaction that the system proposes after a search.

  It is the one that requires most of the search's result slots and fewest others; None if none
  requires any, or after a transaction.
  """
  results = set(intent.result_slots)
  scores = {
    i: sum(1 if slot in results else -1 for slot in candidate.required_slots)
    for i, candidate in enumerate(service.intents)
    if candidate.is_transactional and results & set(candidate.required_slots)
  }
  if intent.is_transactional or not scores:
    return None
  return service.intents[max(scores, key=scores.__getitem__)]


def check_intent(service: Service, intent: Intent, origin: str) -> None:
  """Raises SgdxError if an intent cannot be used in a dialogue."""
  problem = ""
  if not intent.is_transactional and not intent.result_slots:
    problem = "a search without result_slots returns nothing"
  elif intent.is_transactional and not (
    intent.required_slots or set(intent.optional_slots.values()) - {DONTCARE}
  ):
    problem = "a transaction needs a required slot, or a default other than dontcare, to confirm"
  if problem:
    raise SgdxError(
      f"{origin}: {service.name}.{intent.name}: {problem}",
      expected="intents that take or return slots",
      fix="complete the schema; docs/papers/simulator.md has a small example",
    )


def _scenario(entry: ScenarioEntry, schema: Schema, links: Sequence[Link], origin: str) -> Scenario:
  steps: list[Step] = []
  for name in entry.intents:
    service_name, intent_name = _place(name, schema, "intent", origin)
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
    slots = {*intent.required_slots, *intent.optional_slots}
    links_here = tuple(
      link
      for link in links
      if link.target[0] == service_name and link.target[1] in slots and link.source[0] in earlier
    )
    steps.append(Step(service, intent, of_selected, links_here))
  return Scenario(tuple(steps), entry.weight)


def _place(name: str, schema: Schema, kind: str, origin: str) -> tuple[str, str]:
  """Splits "SERVICE.NAME", at the first dot after which SERVICE is known: "Boats.v1.FindBoat".

  Args:
    name: of an intent or a slot, with its service.
    schema: that must have both.
    kind: "intent" or "slot".
    origin: file name, for errors.
  """
  pieces = name.split(".")
  ends = [n for n in range(1, len(pieces)) if ".".join(pieces[:n]) in schema] or [1]
  service, element = ".".join(pieces[: ends[0]]), ".".join(pieces[ends[0] :])
  elements: Mapping[str, int] = {}
  if service in schema:
    elements = schema[service].slot_index if kind == "slot" else schema[service].intent_index
  if element not in elements:
    raise SgdxError(
      f"{origin}: {name!r}: unknown {kind if elements else 'service'}",
      expected=f'"SERVICE.{kind.upper()}" of the schema',
      available=nearest(element, elements) if elements else nearest(service, schema.names),
      fix="correct the file",
    )
  return service, element
