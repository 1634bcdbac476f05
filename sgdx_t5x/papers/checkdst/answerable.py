"""Gold factuality, which no perturbation may lower: whether a state's values were said."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.texts import gaps, is_said, normalised, spans_of
from sgdx_t5x.papers.checkdst.values import states_of


class StateValue(NamedTuple):
  """A value that a state accepts for a slot."""

  turn: int
  service: str
  slot: str
  value: str


class Said(NamedTuple):
  """How the utterances up to a state's turn say a value.

  Attributes:
    in_words: as whole words in any case, as trackers and the metric `factuality` see it.
    literally: in the state's case, but maybe within a word: rule state-free of `sgdx data verify`.
  """

  in_words: bool
  literally: bool

  def is_more_than(self, other: "Said") -> bool:
    """Whether a value is said in a way in which it is not said otherwise."""
    return self.in_words > other.in_words or self.literally > other.literally


SAID = Said(True, True)


def said_state_values(
  data: Mapping[str, Any], free: Slots, first_turn: int = 0
) -> dict[StateValue, Said]:
  """Returns how the values of all states are said, without "dontcare".

  A categorical value ("2", "north") is said only outside of the spans of others ("2 North Road").

  Args:
    data: a decoded dialogue.
    free: the non-categorical slots.
    first_turn: the turn with which to begin.
  """
  said_by_value: dict[StateValue, Said] = {}
  newest: dict[tuple[str, str, str], Said] = {}
  text = lower = outside = ""
  for number, turn in enumerate(data["turns"]):
    utterance = turn["utterance"]
    text += f"\n{utterance}"
    lower += f"\n{normalised(utterance)}"
    outside += f"\n{normalised(' | '.join(gaps(utterance, spans_of(turn))))}"
    for frame in turn["frames"]:
      if number < first_turn or not (state := frame.get("state")):
        continue
      service = frame["service"]
      for slot, values in state["slot_values"].items():
        for value in values:
          if value == DONTCARE:
            continue
          wording = newest.get((service, slot, value))
          if wording != SAID:  # what was said remains said
            if slot in free.get(service, ()):
              wording = Said(is_said(value, lower), value in text)
            else:
              wording = Said(*[is_said(value.replace("_", " "), outside)] * 2)
            newest[service, slot, value] = wording
          said_by_value[StateValue(number, service, slot, value)] = wording
  return said_by_value


def gold_factuality(data: Mapping[str, Any], slots: Slots) -> tuple[int, list[StateValue]]:
  """Looks for the values of states in the utterances up to each state's turn.

  Values match as whole words in any case (like the metric `factuality`).

  Args:
    data: a decoded dialogue.
    slots: non-categorical ones, whose values to look for.

  Returns:
    The number of (frame, slot, value) triples, and those that were never said.
  """
  values, unsaid = 0, []
  for value, wording in said_state_values(data, slots).items():
    if value.slot in slots.get(value.service, ()):
      values += 1
      if not wording.in_words:
        unsaid.append(value)
  return values, unsaid


def stated_values(data: Mapping[str, Any], schema: Schema) -> dict[str, int]:
  """Returns the values of free slots in states, without "dontcare" -> the first turn with it."""
  first_turns: dict[str, int] = {}
  for (number, service, slot), values in states_of(data):
    for value in values if slot in schema[service].noncategorical_slots else ():
      if value != DONTCARE:
        first_turns.setdefault(value, number)
  return first_turns


def lost_values(
  stated: Mapping[str, int], data: Mapping[str, Any], number: int, new_text: str
) -> list[str]:
  """Returns the values that would be unsaid if a turn had other words.

  Args:
    stated: see `stated_values`.
    data: the decoded dialogue; turns before this one have their final words.
    number: of the turn.
    new_text: its other words.
  """
  texts = [turn["utterance"] for turn in data["turns"]]
  lost = []
  for value, needed in stated.items():
    said_before = _said(value, [texts[number]])
    if said_before.is_more_than(_said(value, [new_text])):
      # It may be said elsewhere, up to the first state that has it.
      elsewhere = [*texts[:number], *texts[number + 1 : needed + 1]]
      if said_before.is_more_than(_said(value, [*elsewhere, new_text])):
        lost.append(value)
  return lost


def _said(value: str, texts: Sequence[str]) -> Said:
  """Returns how some utterances say a value."""
  in_words = any(is_said(value, normalised(text)) for text in texts)
  return Said(in_words, any(value in text for text in texts))
