"""SpanDST: the gold answers for the slots of a frame, and the state that answers lead to.

The tracker reads the last two utterances once per frame and predicts for each slot how its value
changes: not at all, to a span of the utterances, to a possible value, to the value that the system
gave last, or to a value of another service. Labels and decoding are pure functions, so that a
ceiling can be computed: with the labels as answers, the joint goal accuracy on SGD is 100.00.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE, Service, Slot
from sgdx_t5x.records.turns import FrameContext, Gold
from sgdx_t5x.spandst.answers import CLEAR, KEEP, MEMORY, SPAN, SYSTEM, VALUE
from sgdx_t5x.spandst.answers import DONTCARE as ANY
from sgdx_t5x.spandst.choices import Choices

Values = Mapping[int, tuple[str, ...]]  # position of a slot -> its values


class Choice(NamedTuple):
  """An answer for a slot.

  Attributes:
    kind: KEEP, DONTCARE, CLEAR, SYSTEM, SPAN, VALUE or MEMORY of `spandst.answers`.
    number: VALUE: position among the possible values; MEMORY: position in `Choices.memory`;
      SPAN: 1 in the user's utterance, 0 in the system's.
    start: SPAN: start character.
    end: SPAN: end character (exclusive).
  """

  kind: int
  number: int = 0
  start: int = 0
  end: int = 0


_KEPT = (Choice(KEEP),)


def right_choices(
  service: Service, context: FrameContext, gold: Gold, values_before: Values, choices: Choices
) -> dict[int, Sequence[Choice]]:
  """Returns the right answers for a frame's slots.

  All of them, because a model is trained on the sum of their probabilities: if a city is said by
  the user and also held by another service, both answers are right.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    gold: its labels.
    values_before: this service's values before the turn; gold ones in training.
    choices: of the frame.

  Returns:
    Position of each slot that can be filled -> right answers, the likeliest first. KEEP, plus any
    spans in which the user repeats the value, if the value stays; also KEEP if no answer gives the
    value, as in 7 of 138,688 updates of SGD's train split.
  """
  labels: dict[int, Sequence[Choice]] = dict.fromkeys(service.tracked_slots, _KEPT)
  for slot in labels:
    if slot in gold.values or slot in values_before:
      previous = values_before.get(slot, ())
      answers = _right(service.slots[slot], slot, context, gold, previous, choices)
      labels[slot] = answers or _KEPT
  return labels


def _right(
  slot: Slot,
  position: int,
  context: FrameContext,
  gold: Gold,
  previous: Sequence[str],
  choices: Choices,
) -> list[Choice]:
  """Returns the right answers for a slot; none if no answer gives its value.

  Args:
    slot: in the original schema.
    position: of the slot in the service.
    context, gold, choices: as in `right_choices`.
    previous: the slot's values before the turn.
  """
  values = gold.values.get(position, ())
  if not values:
    return [Choice(CLEAR)] if previous else []
  if _meet(values, previous) and not (slot.is_categorical and _are_two(values, previous, slot)):
    if slot.is_categorical:
      return [*_KEPT]
    # A value that the user repeats is right too: the state stays as it is.
    return [*_KEPT, *_annotated(position, context, gold, values, by_user=True)]
  if values[0] == DONTCARE:
    return [Choice(ANY)]
  labels = []
  if slot.is_categorical:
    values = values[:1]  # all others are wrong by the official metric
    # A value that the schema lists twice is right at both places.
    labels += (Choice(VALUE, i) for i, v in enumerate(slot.possible_values) if v == values[0])
  else:
    labels += value_spans(position, context, gold, values, by_user=True)
  if _meet(values, choices.system.get(position, ())[:1]):
    labels.append(Choice(SYSTEM))
  if not slot.is_categorical:
    labels += value_spans(position, context, gold, values, by_user=False)
  for number, value in enumerate(choices.memory):
    if _meet(values, value.values):
      labels.append(Choice(MEMORY, number))
  return labels


def _are_two(values: Sequence[str], previous: Sequence[str], slot: Slot) -> bool:
  """Whether a slot has both first values, which differ in case at most, as possible values."""
  return values[0] != previous[0] and {values[0], previous[0]} <= set(slot.possible_values)


def _meet(values: Sequence[str], alternatives: Sequence[str]) -> bool:
  """Whether two lists of alternatives share a value; the official metric ignores case too."""
  if not alternatives or values == alternatives:
    return bool(alternatives)
  return not set(map(str.casefold, values)).isdisjoint(map(str.casefold, alternatives))


def value_spans(
  slot: int, context: FrameContext, gold: Gold, values: Sequence[str], by_user: bool
) -> list[Choice]:
  """Returns the spans of a value in an utterance: annotated ones, else text matches."""
  if annotated := _annotated(slot, context, gold, values, by_user):
    return annotated
  text = context.user if by_user else context.system
  matches: set[tuple[int, int]] = set()
  for value in values:
    matches.update(_occurrences(value, text))
  spans: list[Choice] = []
  # The longest first: "7" inside "7 pm" is not the value where "7 pm" is another form of it.
  for start, end in sorted(matches, key=lambda match: (match[0] - match[1], match)):
    if not any(span.start <= start and end <= span.end for span in spans):
      spans.append(Choice(SPAN, int(by_user), start, end))
  return spans


def _annotated(
  slot: int, context: FrameContext, gold: Gold, values: Sequence[str], by_user: bool
) -> list[Choice]:
  """Returns the annotated spans of a slot in an utterance whose text is one of its values."""
  text = context.user if by_user else context.system
  choices = []
  for span in gold.spans:
    is_of_slot = (span.slot, span.by_user) == (slot, by_user)
    if is_of_slot and _meet(values, [text[span.start : span.end]]):
      choices.append(Choice(SPAN, int(by_user), span.start, span.end))
  return choices


def _occurrences(value: str, text: str) -> Iterator[tuple[int, int]]:
  """Yields (start, end) of a value's words in a text, in any case."""
  # Few texts hold the value, and compiling its pattern takes longer than all else here.
  if value.isascii() and text.isascii() and value.lower() not in text.lower():
    return
  for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE):
    yield match.span()


def new_values(
  service: Service,
  context: FrameContext,
  values_before: Values,
  choices: Choices,
  answers: Mapping[int, Choice],
) -> dict[int, tuple[str, ...]]:
  """Returns this service's values after a frame.

  Slots that no intent requires or accepts are never filled: SGD's gold states fill them in none of
  228,659 frames.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    values_before: this service's values before the turn.
    choices: of the frame.
    answers: position of a slot -> its answer; a slot without one keeps its value, as does one whose
      answer refers to nothing in the frame.
  """
  values = dict(values_before)
  for position in service.tracked_slots:
    answer = answers.get(position, Choice(KEEP))
    if answer.kind == CLEAR:
      values.pop(position, None)
      continue
    text = answered_value(service.slots[position], position, context, choices, answer)
    if text:
      values[position] = (text,)
  return dict(sorted(values.items()))  # by position, whichever was filled first


def answered_value(
  slot: Slot, position: int, context: FrameContext, choices: Choices, answer: Choice
) -> str:
  """Returns the value that an answer names; "" if none.

  Args:
    slot: in the original schema.
    position: of the slot in the service.
    context, choices: of the frame.
    answer: for the slot.
  """
  if answer.kind == ANY:
    return DONTCARE
  if answer.kind == VALUE:
    possible = slot.possible_values
    return possible[answer.number] if answer.number < len(possible) else ""
  if answer.kind == SPAN:
    if slot.is_categorical:  # whose values are never spans in training
      return ""
    utterance = context.user if answer.number else context.system
    return utterance[answer.start : answer.end].strip()
  text = ""
  if answer.kind == SYSTEM:
    text = choices.system.get(position, ("",))[0]
  elif answer.kind == MEMORY and answer.number < len(choices.memory):
    text = choices.memory[answer.number].values[0]
  if slot.is_categorical:
    # What the system or another service calls it may differ in case from the possible value.
    matching = [v for v in slot.possible_values if v.casefold() == text.casefold()]
    return text if text in matching else (matching or [""])[0]
  return text
