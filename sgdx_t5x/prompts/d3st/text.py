"""D3ST as a prompt format: one example per frame; its prompts, targets and answers.

  0=date of the crossing 1=type of ticket 1a) car 1b) foot i0=book a crossing [user] i have a car
  [states] 1=1a [intents] i0 [req_slots]

Description-Driven Task-Oriented Dialog (Zhao et al. 2022, arXiv 2201.08904): indices stand for
slots and intents, so that the model never sees or writes a name. The text is that of the authors'
create_sgd_schemaless_data.py (google-research/task-oriented-dialogue).
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sgdx_t5x.corpus.dialogue import USER, Dialogue, Frame, State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.d3st.style import (
  D3stStyle,
  Order,
  ServiceParts,
  after_delimiter,
  frame_order,
  service_parts,
  shown_choices,
)
from sgdx_t5x.prompts.protocol import History, Prompt, ServicePair, turn_writer
from sgdx_t5x.prompts.values import LETTERS, NONE, choice_of_letter, matching_value

if TYPE_CHECKING:
  import tensorflow as tf

STATES, INTENTS, REQUESTS = "[states]", "[intents]", "[req_slots]"
_SECTION = re.compile(f"({re.escape(INTENTS)}|{re.escape(REQUESTS)})")
_MOST_DIGITS = 9  # of an index: Python refuses to convert thousands of them
_INTENT = re.compile(r"\bi([0-9]+)")
_INDEX = re.compile(r"[0-9]+")


@dataclasses.dataclass(frozen=True)
class D3ST(TextExamples):
  """One example per frame: descriptions with indices, the history; values by index."""

  style: D3stStyle = dataclasses.field(default_factory=D3stStyle)
  name: ClassVar[str] = "d3st"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = (
    'the state by index, as in "[states] 0=9 am 2=2b [intents] i1 [req_slots] 3"'
  )

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The service, then the history."""
    turns = turn_writer(utterance_text, self.style)(history)
    return [Prompt(turns, before=prefix_parts(*self._shown(frame, service), self.style))]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """Values, intent and requested slots by index."""
    return [target_text(service.original, state, *self._shown(frame, service), self.style)]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> PredictedFrame:
    """What the answer says, in original names."""
    return read_answer(text, service, *self._shown(example, service), self.style)

  def _shown(self, frame: ExampleId, service: ServicePair) -> tuple[ServiceParts, Order]:
    shown_parts = service_parts(service, self.style)
    return shown_parts, frame_order(frame, shown_parts, self.style)

  def shown_frames(self, dialogue: Dialogue) -> Iterator[tuple[int, Frame]]:
    """Yields (turn, frame) of a dialogue as prompts and targets show them.

    Each user frame with its own state, unless the style repeats the defects of Google's script,
    which need the frames before and beside it: see `D3stStyle.frames` and `cumulate`.
    """
    # service -> all that its states have held
    values_so_far: dict[str, dict[str, tuple[str, ...]]] = {}
    by_turn: dict[int, list[Frame]] = {}
    # Of all turns, scored or not: states accumulate from the first.
    for turn, frame in dataclasses.replace(dialogue, last_only=False).user_frames():
      if self.style.cumulate:
        of_service = values_so_far.setdefault(frame.service, {})
        of_service.update(frame.user_state.slot_values)
        state = dataclasses.replace(frame.user_state, slot_values=dict(of_service))
        frame = dataclasses.replace(frame, state=state)
      by_turn.setdefault(turn, []).append(frame)
    for turn, frames in by_turn.items():
      for frame in frames if dialogue.is_scored(turn) else ():
        yield turn, frames[-1] if self.style.frames == "last" else frame

  def examples(self, *args: Any, **settings: Any) -> "tf.data.Dataset":
    """See `text_examples.text_examples`. Raises SgdxError for a style with Google's defects."""
    if self.style.frames != "each" or self.style.cumulate:
      raise SgdxError(
        f"a task with frames={self.style.frames} and cumulate={self.style.cumulate}",
        expected="frames=each and cumulate=false: a record holds one frame and its state",
        fix="write such examples with `sgdx prompts --targets`, to compare texts only",
      )
    return super().examples(*args, **settings)


def utterance_text(speaker: str, utterance: str, style: D3stStyle) -> str:
  """Returns one turn of the history."""
  text = " ".join(("[user]" if speaker == USER else "[system]", *utterance.split()))
  return text.lower() if style.lowercase else text


def prefix_parts(service_texts: ServiceParts, order: Order, style: D3stStyle) -> tuple[str, ...]:
  """Returns what precedes the history, to be joined by spaces: slots, their choices, intents."""
  pieces = []
  for i, (slot, choices) in enumerate(zip(order.slots, order.choices, strict=True)):
    pieces.append(f"{i}{style.delimiter}{service_texts.slots[slot]}")
    number = i if style.values == "1a" else ""
    for letter, value in zip(LETTERS, choices, strict=False):
      pieces.append(f"{number}{letter}{service_texts.choices[slot][value]}")
  for j, intent in enumerate(order.intents):
    pieces.append(f"i{j}{style.delimiter}{service_texts.intents[intent]}")
  return tuple(pieces)


def target_text(
  service: Service, state: State, service_texts: ServiceParts, order: Order, style: D3stStyle
) -> str:
  """Returns the target. Args: service, the original one; state, the gold one in its names."""
  pieces = [STATES]
  for i, number in enumerate(order.slots):
    slot = service_texts.originals[number]
    if any(values := state.slot_values.get(slot.name, ())):  # not only ""
      answer = _value_text(slot, values, i, order.choices[i], style)
      pieces.append(f"{i}{style.delimiter}{answer}")
  if style.level != "states":
    pieces.append(INTENTS)
    active = service.intent_index.get(state.active_intent)
    if active is not None:
      sign = style.delimiter[:-1]  # Google's script drops one character of it
      pieces.append(f"i{order.intents.index(active)}{sign}")
    pieces.append(REQUESTS)
    if state.requested_slots:
      originals = service_texts.originals
      requested = {originals[number].name: str(i) for i, number in enumerate(order.slots)}
      pieces += [requested[name] for name in state.requested_slots if name in requested]
  return " ".join(pieces)


def _value_text(
  slot: Slot, values: Sequence[str], i: int, choices: Sequence[int], style: D3stStyle
) -> str:
  """Returns gold values as targets write them. Args: i, the slot's index; choices, their order."""
  value = values[0]
  if choices and value != DONTCARE and value in slot.possible_values:
    return f"{i}{LETTERS[choices.index(shown_choices(slot, style).index(value))]}"
  if choices or style.join == "first":
    return after_delimiter(value, style)
  return after_delimiter(style.join.join(values), style)


def read_answer(
  text: str, pair: ServicePair, service_texts: ServiceParts, order: Order, style: D3stStyle
) -> PredictedFrame:
  """Returns the frame that an answer describes, in original names. It never raises.

  The service's texts and their order are those of the prompt. `ignored` of the frame counts the
  indices that the prompt did not have.
  """
  slots = [service_texts.originals[number] for number in order.slots]
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
  state, *pieces = _SECTION.split(text.partition(STATES)[2] if STATES in text else text)
  contents = {STATES: state, INTENTS: "", REQUESTS: ""}
  # Then tags and contents alternate; backwards, so that a tag's first occurrence counts.
  for tag, content in reversed([*zip(pieces[::2], pieces[1::2], strict=True)]):
    contents[tag] = content
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
