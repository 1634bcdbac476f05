"""T5X checkpoints: reads parameters from either layout, writes whole checkpoints as Orbax."""

from __future__ import annotations

import json
import math
import pathlib
import re
import shutil
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError, first_line, require
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.progress import MEGABYTE, OnProgress, no_progress
from sgdx_t5x.weights import bert_layout, layout

_MIN_DIM_TO_FACTOR = 128  # adafactor.Adafactor.min_dim_size_to_factor


# --- reading -------------------------------------------------------------------------------


def read_checkpoint(
  path: str | pathlib.Path, on_progress: OnProgress = no_progress
) -> layout.Weights:
  """Reads the parameters of a T5X checkpoint of either layout; gs:// works where T5X's does.

  Args:
    path: a folder checkpoint_N.
    on_progress: called with (task, done, total, unit).

  Returns:
    The weights in their stored dtype; for a tracker with a BERT, only the encoder's.

  Raises:
    SgdxError: the checkpoint is missing or damaged, or contains neither a T5 nor a BERT.
  """
  path = str(path)
  flat = _read_arrays(path, on_progress)
  step = int(flat.pop("state/step", 0))
  arrays = {name.removeprefix("target/"): array for name, array in flat.items()}
  kind: Any = layout
  notes: tuple[str, ...] = ()
  if bert_layout.is_bert(arrays):
    kind = bert_layout
    # A tracker's heads have no place in an encoder's file.
    heads = [name for name in arrays if not name.startswith(bert_layout.PREFIX)]
    for name in heads:
      del arrays[name]
    if heads:
      notes = (f"skipped {len(heads)} arrays of heads",)
  shapes = {name: tuple(array.shape) for name, array in arrays.items()}
  sizes = kind.sizes_of(shapes, path)
  layout.check(layout.shapes_of(kind.tensors(sizes)), shapes, path)
  layout.check_finite(arrays, path)
  return layout.Weights(sizes, arrays, step, notes)


def _read_arrays(path: str, on_progress: OnProgress) -> dict[str, np.ndarray]:
  """Returns {"target/...": array, "state/step": array}."""
  _require("orbax.checkpoint", "flax", "t5x.checkpoints")
  from etils import epath

  folder = epath.Path(path)
  try:
    if (folder / "state" / "_METADATA").exists() and _is_complete(folder):
      return _read_orbax(folder, on_progress)
    if (folder / "checkpoint").exists():
      from t5x import checkpoints  # Google's T5X has this function for this layout alone

      return _parameters_and_step(_flatten(checkpoints.load_t5x_checkpoint(path)))
  except Exception as e:  # any error of TensorStore, Orbax or msgpack
    raise SgdxError(
      f"{path}: cannot be read: {_first_line(e)}",
      expected="a complete T5X checkpoint",
      fix="copy it again, including files and folders whose names start with a dot",
    ) from e
  raise SgdxError(
    f"{path}: {'no complete T5X checkpoint in it' if folder.exists() else 'no such folder'}",
    expected="a folder checkpoint_N with `state/` (Orbax) or `checkpoint` (legacy) in it",
    available=_checkpoints_near(folder),
    fix="pass the path of the checkpoint itself, including checkpoint_N",
  )


def _is_complete(folder: Any) -> bool:
  """Whether Orbax finished; without atomic renames (gs://), a partial save looks complete."""
  metadata = folder / "_CHECKPOINT_METADATA"
  if (folder / "commit_success.txt").exists() or not metadata.exists():
    return True
  return bool(json.loads(metadata.read_text()).get("commit_timestamp_nsecs"))


def _read_orbax(folder: Any, on_progress: OnProgress) -> dict[str, np.ndarray]:
  import orbax.checkpoint as ocp

  handler = ocp.PyTreeCheckpointHandler()
  state = folder.absolute() / "state"  # TensorStore requires absolute paths
  # The optimizer's slots are not read.
  tree = _parameters_and_step(_flatten(handler.metadata(state).tree))
  size = sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in tree.values())
  on_progress("reading", 0, size // MEGABYTE, "MB")
  as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
  restored = handler.restore(
    state,
    args=ocp.args.PyTreeRestore(
      item=_unflatten(tree),
      restore_args=_unflatten(dict.fromkeys(tree, as_numpy)),
      partial_restore=True,
    ),
  )
  handler.close()
  return {name: np.asarray(array) for name, array in _flatten(restored).items()}


def _parameters_and_step(flat: Mapping[str, Any]) -> dict[str, Any]:
  return {name: x for name, x in flat.items() if name.startswith("target/") or name == "state/step"}


def _checkpoints_near(folder: Any) -> str:
  """Lists checkpoints in a folder given instead of a checkpoint, or beside a missing one."""
  place = folder if folder.exists() else folder.parent
  if not place.is_dir():
    return ""
  steps = [path for path in place.iterdir() if re.fullmatch(r"checkpoint_\d+", path.name)]
  steps.sort(key=lambda path: int(path.name.rpartition("_")[2]))
  return ", ".join(str(path) for path in steps[-4:])


def _first_line(error: Exception) -> str:
  """Returns the error message without the long spec that TensorStore appends."""
  return first_line(error).split(" [tensorstore_spec=")[0]


# --- writing -------------------------------------------------------------------------------


def write_checkpoint(
  weights: layout.Weights,
  out: str | pathlib.Path,
  step: int = 0,
  overwrite: bool = False,
  on_progress: OnProgress = no_progress,
) -> pathlib.Path:
  """Writes OUT/checkpoint_STEP in T5X's Orbax layout; for a T5, with Adafactor's slots.

  The slots are zeros. At step 0, with Adafactor's step_offset 0, that is exactly a fresh
  optimizer: its first update weighs the old second moments with 1 - 1^-0.8 = 0. From a later
  step N, step_offset = N does the same.

  Args:
    weights: what to write; stored in float32.
    out: local folder to write to; other checkpoints in it are kept.
    step: the number of updates to record, 0 or more.
    overwrite: replace an existing checkpoint_STEP.
    on_progress: see `read_checkpoint`.

  Returns:
    The absolute path of the checkpoint.

  Raises:
    SgdxError: nothing is written then.
  """
  folder = check_checkpoint_free(out, step, overwrite)
  _require("orbax.checkpoint", "flax")
  import jax.numpy as jnp

  target = {name: jnp.asarray(array, jnp.float32) for name, array in weights.arrays.items()}
  slots = {}
  # A BERT is imported without the heads of a tracker, so training creates the optimizer state anew.
  if not bert_layout.is_bert(target):
    for name, array in target.items():
      for slot, shape in adafactor_slots(array.shape).items():
        slots[f"{name}/{slot}"] = jnp.zeros(shape, jnp.float32)
  state = {"step": jnp.asarray(step, jnp.int32), "param_states": _unflatten(slots)}
  size = sum(array.nbytes for array in (*target.values(), *slots.values()))
  on_progress("writing", 0, size // MEGABYTE, "MB")
  with atomic_folder(folder) as temporary:
    _save_orbax(temporary, {"state": state, "target": _unflatten(target)})
  return folder


def adafactor_slots(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
  """Returns the shapes of a parameter's Adafactor slots, as configured in T5X's gin files.

  A matrix is factored over its two dimensions if the smaller one is at least 128; v_row has the
  length of the smaller one. An unused slot has shape [1], and there is no first moment (`m`).
  """
  v_row, v_col, v = (1,), (1,), tuple(shape)
  if len(shape) == 2 and min(shape) >= _MIN_DIM_TO_FACTOR:
    v_row, v_col, v = (min(shape),), (max(shape),), (1,)
  return {"m": (1,), "v": v, "v_col": v_col, "v_row": v_row}


def check_checkpoint_free(out: str | pathlib.Path, step: int, overwrite: bool) -> pathlib.Path:
  """Returns the path of the checkpoint to write; raises SgdxError if it may not be written."""
  names_of_parts = ("state", "dataset", "checkpoint", "_CHECKPOINT_METADATA", "commit_success.txt")
  return check_folder(
    f"{out or '.'}/checkpoint_{step}",  # Path would turn gs:// into gs:/
    replace=overwrite,
    ours=lambda path: path.parts[0] in names_of_parts,
    expected="a folder that is new or empty, or a checkpoint to replace",
  )


def _save_orbax(folder: pathlib.Path, tree: Mapping[str, Any]) -> None:
  """Saves a tree in the layout of T5X's Orbax checkpoints, in a folder of `atomic_folder`.

  Raises:
    OSError: TensorStore cannot write, for example on a full disk.
  """
  import orbax.checkpoint as ocp

  with ocp.Checkpointer(ocp.CompositeCheckpointHandler("state")) as checkpointer:
    try:
      checkpointer.save(folder, args=ocp.args.Composite(state=ocp.args.PyTreeSave(tree)))
    except ValueError as e:  # which TensorStore raises if it cannot write
      # One write has failed, and Orbax does not wait for the others. They would make the temporary
      # folder again after `atomic_folder` has removed it.
      _remove_for_good(folder.parent)
      raise OSError(_first_line(e)) from e
  # Without atomic renames, as in gs://, readers take a checkpoint without these for unfinished.
  for place in (folder / "state", folder):
    (place / "commit_success.txt").write_text(f"Checkpoint commit was successful to {place.name}")


def _remove_for_good(folder: pathlib.Path) -> None:
  """Removes a folder until it stays away for a second, for at most 30 seconds.

  Threads of Orbax and TensorStore, of which Python cannot join the latter, may make it again.
  """
  last_seen = start = time.monotonic()
  while time.monotonic() < min(last_seen + 1, start + 30):
    if folder.exists():
      shutil.rmtree(folder, ignore_errors=True)
      last_seen = time.monotonic()
    time.sleep(0.01)


# --- trees ---------------------------------------------------------------------------------


def _flatten(tree: dict[str, Any]) -> dict[str, Any]:
  """{'a': {'b': x}} -> {'a/b': x}."""
  from flax import traverse_util  # imports JAX, so only when needed

  return traverse_util.flatten_dict(tree, sep="/")


def _unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
  """The inverse of `_flatten`."""
  from flax import traverse_util

  return traverse_util.unflatten_dict(dict(flat), sep="/")


def _require(*modules: str) -> None:
  """Imports what T5X checkpoints need; T5X is this project's t5x_lite, or Google's."""
  for module in modules:
    require(module, extra="train", why="T5X checkpoints", packages="./t5x_lite")
