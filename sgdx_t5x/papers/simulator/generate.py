"""Seeded dialogues: the n-th dialogue for a seed is always the same.

After the SGD paper (section 3.2), the acts of two agents who take turns come first: the user has a
scenario and a goal, the system has the services, and neither sees the other's. What both know from
the dialogue is `CommonGround`. Words are found afterwards.
"""

import dataclasses
import functools
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.simulator.acts import Act, CommonGround, TurnOutline
from sgdx_t5x.papers.simulator.backend import Backend, ServiceTable
from sgdx_t5x.papers.simulator.scenarios import Scenario
from sgdx_t5x.papers.simulator.surface import Surface
from sgdx_t5x.papers.simulator.system import System
from sgdx_t5x.papers.simulator.templates import Words
from sgdx_t5x.papers.simulator.transitions import Transitions, Weighted
from sgdx_t5x.papers.simulator.user import ENOUGH, User


@dataclasses.dataclass(frozen=True)
class Simulation:
  """Everything that dialogues are made from; validated.

  Attributes:
    schema: the services.
    tables: service name -> table, for the services in scenarios.
    scenarios: the users' scenarios.
    words: service name -> words, for the same services.
    transitions: the automaton of both agents.
  """

  schema: Schema
  tables: Mapping[str, ServiceTable]
  scenarios: Sequence[Scenario]
  words: Mapping[str, Words]
  transitions: Transitions

  @functools.cached_property
  def backends(self) -> Mapping[str, Backend]:
    """The services with their tables."""
    return {name: Backend(self.schema[name], table) for name, table in self.tables.items()}

  @functools.cached_property
  def draw(self) -> Weighted:
    """Draws the index of a scenario by weight."""
    return Weighted({i: scenario.weight for i, scenario in enumerate(self.scenarios)})


def simulate(simulation: Simulation, *, numbers: range, seed: str) -> Iterator[Dialogue]:
  """Yields dialogues.

  Args:
    simulation: what they are made from.
    numbers: indices of the dialogues; each dialogue is independent of the others.
    seed: any text; determines a dialogue together with its number.
  """
  services = {name: simulation.schema[name] for name in simulation.tables}
  for n in numbers:
    rng = random.Random(f"{seed}/{n}")
    scenario = simulation.scenarios[simulation.draw.draw(rng)]
    turns = outline(scenario, simulation.backends, simulation.transitions, rng)
    surface = Surface(services, simulation.words, rng)
    dialogue_turns = tuple(map(surface.turn, turns))
    frames = itertools.chain.from_iterable(turn.frames for turn in dialogue_turns)
    services_met = dict.fromkeys(frame.service for frame in frames)
    yield Dialogue(f"{n // 1000 + 1}_{n:05d}", tuple(services_met), dialogue_turns)


MAX_TURNS = 100  # only reached with transitions that never lead to a goodbye


def outline(
  scenario: Scenario, backends: Mapping[str, Backend], transitions: Transitions, rng: random.Random
) -> list[TurnOutline]:
  """Draws the acts of one dialogue.

  Args:
    scenario: the user's scenario.
    backends: the services, by name.
    transitions: the automaton.
    rng: the only source of randomness.

  Returns:
    Alternating turns; the user begins, and the system says goodbye last.
  """
  ground = CommonGround()
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


def _situation(heard: Sequence[Act], previous: str) -> str:
  """Returns what the user responds to; unchanged if the system only answered a question."""
  acts = {act.act for act in heard}
  if "NOTIFY_FAILURE" in acts:
    return "ALTERNATIVE" if "OFFER" in acts else "NOTIFY_FAILURE"
  for act in ("GOODBYE", "NOTIFY_SUCCESS", "REQ_MORE", "OFFER_INTENT", "CONFIRM", "OFFER"):
    if act in acts:
      return act
  return "REQUEST" if "REQUEST" in acts else previous
