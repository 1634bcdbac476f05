"""VS: values are substituted by others of the same slot: names, days, times, prices, choices.

Following CoCo's value substitution, with one mapping per dialogue, by offset and without a search:
what is replaced in the text is replaced in all of the annotation. Values of categorical slots are
exchanged if they are literally said in every turn whose acts have them, and in no other turn.
"""

import collections
import itertools
import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import NAMED_ACTS
from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.answerable import said_state_values
from sgdx_t5x.papers.checkdst.entities import Slots, free_slots, kinds_of_slots
from sgdx_t5x.papers.checkdst.mapping import blamed, newly_unsaid
from sgdx_t5x.papers.checkdst.ned import entities_of, replace_entities
from sgdx_t5x.papers.checkdst.new_names import Draw, NameSource, invented, listed, values_of_corpus
from sgdx_t5x.papers.checkdst.same_value import canonical_forms, whole_groups
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split
from sgdx_t5x.papers.checkdst.texts import (
  Edit,
  edit_turn,
  moved,
  pattern_of,
  places_outside_spans,
)
from sgdx_t5x.papers.checkdst.values import replace_values
from sgdx_t5x.papers.simulator.variation import is_relative_day

_FEWEST = 5  # values that a slot must have in the split; else its kind's values are used
_CLOSED = frozenset({"date", "time", "duration", "count", "number", "rating", "price", "phone"})
_ORDERED = frozenset({"date", "time"})
_Swap = tuple[str, str, str, str]  # service, slot, value, other value
_Pairs = dict[tuple[str, str], dict[str, str]]  # (service, slot) -> what each value becomes


def perturber(split: Split, seed: int) -> Perturber:
  """Returns the perturber that substitutes the values of a split's dialogues.

  Args:
    split: what is to be perturbed.
    seed: determines the new values.
  """
  schema, slots = split.schema, free_slots(split.schema)
  source = _source(split, slots)

  def change(data: dict[str, Any], counts: collections.Counter) -> list[Line]:
    prefix = f"{seed}/{data['dialogue_id']}"
    swaps = list(_swaps(data, schema, prefix))
    entities = entities_of(data, schema, slots)
    forms = canonical_forms(data, entities.groups)
    strings = source.mapping(entities.places, prefix, entities.unavailable, forms, entities.text)
    strings = whole_groups(strings, entities.groups)
    swaps, old_texts = _answerable_exchange(data, slots, swaps)
    line = replace_entities(data, schema, slots, entities, strings, counts)
    counts["categorical"] += len(swaps)
    if swaps:
      exchanged: dict[str, dict[str, str]] = {}
      for service, slot, value, partner in swaps:
        exchanged.setdefault(f"{service}.{slot}", {})[value] = partner
      line |= {"categorical": exchanged, "said": old_texts}
    if not line["strings"] and not swaps:
      return []
    return [{"dialogue_id": data["dialogue_id"], **line}]

  return Perturber("vs", {"values": "in"}, change, slots)


def _source(split: Split, slots: Slots) -> NameSource:
  """Returns a source with one draw function per slot, under the key "service.slot"."""
  kinds = kinds_of_slots(split.schema)
  values_by_slot = values_of_corpus(split, slots)
  values_by_kind: dict[str, list[tuple[str, list[str]]]] = {}
  for place, values in values_by_slot.items():
    values_by_kind.setdefault(kinds[place], []).extend(values)
  keys, draws, closed, ordered = {}, {}, set(), {}
  for service, names in slots.items():
    for slot in names:
      place = service, slot
      kind, key = kinds[place], ".".join(place)
      keys[place] = key
      values = values_by_slot.get(place, [])
      if len(values) < _FEWEST:
        values = values_by_kind.get(kind, [])
      has_values = len(values) >= _FEWEST
      draws[key] = _plainly(listed(values) if has_values else invented(kind, split))
      if has_values or kind in _CLOSED:
        closed.add(key)
      if kind in _ORDERED:
        ordered[key] = kind
  return NameSource(keys, draws, frozenset(closed), ordered)


def _plainly(draw: Draw) -> Draw:
  """Leaves out "tomorrow" and "next Friday", which cannot replace just any other day."""

  def drawn(rng: random.Random) -> tuple[str, Sequence[str]]:
    name, forms = draw(rng)
    return name, [form for form in forms if not is_relative_day(form)]

  return drawn


# --- categorical slots -----------------------------------------------------------------------


def _swaps(data: Mapping[str, Any], schema: Schema, prefix: str) -> Iterator[_Swap]:
  """Finds possible values that can be exchanged for another one of their slot.

  Such a value belongs to one slot of the dialogue, occurs once in every turn whose acts have it
  and in no other turn; the other one occurs nowhere in the dialogue.
  """
  places: dict[str, set[tuple[str, str]]] = {}
  turns: dict[tuple[str, str, str], set[int]] = {}
  for number, turn in enumerate(data["turns"]):
    for frame in turn["frames"]:
      for slot, value, is_act in _values(frame):
        places.setdefault(value, set()).add((frame["service"], slot))
        if is_act:
          turns.setdefault((frame["service"], slot, value), set()).add(number)
  dialogue_text = "\n".join(turn["utterance"] for turn in data["turns"])
  used: set[tuple[str, str, str]] = set()  # a value is exchanged for one other value only
  for service, slot, value in sorted(turns):
    if slot not in schema[service].slot_index or len(places[value]) > 1:
      continue
    choices = schema[service].slots[schema[service].slot_index[slot]].choices
    possible = [choice for choice in choices if choice != DONTCARE]  # some schemas list it
    if value not in possible or not pattern_of(value).search(dialogue_text):
      continue
    said_in: list[int] = []
    for number, turn in enumerate(data["turns"]):
      said_in += [number] * len(list(places_outside_spans(turn, value)))
    if said_in != sorted(turns[service, slot, value]):
      continue
    partners = []
    for candidate in possible:
      is_used = candidate in places or (service, slot, candidate) in used
      if not is_used and not pattern_of(candidate).search(dialogue_text):
        partners.append(candidate)
    if partners:
      rng = random.Random(f"{prefix}/{service}.{slot}/{value}")
      partner = rng.choice(partners)
      used.add((service, slot, partner))
      yield service, slot, value, partner


def _values(frame: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
  """Yields slot, canonical value and whether an act has it, for acts, state and call."""
  for action in frame.get("actions") or ():
    if action["act"] not in NAMED_ACTS:
      for value in action.get("canonical_values") or action.get("values") or ():
        yield action.get("slot", ""), value, True
  if state := frame.get("state"):
    for slot, values in state["slot_values"].items():
      for value in values:
        yield slot, value, False
  if call := frame.get("service_call"):
    for slot, value in call["parameters"].items():
      yield slot, value, False


def _answerable_exchange(
  data: dict[str, Any], free: Slots, swaps: list[_Swap]
) -> tuple[list[_Swap], dict[str, list[list[Any]]]]:
  """Exchanges the values after which all gold values are said that were said before.

  Returns:
    The exchanges that were made, and what `exchange` returned.
  """
  if not swaps:
    return [], {}
  pickled, said_before = pickle.dumps(data), said_state_values(data, free)
  while swaps:
    old_texts = exchange(data, swaps)
    unsaid = newly_unsaid(said_before, said_state_values(data, free), _pairs(swaps))
    if not unsaid:
      return swaps, old_texts
    data.update(pickle.loads(pickled))
    exchanged = [value for _, _, value, _ in swaps]
    rejected = set().union(*(blamed(value, exchanged) for value in unsaid))
    swaps = [swap for swap in swaps if swap[2] not in rejected]
  return [], {}


def exchange(data: dict[str, Any], swaps: list[_Swap]) -> dict[str, list[list[Any]]]:
  """Exchanges values everywhere. Returns turn -> [start, end, old text] in the new utterance."""
  old_texts = {}
  for number, turn in enumerate(data["turns"]):
    text, edits = turn["utterance"], []
    for _, _, value, partner in swaps:
      for start, end in places_outside_spans(turn, value):
        replacement = partner.replace("_", " ")
        if text[start:end].islower():
          replacement = replacement.lower()
        edits.append((start, end, replacement))
    edits = _apart(edits)
    if edits:
      places = zip(moved(edits), edits, strict=True)
      old_texts[str(number)] = [[*place, text[a:b]] for place, (a, b, _) in places]
      edit_turn(turn, edits)
  _exchange_annotation(data, swaps)
  return old_texts


def _apart(edits: list[Edit]) -> list[Edit]:
  """Sorts edits and drops those that overlap an earlier one."""
  apart: list[Edit] = []
  for edit in sorted(edits):
    if not apart or edit[0] >= apart[-1][1]:
      apart.append(edit)
  return apart


def _pairs(swaps: list[_Swap]) -> _Pairs:
  pairs: _Pairs = {}
  for service, slot, value, partner in swaps:
    pairs.setdefault((service, slot), {}).update({value: partner, partner: value})
  return pairs


def _exchange_annotation(data: dict[str, Any], swaps: list[_Swap]) -> None:
  pairs, turns = _pairs(swaps), range(len(data["turns"]))
  unsorted = {(number, *place) for number, place in itertools.product(turns, pairs)}
  for (service, slot), swap in pairs.items():
    replace_values(data, {service: frozenset({slot})}, swap, unsorted)
