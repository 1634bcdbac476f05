"""The order in which a prompt shows demonstrations, slots, possible values and intents.

Prompts, targets and the parsing of answers take their order from a `Layout` alone.
"""

import dataclasses
import functools
import itertools
import random
import zlib
from collections.abc import Collection, Mapping, Sequence

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration
from sgdx_t5x.prompts.sdt.style import ALL, SdtStyle

PARTS = ("slots", "values", "intents")  # what can be shuffled; demonstrations go with their slots


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layout:
  """The order of a prompt; slots and intents are positions in the schema. Compared by identity.

  Attributes:
    demos: the demonstrations shown.
    slots: the slots of each demonstration.
    values: categorical slot -> positions of its possible values.
    intents: the intents, in the order of their letters.
    listed: the intents of each demonstration, in its own order.
    separate: whether several demonstrations are treated as in Google's script: each has its own
      descriptions, slot numbers and intents, and the target answers for each in turn. Otherwise
      each slot is described, numbered and answered once.
  """

  demos: tuple[Demonstration, ...]
  slots: tuple[tuple[int, ...], ...]
  values: Mapping[int, tuple[int, ...]]
  intents: tuple[int, ...]
  listed: tuple[tuple[int, ...], ...] = ()
  separate: bool = False

  @property
  def target_slots(self) -> tuple[int, ...]:
    """The slots in the order of the target, which is that of the prompt."""
    if len(self.slots) == 1:
      return self.slots[0]
    slots = tuple(itertools.chain.from_iterable(self.slots))
    return slots if self.separate else tuple(dict.fromkeys(slots))


def chosen(demos: Sequence[Demonstration], style: SdtStyle) -> tuple[Demonstration, ...]:
  """Returns a service's demonstrations that a style shows. Raises SgdxError if it has too few."""
  if style.demo == ALL:
    return tuple(demos)
  if style.demo >= len(demos):
    raise SgdxError(
      f"demo={style.demo}: {demos[0].service} has {len(demos)} demonstrations",
      expected=f"0 to {len(demos) - 1}, or -1 for all of them",
      fix="choose another one, or add demonstrations of this service to the file",
    )
  return (demos[style.demo],)


def written_layout(
  demos: Sequence[Demonstration], service: Service, separate: bool = True
) -> Layout:
  """Returns the unshuffled order of a service: that of its demonstrations and original schema."""
  slots, listed, values = [], [], {}
  for demo in demos:
    slots.append(tuple(service.slot_index[name] for name in demo.slots))
    intents = demo.intents or service.intent_index
    listed.append(tuple(service.intent_index[name] for name in intents))
  for i in service.tracked_slots:
    if service.slots[i].is_categorical:
      values[i] = tuple(range(len(service.slots[i].possible_values)))
  return Layout(tuple(demos), tuple(slots), values, listed[0], tuple(listed), separate)


def shuffled_layout(
  unshuffled: Layout, rng: random.Random, shuffled_parts: Collection[str]
) -> Layout:
  """Draws an order, with the same sequence of draws as Google's script.

  First the demonstrations; then the slots of each, and the possible values of each categorical slot
  when it occurs for the first time. Intents follow the first demonstration's slots. What is not
  among `shuffled_parts`, of `PARTS`, stays as written.
  """
  order: Sequence[int] = range(len(unshuffled.demos))
  if "slots" in shuffled_parts:
    order = _shuffled(order, rng)
  slots: list[tuple[int, ...]] = []
  values: dict[int, tuple[int, ...]] = {}
  listed = tuple(unshuffled.listed[k] for k in order)
  intents = listed[0]
  for number, k in enumerate(order):
    positions = unshuffled.slots[k]
    if "slots" in shuffled_parts:
      positions = _shuffled(positions, rng)
    slots.append(positions)
    # A slot of several demonstrations keeps the order of values that its first one drew.
    for i in positions:
      if i in unshuffled.values and i not in values:
        possible = unshuffled.values[i]
        values[i] = _shuffled(possible, rng) if "values" in shuffled_parts else possible
    if number == 0 and "intents" in shuffled_parts:
      intents = _shuffled(intents, rng)
  demos = tuple(unshuffled.demos[k] for k in order)
  return Layout(demos, tuple(slots), values, intents, listed, unshuffled.separate)


def _shuffled(items: Sequence[int], rng: random.Random) -> tuple[int, ...]:
  shuffled = list(items)
  rng.shuffle(shuffled)
  return tuple(shuffled)


@functools.lru_cache(maxsize=64)  # a prompt and its target share one order
def frame_layout(unshuffled: Layout, frame: ExampleId, style: SdtStyle) -> Layout:
  """Returns the order of a frame's prompt, determined by its id and the same in all variants."""
  if style.order == "demonstration":
    return unshuffled
  key = f"{style.seed}/{frame.split}/{frame.frame_id}"  # without the variant: only words differ
  rng = random.Random(zlib.crc32(key.encode()))
  parts = PARTS if style.intents != "absent" else ("slots", "values")
  return shuffled_layout(unshuffled, rng, parts)
