"""Provenance of dialogue state values: where a value came from when it entered the state.

A value *enters* the state of a service in a user turn if its slot was not in that service's state
before, or if none of its old forms is among the new ones; another form of the same value ("7 pm"
after "19:00", where both are listed) does not enter. Its source is the first of these that holds:

  informed  an INFORM of the slot in this frame; where the user's turns of a dialogue have no
            actions, as in SGD's older files, a span of the slot in this frame
  accepted  the system has said this value, or its canonical form, for this slot before
  carried   it is a value in another service's state, else one that the system has said for
            another service: a coreference across services
  own       another slot of this service has had it before this turn
  unknown   none of these

A value keeps the source with which it entered for as long as it stays. No word heuristics are used:
CheckDST takes coreference from the annotation of MultiWOZ 2.3, which SGD does not have.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Set

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, Dialogue, Frame, Turn

INFORMED, ACCEPTED, CARRIED, OWN, UNKNOWN = "informed", "accepted", "carried", "own", "unknown"
SOURCES = (INFORMED, ACCEPTED, CARRIED, OWN, UNKNOWN)
LAST_TURN, EARLIER, FROM_STATE, FROM_SYSTEM = "last_turn", "earlier", "state", "system"
COUNTS = (  # of values that entered; of some sources by detail, too; then of frames
  *("entered", INFORMED),
  *(ACCEPTED, "accepted_last_turn", "accepted_earlier"),
  *(CARRIED, "carried_state", "carried_system"),
  *(OWN, UNKNOWN),
  *("accepted_frames", "carried_frames", "carried_slots", "carried_dialogues", "sticky_frames"),
)
_INFORM = "INFORM"


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
  """Where a value of a state comes from.

  Attributes:
    source: one of `SOURCES`.
    turn: index of the user turn at which it entered.
    detail: accepted: "last_turn" if the system turn just before said it, else "earlier"; carried:
      "state" if another service's state has it, else "system"; "" for other sources.
  """

  source: str
  turn: int
  detail: str = ""


Origins = Mapping[str, Origin]  # slot of a frame's state -> where its value comes from
# What the system has said so far: (service, slot) -> value or canonical value -> its newest turn.
_Said = dict[tuple[str, str], dict[str, int]]


def trace(dialogue: Dialogue) -> Iterator[tuple[int, Frame, Origins]]:
  """Yields every user frame of a dialogue with the origins of the values of its state.

  Args:
    dialogue: in any schema; its names are only compared with each other.

  Yields:
    (turn index over all turns, frame, origins), in the order of `Dialogue.user_frames`.
  """
  # Without acts of the user, most values would be of unknown source: a span counts as INFORM.
  every_turn = dataclasses.replace(dialogue, last_only=False)
  by_span = not any(frame.actions for _, frame in every_turn.user_frames())
  states: dict[str, Mapping[str, tuple[str, ...]]] = {}
  origins: dict[str, dict[str, Origin]] = {}
  system_said: _Said = {}
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == SYSTEM:
      _add_said(system_said, number, turn)
    if turn.speaker != USER:
      continue
    # Those of all frames first: a value can be carried within a turn that is about two services.
    states_after = dict(states)
    for frame in turn.frames:
      if frame.state is not None:
        states_after[frame.service] = frame.state.slot_values
    for frame in turn.frames:
      old_origins = origins.get(frame.service, {})
      old_state = states.get(frame.service, {})
      informed = _informed(frame, by_span)
      new_origins: dict[str, Origin] = {}
      for slot, values in states_after.get(frame.service, {}).items():
        forms = set(values)
        if slot in old_state and not forms.isdisjoint(old_state[slot]):  # it did not enter here
          new_origins[slot] = old_origins[slot]
        elif slot in informed:
          new_origins[slot] = Origin(INFORMED, number)
        else:
          new_origins[slot] = _origin(
            number, frame.service, slot, forms, system_said, states_after, old_state
          )
      origins[frame.service] = new_origins
      if dialogue.is_scored(number):
        yield number, frame, new_origins
    states = states_after


def trace_sticky(dialogue: Dialogue) -> Iterator[tuple[int, Frame, Origins, bool]]:
  """Like `trace`, and whether the dialogue has had a carried value so far.

  That may be in a frame that is not scored, as in a counterfactual dialogue.
  """
  sticky = False
  for turn, frame, origins in trace(dataclasses.replace(dialogue, last_only=False)):
    sticky = sticky or any(origin.source == CARRIED for origin in origins.values())
    if dialogue.is_scored(turn):
      yield turn, frame, origins, sticky


def count(dialogue: Dialogue) -> Counter[str]:
  """Counts values and frames of a dialogue by where the values come from; counts can be added.

  Returns:
    Counts by `COUNTS`, without those that are 0: `entered`, the values that entered a state; of
    these, each of `SOURCES`, with `accepted_last_turn`, `accepted_earlier`, `carried_state` and
    `carried_system`; `carried_frames`, `accepted_frames`: user frames whose state holds such a
    value; `carried_slots`: (frame, slot) pairs; `carried_dialogues`: dialogues with one;
    `sticky_frames`: frames from the first carried value of a dialogue on, which are those in
    which CheckDST would look for coreference.
  """
  counts = Counter()
  for turn, _, origins, sticky in trace_sticky(dialogue):
    sources = set()  # of all values that the frame holds
    for origin in origins.values():
      sources.add(origin.source)
      counts["carried_slots"] += origin.source == CARRIED
      if origin.turn == turn:  # it entered in this frame
        counts["entered"] += 1
        counts[origin.source] += 1
        if origin.detail:
          counts[f"{origin.source}_{origin.detail}"] += 1
    counts["carried_frames"] += CARRIED in sources
    counts["carried_dialogues"] |= CARRIED in sources
    counts["accepted_frames"] += ACCEPTED in sources
    counts["sticky_frames"] += sticky
  return +counts


def _add_said(said: _Said, number: int, turn: Turn) -> None:
  for frame in turn.frames:
    for action in frame.actions or ():
      # The newest turn counts: it decides whether the value is from the last one.
      turns = said.setdefault((frame.service, action.get("slot", "")), {})
      for value in (*action.get("values", ()), *action.get("canonical_values", ())):
        turns[value] = number


def _informed(frame: Frame, by_span: bool) -> Set[str]:
  if by_span:
    return {span["slot"] for span in frame.slots or ()}
  acts = frame.actions or ()
  return {action.get("slot", "") for action in acts if action.get("act") == _INFORM}


def _origin(
  number: int,
  service: str,
  slot: str,
  forms: Set[str],
  system_said: _Said,
  states: Mapping[str, Mapping[str, tuple[str, ...]]],
  old_state: Mapping[str, tuple[str, ...]],
) -> Origin:
  """Returns the origin of a value that enters at a user turn and was not informed.

  Args: states, of all services after this turn; old_state, of the service before it.
  """
  # The nearest source first: the system's offer for the slot, other services, other slots.
  turns = system_said.get((service, slot), {})
  if turns_said := [turns[form] for form in forms if form in turns]:
    return Origin(ACCEPTED, number, LAST_TURN if max(turns_said) == number - 1 else EARLIER)
  for other_service, state in states.items():
    all_values = itertools.chain.from_iterable(state.values())
    if other_service != service and not forms.isdisjoint(all_values):
      return Origin(CARRIED, number, FROM_STATE)
  for (other_service, _), turns in system_said.items():
    if other_service != service and not forms.isdisjoint(turns):
      return Origin(CARRIED, number, FROM_SYSTEM)
  for other_slot, values in old_state.items():
    if other_slot != slot and not forms.isdisjoint(values):
      return Origin(OWN, number)
  return Origin(UNKNOWN, number)
