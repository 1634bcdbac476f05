"""The automaton that both agents follow, as data: situation -> moves and their weights.

A *situation* is what the other side did last, a *move* the acts of the response in utterance
order. Moves are domain-independent. An impossible move (selecting without an offer, saying goodbye
with intents left) is not drawn, whatever its weight. The weights of `transitions.json` follow the
frequencies of acts in SGD's train dialogues.
"""

import bisect
import dataclasses
import importlib.resources
import itertools
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any


class Weighted:
  """Things to draw from, each with a weight."""

  def __init__(self, weights: Mapping[Any, float]):
    """Args: thing -> weight, 0 or more, not all 0."""
    self._weights = {thing: weight for thing, weight in weights.items() if weight}
    self._things = tuple(self._weights)
    self._ends = list(itertools.accumulate(self._weights.values()))

  def draw(self, rng: random.Random) -> Any:
    """Returns one thing."""
    return self._things[bisect.bisect(self._ends, rng.random() * self._ends[-1])]

  def shuffled(self, rng: random.Random) -> Iterator[Any]:
    """Yields all things in random order, drawn by weight without replacement."""
    drawn_first = self.draw(rng)
    yield drawn_first
    if remaining := {thing: w for thing, w in self._weights.items() if thing != drawn_first}:
      yield from Weighted(remaining).shuffled(rng)


@dataclasses.dataclass(frozen=True)
class Transitions:
  """The automaton: moves of the user and the system by situation, counts, chances in 0..1."""

  user: Mapping[str, Weighted]
  system: Mapping[str, Weighted]
  counts: Mapping[str, Weighted]
  chances: Mapping[str, float]


def parse_transitions(changes: Mapping[str, Mapping[str, Any]]) -> Transitions:
  """Returns the automaton of `transitions.json` with other weights.

  Args:
    changes: of the form of `transitions.json`; a situation that it has replaces the default's.
  """
  text = (importlib.resources.files(__package__) / "transitions.json").read_text("utf-8")
  tables = {part: {**table, **changes.get(part, {})} for part, table in json.loads(text).items()}
  moves: dict[str, dict[str, Weighted]] = {"user": {}, "system": {}}
  for side, by_situation in moves.items():
    for situation, table in tables[side].items():
      weights = {tuple(move.split()): weight for move, weight in table.items()}
      by_situation[situation] = Weighted(weights)
  counts: dict[str, Weighted] = {}
  for name, table in tables["counts"].items():
    counts[name] = Weighted({int(number): weight for number, weight in table.items()})
  return Transitions(**moves, counts=counts, chances=tables["chances"])
