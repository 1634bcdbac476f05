"""The system's acts, read from its utterances where they are not annotated.

The tracker's own network gets the system's utterance as if the user had said it, and `act_reader`
reads its hidden states. `shipped/README.md` says what that is worth.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import SYSTEM, Dialogue, Frame, frame_id
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import SYSTEM_ACTS, FrameContext
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.act_reader import SlotAct
from sgdx_t5x.spandst.span_features import Example, SpanReader
from sgdx_t5x.spandst.span_targets import read_choice
from sgdx_t5x.spandst.spandst import answered_value

ReadActs = Callable[[Sequence[Any]], list[list[SlotAct]]]  # the features of frames -> their acts


def with_acts(
  dialogues: Sequence[Dialogue], original: Schema, reader: SpanReader, read: ReadActs
) -> list[Dialogue]:
  """Returns dialogues with acts in the system's turns: as read, where there were none.

  Args:
    dialogues: in the names of `original`.
    original: schema of the split.
    reader: of the schema shown.
    read: an `ActReader`.
  """
  contexts = {}  # (number of the dialogue, of the turn, service) -> what is read
  for i, dialogue in enumerate(dialogues):
    for number in range(len(dialogue.turns)):
      for name in _unread(dialogue, number):
        contexts[i, number, name] = system_context(dialogue, number, name, original)
  examples = [system_example(reader, context) for context in contexts.values()]
  slot_acts = read([example.features for example in examples])
  acts = {}
  for (key, context), example, found in zip(contexts.items(), examples, slot_acts, strict=True):
    acts[key] = as_annotated(original, context, example, found)
  complete = []
  for i, dialogue in enumerate(dialogues):
    all_turns = []
    for number, turn in enumerate(dialogue.turns):
      if names := _unread(dialogue, number):
        known = [frame for frame in turn.frames if frame.actions is not None]
        found_frames = [Frame(name, actions=acts[i, number, name]) for name in names]
        turn = dataclasses.replace(turn, frames=(*known, *found_frames))
      all_turns.append(turn)
    complete.append(dataclasses.replace(dialogue, turns=tuple(all_turns)))
  return complete


def _unread(dialogue: Dialogue, number: int) -> list[str]:
  """Returns the services whose acts in a turn are not known.

  None in a turn of the user, nor in the last one, which nobody answers. A system turn without
  frames is about the services of the user turn before it.
  """
  turn = dialogue.turns[number]
  if turn.speaker != SYSTEM or not turn.utterance or number + 1 == len(dialogue.turns):
    return []
  if not turn.frames and number:
    return [frame.service for frame in dialogue.turns[number - 1].frames]
  return [frame.service for frame in turn.frames if frame.actions is None]


def system_context(dialogue: Dialogue, number: int, service: str, original: Schema) -> FrameContext:
  """Returns a system turn as if the user spoke. Args: dialogue; number of the turn; service."""
  frame, position = frame_id(dialogue.dialogue_id, number, service), original.names.index(service)
  return FrameContext(frame, number, position, "", dialogue.turns[number].utterance, (), ())


def system_example(reader: SpanReader, context: FrameContext) -> Example:
  """Returns its example with all slots open: an address, which no state has, may be offered."""
  example = reader.example(context, {})
  with_options = set(example.features["value_slots"])
  bits = []
  for number in range(1, len(example.slots) + 1):
    of_text = 0 if number in with_options else answers.SPAN_OPEN
    bits.append(answers.FILLABLE | of_text)
  return dataclasses.replace(example, features={**example.features, "slot_context": bits})


def as_annotated(
  original: Schema, context: FrameContext, example: Example, found: Sequence[SlotAct]
) -> list[dict]:
  """Returns acts in SGD's form. Args: found, an act for each slot shown."""
  slots, acts = original.services[context.service].slots, []
  _, _, start = example.user
  for position, act in zip(example.slots, found, strict=True):
    if act.act == turns.NONE:
      continue
    name, slot = SYSTEM_ACTS[act.act], slots[position]
    if act.act == turns.REQUEST:
      acts.append({"act": name, "slot": slot.name, "values": []})
      continue
    kind, first = (answers.VALUE, act.value) if act.value else (answers.SPAN, start + act.first)
    answer = answers.SlotAnswer(kind, first, start + act.last, 1.0, 0.0, 0.0)
    choice = read_choice(example, answer)
    if value := answered_value(slot, position, context, example.choices, choice):
      acts.append({"act": name, "slot": slot.name, "values": [value]})
  return acts
