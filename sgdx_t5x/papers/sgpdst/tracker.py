"""Tracks turn by turn with SGP-DST, which has a checkpoint for each of its four sub-models."""

import functools
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x import tasks
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst.sgpdst import NONE, PARTS
from sgdx_t5x.papers.sgpdst.sgpdst_features import SgpReader
from sgdx_t5x.papers.sgpdst.sgpdst_tracking import sgpdst_tracker
from sgdx_t5x.records.turns import Known, gold_history
from sgdx_t5x.tracking.checkpoints import Checkpoint
from sgdx_t5x.tracking.model import LoadedModel
from sgdx_t5x.tracking.protocol import KEPT_SCHEMAS, Shown, TrackedFrame, changes, walked

_FORMAT = "sgpdst_"


def load(checkpoints: Sequence[Checkpoint], lengths: Mapping[str, int]) -> "SgpTracker":
  """Returns the tracker of four checkpoints.

  Raises:
    SgdxError: a sub-model is missing or given twice.
  """
  found: dict[str, Checkpoint] = {}
  for one in checkpoints:
    part = _part(one)
    if part in found:
      raise SgdxError(
        f"two checkpoints for SGP-DST's {part}: {found[part].path} and {one.path}",
        expected="one checkpoint for each of " + ", ".join(PARTS),
        fix="pass only one of them",
      )
    found[part] = one
  missing = [part for part in PARTS if part not in found]
  if missing:
    raise SgdxError(
      f"SGP-DST without {' and '.join(missing)}",
      expected=f"a checkpoint for each of its sub-models: {', '.join(PARTS)}",
      available="; ".join(f"{part}: {one.path}" for part, one in found.items()),
      fix="; ".join(
        f"python -m t5x.train --gin_file=gin/papers/sgpdst/{part}.gin ..." for part in missing
      )
      + ", then pass all four folders",
    )
  return SgpTracker({part: LoadedModel(found[part], lengths) for part in PARTS})


def _part(checkpoint: Checkpoint) -> str:
  task = tasks.REGISTERED.get(checkpoint.task)
  part = task.format.removeprefix(_FORMAT) if task else ""
  if part not in PARTS:
    raise SgdxError(
      f"{checkpoint.path}: trained on {checkpoint.task}",
      expected="a sub-model of SGP-DST, like the first checkpoint",
      available=", ".join(PARTS),
      fix="pass the folders of SGP-DST's four checkpoints and no others",
    )
  return part


class SgpTracker:
  """See `protocol.Tracker`."""

  name = "SGP-DST"
  reads_acts = True

  def __init__(self, models: Mapping[str, LoadedModel], reads_gold: bool = False):
    """Takes loaded models.

    Args:
      models: sub-model -> its model.
      reads_gold: let copy and cross use gold history, as in the released pipeline.
    """
    self._models, self.reads_gold = models, reads_gold
    self._of = functools.lru_cache(KEPT_SCHEMAS)(self._make_readers)

  @property
  def settings(self) -> Mapping[str, str]:
    """See `protocol.Tracker`."""
    found = {"tracker": self.name}
    if self.reads_gold:
      found["history"] = "gold"
    for part, model in self._models.items():
      style = changes(model.task.how)
      found |= {f"{part} {name}": x for name, x in {**model.settings, **style}.items()}
    return found

  def with_gold_history(self) -> "SgpTracker":
    """Returns the same tracker with gold history."""
    return SgpTracker(self._models, reads_gold=True)

  def check(self, shown: Shown) -> None:
    """See `protocol.Tracker`."""
    readers = self._of(shown)
    for position, service in enumerate(shown.schema.services):
      known = Known("", 0, position, "", "", (), (position,))
      readers["intent"].intent(known, NONE, False)
      for slot in range(len(service.slots)):
        readers["combine"].combine(known, slot)
        readers["copy"].copy(known, slot, False, NONE)
        readers["cross"].cross(known, (slot, (position, slot)), False, NONE)

  def track(self, dialogues: Sequence[Dialogue], shown: Shown) -> Iterator[dict[str, TrackedFrame]]:
    """See `protocol.Tracker`."""

    def ask(part: str, features: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
      return self._models[part].answer(features)

    gold = None
    if self.reads_gold:
      turns = (found for dialogue in dialogues for found in gold_history(dialogue, shown.original))
      gold = {known.frame_id: (right, states) for known, right, states in turns}
    predict = sgpdst_tracker(shown.original, self._of(shown), ask, gold)
    yield from walked(dialogues, shown, predict)

  def _make_readers(self, shown: Shown) -> dict[str, SgpReader]:
    return {
      part: SgpReader(
        part, shown.schema, model.model.input_vocabulary, model.task.how, model.lengths["inputs"]
      )
      for part, model in self._models.items()
    }
