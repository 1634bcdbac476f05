"""Tool calls as a prompt format: see `protocol.PromptFormat`.

`requests` writes the input of chat completions. Here it is one text, for models without such an
interface: the tools in JSON, and the conversation; the answer is a JSON list.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sgdx_t5x.corpus.dialogue import State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, Provenance, ServicePair
from sgdx_t5x.tools.call_predictions import answered_style, call_rows
from sgdx_t5x.tools.call_texts import written_calls
from sgdx_t5x.tools.calls import ROLES, CalledFrame, calls_text, read_calls, state_calls
from sgdx_t5x.tools.definitions import function_text, service_tools
from sgdx_t5x.tools.delivery import ToolStyle

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame
  from sgdx_t5x.scoring.predictions.files import Paths, Selection
  from sgdx_t5x.scoring.predictions.rows import PredictionRow


@dataclasses.dataclass(frozen=True)
class ToolCalls(TextExamples):
  """One example per frame: the tools of its service, the conversation; calls as JSON.

  Attributes:
    style: what the requests showed.
    trusted_ids: whether the ids of answers cannot have been mixed up; otherwise answers that only
      call tools of another variant are refused.
    from_text: whether calls in the text of an answer without any count.
  """

  style: ToolStyle = dataclasses.field(default_factory=ToolStyle)
  trusted_ids: bool = False
  from_text: bool = False
  name: ClassVar[str] = "tools"
  unit: ClassVar[Unit] = FRAME
  own_metrics: ClassVar[tuple[str, ...]] = ("right_call", "right_tool", "right_arguments")
  answer: ClassVar[str] = 'the calls as a JSON list, as in [{"name": ..., "arguments": {...}}]'

  def asked(self, service: Service) -> tuple[None]:
    """The frame as a whole."""
    return (None,)

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The tools, then the conversation. Raises UsageError for any style but the default."""
    if self.style != ToolStyle():
      raise UsageError(
        f"single-text prompts with {self.style}",
        expected="delivery=gold without examples: a prompt shows the tools of the frame's service",
        fix="write requests with tools of other services, or examples: sgdx tools requests",
      )
    turns = tuple(f"[{ROLES[speaker]}] {text}" for speaker, text in history)
    return [Prompt(turns, before=_tool_texts(service), after="[calls]")]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """The calls of the state."""
    return [calls_text(state_calls(service, state))]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> CalledFrame:
    """The state of the calls that a text lists."""
    return read_calls(written_calls(text), service)

  def read_rows(self, file: pathlib.Path, *, selection: "Selection") -> "Iterator[PredictionRow]":
    """The answers in a file, in any of the forms of `call_predictions`."""
    return call_rows(file, self.style, selection.allow_missing, selection.on_read, self.from_text)

  def count_answers(
    self, predicted: "Mapping[str, PredictedFrame]", variant: str, selection: "Selection"
  ) -> dict[str, Any]:
    """What a score reports besides states: see `call_shares.call_rates`."""
    from sgdx_t5x.tools.call_shares import call_rates

    rates = call_rates(predicted, variant, selection, self.trusted_ids)
    return {"calls": rates} if rates else {}

  def frame_metrics(
    self, predicted: "Mapping[str, PredictedFrame]", variant: str, selection: "Selection"
  ) -> dict[str, dict[str, float]]:
    """The metrics `own_metrics` of each frame: see `call_shares.frame_metrics`."""
    from sgdx_t5x.tools.call_shares import frame_metrics

    return frame_metrics(predicted, variant, selection, self.own_metrics)

  def provenance(self, corpus: "Corpus", gold: "Sequence[GoldFrame]") -> Provenance:
    """The delivery, and whether calls in texts count: other scores are not comparable."""
    return Provenance(
      {"delivery": str(self.style), **({"calls": "from-text"} if self.from_text else {})}
    )


def calls_format(sources: "Mapping[str, Paths]", split: str, from_text: bool = False) -> ToolCalls:
  """Returns the format of answered requests. Args and errors: `call_predictions.answered_style`."""
  return ToolCalls(answered_style(sources, split), from_text=from_text)


@functools.lru_cache(maxsize=1024)
def _tool_texts(pair: ServicePair) -> tuple[str, ...]:
  """Returns the tools of a service in JSON, after their tag."""
  return ("[tools]", *map(function_text, service_tools(pair)))
