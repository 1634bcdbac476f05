"""What a span tracker can fill the slots of a frame with, besides spans and possible values."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE
from sgdx_t5x.records.turns import CONFIRM, INFORM, OFFER, FrameContext, States

MEMORY_SIZE = 12  # SGD's ceiling is 100.00 with 12 and 99.98 with 11
_GIVING = (OFFER, CONFIRM, INFORM)  # acts that give a slot a value, if only one
_BOOLEANS = ("True", "False")  # meaningless without their slot


class Held(NamedTuple):
  """A value of another service's slot, which the user may mean for this service too.

  Attributes:
    turn: the latest at which it held.
    service: position in the schema.
    slot: position in that service.
    values: alternatives, of which the first is shown.
  """

  turn: int
  service: int
  slot: int
  values: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
  """What the dialogue offers for the slots of a frame.

  Attributes:
    system: position of a slot -> the value that the system gave last, and its turn.
    memory: distinct values of other services, newest first.
  """

  system: Mapping[int, tuple[str, int]]
  memory: tuple[Held, ...]


def frame_choices(context: FrameContext, states: States, size: int = MEMORY_SIZE) -> Choices:
  """Returns the choices of a frame.

  Args:
    context: of the frame.
    states: of all services before this turn.
    size: maximum length of `memory`.
  """
  last_given = {}  # acts are in the order of turns: a later value replaces an earlier one
  # Unpacked, which takes half the time of reading fields by name.
  for turn, service, act, slot, values in context.acts:
    if act in _GIVING and len(values) == 1:
      last_given[service, slot] = turn, values
  system, carried = {}, []
  for (service, slot), (turn, values) in last_given.items():
    if service == context.service:
      system[slot] = (values[0], turn)
    else:
      carried.append(Held(turn, service, slot, values))
  for service, state in states.items():
    if service != context.service:
      carried += (Held(state.turn, service, slot, x) for slot, x in state.values.items())
  return Choices(system, tuple(_newest(carried, size)))


def _newest(values: list[Held], size: int) -> Iterator[Held]:
  """Yields at most `size` values, newest first, each text once: the metric ignores case too."""
  texts = set()
  # Values of one turn in the schema's order, so that examples are the same in every run.
  for value in sorted(values, key=lambda x: (-x.turn, x.service, x.slot)):
    if len(texts) == size:
      return
    text = value.values[0]
    folded = text.casefold()
    if text == DONTCARE or text in _BOOLEANS or folded in texts:
      continue
    texts.add(folded)
    yield value
