"""Values that the system gave, read from its utterances where its acts are not annotated.

The model that tracks reads them, too: it gets the system's utterance alone, with all slots open,
and the values that it answers count as offered. `shipped/README.md` says what that is worth.
"""

import dataclasses
from collections.abc import Sequence

from sgdx_t5x.corpus.dialogue import SYSTEM, Dialogue, Frame, frame_id
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.records.turns import FrameContext
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_features import Example, SpanReader, read_choice
from sgdx_t5x.spandst.span_tracking import Answer
from sgdx_t5x.spandst.spandst import answered_value


def with_values(
  dialogues: Sequence[Dialogue], original: Schema, reader: SpanReader, answer: Answer
) -> list[Dialogue]:
  """Returns dialogues with acts in the system's turns: where there were none, OFFERs as read.

  Args:
    dialogues: in the names of `original`.
    original: schema of the split.
    reader: of the schema shown.
    answer: the model.
  """
  position = {name: i for i, name in enumerate(original.names)}
  contexts = {}  # (number of the dialogue, of the turn, service) -> what is read
  for i, dialogue in enumerate(dialogues):
    for number, turn in enumerate(dialogue.turns):
      for name in _unread(dialogue, number):
        frame = frame_id(dialogue.dialogue_id, number, name)
        context = FrameContext(frame, number + 1, position[name], turn.utterance, "", (), ())
        contexts[i, number, name] = context
  examples = [_with_all_slots_open(reader.example(x, {})) for x in contexts.values()]
  vectors = answer([example.features for example in examples])
  acts = {}
  for (key, context), example, vector in zip(contexts.items(), examples, vectors, strict=True):
    acts[key] = _offers(original, context, example, vector)
  complete = []
  for i, dialogue in enumerate(dialogues):
    turns = []
    for number, turn in enumerate(dialogue.turns):
      if names := _unread(dialogue, number):
        known = [frame for frame in turn.frames if frame.actions is not None]
        read = [Frame(name, actions=acts[i, number, name]) for name in names]
        turn = dataclasses.replace(turn, frames=(*known, *read))
      turns.append(turn)
    complete.append(dataclasses.replace(dialogue, turns=tuple(turns)))
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


def _with_all_slots_open(example: Example) -> Example:
  """Opens all slots: an address is in no state of its service, but may be carried to another's."""
  with_options = set(example.features["value_slots"])
  bits = []
  for number in range(1, len(example.slots) + 1):
    of_text = 0 if number in with_options else answers.SPAN_OPEN
    bits.append(answers.FILLABLE | of_text)
  return dataclasses.replace(example, features={**example.features, "slot_context": bits})


def _offers(
  original: Schema, context: FrameContext, example: Example, vector: Sequence[int]
) -> list[dict]:
  """Returns the values of an answer as acts in SGD's form."""
  slots, acts = original.services[context.service].slots, []
  for position, answer in zip(example.slots, answers.read_answer(vector).slots, strict=False):
    if answer.kind in (answers.SPAN, answers.VALUE):
      slot, choice = slots[position], read_choice(example, answer)
      if value := answered_value(slot, position, context, example.choices, choice):
        acts.append({"act": "OFFER", "slot": slot.name, "values": [value]})
  return acts
