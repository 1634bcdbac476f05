"""What the system did, read from its utterance by SpanDST itself, where no acts are annotated.

The model gets the system's utterance alone, without the user's, and all slots open. It answers
which values the utterance gives (a span or a possible value), which slots it asks for (REQUESTED,
as for those that the user asks for) and which intent it offers. Of SGD's acts this tells four
apart: a value is an OFFER, or a CONFIRM if it is asked for, too; what is asked for without one is a
REQUEST. INFORM is read as OFFER; success and failure are not read.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from sgdx_t5x.corpus.dialogue import SYSTEM, Dialogue, Frame, frame_id
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.records.turns import (
  CONFIRM,
  NONE,
  OFFER,
  OFFER_INTENT,
  REQUEST,
  SYSTEM_ACTS,
  Act,
  FrameContext,
  Gold,
)
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.choices import GIVING
from sgdx_t5x.spandst.span_features import Example, SpanReader, read_choice
from sgdx_t5x.spandst.span_tracking import Answer
from sgdx_t5x.spandst.spandst import Choice, given_value, right_spans

_ASKED = 0.5  # probability above which a slot counts as asked for


def example_of(reader: SpanReader, context: FrameContext, shuffle: str | None = None) -> Example:
  """Returns the example of the system's utterance before a user turn.

  Args:
    reader: of the schema shown.
    context: of a frame of the user turn; what the user says is not read.
    shuffle: see `SpanReader.example`.
  """
  example = reader.example(dataclasses.replace(context, user="", acts=()), {}, shuffle)
  features = example.features
  valued = set(features["value_slots"])
  features["slot_context"] = []
  for number in range(1, len(example.slots) + 1):
    # Of all slots: an address is never in this service's state, but may be carried to another's.
    of_text = 0 if number in valued else answers.SPAN_OPEN
    features["slot_context"].append(answers.FILLABLE | of_text)
  return example


def labels_of(
  service: Service, context: FrameContext, gold: Gold
) -> tuple[dict[int, Sequence[Choice]], Gold]:
  """Returns the right answers for the system's utterance, and its other labels.

  Args:
    service: the frame's, in the original schema.
    context: of the user frame after it, with annotated acts.
    gold: of that frame; its spans of the system's values are read.
  """
  labels: dict[int, Sequence[Choice]] = {}
  asked, intent = [], NONE
  for act in as_read(context.acts):
    if (act.turn, act.service) != (context.turn - 1, context.service):
      continue
    if act.act == OFFER_INTENT:
      intent = act.slot
      continue
    if act.act in (REQUEST, CONFIRM):
      asked.append(act.slot)
    if act.act in (OFFER, CONFIRM):
      slot = service.slots[act.slot]
      if slot.is_categorical:
        folded = [value.casefold() for value in slot.possible_values]
        places = [i for i, value in enumerate(folded) if value == act.values[0].casefold()]
        labels[act.slot] = [Choice(answers.VALUE, place) for place in places]
      else:
        labels[act.slot] = right_spans(act.slot, context, gold, act.values, by_user=False)
  return labels, Gold(intent, tuple(asked), {}, ())


def as_read(acts: Sequence[Act]) -> tuple[Act, ...]:
  """Returns annotated acts as they would be read from the utterances."""
  read = []
  for act in acts:
    if act.act in GIVING and act.slot != NONE and len(act.values) == 1:
      read.append(act._replace(act=CONFIRM if act.act == CONFIRM else OFFER))
    elif act.act == OFFER_INTENT or (act.act == REQUEST and act.slot != NONE):
      read.append(act._replace(values=()))
  return tuple(read)


def read_acts(
  service: Service, context: FrameContext, example: Example, vector: Sequence[int]
) -> Iterator[dict]:
  """Yields the acts of an answer, in SGD's form.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    example: from `example_of`.
    vector: what the model answered.
  """
  answer = answers.read_answer(vector)
  for position, slot_answer in zip(example.slots, answer.slots, strict=False):
    slot, asked = service.slots[position], slot_answer.requested > _ASKED
    choice, value = read_choice(example, slot_answer), ""
    if choice.kind in (answers.SPAN, answers.VALUE):
      value = given_value(slot, position, context, example.choices, choice)
    if value:
      kind = CONFIRM if asked else OFFER
      yield {"act": SYSTEM_ACTS[kind], "slot": slot.name, "values": [value]}
    elif asked:
      yield {"act": SYSTEM_ACTS[REQUEST], "slot": slot.name, "values": []}
  if 1 <= answer.intent <= len(example.intents):
    intent = service.intents[example.intents[answer.intent - 1]].name
    yield {"act": SYSTEM_ACTS[OFFER_INTENT], "slot": "intent", "values": [intent]}


def with_acts(
  dialogues: Sequence[Dialogue], original: Schema, reader: SpanReader, answer: Answer
) -> list[Dialogue]:
  """Returns dialogues with the acts of system turns, read where none are annotated.

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
  examples = [example_of(reader, context) for context in contexts.values()]
  vectors = answer([example.features for example in examples])
  acts = {}
  for (key, context), example, vector in zip(contexts.items(), examples, vectors, strict=True):
    service = original.services[context.service]
    acts[key] = list(read_acts(service, context, example, vector))
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
