"""Slot values wherever they occur in a decoded dialogue, and replacing them by a mapping."""

from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.entities import Slots

# Acts whose slot is a keyword of the format, not a slot of the schema.
NAMED_ACTS = frozenset({"INFORM_INTENT", "OFFER_INTENT", "INFORM_COUNT"})
Place = tuple[int, str, str]  # turn, service, slot


def said_values(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
  """Yields (service, slot, value) of acts, states and calls, without "dontcare"."""
  for turn in data["turns"]:
    for frame in turn["frames"]:
      service = frame["service"]
      for action in frame.get("actions") or ():
        if action["act"] in NAMED_ACTS or not action.get("slot"):
          continue
        for key in ("values", "canonical_values"):
          for value in action.get(key) or ():
            if value != DONTCARE:
              yield service, action["slot"], value
      if state := frame.get("state"):
        for slot, values in state["slot_values"].items():
          for value in values:
            if value != DONTCARE:
              yield service, slot, value
      if call := frame.get("service_call"):
        for slot, value in call["parameters"].items():
          if value != DONTCARE:
            yield service, slot, value


def state_values(data: Mapping[str, Any]) -> set[str]:
  """Returns the values of all states."""
  return {
    value
    for turn in data["turns"]
    for frame in turn["frames"]
    if frame.get("state")
    for values in frame["state"]["slot_values"].values()
    for value in values
  }


def accepted_values(data: Mapping[str, Any]) -> dict[Place, tuple[str, ...]]:
  """Returns the values, without "dontcare", of slots for which a state accepts several."""
  found = {}
  for number, turn in enumerate(data["turns"]):
    for frame in turn["frames"]:
      if state := frame.get("state"):
        for slot, values in state["slot_values"].items():
          if len(values) > 1 and len(accepted := [v for v in values if v != DONTCARE]) > 1:
            found[number, frame["service"], slot] = tuple(accepted)
  return found


def result_values(data: Mapping[str, Any]) -> Iterator[str]:
  """Yields the values of all service results."""
  for turn in data["turns"]:
    for frame in turn["frames"]:
      for result in frame.get("service_results") or ():
        yield from result.values()


def known_forms(data: Mapping[str, Any]) -> dict[str, set[str]]:
  """Returns value as said -> its canonical values, as paired by the acts of a dialogue."""
  found: dict[str, set[str]] = {}
  for turn in data["turns"]:
    for frame in turn["frames"]:
      for action in frame.get("actions") or ():
        values = action.get("values") or ()
        canonical = action.get("canonical_values") or values
        if action["act"] not in NAMED_ACTS and len(canonical) == len(values):
          for value, plain in zip(values, canonical, strict=True):
            found.setdefault(value, set()).add(plain)
  return found


def possible_values(data: Mapping[str, Any], schema: Schema) -> set[str]:
  """Returns the possible values of all categorical slots of the dialogue's services."""
  return {
    value
    for name in data["services"]
    if name in schema
    for slot in schema[name].slots
    for value in slot.possible_values
  }


def replace_values(
  data: dict[str, Any], slots: Slots, strings: Mapping[str, str], kept_order: set[Place]
) -> None:
  """Replaces the values of some slots in acts, states, calls and results.

  Several forms of a value in a state are sorted in SGD, and sorted again here.

  Args:
    data: a decoded dialogue, changed in place.
    slots: whose values to replace.
    strings: old -> new; other values stay.
    kept_order: where states have several forms that are not to be sorted.
  """
  for number, turn in enumerate(data["turns"]):
    for frame in turn["frames"]:
      if not (names := slots.get(frame["service"])):
        continue
      for action in frame.get("actions") or ():
        if action.get("slot") in names and action["act"] not in NAMED_ACTS:
          for key in ("values", "canonical_values"):
            if action.get(key):
              action[key] = [strings.get(value, value) for value in action[key]]
      if state := frame.get("state"):
        found = state["slot_values"]
        for slot in names & found.keys():
          values = [strings.get(value, value) for value in found[slot]]
          if len(values) > 1 and (number, frame["service"], slot) not in kept_order:
            values.sort()
          found[slot] = values
      if call := frame.get("service_call"):
        _replace_cells(call["parameters"], names, strings)
      for result in frame.get("service_results") or ():
        _replace_cells(result, names, strings)


def unsorted_states(data: Mapping[str, Any], slots: Slots) -> set[Place]:
  """Returns where a state has several forms of a value that are not sorted."""
  return {
    (number, frame["service"], slot)
    for number, turn in enumerate(data["turns"])
    for frame in turn["frames"]
    if frame.get("state")
    for slot, values in frame["state"]["slot_values"].items()
    if len(values) > 1 and slot in slots.get(frame["service"], ()) and values != sorted(values)
  }


def _replace_cells(
  cells: dict[str, Any], names: frozenset[str], strings: Mapping[str, str]
) -> None:
  for slot in names & cells.keys():
    cells[slot] = strings.get(cells[slot], cells[slot])
