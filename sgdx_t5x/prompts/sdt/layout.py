"""In which order a prompt shows demonstrations, slots, possible values and intents.

The prompt, the target and the reading of an answer take their order from a `Layout` alone.
"""

import dataclasses
import zlib
from _random import Random as BareRandom  # the same draws; `random.Random` seeds itself twice
from collections.abc import Collection, Mapping, Sequence

from sgdx_t5x.data.example_id import ExampleId
from sgdx_t5x.data.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration
from sgdx_t5x.prompts.sdt.style import ALL, SdtStyle

PARTS = ("slots", "values", "intents")  # what can be shuffled; demonstrations go with their slots


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layout:
  """The order of a prompt; slots and intents are positions in the schema. Compared by identity.

  Attributes:
    demos: the demonstrations shown.
    slots: of each demonstration, its slots.
    values: categorical slot -> positions of its possible values.
    intents: the intents, as letters stand for them.
    listed: of each demonstration, its intents in its own order.
    separate: what Google's script does with several demonstrations: each is described, numbers its
      slots and lists its intents by itself, and the target answers for one after the other.
      Otherwise each slot is described, numbered and answered once.
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
    slots = tuple(i for slots in self.slots for i in slots)
    return slots if self.separate else tuple(dict.fromkeys(slots))


def chosen(demos: Sequence[Demonstration], style: SdtStyle) -> tuple[Demonstration, ...]:
  """Returns those of a service that a style shows. Raises SgdxError if there is no such one."""
  if style.demo == ALL:
    return tuple(demos)
  if style.demo >= len(demos):
    raise SgdxError(
      f"demo={style.demo}: {demos[0].service} has {len(demos)} demonstrations",
      expected=f"0 to {len(demos) - 1}, or -1 for all of them",
      fix="name another one, or add demonstrations of this service to the file",
    )
  return (demos[style.demo],)


def written_layout(
  demos: Sequence[Demonstration], service: Service, separate: bool = True
) -> Layout:
  """Returns the order of the demonstrations and of the schema.

  Args:
    demos: those that are shown, of this service.
    service: in the original schema.
    separate: each demonstration by itself, see `Layout`.
  """
  slots = tuple(tuple(service.slot_index[name] for name in demo.slots) for demo in demos)
  values = {i: tuple(range(len(service.slots[i].possible_values))) for i in _categorical(service)}
  intents = (demo.intents or service.intent_index for demo in demos)
  listed = tuple(tuple(service.intent_index[name] for name in names) for names in intents)
  return Layout(tuple(demos), slots, values, listed[0], listed, separate)


def shuffled_layout(written: Layout, rng: BareRandom, parts: Collection[str]) -> Layout:
  """Draws an order, in the sequence in which Google's script draws.

  First the demonstrations; then of each its slots, and on the way through them the possible values
  of each categorical slot that is met for the first time. Intents follow the first one's slots.

  Args:
    written: the order to start from.
    rng: drawn from for these parts alone.
    parts: of `PARTS`; the others stay as written.
  """
  order: Sequence[int] = range(len(written.demos))
  if "slots" in parts:
    order = _shuffled(order, rng)
  slots: list[tuple[int, ...]] = []
  values: dict[int, tuple[int, ...]] = {}
  listed = tuple(written.listed[k] for k in order)
  intents = listed[0]
  for number, k in enumerate(order):
    positions = _shuffled(written.slots[k], rng) if "slots" in parts else written.slots[k]
    slots.append(positions)
    for i in positions:
      if i in written.values and i not in values:
        shown = written.values[i]
        values[i] = _shuffled(shown, rng) if "values" in parts else shown
    if number == 0 and "intents" in parts:
      intents = _shuffled(intents, rng)
  demos = tuple(written.demos[k] for k in order)
  return Layout(demos, tuple(slots), values, intents, listed, written.separate)


def _shuffled(items: Sequence[int], rng: BareRandom) -> tuple[int, ...]:
  """Returns what `rng.shuffle` makes of a list, with the same draws, in half of the time."""
  found, bits = list(items), rng.getrandbits
  for i in range(len(found) - 1, 0, -1):
    width = (i + 1).bit_length()
    j = bits(width)
    while j > i:
      j = bits(width)
    found[i], found[j] = found[j], found[i]
  return tuple(found)


def frame_layout(written: Layout, frame: ExampleId, style: SdtStyle) -> Layout:
  """Returns the order of a frame's prompt, the same in all variants, which its id decides.

  Args:
    written: what `written_layout` returns for the style.
    frame: id of the frame.
    style: the prompt's style.
  """
  if style.order == "demonstration":
    return written
  key = f"{style.seed}/{frame.split}/{frame.frame_id}"  # what differs between variants is words
  rng = BareRandom(zlib.crc32(key.encode()))
  parts = PARTS if style.intents != "absent" else ("slots", "values")
  return shuffled_layout(written, rng, parts)


def _categorical(service: Service) -> list[int]:
  return [i for i in service.tracked_slots if service.slots[i].is_categorical]
