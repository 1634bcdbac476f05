"""The automaton that both agents follow, as data: situation -> moves and their weights.

A *situation* is what the other side did last, a *move* the acts of the response in utterance
order. Moves are domain-independent. The set of moves is fixed, as agents must be able to make them;
weights are free. An impossible move (selecting without an offer, saying goodbye with intents left)
is not drawn, whatever its weight. The weights of `transitions.json` follow the frequencies of acts
in SGD's train dialogues.
"""

import bisect
import dataclasses
import importlib.resources
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import json_type

_SIDES = ("user", "system")


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
    first = self.draw(rng)
    yield first
    if left := {thing: w for thing, w in self._weights.items() if thing != first}:
      yield from Weighted(left).shuffled(rng)


@dataclasses.dataclass(frozen=True)
class Transitions:
  """The automaton: moves of the user and the system by situation, counts, chances in 0..1."""

  user: Mapping[str, Weighted]
  system: Mapping[str, Weighted]
  counts: Mapping[str, Weighted]
  chances: Mapping[str, float]


def default_transitions() -> Transitions:
  """The automaton that comes with the simulator."""
  return parse_transitions(_default(), "transitions.json")


def parse_transitions(given: Any, origin: str) -> Transitions:
  """Parses decoded JSON of the form of `transitions.json`, with other weights for its moves.

  Missing situations default to `transitions.json`; moves missing from a situation are never made.

  Raises:
    SgdxError: listing every unknown situation, move, count or chance, and every bad weight.
  """
  default = _default()
  problems = list(_problems(given, default))
  if problems:
    raise SgdxError(
      f"{origin}: " + "; ".join(problems),
      expected="situations with moves (acts separated by spaces) and their weights",
      available=", ".join(default),
      fix="correct the file; sgdx_t5x/papers/simulator/transitions.json is an example",
    )
  merged = {part: {**default[part], **given.get(part, {})} for part in default}
  tables = {
    side: {
      s: Weighted({tuple(m.split()): w for m, w in moves.items()}) for s, moves in table.items()
    }
    for side, table in merged.items()
    if side in _SIDES
  }
  counts = {
    name: Weighted({int(n): w for n, w in weights.items()})
    for name, weights in merged["counts"].items()
  }
  return Transitions(**tables, counts=counts, chances=merged["chances"])


def _default() -> dict[str, Any]:
  return json.loads(
    (importlib.resources.files(__package__) / "transitions.json").read_text("utf-8")
  )


def _problems(given: Any, default: Mapping[str, Any]) -> Iterator[str]:
  if not isinstance(given, dict):
    yield f"the top-level JSON value is {json_type(given)}, not an object"
    return
  for part, entries in given.items():
    if part not in default:
      yield f"{part!r} is unknown; {nearest(part, default)}"
      continue
    if not isinstance(entries, dict):
      yield f"{part!r} is {json_type(entries)}, not an object"
      continue
    for name, entry in entries.items():
      where = f"{part}.{name}"
      if name not in default[part]:
        yield f"{where} is unknown; {nearest(name, default[part])}"
      elif part == "chances":
        if not _is_number(entry) or entry > 1:
          yield f"{where} is {entry!r}, not a probability between 0 and 1"
      elif not isinstance(entry, dict) or not any(_is_number(w) and w for w in entry.values()):
        yield f"{where} has no move with a weight above 0"
      else:
        yield from _bad_moves(where, entry, default[part][name] if part in _SIDES else ())


def _bad_moves(where: str, moves: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
  """Checks moves against the `known` ones of the default; if empty, `moves` are counts."""
  for move, weight in moves.items():
    if not _is_number(weight):
      yield f"{where}: invalid weight {weight!r} of {move!r}"
    if not known:
      if not (move.isdecimal() and int(move)):
        yield f"{where}: {move!r} is not a positive integer"
    elif move not in known:
      yield f"{where}: unknown move {move!r}; {nearest(move, known)}"


def _is_number(value: Any) -> bool:
  return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
