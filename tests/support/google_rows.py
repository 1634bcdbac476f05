"""The rows of the files that Google's script writes, including its shuffling.

For comparison: our formats draw orders from ids, so that an answer can be parsed alone. The script
draws all of a file's orders from one generator, frame after frame.
"""

import dataclasses
import random
from collections.abc import Collection, Iterable, Iterator, Mapping

from sgdx_t5x.corpus.dialogue import USER, Dialogue
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.sdt.demonstrations import Demonstrations
from sgdx_t5x.prompts.sdt.layout import PARTS, Layout, chosen, shuffled_layout, written_layout
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.sdt.text import before_parts, target_text, turn_text

SEED = 123  # the script's


@dataclasses.dataclass(frozen=True, slots=True)
class GoogleRow:
  """A line of the script's TSV file.

  Attributes:
    source, target: the texts.
    dialogue_id, turn, frame: of the frame; its turn's index over all turns, and its own in it.
    layout: the order of the prompt, with which `text.read_answer` reads an answer.
  """

  source: str
  target: str
  dialogue_id: str
  turn: int
  frame: int
  layout: Layout

  def __str__(self) -> str:
    return "\t".join((self.source, self.target, self.dialogue_id, str(self.turn), str(self.frame)))


def google_rows(
  dialogues: Iterable[Dialogue],
  services: Mapping[str, ServicePair],
  demos: Demonstrations,
  style: SdtStyle,
  shuffle: bool | Collection[str] = True,
) -> Iterator[GoogleRow]:
  """Yields the rows of a file.

  Args:
    dialogues: in original names, in the script's order: that of the files of a split.
    services: original name -> service.
    demos: the demonstrations, see `google_prompts.read_google_prompts`.
    style: its `order` and `seed` are ignored.
    shuffle: which of "slots", "values" and "intents" the script shuffles (--randomize_slots,
      --randomize_cat_vals, --randomize_intents); True for all of them, False for none.
  """
  parts = set(PARTS if shuffle is True else shuffle or ())
  parts -= {part for part in ("values", "intents") if getattr(style, part) != "letters"}
  rng = random.Random(SEED)
  for dialogue in dialogues:
    turns: list[str] = []
    for number, turn in enumerate(dialogue.turns):
      turns.append(turn_text(turn.speaker, turn.utterance, style))
      for position, frame in enumerate(turn.frames if turn.speaker == USER else ()):
        service = services[frame.service]
        layout = written_layout(chosen(demos.of(service.original), style), service.original)
        layout = shuffled_layout(layout, rng, parts)
        source = " ".join((*before_parts(service, layout, style), *turns))
        target = target_text(service, frame.state, layout, style)
        yield GoogleRow(source, target, dialogue.dialogue_id, number, position, layout)
