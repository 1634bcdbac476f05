"""The agents' language: acts, turns of acts, and what was said so far."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT
from sgdx_t5x.papers.simulator.scenarios import Link


class Act(NamedTuple):
  """One dialogue act; `values` are canonical."""

  act: str
  slot: str = ""
  values: tuple[str, ...] = ()


def slots_of(acts: Iterable[Act], kind: str) -> list[str]:
  """Returns the slots of the acts of a kind."""
  return [act.slot for act in acts if act.act == kind]


def definite(values: Mapping[str, str]) -> dict[str, str]:
  """Returns slot -> value for the values that matter to the user."""
  return {slot: value for slot, value in values.items() if value != DONTCARE}


class FrameOutline(NamedTuple):
  """One service's part of a turn.

  Attributes:
    service: its name.
    acts: in utterance order.
    intent: the active intent after a user turn, or NONE; "" in a system turn.
    values: the state after a user turn, canonical.
    carried: links that carried values of other slots into the state in this turn.
    call: (intent, parameters) of the system's service call, or None.
    results: the results of the call.
  """

  service: str
  acts: Sequence[Act]
  intent: str = ""
  values: Mapping[str, str] = {}
  carried: Sequence[Link] = ()
  call: tuple[str, Mapping[str, str]] | None = None
  results: Sequence[Mapping[str, str]] = ()


class TurnOutline(NamedTuple):
  """One turn; USER turns may have two frames, when the user switches from a service to another."""

  speaker: str
  frames: Sequence[FrameOutline]


@dataclasses.dataclass
class CommonGround:
  """What was said, so that both sides know it; by service name.

  Attributes:
    state: slot -> canonical value that the user wants.
    mentioned: slot -> canonical value that the system has mentioned of the current result.
    intent: the active intent, or NONE.
    offers_left: number of results that the system has not offered yet. A user cannot know it;
      ours asks for alternatives mostly if there are some, as people who know the town would.
  """

  state: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  mentioned: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  intent: dict[str, str] = dataclasses.field(default_factory=dict)
  offers_left: int = 0

  def take_up(self, service: str) -> None:
    """Initializes a service that has not been mentioned yet."""
    if service not in self.state:
      self.state[service], self.mentioned[service], self.intent[service] = {}, {}, NO_INTENT
