"""Seeded dialogues: the n-th dialogue of a split is the same in every process."""

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.dialogue import Dialogue
from sgdx_t5x.schema import Service
from sgdx_t5x.simulator.outline import outline
from sgdx_t5x.simulator.surface import Words, realise
from sgdx_t5x.simulator.values import ValuePool


@dataclasses.dataclass(frozen=True)
class Simulation:
  """All that is needed to talk about one service."""

  service: Service
  pools: Mapping[str, ValuePool]
  words: Words


def simulate(
  simulations: Sequence[Simulation], *, num_dialogues: int, seed: str, held_out: float = 0.0
) -> Iterator[Dialogue]:
  """Yields dialogues, the services in turn.

  Args:
    simulations: the services to talk about.
    num_dialogues: how many dialogues in all.
    seed: any text; with the dialogue's number it fixes the dialogue.
    held_out: share of free values drawn from the test-only part of the pools.
  """
  for n in range(num_dialogues):
    one = simulations[n % len(simulations)]
    rng = random.Random(f"{seed}/{n}")
    steps = outline(one.service, one.pools, rng, held_out)
    turns = realise(steps, one.service, one.words, rng)
    yield Dialogue(f"{n // 1000 + 1}_{n:05d}", (one.service.name,), tuple(turns))
