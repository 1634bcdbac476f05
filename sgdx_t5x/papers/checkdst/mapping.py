"""One mapping of strings per dialogue, applied everywhere at once."""

import itertools
import pickle
from collections.abc import Collection, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.checkdst.answerable import Said, StateValue, said_state_values
from sgdx_t5x.papers.checkdst.entities import Slots, free_slots
from sgdx_t5x.papers.checkdst.same_value import Groups, clock_time
from sgdx_t5x.papers.checkdst.texts import Edit, edit_turn, moved, spans_of, whole_words, words
from sgdx_t5x.papers.checkdst.values import replace_values, unsorted_states

# Shorter strings ("Us", "Up") are ordinary words, too: outside spans they are kept.
SHORTEST_MENTION = 4


def apply_mapping(data: dict[str, Any], slots: Slots, strings: Mapping[str, str]) -> dict[str, Any]:
  """Replaces strings in utterances, spans, acts, states, calls and results.

  In utterances, it replaces the spans of `slots`, and case-sensitive whole-word mentions outside
  spans of the strings of SHORTEST_MENTION characters or more.

  Args:
    data: a decoded dialogue, changed in place.
    slots: whose values are replaced.
    strings: old -> new, one to one; no new string may be in the dialogue already.

  Returns:
    What is needed to undo it: fields `strings`, `mentions` and `unsorted` of a changes.jsonl line.
  """
  kept_order = unsorted_states(data, slots)
  mentions: dict[str, list[list[int]]] = {}
  pattern = whole_words(s for s in strings if len(s) >= SHORTEST_MENTION)
  for number, turn in enumerate(data["turns"]):
    text, spans = turn["utterance"], list(spans_of(turn))
    new_texts: dict[tuple[int, int], str] = {}  # by place
    for service, slot, start, end in spans:
      if slot in slots.get(service, ()) and (new_text := strings.get(text[start:end])):
        new_texts[start, end] = new_text
    if pattern:
      for match in pattern.finditer(text):
        start, end = match.span()
        if not any(a < end and start < b for _, _, a, b in spans):
          new_texts[start, end] = strings[match[0]]
    edits: list[Edit] = [(*place, new_texts[place]) for place in sorted(new_texts)]
    span_places = {span[2:] for span in spans}
    for edit, place in zip(edits, moved(edits), strict=True):
      if edit[:2] not in span_places:
        mentions.setdefault(str(number), []).append([*place])
    edit_turn(turn, edits)
  replace_values(data, slots, strings, kept_order)
  line: dict[str, Any] = {"strings": dict(strings)}
  if mentions:
    line["mentions"] = mentions
  if kept_order:
    line["unsorted"] = sorted([*place] for place in kept_order)
  return line


def answerable_mapping(
  data: dict[str, Any],
  schema: Schema,
  slots: Slots,
  replacements: Mapping[str, str],
  groups: Groups,
) -> tuple[dict[str, Any], set[str]]:
  """Applies the replacements after which every gold value is said that was said before.

  Where spans are complete, as in SGD, that is all of them.

  Args:
    data: a decoded dialogue, changed in place.
    schema: of the dialogue.
    slots: whose values are replaced.
    replacements: old value -> new value.
    groups: values that are replaced together or not at all.

  Returns:
    The changes made, as `apply_mapping` returns them, and the old values that had to stay.
  """
  free = free_slots(schema)
  said_before = said_state_values(data, free)
  pickled = pickle.dumps(data)  # rarely needed, and several times as fast as a deep copy
  rejected = baseless(said_before, slots, replacements, groups)
  while True:
    accepted = {value: text for value, text in replacements.items() if value not in rejected}
    changes = apply_mapping(data, slots, accepted)
    new_values: dict[tuple[str, str], Mapping[str, str]] = {}
    for service, names in slots.items():
      new_values |= dict.fromkeys(itertools.product([service], names), accepted)
    unsaid = newly_unsaid(said_before, said_state_values(data, free), new_values)
    if not unsaid:
      return changes, rejected

    # The text was left alone (a short word, part of another span, another case), or a longer
    # value was replaced that the text says only as a whole.
    data.update(pickle.loads(pickled))
    for value in unsaid:
      for old_value in [value] if value in accepted else blamed(value, accepted):
        rejected.update(groups.get(old_value, (old_value,)))


def baseless(
  wordings: Mapping[StateValue, Said],
  slots: Slots,
  replacements: Mapping[str, str],
  groups: Groups,
) -> set[str]:
  """Returns what must stay since a state has a value that the dialogue says otherwise, if at all.

  Where the text says "Alder" and the state has "Alder House", two new names would not be related.

  Args:
    wordings: see `said_state_values`.
    slots: whose values are replaced.
    replacements: old value -> new value.
    groups: see `same_value.same_values`.
  """
  said = {place.value for place, wording in wordings.items() if wording.in_words}
  accepted: dict[tuple[int, str, str], list[str]] = {}
  for place in wordings:
    if place.slot in slots.get(place.service, ()):
      accepted.setdefault(place[:3], []).append(place.value)
  kept: set[str] = set()
  for values in accepted.values():
    for value in values if said.isdisjoint(values) else ():
      group, time = groups.get(value, (value,)), clock_time(value)
      # "8 pm" says 20:00, and both become another time.
      if time is None or not any(clock_time(text) == time for text in group if text != value):
        for text in (value, *sharing_words(value, replacements)):
          kept.update(groups.get(text, (text,)))
  return kept


def newly_unsaid(
  wordings_before: Mapping[StateValue, Said],
  wordings_after: Mapping[StateValue, Said],
  new_values: Mapping[tuple[str, str], Mapping[str, str]],
) -> list[str]:
  """Returns the old values that were said before, and whose new value is not said after.

  Args:
    wordings_before, wordings_after: see `said_state_values`.
    new_values: (service, slot) -> value -> what it becomes; others stay.
  """
  unsaid: dict[str, None] = {}
  for place, wording in wordings_before.items():
    new_value = new_values.get((place.service, place.slot), {}).get(place.value, place.value)
    if wording.is_more_than(wordings_after[place._replace(value=new_value)]):
      unsaid[place.value] = None
  return list(unsaid)


def blamed(unsaid: str, replaced: Collection[str]) -> list[str]:
  """Returns which replaced values may have made another one unsaid: those that share a word."""
  return sharing_words(unsaid, replaced) or [*replaced]


def sharing_words(value: str, others: Collection[str]) -> list[str]:
  """Returns which of the others have a word of a value."""
  of_value = {*words(value.replace("_", " "))}
  return [other for other in others if not of_value.isdisjoint(words(other.replace("_", " ")))]
