"""Runs the SGD baseline on all turns' utterances at once; its updates then accumulate."""

import functools
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.papers.sgd_baseline.baseline_features import BaselineReader
from sgdx_t5x.records.turns import user_turns
from sgdx_t5x.spandst.span_features import Example
from sgdx_t5x.spandst.span_tracking import span_prediction
from sgdx_t5x.spandst.walk import Prediction, Question
from sgdx_t5x.tracking.checkpoints import Checkpoint, one_of
from sgdx_t5x.tracking.model import LoadedModel
from sgdx_t5x.tracking.protocol import KEPT_SCHEMAS, Shown, TrackedFrame, changes, walked


def load(checkpoints: Sequence[Checkpoint], lengths: Mapping[str, int]) -> "SgdBaseline":
  """Returns the tracker of a checkpoint. Raises SgdxError if there are several."""
  return SgdBaseline(LoadedModel(one_of(checkpoints), lengths))


class SgdBaseline:
  """See `protocol.Tracker`. Args: model, trained on tasks of the baseline."""

  name = "the SGD baseline"
  reads_acts = needs_acts = False
  reads_gold = False

  def __init__(self, model: LoadedModel):
    self._model, self._style = model, model.task.style_or_format
    self._reader = functools.lru_cache(KEPT_SCHEMAS)(self._make_reader)
    vectors = np.ascontiguousarray(model.model.module.table.vectors)
    self._digest = hashlib.blake2b(vectors.view(np.uint8).data, digest_size=8).hexdigest()

  @property
  def settings(self) -> Mapping[str, str]:
    """See `protocol.Tracker`."""
    settings = {**self._model.settings, "tracker": self.name, "schema_embeddings": self._digest}
    return settings | changes(self._style)

  def check(self, shown: Shown) -> None:
    """See `protocol.Tracker`."""
    self._reader(shown).check()

  def track(self, dialogues: Sequence[Dialogue], shown: Shown) -> Iterator[dict[str, TrackedFrame]]:
    """See `protocol.Tracker`."""
    reader = self._reader(shown)
    examples: dict[str, Example] = {}
    for dialogue in dialogues:
      for frame in itertools.chain.from_iterable(user_turns(dialogue, shown.original)):
        examples[frame.frame_id] = reader.example(frame)
    answers = self._model.answer([example.features for example in examples.values()])
    vectors = dict(zip(examples, answers, strict=True))

    def predict(questions: Sequence[Question]) -> list[Prediction]:
      keys = [(question, question.context.frame_id) for question in questions]
      return [span_prediction(shown.original, q, examples[x], vectors[x]) for q, x in keys]

    yield from walked(dialogues, shown, predict)

  def _make_reader(self, shown: Shown) -> BaselineReader:
    model = self._model.model
    return BaselineReader(
      shown.schema, model.input_vocabulary, model.module.table.row, self._style, self._model.lengths
    )
