"""Seeded dialogues: the n-th dialogue for a seed is the same in every process."""

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.simulator.backend import Backend, ServiceTable
from sgdx_t5x.papers.simulator.outline import outline
from sgdx_t5x.papers.simulator.scenarios import Scenario
from sgdx_t5x.papers.simulator.surface import Paraphrase, Surface
from sgdx_t5x.papers.simulator.templates import Words
from sgdx_t5x.papers.simulator.transitions import Transitions, Weighted


@dataclasses.dataclass(frozen=True)
class Simulation:
  """Everything that dialogues are made from; validated, and can be sent to other processes.

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
    """The services with their databases, created per process."""
    return {name: Backend(self.schema[name], table) for name, table in self.tables.items()}

  @functools.cached_property
  def draw(self) -> Weighted:
    """Draws the index of a scenario by weight."""
    return Weighted({i: scenario.weight for i, scenario in enumerate(self.scenarios)})


def simulate(
  simulation: Simulation,
  *,
  numbers: range,
  seed: str,
  paraphrase: Paraphrase | None = None,
) -> Iterator[Dialogue]:
  """Yields dialogues.

  Args:
    simulation: what they are made from.
    numbers: indices of the dialogues; each dialogue is independent of the others.
    seed: any text; determines a dialogue together with its number.
    paraphrase: called as (utterance, values in it) for every utterance; returns another
      utterance with the same values, or None.

  Raises:
    SgdxError: a paraphrase lacks one of the values.
  """
  services = {name: simulation.schema[name] for name in simulation.tables}
  for n in numbers:
    rng = random.Random(f"{seed}/{n}")
    scenario = simulation.scenarios[simulation.draw.draw(rng)]
    turns = outline(scenario, simulation.backends, simulation.transitions, rng)
    surface = Surface(services, simulation.words, rng, paraphrase)
    worded = tuple(surface.turn(turn) for turn in turns)
    met = {frame.service: None for turn in worded for frame in turn.frames}
    yield Dialogue(f"{n // 1000 + 1}_{n:05d}", tuple(met), worded)
