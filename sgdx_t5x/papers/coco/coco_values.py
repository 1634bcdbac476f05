"""Values of counterfactual goals: others of the split, or invented ones."""

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.entities import free_slots, kinds_of_slots
from sgdx_t5x.papers.checkdst.new_names import Draw, listed, values_of_corpus
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.train_values import lookup_in_train
from sgdx_t5x.papers.simulator.values import VALUE_KINDS, ValuePool
from sgdx_t5x.papers.simulator.variation import forms, is_moment, is_relative_day

IN, OUT = "in", "out"
OUT_TEST, OUT_TRAIN = "out-test", "out-train"  # in the manifest: which pool was used
_FEWEST = 5  # values that a slot must have; else those of all slots of its kind are used
_TRIES = 50


class Value(NamedTuple):
  """A value, as in the database and as the user says it."""

  canonical: str
  spoken: str


@dataclasses.dataclass(frozen=True)
class ValueSource:
  """Where the values of goals come from.

  Attributes:
    label: its name in the manifest.
    schema: of the split.
    draws: (service, free slot) -> function that draws a value and its other forms.
    earlier: service -> pairs of slots, see `Combinations`.
    fallbacks: free slots for which the split has too few values of the wanted kind.
  """

  label: str
  schema: Schema
  draws: Mapping[tuple[str, str], Draw]
  earlier: Mapping[str, Sequence[tuple[str, str]]]
  fallbacks: tuple[str, ...] = ()

  def draw(
    self,
    service: str,
    slot: str,
    rng: random.Random,
    used: Iterable[str],
    canonical: Mapping[str, str],
  ) -> Value | None:
    """Draws a value; None if none fits.

    Args:
      service, slot: of the schema.
      rng: random number generator.
      used: strings in lower case that a free value may not be: those of the state and the goal.
      canonical: slot -> value of the state and the goal: a categorical slot gets another
        value, and days and times keep their order.
    """
    definition = self.schema[service].slots[self.schema[service].slot_index[slot]]
    if definition.is_categorical:
      unsuitable = (canonical.get(slot), DONTCARE)
      choices = [value for value in definition.possible_values if value not in unsuitable]
      return Value(choice := rng.choice(choices), choice) if choices else None
    for _ in range(_TRIES):
      name, other_forms = self.draws[service, slot](rng)
      value = Value(name, rng.choice(_independent_forms(name, other_forms)))
      is_new = value.spoken.lower() not in used and name.lower() not in used
      if is_new and self._in_order(service, slot, name, canonical):
        return value
    return None

  def _in_order(self, service: str, slot: str, name: str, canonical: Mapping[str, str]) -> bool:
    values = {**canonical, slot: name}
    for pair in self.earlier.get(service, ()):
      moments = [values[x] for x in pair if is_moment(values.get(x, ""))]
      if slot not in pair or len(moments) < 2:
        continue
      is_same_unit = (":" in moments[0]) == (":" in moments[1])  # times, or days
      if is_same_unit and moments[0] >= moments[1]:
        return False
    return True


def _independent_forms(name: str, other_forms: Sequence[str]) -> Sequence[str]:
  """Ways to say a value that can replace any other value; "2019-03-05" is not one."""
  ways = [*other_forms] if is_moment(name) else [name, *other_forms]
  return [way for way in ways if not is_relative_day(way)] or ways or [name]


def value_source(
  values: str, split: Split, earlier: Mapping[str, Sequence[tuple[str, str]]]
) -> ValueSource:
  """Returns where values come from.

  Args:
    values: "in", those of the same slot in the split that train's states lack (all of the split, if
      fewer than five); or "out", invented ones, from a pool for train or one for the other splits,
      which are disjoint.
    split: what is perturbed.
    earlier: pairs of slots whose days and times keep their order.
  """
  slots, kinds = free_slots(split.schema), kinds_of_slots(split.schema)
  places = [(service, slot) for service, names in slots.items() for slot in sorted(names)]
  if values == IN:
    draws, fallbacks = _of_split(split, places, kinds)
    return ValueSource(IN, split.schema, draws, earlier, tuple(fallbacks))
  held_out = split.name != "train"
  draws = {place: _invented(kinds[place], held_out) for place in places}
  return ValueSource(OUT_TEST if held_out else OUT_TRAIN, split.schema, draws, earlier)


def _invented(kind: str, held_out: bool) -> Draw:
  """Draws from one of two disjoint pools, even numbers and days, which the simulator shares."""
  pool = ValuePool(VALUE_KINDS.get(kind, VALUE_KINDS["title"]))

  def draw(rng: random.Random) -> tuple[str, Sequence[str]]:
    name = pool.draw(rng, held_out)
    ways = forms(name)
    return name, ways if is_moment(name) else ways[1:]

  return draw


def _of_split(
  split: Split, places: Sequence[tuple[str, str]], kinds: Mapping[tuple[str, str], str]
) -> tuple[dict[tuple[str, str], Draw], list[str]]:
  values_by_slot = values_of_corpus(split, free_slots(split.schema))
  in_train = lookup_in_train(split.corpus) if split.name != "train" else None
  by_kind: dict[str, list[tuple[str, list[str]]]] = {}
  for place in places:
    by_kind.setdefault(kinds[place], []).extend(values_by_slot.get(place, ()))
  draws, fallbacks = {}, []
  for place in places:
    values = values_by_slot.get(place, [])
    pools = [values, by_kind[kinds[place]]]
    if in_train:
      unseen = [v for v in values if not any(map(in_train, (v[0], *v[1])))]
      pools.insert(0, unseen)
      if len(unseen) < _FEWEST:
        fallbacks.append(".".join(place))
    pool = next((pool for pool in pools if len(pool) >= _FEWEST), values)
    draws[place] = listed(pool) if pool else _invented(kinds[place], split.name != "train")
  return draws, fallbacks
