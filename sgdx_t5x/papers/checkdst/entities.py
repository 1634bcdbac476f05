"""Which slots hold named entities: titles, people, cities, stations, addresses."""

import pathlib
from collections.abc import Mapping

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_json, read_input
from sgdx_t5x.papers.simulator.default_words import slot_kind

ENTITY_KINDS = frozenset({"title", "person", "city", "station", "address"})
KINDS = "kinds"  # of --slots: the slots are guessed from their names
Slots = Mapping[str, frozenset[str]]  # service -> slots; a service without any is absent


def entity_slots(schema: Schema) -> Slots:
  """Returns the non-categorical slots whose values are names, by service.

  Args:
    schema: the original one: kinds are guessed from names and descriptions.
  """
  found = {
    service.name: frozenset(
      slot.name
      for slot in service.slots
      if not slot.is_categorical and slot_kind(slot) in ENTITY_KINDS
    )
    for service in schema
  }
  return {name: slots for name, slots in found.items() if slots}


def free_slots(schema: Schema) -> Slots:
  """Returns all non-categorical slots, by service."""
  found = {service.name: service.noncategorical_slots for service in schema}
  return {name: slots for name, slots in found.items() if slots}


def kinds_of_slots(schema: Schema) -> Mapping[tuple[str, str], str]:
  """Returns (service, slot) -> kind of its values, see `simulator.default_words.slot_kind`."""
  return {
    (service.name, slot.name): slot_kind(slot) for service in schema for slot in service.slots
  }


def chosen_slots(schema: Schema, where: str = KINDS) -> Slots:
  """Returns the slots whose values are to be replaced.

  Args:
    schema: the original one.
    where: "kinds" for `entity_slots`, or a JSON file {service: [slot, ...]}.

  Raises:
    SgdxError: an unknown service, an unknown or categorical slot, or no slots at all.
  """
  slots = entity_slots(schema) if where == KINDS else _read_slots(pathlib.Path(where), schema)
  if not slots:
    raise SgdxError(
      f"{schema.origin}: no service has a slot that holds names",
      expected="a non-categorical slot of a title, a person, a city, a station or an address",
      available=", ".join(f"{s.name} ({len(s.noncategorical_slots)} free slots)" for s in schema),
      fix='list the slots in a JSON file, {"service": ["slot", ...]}, and pass it as --slots; '
      "kinds sdi and pi do not need it",
    )
  return slots


def _read_slots(path: pathlib.Path, schema: Schema) -> Slots:
  text = read_input(path, 'a JSON file of slots by service, or "kinds"')
  expected = '{"service": ["slot", ...], ...} with non-categorical slots of the schema'
  data = decode_json(text, str(path), expected, "correct the file")
  if not isinstance(data, dict) or not all(
    isinstance(names, list) and all(isinstance(name, str) for name in names)
    for names in data.values()
  ):
    raise SgdxError(
      f"{path}: not lists of slots by service", expected=expected, fix="correct the file"
    )
  for name, slots in data.items():
    if name not in schema:
      raise SgdxError(
        f"{path}: service {name!r}",
        expected=f"a service of {schema.origin}",
        available=nearest(name, schema.names),
        fix="correct the file",
      )
    free = schema[name].noncategorical_slots
    for slot in slots:
      if slot not in free:
        raise SgdxError(
          f"{path}: slot {slot!r} of service {name}",
          expected="a non-categorical slot of this service",
          available=nearest(str(slot), sorted(free)),
          fix="correct the file; categorical slots have no names to replace",
        )
  return {name: frozenset(slots) for name, slots in data.items() if slots}
