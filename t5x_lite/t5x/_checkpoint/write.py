"""Writing checkpoints: T5X's Orbax layout, and its legacy layout on request.

Both are written to a temporary folder that is renamed when it is complete, so that an interrupted
save never leaves a folder that `checkpoint_steps` (and so a restart) would pick. On object stores,
where a folder cannot be renamed atomically, the legacy index file is written last instead; Orbax
has a marker file for them.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath
from jax.sharding import PartitionSpec

from t5x._checkpoint import legacy_layout
from t5x._checkpoint.keep import EventReader, delete, worse_than_best
from t5x._checkpoint.read import checkpoint_steps, flatten, unflatten
from t5x._process import hosts
from t5x._process.log import log
from t5x.errors import T5XError
from t5x.partitioning import in_structure

_PINNED = "PINNED"  # a checkpoint with a file of this name is never deleted
_LEFTOVER = re.compile(r"^checkpoint_\d+\.tmp-")


class OrbaxCheckpointManagerInterface:
  """Saves train states as DIRECTORY/checkpoint_N in the Orbax layout.

  Args:
      directory: MODEL_DIR.
      keep: checkpoints to keep; None keeps all. One with a file PINNED in it is never deleted.
      save_dtype: type the parameters (not the optimizer's slots) are stored in.
      use_orbax: ignored; accepted so that all classes have the same signature.
  """

  _orbax = True

  def __init__(
    self,
    directory: str,
    *,  # T5X's second is a train state
    keep: int | None = None,
    save_dtype: Any = "float32",
    use_orbax: bool | None = None,
  ):
    del use_orbax
    self._directory = epath.Path(directory).absolute()
    self._save_dtype = np.dtype(jnp.dtype(save_dtype)) if save_dtype else None
    self._keep = keep
    self._writer = _OrbaxWriter(self._directory) if self._orbax else _LegacyWriter(self._directory)
    self._saving: tuple[int, int] | None = None  # (step, bytes) until it is complete
    if jax.process_index() == 0:
      _remove_leftovers(self._directory)

  def save(self, train_state, extra_transform: Callable | None = None) -> bool:
    """Saves `train_state` unless its step is saved already. Returns whether it was saved.

    Args:
        train_state: has `state_dict()` = {'target': ..., 'state': {'step', 'param_states'}}.
        extra_transform: applied to that dictionary first.

    Raises:
        T5XError: it cannot be written, for example because the disk is full.
    """
    step = int(jax.device_get(train_state.step))
    self.wait()  # it may be this step's
    if step in checkpoint_steps(self._directory):
      return False
    tree = train_state.state_dict()
    flat = flatten(tree if extra_transform is None else extra_transform(tree))
    dtypes = {name: self._stored_dtype(name, leaf) for name, leaf in flat.items()}
    sizes = [np.prod(np.shape(x)) * np.dtype(dtypes[n]).itemsize for n, x in flat.items()]
    self._saving = step, int(sum(sizes))
    with self._explained():
      _move_aside(self._directory / f"checkpoint_{step}")
      self._writer.write(step, flat, dtypes, train_state)
    if not _in_background():
      self.wait()
    return True

  def _stored_dtype(self, name: str, leaf: Any) -> np.dtype:
    """The type an array is stored in: `save_dtype` for parameters, its own for all else."""
    if jnp.issubdtype(getattr(leaf, "dtype", np.float32), jax.dtypes.prng_key):
      raise T5XError(
        "The train state cannot be saved: it holds a random key of JAX's new kind.",
        found=name,
        expected="numbers",
        fix="use an optimizer without random numbers, not optimizers.noisy_sgd",
      )
    dtype = np.dtype(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype)
    is_float_param = name.startswith("target/") and jnp.issubdtype(dtype, jnp.floating)
    return self._save_dtype if is_float_param and self._save_dtype is not None else dtype

  def wait(self) -> None:
    """Waits until the checkpoint being written is complete on disk, then deletes old ones."""
    if self._saving is None:
      return
    with self._explained():
      self._writer.wait(self._saving[0])
    self._saving = None
    if jax.process_index() == 0:
      for step in self._steps_to_delete(_not_pinned(self._directory)):
        delete(self._directory / f"checkpoint_{step}")

  def _steps_to_delete(self, steps: list[int]) -> list[int]:
    """Returns all steps (ascending) but the `keep` latest."""
    return steps[: -self._keep] if self._keep else []

  def close(self) -> None:
    """Waits and releases threads."""
    try:
      self.wait()
    finally:
      self._writer.close()

  @contextlib.contextmanager
  def _explained(self):
    """Turns what a failing save raises into a T5XError, and removes what it has written."""
    try:
      yield
    except T5XError:
      self._saving = None
      raise
    except Exception as e:
      (step, size), self._saving = self._saving, None
      error = _cannot_save(self._directory, step, size, e)  # reports the space free right now
      _remove_parts(self._directory, step)
      raise error from e


class Checkpointer(OrbaxCheckpointManagerInterface):
  """Saves train states in T5X's legacy layout: a msgpack index and one zarr folder per array.

  Chosen by `train.use_orbax = False`, or by binding it as SaveCheckpointConfig.checkpointer_cls.
  Arguments as `OrbaxCheckpointManagerInterface`.
  """

  _orbax = False


class SaveBestCheckpointer(OrbaxCheckpointManagerInterface):
  """Keeps the checkpoints with the best values of a metric, and always the latest one.

  The values are those in the TensorBoard events under MODEL_DIR; old checkpoints are deleted at
  the next save, since a checkpoint is evaluated after it is saved.

  Args:
      directory: MODEL_DIR.
      keep: best checkpoints to keep beside the latest; None keeps all.
      save_dtype: as `OrbaxCheckpointManagerInterface`.
      use_orbax: False writes the legacy layout.
      metric_name_to_monitor: RUN/TAG, for example 'train/accuracy' or
          'inference_eval/my_task/eval/exact_match'.
      metric_mode: 'max' or 'min', which values are better.
      keep_checkpoints_without_metrics: True: checkpoints that have no value are kept and not
          counted; False: they are the first to be deleted, the oldest first.
      force_keep_period: multiples of this step are kept and not counted.
  """

  def __init__(
    self,
    directory: str,
    *,
    keep: int | None = None,
    save_dtype: Any = "float32",
    use_orbax: bool | None = None,
    metric_name_to_monitor: str = "train/accuracy",
    metric_mode: str = "max",
    keep_checkpoints_without_metrics: bool = True,
    force_keep_period: int | None = None,
  ):
    self._orbax = use_orbax is not False
    if metric_mode not in ("max", "min"):
      raise T5XError(
        "SaveBestCheckpointer.metric_mode is unknown.",
        found=repr(metric_mode),
        available="max, min",
      )
    self._events = EventReader(directory, metric_name_to_monitor)  # raises before folders are made
    super().__init__(directory, keep=keep, save_dtype=save_dtype)
    self._rules = metric_mode, keep_checkpoints_without_metrics, force_keep_period
    self._warned = False

  def _steps_to_delete(self, steps: list[int]) -> list[int]:
    """Returns all steps (ascending) but the best ones and the latest."""
    values = self._events.read()
    if not values and len(steps) > (self._keep or len(steps)) + 1 and not self._warned:
      self._warned = True
      log(
        f"SaveBestCheckpointer: no value of {self._events.metric!r} yet; the events have: "
        + (", ".join(sorted(self._events.tags)[:12]) or "nothing in the folders it names")
      )
    return worse_than_best(steps, values, self._keep, *self._rules)


# -------------------------------------------------------------------------------- layouts


class _OrbaxWriter:
  """Writes through Orbax, in the background where that is safe."""

  def __init__(self, directory: epath.Path):
    import orbax.checkpoint as ocp

    self._ocp, self._directory = ocp, directory
    self._manager = ocp.CheckpointManager(
      directory,
      options=ocp.CheckpointManagerOptions(
        step_prefix="checkpoint",
        create=True,
        cleanup_tmp_directories=True,
        enable_async_checkpointing=_in_background(),
        save_root_metadata=False,
      ),
      item_names=("state",),
    )

  def write(
    self,
    step: int,
    flat: Mapping[str, Any],
    dtypes: Mapping[str, np.dtype],
    train_state: Any,
  ) -> None:
    """Starts to write checkpoint_STEP; `wait` makes it visible."""
    del train_state
    args = {name: self._ocp.SaveArgs(dtype=dtypes[name]) for name in flat}
    self._manager.reload()  # checkpoints may have been deleted or moved aside
    self._manager.save(
      step,
      args=self._ocp.args.Composite(
        state=self._ocp.args.PyTreeSave(unflatten(flat), save_args=unflatten(args))
      ),
      force=True,
    )

  def wait(self, step: int) -> None:
    """Waits until checkpoint_STEP is complete, and adds the marker files."""
    self._manager.wait_until_finished()
    if jax.process_index() != 0:
      return
    folder = self._directory / f"checkpoint_{step}"
    for place in (folder / "state", folder):  # readers of object stores look for these
      marker = place / "commit_success.txt"
      if place.exists() and not marker.exists():
        marker.write_text(f"Checkpoint commit was successful to {place}")

  def close(self) -> None:
    """Releases Orbax's threads."""
    with contextlib.suppress(Exception):  # from a save whose failure was already reported
      self._manager.close()


class _LegacyWriter:
  """Writes the legacy layout; all processes write their shards, the first one the rest."""

  def __init__(self, directory: epath.Path):
    self._directory = directory
    if jax.process_index() == 0:
      directory.mkdir(parents=True, exist_ok=True)

  def write(
    self,
    step: int,
    flat: Mapping[str, Any],
    dtypes: Mapping[str, np.dtype],
    train_state: Any,
  ) -> None:
    """Writes checkpoint_STEP."""
    final = self._directory / f"checkpoint_{step}"
    folder = final
    if "://" not in str(final):  # one name on all hosts: the time of the first one
      folder = final.parent / f"{final.name}.tmp-{hosts.broadcast_number(time.time())}"
    has_axes = _has_axes(train_state)
    arrays = {n: x for n, x in flat.items() if has_axes.get(n, np.size(x) > 1)}
    legacy_layout.write_arrays(folder, arrays, dtypes)
    hosts.barrier(f"legacy arrays of step {step}")
    if jax.process_index() == 0:
      legacy_layout.write_index(folder, flat, arrays, dtypes)
      if folder != final:
        folder.rename(final)
    hosts.barrier(f"legacy checkpoint of step {step}")

  def wait(self, step: int) -> None:
    """Nothing is in the background."""

  def close(self) -> None:
    """Nothing is open."""


def _in_background() -> bool:
  """Whether Orbax may write while training goes on.

  On CPU the "device" buffers are the host's: writing them in the background would race with the
  next step, which overwrites (donates) them.
  """
  return jax.default_backend() != "cpu"


def _has_axes(train_state) -> dict[str, bool]:
  """Returns {name: whether the array has logical axes}; {} for states that do not know them.

  Google's T5X writes those without (step, row and column means, unused slots) into the index.
  """
  if getattr(train_state, "params_axes", None) is None:
    return {}
  axes = jax.tree_util.tree_map(
    lambda spec: len(spec) > 0,
    in_structure(train_state, train_state.as_logical_axes()),
    is_leaf=lambda x: isinstance(x, PartitionSpec),
  )
  return flatten(axes.state_dict())


# --------------------------------------------------------------------- folders and errors


def _not_pinned(directory: epath.Path) -> list[int]:
  steps = checkpoint_steps(directory)
  return [s for s in steps if not (directory / f"checkpoint_{s}" / _PINNED).exists()]


def _move_aside(folder: epath.Path) -> None:
  """Renames an incomplete checkpoint (of a store without renaming) that is in the way."""
  if jax.process_index() == 0 and folder.exists():
    folder.rename(folder.parent / f"{folder.name}.tmp-{int(time.time())}-incomplete")
  hosts.barrier(f"moved {folder.name} aside")


def _remove_parts(directory: epath.Path, step: int) -> None:
  """Removes what a failed save has written, to which its other threads add for a moment."""
  absent = 0
  for _ in range(50):
    temporary = list(directory.glob(f"checkpoint_{step}.*tmp*"))
    for part in temporary:
      with contextlib.suppress(OSError):
        part.rmtree()
    absent = 0 if temporary else absent + 1
    if absent == 3:
      return
    time.sleep(0.1)


def _remove_leftovers(directory: epath.Path) -> None:
  """Removes the temporary folders of saves and deletions that were cut off."""
  if not directory.exists():
    return
  for path in directory.iterdir():
    if _LEFTOVER.match(path.name):
      path.rmtree(missing_ok=True)


def _bytes(size: float) -> str:
  """Formats a size: 1536000000 as `1.54 GB`."""
  for unit in ("bytes", "kB", "MB", "GB"):
    if size < 1000:
      return f"{size:.3g} {unit}"
    size /= 1000
  return f"{size:.3g} TB"


def _cannot_save(directory: epath.Path, step: int, size: int, error: Exception) -> T5XError:
  """Returns the error for a checkpoint that could not be written because of `error`."""
  free = "unknown"
  with contextlib.suppress(OSError):
    free = _bytes(shutil.disk_usage(str(directory)).free)
  steps = checkpoint_steps(directory)
  latest = f"{directory}/checkpoint_{steps[-1]}" if steps else None
  text = " ".join(str(error).split())
  if len(text) > 250:  # the cause is at the end, the file at the beginning
    text = f"{text[:120]} ... {text[-120:]}"
  return T5XError(
    f"The checkpoint of step {step} could not be written.",
    found=f"{type(error).__name__}: {text}\nfree space in {directory}: {free}",
    expected=f"a folder that can be written to, with {_bytes(size)} free (before compression)",
    available=f"{latest} is complete" if latest else "there is no complete checkpoint so far",
    fix="free space there, or keep fewer checkpoints (SaveCheckpointConfig.keep = 2), or set "
    "another --gin.MODEL_DIR; "
    + (f"the same command continues from {latest}." if latest else "nothing else is lost."),
  )
