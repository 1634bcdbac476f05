"""Opens a tracker, whatever kind of folder it is in."""

import os
import pathlib
from collections.abc import Mapping, Sequence

from sgdx_t5x import annexes
from sgdx_t5x.errors import SgdxError, UsageError, require
from sgdx_t5x.files.reading import not_found
from sgdx_t5x.prompts import CORE_FORMATS
from sgdx_t5x.spandst import packed
from sgdx_t5x.tracking.protocol import Tracker

# Format of a checkpoint's task (`tasks.REGISTERED[...].format`) -> module:function. The function
# takes the checkpoints, `Sequence[checkpoints.Checkpoint]`, and `lengths` of features that override
# those of their configurations, and returns a `Tracker`.
TRACKERS = {
  **dict.fromkeys(CORE_FORMATS, "sgdx_t5x.tracking.prompted:load"),
  "spandst": "sgdx_t5x.tracking.trained:load",
  **annexes.table("TRACKERS"),
}


def open_tracker(
  *folders: str | os.PathLike,
  lengths: Mapping[str, int] | None = None,
  allow_modules: Sequence[str] = (),
) -> Tracker:
  """Loads a tracker, which takes seconds.

  Args:
    folders: a folder that `sgdx weights pack` wrote; or checkpoints, see `checkpoints`, several for
      a tracker of several models; or none for the tracker that this package ships.
    lengths: of features, overriding those in the configurations.
    allow_modules: that the checkpoints' configurations may name.

  Raises:
    SgdxError: no tracker there, one that does not fit its configuration, or no MiniLM.
  """
  if is_packed(*folders):
    if len(folders) > 1:
      raise UsageError(
        ", ".join(map(str, folders)), expected="one packed tracker", fix="pass one folder"
      )
    if allow_modules:
      raise UsageError(
        f"--allow-module {' '.join(allow_modules)} for a packed tracker",
        expected="modules that the config.gin of a checkpoint names",
        fix="leave it out (in Python: allow_modules)",
      )
    if not folders and not packed.SHIPPED.is_dir():
      raise SgdxError(
        "no CHECKPOINT, and this installation ships no tracker",
        expected=f"{packed.SHIPPED}",
        fix="pass a checkpoint of `t5x.train`, or install sgdx_t5x with its package data",
      )
    from sgdx_t5x.tracking.packed import load

    return load(pathlib.Path(folders[0]) if folders else packed.SHIPPED, lengths)
  # Before TensorFlow is imported, which takes seconds; paths like gs:// are left to T5X.
  for folder in folders:
    if "://" not in str(folder) and not os.path.exists(folder):
      raise not_found(
        pathlib.Path(folder), "a checkpoint of `t5x.train`, or a packed tracker", "folder"
      )
  require("seqio", extra="train", why="checkpoints of `t5x.train`")
  from sgdx_t5x.tracking.checkpoints import Checkpoint, find_checkpoints, registered

  checkpoints: list[Checkpoint] = []  # of all models of the tracker
  for folder in folders:
    checkpoints += find_checkpoints(folder, allow_modules)
  loaders = {TRACKERS.get(registered(checkpoint).format) for checkpoint in checkpoints}
  if None in loaders or len(loaders) > 1:
    raise SgdxError(
      "; ".join(f"{checkpoint.path}: {checkpoint.task}" for checkpoint in checkpoints),
      expected="checkpoints of a single tracker",
      available=f"trackers: {', '.join(TRACKERS)}",
      fix="pass a checkpoint that was trained on a task or mixture for one of them",
    )
  return annexes.load(str(loaders.pop()))(checkpoints, lengths or {})


def is_packed(*folders: str | os.PathLike) -> bool:
  """Whether the folders name a packed tracker: the shipped one, or one that a user packed."""
  return not folders or os.path.isfile(pathlib.Path(folders[0]) / packed.CONFIG)


def with_gold_history(tracker: Tracker) -> Tracker:
  """Returns the tracker as an oracle that reads gold states of earlier turns.

  Raises:
    SgdxError: it cannot, as it has no method of this name.
  """
  if not hasattr(tracker, "with_gold_history"):
    raise UsageError(
      f"--history gold with {tracker.name}",
      expected="a tracker whose published pipeline reads gold states of earlier turns",
      fix="leave it out; all other trackers use their own predictions",
    )
  return tracker.with_gold_history()
