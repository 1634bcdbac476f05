"""Loads trackers from checkpoints."""

import os
from collections.abc import Mapping, Sequence

from sgdx_t5x import annexes
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.tracking.checkpoints import Checkpoint, find_checkpoints
from sgdx_t5x.tracking.protocol import TRACKERS, Tracker


def open_tracker(
  *folders: str | os.PathLike,
  lengths: Mapping[str, int] | None = None,
  allow_modules: Sequence[str] = (),
) -> Tracker:
  """Loads the tracker of one or more checkpoints, which takes seconds.

  Args:
    folders: see `checkpoints.find_checkpoints`; several for a tracker of several models.
    lengths: of features, overriding those in the configurations.
    allow_modules: that the configurations may name, besides `config_gin.PACKAGES`.

  Raises:
    SgdxError: no checkpoints, checkpoints of different trackers, or ones that do not fit their
      configuration.
  """
  if not folders:
    raise UsageError(
      "no checkpoint",
      expected="a folder checkpoint_N or its MODEL_DIR",
      fix='for example load_tracker("runs/spandst")',
    )
  found = [x for folder in folders for x in find_checkpoints(folder, allow_modules)]
  kinds = {checkpoint.path: TRACKERS.get(_format(checkpoint)) for checkpoint in found}
  if None in kinds.values() or len(set(kinds.values())) > 1:
    raise SgdxError(
      "; ".join(f"{checkpoint.path}: {checkpoint.task}" for checkpoint in found),
      expected="checkpoints of a single tracker",
      available=f"trackers: {', '.join(TRACKERS)}",
      fix="pass a checkpoint that was trained on a task or mixture for one of them",
    )
  return annexes.load(str(kinds[found[0].path]))(found, lengths or {})


def with_gold_history(tracker: Tracker) -> Tracker:
  """Returns the tracker as an oracle that reads gold states of earlier turns.

  Raises:
    SgdxError: it does not support this. Of the published trackers, SGP-DST's pipeline does.
  """
  if not hasattr(tracker, "with_gold_history"):
    raise UsageError(
      f"--history gold with {tracker.name}",
      expected="a tracker whose published pipeline reads gold states of earlier turns",
      fix="leave it out; all other trackers use their own predictions",
    )
  return tracker.with_gold_history()


def _format(checkpoint: Checkpoint) -> str:
  from sgdx_t5x.tracking.model import registered

  return registered(checkpoint).format
