"""Checkpoints: saving, choosing one, restoring it into a train state.

A save goes to a temporary folder that is renamed when complete, so a crash never leaves a
checkpoint that a restart would pick. Which checkpoint a run starts from: `choose_checkpoint`.
"""

from __future__ import annotations

from t5x._checkpoint.choose import CheckpointChoice, checkpoint_step, choose_checkpoint
from t5x._checkpoint.read import (
  checkpoint_steps,
  layout_of,
  load_checkpoint,
  open_checkpoint,
)
from t5x._checkpoint.restore import restore
from t5x._checkpoint.write import (
  Checkpointer,
  OrbaxCheckpointManagerInterface,
  SaveBestCheckpointer,
)

__all__ = [
  "CheckpointChoice",
  "Checkpointer",
  "OrbaxCheckpointManagerInterface",
  "SaveBestCheckpointer",
  "checkpoint_step",
  "checkpoint_steps",
  "choose_checkpoint",
  "get_checkpoint_prefix",
  "layout_of",
  "load_checkpoint",
  "load_t5x_checkpoint",
  "open_checkpoint",
  "restore",
]

load_t5x_checkpoint = load_checkpoint  # T5X's name


def get_checkpoint_prefix() -> str:
  """The folder name before the step: `checkpoint_`."""
  return "checkpoint_"
