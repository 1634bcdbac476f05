"""Which slots hold named entities: titles, people, cities, stations, addresses."""

from collections.abc import Mapping

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.simulator.default_words import slot_kind

ENTITY_KINDS = frozenset({"title", "person", "city", "station", "address"})
Slots = Mapping[str, frozenset[str]]  # service -> slots; a service without any is absent


def entity_slots(schema: Schema) -> Slots:
  """Returns the non-categorical slots whose values are names, by service.

  Args:
    schema: the original one: kinds are guessed from names and descriptions.
  """
  slots_by_service: dict[str, frozenset[str]] = {}
  for service in schema:
    free = (slot for slot in service.slots if not slot.is_categorical)
    if names := frozenset(slot.name for slot in free if slot_kind(slot) in ENTITY_KINDS):
      slots_by_service[service.name] = names
  return slots_by_service


def free_slots(schema: Schema) -> Slots:
  """Returns all non-categorical slots, by service."""
  return {s.name: s.noncategorical_slots for s in schema if s.noncategorical_slots}


def kinds_of_slots(schema: Schema) -> Mapping[tuple[str, str], str]:
  """Returns (service, slot) -> kind of its values, see `simulator.default_words.slot_kind`."""
  return {
    (service.name, slot.name): slot_kind(slot) for service in schema for slot in service.slots
  }
