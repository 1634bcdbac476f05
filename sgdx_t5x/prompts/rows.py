"""T5DST prompts as rows {"id", "prompt"}, for models that are not trained with SeqIO.

Ids and texts are those of the SeqIO tasks (`example_id_pretokenized`, `inputs_pretokenized`).
A row says nothing of the gold state.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.dialogue import Dialogue, frame_id
from sgdx_t5x.data.schema import Schema
from sgdx_t5x.prompts.t5dst import PromptStyle, slot_indices, slot_text, target_text, utterance_text


@dataclasses.dataclass(frozen=True, slots=True)
class SlotPrompt:
  """What a frame is asked for a slot.

  Attributes:
    slot: its original name.
    text: the slot prompt, in the variant's wording.
    answers: possible values as the style writes them; () if the slot is not categorical.
  """

  slot: str
  text: str
  answers: tuple[str, ...]


SlotPrompts = Mapping[str, Sequence[SlotPrompt]]  # service, by its original name -> its questions


def schema_prompts(original: Schema, variant: Schema, style: PromptStyle) -> SlotPrompts:
  """Returns what is asked of every service of a split, in a variant's wording.

  Raises:
    SgdxError: a slot has more possible values than the style can show.
  """
  found: dict[str, list[SlotPrompt]] = {}
  for theirs, ours in zip(original, variant, strict=True):
    found[theirs.name] = []
    for i in slot_indices(theirs, style):
      slot = ours.slots[i]
      values = slot.possible_values if slot.is_categorical else ()
      answers = tuple(target_text(slot, [value], style) for value in values)
      question = SlotPrompt(theirs.slots[i].name, slot_text(ours, slot, style), answers)
      found[theirs.name].append(question)
  return found


def dialogue_rows(
  dialogue: Dialogue, split: str, questions: Mapping[str, SlotPrompts], style: PromptStyle
) -> Iterator[dict[str, Any]]:
  """Yields the prompts of a dialogue: frame by frame, then by variant, then by slot.

  Args:
    dialogue: in original names.
    split: named in the ids.
    questions: variant -> its questions.
    style: the one that the questions were made with.

  Yields:
    {"id": "v3/test/1_00000-002-Banks_2/amount", "prompt": str}, and for categorical slots
    "possible_values": list of str.
  """
  turns = [utterance_text(turn.speaker, turn.utterance, style) for turn in dialogue.turns]
  for turn, frame in dialogue.user_frames():
    name = frame_id(dialogue.dialogue_id, turn, frame.service)
    history = " ".join(turns[: turn + 1])
    for variant, asked in questions.items():
      for question in asked[frame.service]:
        row = {
          "id": f"{variant}/{split}/{name}/{question.slot}",
          "prompt": f"{history} {question.text}",
        }
        if question.answers:
          row["possible_values"] = list(question.answers)
        yield row
