"""What a tracker may know about a frame and, kept separate, the labels it is to predict.

A tracker may know what was said, what the system itself did (its acts, which SGD annotates), and
what the tracker predicted in earlier turns. Services, slots and intents are identified by their
position in the split's schema, so that a variant of the schema changes nothing here.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.corpus.dialogue import ACTS, EMPTY_STATE, SYSTEM, USER, Dialogue, Frame, frame_id
from sgdx_t5x.corpus.schema import NO_INTENT, Schema, Service
from sgdx_t5x.errors import SgdxError

# The system's acts in the order of their numbers in records; append new ones.
SYSTEM_ACTS = tuple(ACTS[SYSTEM])
INFORM, REQUEST, CONFIRM, OFFER, NOTIFY_SUCCESS, NOTIFY_FAILURE = range(6)
OFFER_INTENT = SYSTEM_ACTS.index("OFFER_INTENT")
NONE = -1  # position of the intent NONE, and of the slot of an act that names none


class Act(NamedTuple):
  """Something the system did.

  Attributes:
    turn: of the dialogue, counting all turns.
    service: position in the schema.
    act: number in `SYSTEM_ACTS`.
    slot: position in the service; for OFFER_INTENT the intent's; NONE for an act without one.
    values: as the system put them; () for OFFER_INTENT.
  """

  turn: int
  service: int
  act: int
  slot: int
  values: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FrameContext:
  """What a tracker may know about a user frame from the dialogue itself.

  Attributes:
    frame_id: see `dialogue.frame_id`.
    turn: of the dialogue, counting all turns.
    service: position in the schema.
    system: what the system said last; "" in the first turn.
    user: what the user says.
    acts: of the system in all earlier turns, about all services, oldest first.
    turn_services: positions of the services that have a frame in this turn, in its order.
  """

  frame_id: str
  turn: int
  service: int
  system: str
  user: str
  acts: tuple[Act, ...]
  turn_services: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceState:
  """The state of a service after its last user frame: gold in training, else predicted.

  Attributes:
    turn: of that frame.
    intent: position of the active intent, or NONE.
    values: position of a slot -> alternative values, of which a tracker predicts one.
  """

  turn: int
  intent: int
  values: Mapping[int, tuple[str, ...]]


States = Mapping[int, ServiceState]  # position of a service -> its state before a turn


class Span(NamedTuple):
  """A value in one of the last two utterances.

  Attributes:
    slot: position in the frame's service.
    by_user: whether it is in the user's utterance; else it is in the system's before it.
    start: start character.
    end: end character (exclusive).
  """

  slot: int
  by_user: bool
  start: int
  end: int


@dataclasses.dataclass(frozen=True, slots=True)
class Gold:
  """The labels that a tracker is to predict for a frame.

  Attributes:
    intent: position of the active intent, or NONE.
    requested: positions of the slots that the user requests.
    values: position of a slot -> acceptable values.
    spans: annotated values of this service in the last two utterances.
  """

  intent: int
  requested: tuple[int, ...]
  values: Mapping[int, tuple[str, ...]]
  spans: tuple[Span, ...]

  def state(self, turn: int) -> ServiceState:
    """Returns the gold state after this frame. Args: turn of the frame."""
    return ServiceState(turn, self.intent, self.values)


def user_turns(dialogue: Dialogue, schema: Schema) -> Iterator[list[FrameContext]]:
  """Yields the contexts of the frames of each user turn, in order.

  Args:
    dialogue: in the names of `schema`; its gold states are not read.
    schema: of the split.
  """
  position = {name: i for i, name in enumerate(schema.names)}
  acts: list[Act] = []
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker != USER:
      for frame in turn.frames:
        for act in _acts(number, frame, schema, position[frame.service]):
          add_act(acts, act)
      continue
    system_utterance = dialogue.turns[number - 1].utterance if number else ""
    services = tuple(position[frame.service] for frame in turn.frames)
    past_acts = tuple(acts)  # to which later turns add
    contexts = []
    for frame, service in zip(turn.frames, services, strict=True):
      name = frame_id(dialogue.dialogue_id, number, frame.service)
      contexts.append(
        FrameContext(name, number, service, system_utterance, turn.utterance, past_acts, services)
      )
    yield contexts


def add_act(acts: list[Act], act: Act) -> None:
  """Appends an act to `acts`; one like the last act only adds its values to that.

  Records have a row per value, so that two such acts cannot be told from one with both values.
  """
  if act.values and acts and acts[-1][:4] == act[:4]:
    act = act._replace(values=acts.pop().values + act.values)
  acts.append(act)


def gold_turns(dialogue: Dialogue, schema: Schema) -> Iterator[list[Gold]]:
  """Yields the labels of the frames of each user turn, in the order of `user_turns`."""
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == USER:
      previous_frames = dialogue.turns[number - 1].frames if number else ()
      yield [_gold(frame, previous_frames, schema[frame.service]) for frame in turn.frames]


def gold_history(dialogue: Dialogue, schema: Schema) -> Iterator[tuple[FrameContext, Gold, States]]:
  """Yields the context of each user frame, its labels, and gold states before it."""
  states: States = {}
  turns = zip(user_turns(dialogue, schema), gold_turns(dialogue, schema), strict=True)
  for contexts, gold in turns:
    states_after = {}
    for context, frame_gold in zip(contexts, gold, strict=True):
      yield context, frame_gold, states
      states_after[context.service] = frame_gold.state(context.turn)
    states = {**states, **states_after}  # of all frames at once: none sees the labels of another


def without_acts(dialogue: Dialogue) -> int | None:
  """Returns the first system turn whose acts are not annotated, or None if all are."""
  for number, turn in enumerate(dialogue.turns):
    # The acts of a turn without a frame are missing, too.
    annotated = turn.frames and all(frame.actions is not None for frame in turn.frames)
    if turn.speaker == SYSTEM and not annotated:
      return number
  return None


def without_spans(dialogue: Dialogue) -> int | None:
  """Returns the first user turn without annotated spans (`slots`), or None if all have them."""
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == USER and any(frame.slots is None for frame in turn.frames):
      return number
  return None


def check_acts(dialogue: Dialogue, origin: str, tracker: str) -> None:
  """Rejects a dialogue whose system acts are not annotated.

  Args:
    dialogue: to be tracked.
    origin: where it is from, for the error.
    tracker: name of the tracker that needs the acts, for the error.

  Raises:
    SgdxError: a system turn has no frame, or one without `actions`.
  """
  if (turn := without_acts(dialogue)) is not None:
    raise no_acts(f"{origin}, dialogue {dialogue.dialogue_id}, turn {turn}", tracker)


def no_acts(place: str, tracker: str) -> SgdxError:
  """Returns the error for dialogues without acts. Args: where the first missing one is."""
  return SgdxError(
    f"{place}: the system's acts are not annotated",
    expected=f"`actions` in the frames of every system turn, an empty list if it has none: "
    f"{tracker} reads the values that the system offered, confirmed and informed",
    available="trackers that need only the utterances: the SpanDST that ships, T5DST, D3ST and SDT",
    fix='add the acts, for example {"act": "OFFER", "slot": "city", "values": ["Fresno"]}, or use '
    "one of those trackers",
  )


def no_spans(place: str, tracker: str) -> SgdxError:
  """Returns the error for dialogues to train on without spans. Args: where one is missing."""
  return SgdxError(
    f"{place}: the spans of values in the utterance are not annotated",
    expected=f"`slots` in the frames of every user turn, an empty list if it has none: {tracker} "
    "is trained to locate non-categorical values in the utterance",
    available="tasks of T5DST, D3ST, SDT and SpanDST, which do not need spans",
    fix='add the spans, for example {"slot": "city", "start": 8, "exclusive_end": 14}, or use one '
    "of those trackers",
  )


def _acts(turn: int, frame: Frame, schema: Schema, position: int) -> Iterator[Act]:
  service = schema[frame.service]
  for action in frame.actions or ():
    name, values = action.get("act"), tuple(action.get("values", ()))
    if name not in SYSTEM_ACTS:
      continue  # of a corpus with custom acts, which no tracker here reads
    number, slot = SYSTEM_ACTS.index(name), action.get("slot", "")
    if number == OFFER_INTENT:
      yield Act(turn, position, number, _intent(service, values[0] if values else NO_INTENT))
    elif slot in service.slot_index and name != "INFORM_COUNT":  # whose "count" is no slot
      yield Act(turn, position, number, service.slot_index[slot], values)
    else:
      yield Act(turn, position, number, NONE)


def _intent(service: Service, name: str) -> int:
  return service.intent_index.get(name, NONE)


def _gold(frame: Frame, previous_frames: Sequence[Frame], service: Service) -> Gold:
  state, index = frame.state or EMPTY_STATE, service.slot_index
  # A value may be said by the user, or taken over from what the system said just before.
  spans = list(spans_of(frame, service, by_user=True))
  for previous in previous_frames:
    if previous.service == frame.service:
      spans += spans_of(previous, service, by_user=False)
  return Gold(
    _intent(service, state.active_intent),
    tuple(index[name] for name in state.requested_slots),
    {index[name]: values for name, values in state.slot_values.items()},
    tuple(spans),
  )


def spans_of(frame: Frame, service: Service, by_user: bool) -> Iterator[Span]:
  """Yields the values that a frame annotates. Args: by_user, see `Span`."""
  for span in frame.slots or ():
    if span["slot"] in service.slot_index:  # a corpus may mark what its schema has no slot for
      slot = service.slot_index[span["slot"]]
      yield Span(slot, by_user, span["start"], span["exclusive_end"])
