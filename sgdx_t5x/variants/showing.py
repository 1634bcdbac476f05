"""A dialogue as text to read: its schema, what was said, and the states."""

import os
import textwrap
from collections.abc import Iterator, Mapping

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Turn
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import NO_INTENT, Schema, Service
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.variants.variant_schemas import VariantSchemas

_WIDTH = 80
_INDENT = " " * 8


@checked_arguments(
  corpus=(Corpus, *PATH), dialogue_id=str, variant=str, split=str, schemas=(Mapping, type(None))
)
def show(
  corpus: Corpus | str | os.PathLike,
  dialogue_id: str,
  variant: str = ORIGINAL,
  split: str = "test",
  schemas: Mapping[str, str | os.PathLike] | None = None,
) -> str:
  """Returns a dialogue as text: `print(sgdx_t5x.show(corpus, "1_00000", "v3"))`.

  Args:
    corpus: an open corpus, or an argument of `open_corpus`.
    dialogue_id: its id, unique within a split.
    variant: in whose words the schema and the states are shown.
    split: of the dialogue.
    schemas: own variant -> folder of its schemas.

  Returns:
    Lines of at most 80 columns: slots with their descriptions, utterances, and after each of the
    user's the state of each service.

  Raises:
    SgdxError: there is no such dialogue, split or variant.
  """
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  corpus.check_kinds(split, variant)
  dialogue = corpus[split][dialogue_id]
  original, reworded = corpus.schema(split), VariantSchemas(corpus, schemas).get(split, variant)
  lines = [f"{dialogue_id}, {split}, {variant}"]
  for name in dialogue.services:
    lines += _service(original[name], _reworded(original, reworded, name))
  for turn in dialogue.turns:
    lines += ["", *_wrapped(f"{turn.speaker:<6}  {turn.utterance}")]
    lines += _states(turn, original, reworded)
  return "\n".join(lines)


def _reworded(original: Schema, reworded: Schema, name: str) -> Service:
  """Returns the service of this original name in the variant: they align by position."""
  return reworded.services[original.names.index(name)]


def _service(original: Service, reworded: Service) -> Iterator[str]:
  yield ""
  yield from _wrapped(f"{reworded.name}: {reworded.description}")
  for original_slot, slot in zip(original.slots, reworded.slots, strict=True):
    renamed = "" if slot.name == original_slot.name else f" (originally {original_slot.name})"
    values = f" [{', '.join(slot.choices)}]" if slot.choices else ""
    yield from _wrapped(f"  {slot.name}{renamed}: {slot.description}{values}")


def _states(turn: Turn, original: Schema, reworded: Schema) -> Iterator[str]:
  """Yields the lines below a turn: each frame's state, with the variant's names."""
  for frame in turn.frames:
    if frame.state is None:
      continue
    service, in_variant = original[frame.service], _reworded(original, reworded, frame.service)
    facts = []
    if frame.state.active_intent != NO_INTENT:
      intent = in_variant.intents[service.intent_index[frame.state.active_intent]]
      facts.append(f"intent: {intent.name}")
    for slot, values in frame.state.slot_values.items():
      facts.append(f"{in_variant.slots[service.slot_index[slot]].name} = {' | '.join(values)}")
    for slot in frame.state.requested_slots:
      facts.append(f"asks for {in_variant.slots[service.slot_index[slot]].name}")
    yield from _wrapped(f"{_INDENT}[{in_variant.name}] " + ("; ".join(facts) or "nothing yet"))


def _wrapped(text: str) -> list[str]:
  # Of an empty text, which has a line as well, textwrap makes none.
  return textwrap.wrap(text, _WIDTH, subsequent_indent=_INDENT, drop_whitespace=True) or [text]
