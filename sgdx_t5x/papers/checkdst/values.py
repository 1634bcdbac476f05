"""Slot values wherever they occur in a decoded dialogue, and replacing them by a mapping."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import NAMED_ACTS
from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.entities import Slots

Place = tuple[int, str, str]  # turn, service, slot


def frames_of(data: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
  """Yields the turn's number and the frame, for all frames of a decoded dialogue."""
  for number, turn in enumerate(data["turns"]):
    for frame in turn["frames"]:
      yield number, frame


def states_of(data: Mapping[str, Any]) -> Iterator[tuple[Place, list[str]]]:
  """Yields (turn, service, slot) and the accepted values, for all states of a decoded dialogue."""
  for number, frame in frames_of(data):
    if state := frame.get("state"):
      for slot, values in state["slot_values"].items():
        yield (number, frame["service"], slot), values


def said_values(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
  """Yields (service, slot, value) of acts, states and calls, without "dontcare"."""
  for _, frame in frames_of(data):
    pairs: list[tuple[str, str]] = []
    for action in frame.get("actions") or ():
      if action["act"] not in NAMED_ACTS and (slot := action.get("slot")):
        pairs += itertools.product([slot], action.get("values") or ())
        pairs += itertools.product([slot], action.get("canonical_values") or ())
    if state := frame.get("state"):
      for slot, values in state["slot_values"].items():
        pairs += itertools.product([slot], values)
    if call := frame.get("service_call"):
      pairs += call["parameters"].items()
    for slot, value in pairs:
      if value != DONTCARE:
        yield frame["service"], slot, value


def values_of_act(action: Mapping[str, Any]) -> Iterator[str]:
  """Yields the values of an act, as they are said and canonical ones."""
  yield from action.get("values", ())
  yield from action.get("canonical_values") or ()


def state_values(data: Mapping[str, Any]) -> set[str]:
  """Returns the values of all states."""
  return set().union(*(values for _, values in states_of(data)))


def accepted_values(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
  """Returns values, without "dontcare", that a state accepts for one slot, if it has several."""
  alternatives: dict[tuple[str, ...], None] = {}  # a set's order would differ between processes
  for _, values in states_of(data):
    accepted = tuple(value for value in values if value != DONTCARE)
    if len(accepted) > 1:
      alternatives[accepted] = None
  return list(alternatives)


def spanned_otherwise(data: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
  """Yields a state's values and the spans of their slot in the same turn that are none of them."""
  for turn in data["turns"]:
    for frame in turn["frames"]:
      slot_values = (frame.get("state") or {}).get("slot_values") or {}
      texts_by_slot: dict[str, list[str]] = {}
      for span in frame.get("slots") or ():
        text = turn["utterance"][span["start"] : span["exclusive_end"]]
        texts_by_slot.setdefault(span["slot"], []).append(text)
      for slot in slot_values.keys() & texts_by_slot.keys():
        values = tuple(value for value in slot_values[slot] if value != DONTCARE)
        if values and set(values).isdisjoint(texts_by_slot[slot]):
          yield (*values, *texts_by_slot[slot])


def result_values(data: Mapping[str, Any]) -> Iterator[str]:
  """Yields the values of all service results."""
  for _, frame in frames_of(data):
    for result in frame.get("service_results") or ():
      yield from result.values()


def known_forms(data: Mapping[str, Any]) -> dict[str, set[str]]:
  """Returns value as said -> its canonical values, as paired by the acts of a dialogue."""
  forms: dict[str, set[str]] = {}
  for _, frame in frames_of(data):
    for action in frame.get("actions") or ():
      values = action.get("values") or ()
      canonical = action.get("canonical_values") or values
      if action["act"] not in NAMED_ACTS and len(canonical) == len(values):
        for value, plain in zip(values, canonical, strict=True):
          forms.setdefault(value, set()).add(plain)
  return forms


def possible_values(data: Mapping[str, Any], schema: Schema) -> set[str]:
  """Returns the possible values of all categorical slots of the dialogue's services."""
  values: set[str] = set()
  for name in data["services"]:
    for slot in schema[name].slots if name in schema else ():
      values.update(slot.choices)
  return values


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
  for number, frame in frames_of(data):
    if not (names := slots.get(frame["service"])):
      continue
    for action in frame.get("actions") or ():
      if action.get("slot") in names and action["act"] not in NAMED_ACTS:
        for key in ("values", "canonical_values"):
          if action.get(key):
            action[key] = [strings.get(value, value) for value in action[key]]
    if state := frame.get("state"):
      slot_values = state["slot_values"]
      for slot in names & slot_values.keys():
        slot_values[slot] = [strings.get(value, value) for value in slot_values[slot]]
        if len(slot_values[slot]) > 1 and (number, frame["service"], slot) not in kept_order:
          slot_values[slot].sort()
    # A call's parameters, like each result, map slots to one value.
    call = frame.get("service_call")
    cells = [*([call["parameters"]] if call else ()), *(frame.get("service_results") or ())]
    for row in cells:
      for slot in names & row.keys():
        row[slot] = strings.get(row[slot], row[slot])


def unsorted_states(data: Mapping[str, Any], slots: Slots) -> set[Place]:
  """Returns where a state has several forms of a value that are not sorted."""
  return {
    (number, service, slot)
    for (number, service, slot), values in states_of(data)
    if slot in slots.get(service, ()) and values != sorted(values)
  }
