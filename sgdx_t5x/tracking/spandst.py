"""Tracks turn by turn with SpanDST: its model reads what it predicted in earlier turns."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.spandst.span_features import SpanReader
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.span_tracking import span_prediction
from sgdx_t5x.spandst.system_turns import ReadActs, with_acts
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.spandst.walk import Prediction, Question
from sgdx_t5x.tracking.protocol import KEPT_SCHEMAS, Shown, TrackedFrame, changes, walked


class SpanModelProtocol(Protocol):
  """What tracking needs of a model: `model.LoadedModel`, or `packed.PackedModel`.

  Attributes:
    lengths: of features.
    settings: what its answers depend on.
  """

  lengths: Mapping[str, int]

  @property
  def settings(self) -> dict[str, str]:
    """See the class."""

  def answer(self, features: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
    """Returns the answer for each frame: see `spandst.answers`."""


class SpanDST:
  """See `protocol.Tracker`.

  Args:
    model: trained on tasks of SpanDST.
    style: of these tasks.
    vocabulary: of the model.
    read_acts: reads the system's acts where none are annotated; None leaves them unread.
  """

  name = "SpanDST"
  reads_acts = True
  reads_gold = False

  def __init__(
    self,
    model: SpanModelProtocol,
    style: SpanStyle,
    vocabulary: WordPieceFile,
    read_acts: ReadActs | None = None,
  ):
    self._model, self._style, self._vocabulary = model, style, vocabulary
    self._read_acts = read_acts
    # A model that was trained on plain text, too, may track it.
    self.needs_acts = not self._style.plain_text and read_acts is None
    self._reader = functools.lru_cache(KEPT_SCHEMAS)(self._make_reader)

  @property
  def settings(self) -> Mapping[str, str]:
    """See `protocol.Tracker`."""
    return {**self._model.settings, "tracker": self.name, **changes(self._style)}

  def check(self, shown: Shown) -> None:
    """See `protocol.Tracker`."""
    self._reader(shown).check()

  def track(self, dialogues: Sequence[Dialogue], shown: Shown) -> Iterator[dict[str, TrackedFrame]]:
    """See `protocol.Tracker`."""
    reader = self._reader(shown)
    if self._read_acts:
      dialogues = with_acts(dialogues, shown.original, reader, self._read_acts)

    def predict(questions: Sequence[Question]) -> list[Prediction]:
      examples = [reader.example(question.context, question.states) for question in questions]
      answers = self._model.answer([example.features for example in examples])
      asked = zip(questions, examples, answers, strict=True)
      return [span_prediction(shown.original, *of_frame) for of_frame in asked]

    for portion in walked(dialogues, shown, predict):
      if not self._style.intents:  # the model did not read them: it has none to answer
        for name, frame in portion.items():
          portion[name] = dataclasses.replace(frame, active_intent=None)
      yield portion

  def _make_reader(self, shown: Shown) -> SpanReader:
    return SpanReader(shown.schema, self._vocabulary, self._style, self._model.lengths)
