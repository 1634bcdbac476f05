"""What is done in a dialogue, before any words: the acts of two agents who take turns.

After the SGD paper (section 3.2): the user has a scenario and a goal, the system has the
services, and neither sees the other's. What both know, because it was said, is `Ground`.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.dialogue import SYSTEM, USER
from sgdx_t5x.schema import NO_INTENT
from sgdx_t5x.simulator.scenarios import Link, Scenario
from sgdx_t5x.simulator.tables import Backend
from sgdx_t5x.simulator.transitions import Transitions

MAX_TURNS = 100  # only transitions that hardly lead to a goodbye get so far
ENOUGH = "ENOUGH"  # the situation of a user who has talked so long


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
class Ground:
  """What was said, and so both sides know; by service name.

  Attributes:
    state: slot -> canonical value that the user wants.
    told: slot -> canonical value that the system told of the result being talked about.
    intent: the active intent, or NONE.
    offers_left: results that the system has not offered yet. A user cannot know it; ours asks
      for alternatives mostly where there are some, as people who know the town would.
  """

  state: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  told: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
  intent: dict[str, str] = dataclasses.field(default_factory=dict)
  offers_left: int = 0

  def take_up(self, service: str) -> None:
    """Makes room for a service that has not been talked about."""
    if service not in self.state:
      self.state[service], self.told[service], self.intent[service] = {}, {}, NO_INTENT


def outline(
  scenario: Scenario, backends: Mapping[str, Backend], transitions: Transitions, rng: random.Random
) -> list[TurnOutline]:
  """Draws the acts of one dialogue.

  Args:
    scenario: what the user has in mind.
    backends: the services, by name.
    transitions: the automaton.
    rng: the only source of chance.

  Returns:
    Turns that alternate, the user's first; the system says goodbye last.
  """
  from sgdx_t5x.simulator.system import System  # both agents speak in this module's terms
  from sgdx_t5x.simulator.user import User

  ground = Ground()
  user = User(scenario, backends, transitions, rng, ground)
  system = System(backends, transitions, rng, ground)
  turns: list[TurnOutline] = []
  situation, heard = "START", ()
  while situation != "GOODBYE":
    if len(turns) >= MAX_TURNS - 2:
      situation = ENOUGH
    frames = user.turn(situation, heard)
    turns.append(TurnOutline(USER, frames))
    frame = system.turn(frames)
    turns.append(TurnOutline(SYSTEM, (frame,)))
    heard = frame.acts
    situation = _situation(heard, situation)
  return turns


def _situation(heard: Sequence[Act], before: str) -> str:
  """What a user answers to; a mere answer to a question leaves it as it was."""
  acts = {act.act for act in heard}
  if "NOTIFY_FAILURE" in acts:
    return "ALTERNATIVE" if "OFFER" in acts else "NOTIFY_FAILURE"
  for act in ("GOODBYE", "NOTIFY_SUCCESS", "REQ_MORE", "OFFER_INTENT", "CONFIRM", "OFFER"):
    if act in acts:
      return act
  return "REQUEST" if "REQUEST" in acts else before
