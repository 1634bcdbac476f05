"""SDT-ind: one example per slot, with a short demonstration of that slot.

The paper mentions such a model besides SDT-seq. Google released no code for it, and its definition
was not available: this is our own version, which may differ.

  [example] [user] two tickets for rome, please [slot] city=rome [context] [user] i need a seat in
  paris        ->        city=paris
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import ClassVar

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.example_id import SLOT, ExampleId, Unit
from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.metrics.frames import GoldFrame
from sgdx_t5x.prompts.protocol import History, Prompt, Provenance, ServicePair
from sgdx_t5x.prompts.sdt.answers import read_value
from sgdx_t5x.prompts.sdt.demonstrations import (
  NONE,
  SYSTEM_TAG,
  USER_TAG,
  Demonstration,
  Demonstrations,
  load_demonstrations,
)
from sgdx_t5x.prompts.sdt.layout import Layout, frame_layout
from sgdx_t5x.prompts.sdt.provenance import provenance
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.sdt.text import case, shown_value, turn_texts, value_text
from sgdx_t5x.prompts.values import checked_fields
from sgdx_t5x.prompts.without_graph import TextExamples


@checked_fields
@dataclasses.dataclass(frozen=True)
class SdtIndStyle:
  """What a prompt shows.

  Attributes:
    demos: as in `SdtStyle`.
    values: as in `SdtStyle`.
    order: of possible values, as in `SdtStyle`.
    seed: as in `SdtStyle`.
    lowercase: as in `SdtStyle`.
  """

  demos: str = dataclasses.field(default="sample", metadata={"file": True})
  values: str = "letters"
  order: str = "fixed"
  seed: int = 0
  lowercase: bool = True

  def __post_init__(self):
    _ = self.frame_style  # raises for invalid values

  @functools.cached_property
  def frame_style(self) -> SdtStyle:
    """The equivalent style of SDT."""
    return SdtStyle(**dataclasses.asdict(self), demo=-1)


@dataclasses.dataclass(frozen=True)
class SDTInd(TextExamples):
  """One example per tracked slot of a frame."""

  style: SdtIndStyle = dataclasses.field(default_factory=SdtIndStyle)
  name: ClassVar[str] = "sdt_ind"
  unit: ClassVar[Unit] = SLOT
  answer: ClassVar[str] = '"slot=value", as in the example, "none" for no value'

  @property
  def demonstrations(self) -> Demonstrations:
    """Those of the style. Raises SgdxError if they cannot be read."""
    return load_demonstrations(self.style.demos)

  def snapshot(self) -> "SDTInd":
    """The format with its demonstrations as they are now."""
    return _Loaded(self.style)

  def asked(self, service: Service) -> tuple[str, ...]:
    """Original names of the tracked slots."""
    return tuple(service.slots[i].name for i in service.tracked_slots)

  def layouts(self, frame: ExampleId, service: ServicePair) -> dict[int, Layout]:
    """Returns tracked slot -> its demonstration, and the order of its possible values."""
    style = self.style.frame_style
    written = _written(service, self.demonstrations)
    return {i: frame_layout(layout, frame, style) for i, layout in written.items()}

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The demonstration of the slot, then the history."""
    style = self.style.frame_style
    turns = turn_texts(style)(history)
    found = []
    for i, layout in self.layouts(frame, service).items():
      [demo] = layout.demos
      value = " ".join(shown_value(service, i, demo, layout.values.get(i), style))
      name = service.variant.slots[i].name
      before = f"[example] {demo.text} [slot] {name}={value} [context]"
      found.append(Prompt(turns, before=(case(before, style),)))
    return found

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """A slot and its value, or "none"."""
    style = self.style.frame_style
    found = []
    for i, layout in self.layouts(frame, service).items():
      gold = state.slot_values.get(service.original.slots[i].name, ())
      name = service.variant.slots[i].name
      found.append(
        case(f"{name}={value_text(service, i, gold, layout.values.get(i), style)}", style)
      )
    return found

  def read(self, text: str, example: ExampleId, service: ServicePair) -> str | None:
    """The value of the slot, or None; the "slot=" before it is optional."""
    i = service.original.slot_index[example.slot]
    style = self.style.frame_style
    written = _written(service, self.demonstrations)
    if i not in written:  # an id that no prompt has
      return None
    name = f"{service.variant.slots[i].name}="
    text = text.strip()
    if text.lower().startswith(name.lower()):
      text = text[len(name) :]
    frame = example.with_slot(None)
    return read_value(text, service, i, frame_layout(written[i], frame, style), style)

  def provenance(self, corpus: Corpus, gold: Sequence[GoldFrame]) -> Provenance:
    """Like `SDT.provenance`, of the beginnings that prompts show."""
    return provenance(self.demonstrations, _shown, corpus, gold)


class _Loaded(SDTInd):
  """Loads its demonstrations only once."""

  @functools.cached_property
  def demonstrations(self) -> Demonstrations:  # type: ignore[override]
    """Those of the style, as they are at the first access."""
    return load_demonstrations(self.style.demos)


@functools.lru_cache(maxsize=4096)
def _written(service: ServicePair, demos: Demonstrations) -> dict[int, Layout]:
  """Returns tracked slot -> its demonstration, with possible values in the schema's order."""
  found = demos.of(service.original)
  layouts = {}
  for i in service.original.tracked_slots:
    slot = service.original.slots[i]
    values = {i: tuple(range(len(slot.possible_values)))} if slot.is_categorical else {}
    layouts[i] = Layout((_short(found, slot.name),), ((i,),), values, (), listed=((),))
  return layouts


def _shown(demos: Sequence[Demonstration]) -> list[Demonstration]:
  """Returns what the prompts of a service's slots show."""
  return [_short(demos, slot) for slot in demos[0].slots]


def _short(demos: Sequence[Demonstration], slot: str) -> Demonstration:
  """Returns the shortest beginning of a demonstration that shows a value of the slot.

  It is of the first that has a value; it ends with the first user turn by which that has been said,
  or is whole if the value does not occur verbatim (`True`, for instance).
  """
  demo = next((demo for demo in demos if demo.slots[slot] != NONE), demos[0])
  value, parts = demo.slots[slot], []
  whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
  for speaker, text in demo.turns:
    parts.append(f"{USER_TAG if speaker == USER else SYSTEM_TAG} {text}")
    said = " ".join(parts)
    if speaker == USER and value not in (NONE, DONTCARE) and whole.search(said):
      return dataclasses.replace(demo, text=said)
  return demo
