"""The gold frames of a split, read with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
  look: Callable[[Dialogue], None] | None = None,
) -> Sequence[GoldFrame]:
  """Reads the gold frames of a split.

  Args:
    corpus: where they are from.
    split: the split.
    name: what the progress line calls it.
    with_origins: see `metrics.gold_frames`.
    on_progress: see `score.score_predictions`.
    look: called with each dialogue.

  Raises:
    SgdxError: no frames.
  """

  def dialogues() -> Iterator[Dialogue]:
    total = corpus.expected_dialogues(split)
    task = f"reading dialogues of {name}"
    for dialogue in counted(corpus.dialogues(split), on_progress, task, total, "dialogues"):
      if look:
        look(dialogue)
      yield dialogue

  frames = metrics.gold_frames(dialogues(), with_origins)
  if not frames:
    raise SgdxError(
      f"{corpus.origin}: no user frames in split {split}",
      expected="dialogues with gold states",
      available=corpus.file_counts(),
      fix="choose a split with dialogues",
    )
  return frames
