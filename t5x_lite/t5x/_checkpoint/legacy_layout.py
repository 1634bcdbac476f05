"""T5X's legacy checkpoint layout on disk, as written.

checkpoint_N/checkpoint is a flax msgpack file {'version': 3, 'optimizer': state dictionary}. An
array with logical axes stands in it as a TensorStore spec, and is a zarr v2 folder (gzip) beside
it, named by its path joined with dots; others are inside the file. Compared with the files in
shared/golden/A/ckpt_legacy, which Google's T5X wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from etils import epath
from flax import serialization

from t5x._checkpoint.read import kvstore_spec, unflatten

VERSION = 3
# Host memory that arrays on their way to disk may take.
_BYTES_IN_FLIGHT = 2 * 2**30


def _spec(name: str, array: Any, dtype: np.dtype) -> dict[str, Any]:
  """The TensorStore spec of an array as it stands in the index file."""
  shape = tuple(array.shape)
  # A chunk is what one device holds, so that no two hosts write to the same file.
  chunks = array.sharding.shard_shape(shape) if isinstance(array, jax.Array) else shape
  return {
    "driver": "zarr",
    "dtype": np.dtype(dtype).name,
    "kvstore": {"driver": "file", "path": name.replace("/", ".") + "/"},
    "metadata": {
      "chunks": list(chunks),
      "compressor": {"id": "gzip", "level": 1},
      "shape": list(shape),
    },
  }


def _local_shards(array: Any) -> Iterator[tuple[Any, np.ndarray]]:
  """Yields (index, values) of the parts of `array` that this process has to write."""
  if not isinstance(array, jax.Array):
    if jax.process_index() == 0:
      yield (), np.asarray(array)
    return
  for shard in array.addressable_shards:
    if shard.replica_id == 0:
      yield shard.index, np.asarray(shard.data)


def write_arrays(
  folder: epath.Path, arrays: Mapping[str, Any], dtypes: Mapping[str, np.dtype]
) -> None:
  """Writes this process's parts of `arrays` as zarr folders.

  Args:
      folder: the checkpoint's (temporary) folder.
      arrays: {'target/a/kernel': array}.
      dtypes: {name: type to store}.
  """
  import tensorstore as ts

  folder.mkdir(parents=True, exist_ok=True)
  opened = {}
  for name, array in arrays.items():
    spec = _spec(name, array, dtypes[name])
    spec["kvstore"] = kvstore_spec(folder / spec["kvstore"]["path"].rstrip("/"))
    opened[name] = ts.open(spec, create=True, open=True)  # all requests in flight at once
  writes, size = [], 0
  try:
    for name, store in opened.items():
      for index, values in _local_shards(arrays[name]):
        values = values.astype(dtypes[name], copy=False)
        writes.append(store.result()[index].write(values))
        size += values.nbytes
        if size > _BYTES_IN_FLIGHT:
          _wait(writes)
          writes, size = [], 0
  finally:
    _wait([*writes, *opened.values()])


def _wait(futures: list[Any]) -> None:
  """Waits for all, also after a failure: the folder is about to be removed. Raises the first."""
  errors = [future.exception() for future in futures]
  for error in errors:
    if error is not None:
      raise error


def write_index(
  folder: epath.Path,
  flat: Mapping[str, Any],
  arrays: Mapping[str, Any],
  dtypes: Mapping[str, np.dtype],
) -> None:
  """Writes the index file; without it the folder is not a checkpoint.

  Args:
      folder: the checkpoint's (temporary) folder.
      flat: {name: leaf} of the whole state dictionary.
      arrays: the part of it that `write_arrays` wrote.
      dtypes: {name: type to store}.
  """
  leaves: dict[str, Any] = {}
  for name, leaf in flat.items():
    if name in arrays:
      leaves[name] = _spec(name, leaf, dtypes[name])
    else:  # too small for a folder of its own
      leaves[name] = np.asarray(leaf).astype(dtypes[name], copy=False)
  content = serialization.msgpack_serialize({"version": VERSION, "optimizer": unflatten(leaves)})
  path = folder / "checkpoint"
  with path.open("wb") as f:
    f.write(content)
    f.flush()
    if "://" not in str(path):
      os.fsync(f.fileno())  # a power cut must not leave a renamed folder with an empty index
