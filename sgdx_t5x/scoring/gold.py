"""The gold frames of a split, read with progress."""

from collections.abc import Callable, Sequence

from sgdx_t5x import metrics
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import GoldFrame
from sgdx_t5x.progress import OnProgress, counted


def gold_frames(
  corpus: Corpus,
  split: str,
  name: str,
  with_origins: bool,
  on_progress: OnProgress,
  each: Callable[[Dialogue], Dialogue] = lambda dialogue: dialogue,
) -> Sequence[GoldFrame]:
  """Reads the gold frames of a split.

  Args:
    corpus: where they are from.
    split: the split.
    name: what the progress line calls it.
    with_origins: see `metrics.gold_frames`.
    on_progress: see `score.score_predictions`.
    each: called with each dialogue, returns the one to use.

  Raises:
    SgdxError: no frames.
  """
  task, total = f"reading dialogues of {name}", corpus.expected_dialogues(split)
  dialogues = counted(corpus.dialogues(split), on_progress, task, total, "dialogues")
  frames = metrics.gold_frames(map(each, dialogues), with_origins)
  if not frames:
    raise SgdxError(
      f"{corpus.origin}: no user frames in split {split}",
      expected="dialogues with gold states",
      available=corpus.file_counts(),
      fix="choose a split with dialogues",
    )
  return frames
