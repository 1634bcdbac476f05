"""Counterfactual goals: what a user could have informed instead in one turn, following CoCo.

The belief of a turn is the content of its INFORM acts. A goal drops one slot, changes the values
of others and adds some: the slots are chosen here, their values are drawn in `coco_values`.
"""

import dataclasses
import random
from collections.abc import Callable, Sequence

STRICT = "strict"
RANDOM, DICTIONARY = "random", "dictionary"


@dataclasses.dataclass(frozen=True)
class Rules:
  """How goals are drawn.

  Attributes:
    p_drop, p_change, p_add: probabilities, per turn (drop, add) or per slot (change).
    max_add: maximum number of added slots.
    max_slots: no slots are added beyond this number; a turn that has more keeps them.
    flow: "strict" never drops a slot that the system just requested; "loose" may.
    order: "random" draws added slots; "dictionary", as in CoCo, takes the first that fit in schema
      order, a dropped one included, with a new value; a drop is undone if nothing can be added.
  """

  p_drop: float = 1.0
  p_change: float = 1.0
  p_add: float = 1.0
  max_add: int = 2
  max_slots: int = 3
  flow: str = STRICT
  order: str = RANDOM


@dataclasses.dataclass(frozen=True)
class Belief:
  """What a turn informs, and what determines how it can be changed.

  Attributes:
    informed: its slots, in the order of the acts.
    fixed: those that keep their value: the system said it, or it is "dontcare".
    requested: slots that the system asked for just before.
    in_state: slots of the states before and after the turn.
    addable: slots of the active intent, in the order of the schema.
  """

  informed: tuple[str, ...]
  fixed: frozenset[str] = frozenset()
  requested: frozenset[str] = frozenset()
  in_state: frozenset[str] = frozenset()
  addable: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Choice:
  """Slots of a counterfactual goal: what is kept (some of it changed), dropped and added."""

  retained: tuple[str, ...]
  changed: frozenset[str]
  dropped: tuple[str, ...]
  added: tuple[str, ...]


def choose_slots(
  belief: Belief, allowed: Callable[[str, str], bool], rules: Rules, rng: random.Random
) -> Choice:
  """Draws the slots of a goal.

  Args:
    belief: of the turn.
    allowed: whether a turn with one slot may have another one, too.
    rules: how they are drawn.
    rng: random number generator.

  Source: `counterfactual_goal_generator` of CoCo (commit d092bb4), without its rule that writes
  times of taxis into turns about trains.
  """
  informed, like_coco = belief.informed, rules.order == DICTIONARY
  dropped: tuple[str, ...] = ()
  if len(informed) > 1 and rng.random() < rules.p_drop:
    protected = belief.requested if rules.flow == STRICT else frozenset()
    can_go = [slot for slot in informed if slot not in belief.fixed and slot not in protected]
    dropped = (rng.choice(can_go),) if can_go else ()
  retained = tuple(slot for slot in informed if slot not in dropped)
  added: list[str] = []
  adds = rng.random() < rules.p_add
  if adds:
    unavailable = belief.in_state.union(retained, dropped)
    if like_coco:
      unavailable = unavailable.difference(dropped)
    candidates = [slot for slot in belief.addable if slot not in unavailable]
    if not like_coco:
      rng.shuffle(candidates)
    room = min(rules.max_add, rules.max_slots - len(retained))
    added = [s for s in candidates if all(allowed(slot, s) for slot in retained)][: max(room, 0)]
  changed = {s for s in retained if s not in belief.fixed and rng.random() < rules.p_change}
  again, undone = dropped and dropped[0] in added, adds and not added
  if like_coco and dropped and (again or undone):
    # No draw where it is certain, so that old sets can be made again.
    if again or rules.p_change >= 1 or rng.random() < rules.p_change:
      changed.update(dropped)
    retained, dropped = (*retained, *dropped), ()
  return Choice(retained, frozenset(changed), dropped, tuple(s for s in added if s not in retained))
