"""D3ST as a prompt format: see `protocol.PromptFormat`."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from sgdx_t5x.corpus.dialogue import Dialogue, Frame, State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.d3st.parts import Order, ServiceParts, frame_order, service_parts
from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.d3st.text import prefix_parts, read_answer, target_text, utterance_text
from sgdx_t5x.prompts.protocol import History, Prompt, ServicePair, turn_writer

if TYPE_CHECKING:
  import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class D3ST(TextExamples):
  """One example per frame: descriptions with indices, the history; values by index."""

  style: D3stStyle = dataclasses.field(default_factory=D3stStyle)
  name: ClassVar[str] = "d3st"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = (
    'the state by index, as in "[states] 0=9 am 2=2b [intents] i1 [req_slots] 3"'
  )

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The service, then the history."""
    turns = turn_writer(utterance_text, self.style)(history)
    return [Prompt(turns, before=prefix_parts(*self._shown(frame, service), self.style))]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """Values, intent and requested slots by index."""
    return [target_text(service.original, state, *self._shown(frame, service), self.style)]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> PredictedFrame:
    """What the answer says, in original names."""
    return read_answer(text, service, *self._shown(example, service), self.style)

  def _shown(self, frame: ExampleId, service: ServicePair) -> tuple[ServiceParts, Order]:
    shown_parts = service_parts(service, self.style)
    return shown_parts, frame_order(frame, shown_parts, self.style)

  def shown_frames(self, dialogue: Dialogue) -> Iterator[tuple[int, Frame]]:
    """Yields (turn, frame) of a dialogue as prompts and targets show them.

    Each user frame with its own state, unless the style repeats the defects of Google's script,
    which need the frames before and beside it: see `D3stStyle.frames` and `cumulate`.
    """
    # service -> all that its states have held
    values_so_far: dict[str, dict[str, tuple[str, ...]]] = {}
    by_turn: dict[int, list[Frame]] = {}
    # Of all turns, scored or not: states accumulate from the first.
    for turn, frame in dataclasses.replace(dialogue, last_only=False).user_frames():
      if self.style.cumulate:
        of_service = values_so_far.setdefault(frame.service, {})
        of_service.update(frame.user_state.slot_values)
        state = dataclasses.replace(frame.user_state, slot_values=dict(of_service))
        frame = dataclasses.replace(frame, state=state)
      by_turn.setdefault(turn, []).append(frame)
    for turn, frames in by_turn.items():
      for frame in frames if dialogue.is_scored(turn) else ():
        yield turn, frames[-1] if self.style.frames == "last" else frame

  def examples(self, *args: Any, **settings: Any) -> "tf.data.Dataset":
    """See `text_examples.text_examples`. Raises SgdxError for a style with Google's defects."""
    if self.style.frames != "each" or self.style.cumulate:
      raise SgdxError(
        f"a task with frames={self.style.frames} and cumulate={self.style.cumulate}",
        expected="frames=each and cumulate=false: a record holds one frame and its state",
        fix="write such examples with `sgdx prompts --targets`, to compare texts only",
      )
    return super().examples(*args, **settings)
