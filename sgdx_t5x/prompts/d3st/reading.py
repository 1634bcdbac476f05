"""D3ST answers -> states. Nothing raises: text that makes no sense is a wrong answer."""

import re

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Slot
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.d3st.parts import Order, ServiceParts
from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.d3st.text import INTENTS, REQUESTS, STATES
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.values import NONE, choice_of_letter, matching_value

_SECTION = re.compile("|".join(map(re.escape, (INTENTS, REQUESTS))))
_MOST_DIGITS = 9  # of an index: Python refuses to convert thousands of them
_INTENT = re.compile(r"\bi([0-9]+)")
_INDEX = re.compile(r"[0-9]+")


def read_answer(
  text: str, pair: ServicePair, service_texts: ServiceParts, order: Order, style: D3stStyle
) -> PredictedFrame:
  """Returns the frame that an answer describes, in original names.

  Args:
    text: what a model generated.
    pair: the frame's service.
    service_texts, order: what the prompt showed of the service, and how.
    style: the prompt's style.

  Returns:
    The frame; `ignored` counts the indices that the prompt did not have.
  """
  slots = [pair.original.slots[service_texts.positions[number]] for number in order.slots]
  sections = _sections(text)
  values: dict[str, tuple[str, ...]] = {}
  answered = set()
  ignored = 0
  # Text before the first index belongs to none; then index and value alternate.
  pieces = re.split(rf"(?:^|\s)([0-9]+){re.escape(style.delimiter)}", sections[STATES])
  for index, answer in zip(pieces[1::2], pieces[2::2], strict=True):
    i = _number(index)
    if i >= len(slots):
      ignored += 1
    elif i not in answered:
      answered.add(i)
      value = _read_value(answer, i, slots[i], order.choices[i], style)
      if value is not None:
        values[slots[i].name] = (value,)
  if style.level == "states":
    return PredictedFrame(values, ignored=ignored)
  intents, requested = [], []
  for index in map(_number, _INTENT.findall(sections[INTENTS])):
    if index < len(order.intents):
      intents.append(pair.original.intents[order.intents[index]].name)
    else:
      ignored += 1
  for index in map(_number, _INDEX.findall(sections[REQUESTS])):
    if index < len(slots):
      requested.append(slots[index].name)
    else:
      ignored += 1
  intent = intents[0] if intents else NO_INTENT  # the first counts, as of values
  return PredictedFrame(values, intent, tuple(dict.fromkeys(requested)), ignored=ignored)


def _sections(text: str) -> dict[str, str]:
  """Returns what follows each tag's first occurrence, up to the next tag; "" for an absent tag.

  Without [states] the text itself begins with the state; what precedes [states] is ignored.
  """
  contents = {STATES: "", INTENTS: "", REQUESTS: ""}
  tag, remainder = STATES, text.partition(STATES)[2] if STATES in text else text
  tags = set()
  while tag:
    match = _SECTION.search(remainder)
    content, following = (remainder[: match.start()], match[0]) if match else (remainder, "")
    if tag not in tags:
      contents[tag] = content
    tags.add(tag)
    tag, remainder = following, remainder[match.end() :] if match else ""
  return contents


def _number(digits: str) -> int:
  """Returns an index as a number; a huge one, which no service has, for too many digits."""
  return int(digits[: _MOST_DIGITS + 1])


def _read_value(
  text: str, i: int, slot: Slot, choices: tuple[int, ...], style: D3stStyle
) -> str | None:
  """Returns a slot's value as the schema spells it; None where the slot is said to be inactive."""
  text = " ".join(text.split())
  first_value = text if style.join == "first" else f" {text} ".split(style.join)[0].strip()
  if not slot.is_categorical:  # of several gold values, the first
    text = first_value
  key = text.lower()
  if key in ("", NONE):
    # Without letters, a possible value "None" is written like this.
    may_be_value = key and slot.is_categorical and not choices
    return matching_value(text, slot.possible_values) if may_be_value else None
  if key == DONTCARE:
    return DONTCARE
  if not slot.is_categorical:
    return text
  if (letter := choice_of_letter(key.removeprefix(str(i)), len(choices))) is not None:
    return slot.possible_values[choices[letter]]
  # A possible value may hold the separator, so that it is looked for first.
  matches = (matching_value(candidate, slot.possible_values) for candidate in (text, first_value))
  return next(filter(None, matches), text)
