"""Prompted trackers: T5DST, D3ST, SDT and any other format of `prompts`.

An answer depends only on the dialogue, not on other answers, so all frames are run at once.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sgdx_t5x.corpus.dialogue import Dialogue, frame_id
from sgdx_t5x.corpus.example_id import FRAME, ExampleId
from sgdx_t5x.corpus.schema import DONTCARE
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts import signature_fields
from sgdx_t5x.prompts.protocol import Prompt, ServicePair, service_pairs
from sgdx_t5x.prompts.text_examples import Tokens, check_fits, input_tokens
from sgdx_t5x.tracking.as_said import as_said
from sgdx_t5x.tracking.checkpoints import Checkpoint, one_of
from sgdx_t5x.tracking.model import LoadedModel
from sgdx_t5x.tracking.protocol import Shown, TrackedFrame


def load(checkpoints: Sequence[Checkpoint], lengths: Mapping[str, int]) -> "PromptedTracker":
  """Returns the tracker of a checkpoint. Raises SgdxError if there are several."""
  return PromptedTracker(LoadedModel(one_of(checkpoints), lengths))


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
  """The examples of a frame: one per slot, or one."""

  frame: ExampleId
  pair: ServicePair
  slots: Sequence[str | None]
  prompts: Sequence[Prompt]
  utterances: Sequence[str]


class PromptedTracker:
  """See `protocol.Tracker`. Args: model, trained on tasks of a prompt format."""

  reads_acts = needs_acts = False
  reads_gold = False

  def __init__(self, model: LoadedModel):
    self._model, self._format = model, model.task.style_or_format
    self._tokens = Tokens(model.model.input_vocabulary)
    self._is_uncased = getattr(model.model.input_vocabulary, "lower_case", False)

  @property
  def name(self) -> str:
    """See `protocol.Tracker`."""
    return type(self._format).__name__

  @property
  def settings(self) -> Mapping[str, str]:
    """See `protocol.Tracker`."""
    fields = signature_fields(self._format)
    if demos := getattr(self._format, "demonstrations", None):  # a file, which the fields leave out
      fields["demos"] = demos.crc
    return {**self._model.settings, "tracker": self.name, **fields}

  def check(self, shown: Shown) -> None:
    """See `protocol.Tracker`."""
    pairs = {shown.variant: service_pairs(shown.original, shown.schema)}
    limit = self._model.lengths["inputs"]
    check_fits(self._format, shown.split, pairs, self._tokens, limit)

  def track(self, dialogues: Sequence[Dialogue], shown: Shown) -> Iterator[dict[str, TrackedFrame]]:
    """See `protocol.Tracker`."""
    questions: list[_Asked] = []
    prompts: list[Prompt] = []
    for dialogue in dialogues:
      for question in self._asked(dialogue, shown):
        questions.append(question)
        prompts += question.prompts
    answers = iter(self._answers(prompts))
    frames = {}
    for question in questions:  # each takes as many answers as it has prompts: one per slot, or one
      texts = list(itertools.islice(answers, len(question.slots)))
      frames[question.frame.frame_id] = self._read(question, texts)
    yield frames

  def _asked(self, dialogue: Dialogue, shown: Shown) -> Iterator[_Asked]:
    turns = [(turn.speaker, turn.utterance) for turn in dialogue.turns]
    pairs = service_pairs(shown.original, shown.schema)
    texts = [turn.utterance for turn in dialogue.turns]
    for turn, frame in dialogue.user_frames():
      name = frame_id(dialogue.dialogue_id, turn, frame.service)
      example, pair = ExampleId(shown.variant, shown.split, name), pairs[frame.service]
      slots = self._format.asked(pair.original)
      prompts = self._format.prompts(example, pair, tuple(turns[: turn + 1]))
      yield _Asked(example, pair, slots, prompts, texts[: turn + 1])

  def _answers(self, prompts: Sequence[Prompt]) -> list[str]:
    vocabulary, limit = self._model.model.input_vocabulary, self._model.lengths["inputs"]
    features = []  # the same bytes as in SeqIO's tasks, so that answers equal those of `t5x.infer`
    for tokens in input_tokens(prompts, self._tokens, limit):
      ids = np.frombuffer(tokens, np.int32)
      features.append({"inputs": [*ids.tolist(), vocabulary.eos_id][:limit]})
    decode = self._model.model.output_vocabulary.decode
    return [decode(ids) for ids in self._model.answer(features)]

  def _read(self, question: _Asked, texts: Sequence[str]) -> TrackedFrame:
    read_text = self._format.read
    # An answer is of a slot, or of the frame.
    if self._format.unit != FRAME:
      values = {}
      for slot, text in zip(question.slots, texts, strict=True):
        value = read_text(text, question.frame.with_slot(slot), question.pair)
        if slot is not None and value is not None:
          values[slot] = (self._spelled(question, slot, value),)
      return TrackedFrame(values)
    predicted: PredictedFrame = read_text(texts[0], question.frame.with_slot(None), question.pair)
    spelled = {}
    for slot, values_of_slot in predicted.slot_values.items():
      spelled[slot] = tuple(self._spelled(question, slot, x) for x in values_of_slot)
    return TrackedFrame(spelled, predicted.active_intent, predicted.requested_slots)

  def _spelled(self, question: _Asked, slot: str, value: str) -> str:
    """Returns a value with the case of the dialogue if the vocabulary has none."""
    service = question.pair.original
    schema_values = (DONTCARE, *service.slots[service.slot_index[slot]].possible_values)
    if not self._is_uncased or value in schema_values:
      return value
    return as_said(value, question.utterances)
