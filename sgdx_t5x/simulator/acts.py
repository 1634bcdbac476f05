"""What both agents speak in: acts, turns of acts, and what was said so far."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.data.schema import NO_INTENT
from sgdx_t5x.simulator.scenarios import Link


class Act(NamedTuple):
  """One dialogue act; `values` are canonical."""

  act: str
  slot: str = ""
  values: tuple[str, ...] = ()


class FrameOutline(NamedTuple):
  """One service's part of a turn.

  Attributes:
    service: its name.
    acts: in the order in which they are said.
    intent: the active intent after a user turn, or NONE; "" in a system turn.
    values: the state after a user turn, canonical.
    carried: links that brought values of other slots into the state in this turn.
    call: (intent, parameters) that the system called the service with, or None.
    results: what came back.
  """

  service: str
  acts: Sequence[Act]
  intent: str = ""
  values: Mapping[str, str] = {}
  carried: Sequence[Link] = ()
  call: tuple[str, Mapping[str, str]] | None = None
  results: Sequence[Mapping[str, str]] = ()


class TurnOutline(NamedTuple):
  """One turn; USER turns may have two frames: of the service left and the service taken up."""

  speaker: str
  frames: Sequence[FrameOutline]


@dataclasses.dataclass
class CommonGround:
  """What was said, and so both sides know; by service name.

  Attributes:
    state: slot -> canonical value that the user wants.
    mentioned: slot -> canonical value that the system has mentioned of the result under discussion.
    intent: the active intent, or NONE.
    offers_left: results that the system has not offered yet. A user cannot know it; ours asks
      for alternatives mostly where there are some, as people who know the town would.
  """

  state: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  mentioned: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  intent: dict[str, str] = dataclasses.field(default_factory=dict)
  offers_left: int = 0

  def take_up(self, service: str) -> None:
    """Makes room for a service that has not been talked about."""
    if service not in self.state:
      self.state[service], self.mentioned[service], self.intent[service] = {}, {}, NO_INTENT
