"""Checkpoint folders: pinned ones, which are never deleted, and what wrote them."""

from __future__ import annotations

import enum
import os

from etils import epath

from t5x._checkpoint.keep import PINNED, delete, is_pinned_checkpoint
from t5x._checkpoint.read import layout_of
from t5x._process.log import log

__all__ = [
  "CheckpointTypes",
  "detect_checkpoint_type",
  "is_pinned_checkpoint",
  "pin_checkpoint",
  "pinned_checkpoint_filepath",
  "remove_checkpoint_dir",
  "remove_dataset_checkpoint",
  "unpin_checkpoint",
]


def pinned_checkpoint_filepath(ckpt_dir: str) -> str:
  """Returns the path of the file that pins a checkpoint."""
  return os.path.join(ckpt_dir, PINNED)


def pin_checkpoint(ckpt_dir: str, txt: str = "1") -> None:
  """Pins a checkpoint, so that neither a run nor these functions delete it.

  Args:
    ckpt_dir: its folder, `.../checkpoint_N`.
    txt: content of the file, for example why.
  """
  epath.Path(pinned_checkpoint_filepath(ckpt_dir)).write_text(txt)


def unpin_checkpoint(ckpt_dir: str) -> None:
  """Unpins a checkpoint; does nothing if it is not pinned or does not exist."""
  epath.Path(pinned_checkpoint_filepath(ckpt_dir)).unlink(missing_ok=True)


def remove_checkpoint_dir(ckpt_dir: str) -> None:
  """Deletes a checkpoint unless it is pinned."""
  if is_pinned_checkpoint(ckpt_dir):
    log(f"{ckpt_dir} is pinned and is kept")
  else:
    delete(epath.Path(ckpt_dir))


def remove_dataset_checkpoint(ckpt_dir: str, train_ds_prefix: str) -> None:
  """Deletes the files `<train_ds_prefix>*` of a checkpoint unless it is pinned."""
  if is_pinned_checkpoint(ckpt_dir):
    log(f"{ckpt_dir} is pinned and keeps its dataset state")
    return
  for path in epath.Path(ckpt_dir).glob(train_ds_prefix + "*"):
    path.unlink()


class CheckpointTypes(enum.Enum):
  """What wrote a checkpoint: Orbax, T5X's own code (the legacy layout), or Mesh TensorFlow."""

  ORBAX = "ORBAX"
  T5X = "T5X"
  T5X_TF = "T5X_TF"


_TENSORFLOW = b"model_checkpoint_path"  # how TensorFlow's list of checkpoints begins


def detect_checkpoint_type(
  checkpoint_path: str, expected: CheckpointTypes | None = None
) -> CheckpointTypes:
  """Looks at the file `checkpoint` of a checkpoint and at what lies beside it.

  Args:
    checkpoint_path: path of that file (it need not exist in an Orbax checkpoint).
    expected: type the caller expects; another type is logged.

  Returns:
    The type; T5X if nothing says otherwise.
  """
  path = epath.Path(checkpoint_path)
  found = CheckpointTypes.T5X
  if layout_of(path.parent) == "orbax" or (path.parent / "_METADATA").exists():
    found = CheckpointTypes.ORBAX  # the second is a tree by itself, for example checkpoint_N/state
  else:
    with path.open("rb") as file:
      if file.read(len(_TENSORFLOW)) == _TENSORFLOW:
        found = CheckpointTypes.T5X_TF
  if expected not in (None, found):
    log(f"{checkpoint_path} was written as {found.value}, not as {expected.value}")
  return found
