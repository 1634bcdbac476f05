"""SDT-seq as a prompt format: see `protocol.PromptFormat`."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame, utterance_crc
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, Provenance, ServicePair, turn_writer
from sgdx_t5x.prompts.sdt.answers import read_answer
from sgdx_t5x.prompts.sdt.demonstrations import (
  Demonstrations,
  check_services,
  load_demonstrations,
)
from sgdx_t5x.prompts.sdt.layout import Layout, chosen, frame_layout, written_layout
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.sdt.text import before_parts, before_text, target_text, turn_text

LEAST_WORDS = 7  # shorter utterances ("Yes, please.") are not specific


@dataclasses.dataclass(frozen=True)
class SDT(TextExamples):
  """One example per frame: a demonstration of the service, then the dialogue."""

  style: SdtStyle = dataclasses.field(default_factory=SdtStyle)
  name: ClassVar[str] = "sdt"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = '"[state] slot=value ...", as in the example, "none" for no value'

  @functools.cached_property
  def demonstrations(self) -> Demonstrations:
    """Those of the style, as they are at the first access. Raises SgdxError: unreadable."""
    return load_demonstrations(self.style.demos)

  def layout(self, frame: ExampleId, service: ServicePair) -> Layout:
    """Returns the order of a frame's prompt. Raises SgdxError without a demonstration."""
    return frame_layout(_written(service, self.demonstrations, self.style), frame, self.style)

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The demonstration, then the history."""
    layout = self.layout(frame, service)
    turns = turn_writer(turn_text, self.style)(history)
    if self.style.order == "demonstration":  # one text for all frames, tokenised once
      return [Prompt(turns, before=(before_text(service, layout, self.style),))]
    return [Prompt(turns, before=before_parts(service, layout, self.style))]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """The state, and the active intent if the style asks for it."""
    return [target_text(service, state, self.layout(frame, service), self.style)]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> PredictedFrame:
    """The state, and the active intent if the style asks for it."""
    return read_answer(text, service, self.layout(example, service), self.style)

  def provenance(self, corpus: Corpus, gold: Sequence[GoldFrame]) -> Provenance:
    """Which demonstrations prompts show, and how many of their utterances are scored ones.

    Raises:
      SgdxError: a demonstration of a service that the corpus does not have.
    """
    demos = self.demonstrations
    check_services(demos, [corpus.schema(split) for split in corpus.splits])
    services = {frame.service for frame in gold}
    utterances: set[str] = set()  # of the user, in the demonstrations that prompts show
    for name, of_service in demos.by_service.items():
      for demo in chosen(of_service, self.style) if name in services else ():
        for speaker, text in demo.turns:
          if speaker == USER and len(text.split()) >= LEAST_WORDS:
            utterances.add(text)
    scored_crcs = {frame.utterance_crc for frame in gold}
    num_leaked = sum(utterance_crc(text) in scored_crcs for text in utterances)
    fields = {"demos": f"{demos.source}:{demos.crc}", "leak": f"{num_leaked}of{len(utterances)}"}
    notes = (
      f"LEAK: {num_leaked} of {len(utterances)} user utterances of {LEAST_WORDS} words or more in "
      "the demonstrations occur in the scored dialogues (docs/demonstrations.md)",
    )
    return Provenance(fields, notes if num_leaked else ())


@functools.lru_cache(maxsize=4096)  # services of all variants, which recur in dialogues
def _written(service: ServicePair, demos: Demonstrations, style: SdtStyle) -> Layout:
  demonstration = chosen(demos.of(service.original), style)
  return written_layout(demonstration, service.original, separate=style.order == "demonstration")
