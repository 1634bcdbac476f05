"""Reading T5X checkpoints, both layouts, as flat {"target/.../kernel": array} dictionaries.

Orbax layout (T5X's default): checkpoint_N/state is an Orbax PyTree.
Legacy layout (Google's public T5 1.1, mT5 and Flan-T5 checkpoints): checkpoint_N/checkpoint is a
flax msgpack file with small arrays inline; every other array is a zarr v2 folder beside it.
Layouts: `docs` of Google's T5X and the golden files in the project's shared/golden/A.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath
from flax import serialization, traverse_util

from t5x.errors import T5XError, first_line, not_in_lite

_STEP_DIR = re.compile(r"^checkpoint_(\d+)$")


# {'a': {'b': x}} -> {'a/b': x}, without empty dictionaries; and back.
flatten = functools.partial(traverse_util.flatten_dict, sep="/")
unflatten = functools.partial(traverse_util.unflatten_dict, sep="/")


@dataclasses.dataclass(frozen=True)
class StoredCheckpoint:
  """A checkpoint whose arrays have not been read yet.

  Args:
      arrays: {name: ShapeDtypeStruct}; names start with `target/` or `state/`.
      read: called with {name: (sharding or None, dtype or None)}; returns {name: array},
          jax arrays where a sharding is given, numpy arrays otherwise.
  """

  arrays: Mapping[str, jax.ShapeDtypeStruct]
  read: Callable[[Mapping[str, tuple[Any, Any]]], dict[str, Any]]


def layout_of(path: str) -> str | None:
  """Returns 'orbax', 'legacy', 'mesh_tensorflow' or None (nothing, or an interrupted save)."""
  folder = epath.Path(path)
  if (folder / "checkpoint").exists() and not (folder / "checkpoint").is_dir():
    return "legacy"
  if (folder / "state").exists():
    # Written last by both of Orbax's ways to commit (rename; marker file on object stores).
    if (folder / "commit_success.txt").exists():
      return "orbax"
    try:
      metadata = json.loads((folder / "_CHECKPOINT_METADATA").read_text())
    except (OSError, ValueError):
      return None
    return "orbax" if metadata.get("commit_timestamp_nsecs") else None
  if str(path).endswith(".index") or epath.Path(str(path) + ".index").exists():
    return "mesh_tensorflow"
  return None


def checkpoint_steps(directory: str) -> list[int]:
  """Returns the steps of the complete checkpoints in `directory`, ascending."""
  folder = epath.Path(directory)
  if not folder.is_dir():
    return []
  steps = []
  for path in folder.iterdir():
    step = step_of(path)
    if step is not None and layout_of(path) in ("orbax", "legacy"):
      steps.append(step)
  return sorted(steps)


def step_of(path: str) -> int | None:
  """Returns N of a `.../checkpoint_N` path, else None."""
  match = _STEP_DIR.match(epath.Path(path).name)
  return int(match.group(1)) if match else None


@contextlib.contextmanager
def _damage(path: str, array: str = "") -> Iterator[None]:
  """Turns what damaged files raise into a T5XError. Args: array, if one alone is read."""
  try:
    yield
  except T5XError:
    raise
  except Exception as e:
    if "://" in str(path) and not array:  # the scripts explain what Google's storage says
      raise
    subject = f"Array {array!r} of checkpoint {path}" if array else f"The checkpoint {path}"
    raise T5XError(
      f"{subject} cannot be read: files of it are missing, cut short or others'.",
      found=f"{type(e).__name__}: {first_line(e)}",
      expected="a checkpoint as T5X writes it",
      fix="copy the checkpoint again, including dot-files.",
    ) from e


def open_checkpoint(path: str) -> StoredCheckpoint:
  """Opens a checkpoint folder of either layout; raises like `check_complete`."""
  return _open_orbax(path) if check_complete(path) == "orbax" else _open_legacy(path)


def check_complete(path: str) -> str:
  """Returns the layout of a checkpoint, 'orbax' or 'legacy'.

  Raises:
      T5XError: if there is none, it is incomplete, or it is a Mesh TensorFlow checkpoint.
  """
  layout = layout_of(path)
  if layout == "mesh_tensorflow":
    raise not_in_lite(f"Reading the Mesh TensorFlow checkpoint {path}")
  if layout is None:
    folder = epath.Path(path)
    nearby = folder if folder.is_dir() else folder.parent
    problem = "no such folder"
    if (folder / "state").exists():
      problem = "the folder contains an unfinished save"
    elif folder.exists():
      problem = "a folder without a checkpoint in it" if folder.is_dir() else "a file, not a folder"
    steps = checkpoint_steps(nearby)[-5:]
    raise T5XError(
      f"There is no complete checkpoint at {path}.",
      found=problem,
      expected="a folder checkpoint_N of T5X (Orbax or legacy layout)",
      available=", ".join(f"{nearby}/checkpoint_{step}" for step in steps) or None,
      fix="correct the path (it ends in /checkpoint_N), or set mode='latest' for a folder of "
      "checkpoints.",
    )
  return layout


# ---------------------------------------------------------------------------------- Orbax


def _open_orbax(path: str) -> StoredCheckpoint:
  """Opens a checkpoint whose arrays Orbax reads, each straight into its shards."""
  import orbax.checkpoint as ocp

  state_path = epath.Path(path).absolute() / "state"
  checkpointer = ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
  with _damage(path):
    metadata = checkpointer.metadata(state_path)
    metadata = getattr(metadata, "item_metadata", metadata)
    metadata = flatten(getattr(metadata, "tree", metadata))
  arrays = {}
  for name, array in metadata.items():
    if getattr(array, "shape", None) is not None:  # else an empty node
      arrays[name] = jax.ShapeDtypeStruct(tuple(array.shape), np.dtype(array.dtype))

  def read(requests):
    if not requests:
      return {}
    items, args = {}, {}
    for name, (sharding, dtype) in requests.items():
      stored = arrays[name]
      items[name] = jax.ShapeDtypeStruct(stored.shape, dtype or stored.dtype)
      if sharding is None:
        args[name] = ocp.RestoreArgs(restore_type=np.ndarray, dtype=dtype)
      else:
        args[name] = ocp.ArrayRestoreArgs(sharding=sharding, dtype=dtype)
    restored = checkpointer.restore(
      state_path,
      args=ocp.args.PyTreeRestore(
        item=unflatten(items), restore_args=unflatten(args), partial_restore=True
      ),
    )
    return flatten(restored)

  return StoredCheckpoint(arrays, read)


# ---------------------------------------------------------------------------------- legacy


def kvstore_spec(path: epath.Path) -> dict[str, str]:
  """TensorStore key-value store spec of a local or gs:// folder."""
  text = str(path)
  if text.startswith("gs://"):
    bucket, _, inside = text[len("gs://") :].partition("/")
    return {"driver": "gcs", "bucket": bucket, "path": inside + "/"}
  return {"driver": "file", "path": str(path.absolute()) + "/"}


def _is_spec(node: Any) -> bool:
  return isinstance(node, Mapping) and node.get("driver") == "zarr"


def _legacy_leaves(path: str) -> dict[str, Any]:
  """Reads the msgpack file: {name: array, or the TensorStore spec of one}."""
  with _damage(path):
    content = serialization.msgpack_restore((epath.Path(path) / "checkpoint").read_bytes())
  if not isinstance(content, Mapping) or "optimizer" not in content:
    raise T5XError(
      f"{path}/checkpoint is a msgpack file, but not one of T5X's.",
      found="keys " + ", ".join(map(repr, content)) if isinstance(content, Mapping) else "no keys",
      expected="keys 'version' (2 or more) and 'optimizer'",
    )
  leaves = flatten(content["optimizer"], is_leaf=lambda path, node: _is_spec(node))
  return {name: leaf for name, leaf in leaves.items() if leaf is not None}


def _open_zarr(folder: epath.Path):
  """Starts opening an array; returns TensorStore's future."""
  import tensorstore as ts

  # A chunk that is missing, as after a partial copy, would be read as zeros.
  spec = {"driver": "zarr", "kvstore": kvstore_spec(folder), "fill_missing_data_reads": False}
  return ts.open(spec, open=True, read=True)


def _stored_shape(spec: Mapping[str, Any], folder: epath.Path) -> jax.ShapeDtypeStruct:
  shape = spec.get("metadata", {}).get("shape")
  if shape is None:  # Specs written by old versions carry none; only then the array is opened.
    store = _open_zarr(folder).result()
    return jax.ShapeDtypeStruct(tuple(store.shape), store.dtype.numpy_dtype)
  return jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(spec.get("dtype", "float32")))


def _open_legacy(path: str) -> StoredCheckpoint:
  """Opens a checkpoint with small arrays in a msgpack file and the others in zarr folders."""
  folders, inline, arrays = {}, {}, {}
  for name, leaf in _legacy_leaves(path).items():
    if _is_spec(leaf):
      inner = leaf.get("kvstore", leaf).get("path", leaf.get("path", "")).rstrip("/")
      folders[name] = epath.Path(path) / inner
      arrays[name] = _stored_shape(leaf, folders[name])
      if arrays[name].dtype == np.uint16 or leaf.get("metadata", {}).get("dtype") == "<u2":
        raise T5XError(
          f"{path}: {name} was stored as integers, as T5X wrote bfloat16 until June 2021.",
          found="uint16",
          expected="bfloat16",
          fix="read and write the checkpoint with a T5X of that time, in float32",
        )
    else:
      inline[name] = np.asarray(leaf)
      arrays[name] = jax.ShapeDtypeStruct(inline[name].shape, inline[name].dtype)

  def read(requests):
    # All requests are in flight at once.
    opening = {name: _open_zarr(folders[name]) for name in requests if name in folders}
    stores = _results(opening, path)
    whole = {name: store.read() for name, store in stores.items() if requests[name][0] is None}
    sources = inline | stores | _results(whole, path)
    out = {}
    for name, (sharding, dtype) in requests.items():
      if sharding is not None:
        out[name] = _read_shards(sources[name], arrays[name], sharding, dtype, path)
      else:
        out[name] = sources[name] if dtype is None else sources[name].astype(dtype)
    return out

  return StoredCheckpoint(arrays, read)


def _results(futures: Mapping[str, Any], path: str) -> dict[str, Any]:
  """Waits for what TensorStore opens or reads; its own errors name neither checkpoint nor array."""
  results = {}
  for name, future in futures.items():
    with _damage(path, name):
      results[name] = future.result()
  return results


def _read_shards(source, stored: jax.ShapeDtypeStruct, sharding, dtype, path: str) -> jax.Array:
  """Each device gets its part of `source`, an array or a TensorStore."""
  dtype = dtype or stored.dtype

  def shard(index):
    part = source[index]
    # Inline scalars come as numpy scalars, zarr folders as TensorStores still to be read.
    if hasattr(part, "read"):
      with _damage(path):
        part = part.read().result()
    return np.asarray(part).astype(dtype)

  return jax.make_array_from_callback(stored.shape, sharding, shard)


def load_checkpoint(path: str) -> dict[str, Any]:
  """Reads a whole checkpoint of either layout as a nested dictionary of numpy arrays.

  Returns:
      {'target': parameters, 'state': {'step': ..., 'param_states': ...}}.
  """
  stored = open_checkpoint(path)
  return unflatten(stored.read({name: (None, None) for name in stored.arrays}))
