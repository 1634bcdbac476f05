"""Which part of an array the devices of a process hold. Re-exported by `t5x.partitioning`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh


def get_coords(device: Any) -> tuple[int, ...]:
  """Returns where a device is: (x, y, z, core) of a TPU, else (process, number within it)."""
  if hasattr(device, "coords"):
    return (*device.coords, device.core_on_chip)
  return (device.process_index, device.id % jax.local_device_count())


def bounds_from_last_device(last_device: Any) -> tuple[int, ...]:
  """Returns the sizes of the grid of devices.

  Args:
    last_device: the one with the largest coordinates; see `get_coords`.
  """
  if hasattr(last_device, "coords"):
    return tuple(i + 1 for i in get_coords(last_device))
  return (jax.process_count(), jax.local_device_count())


@dataclasses.dataclass(frozen=True)
class LocalChunkInfo:
  """A part of an array.

  Attributes:
    slice: one slice per dimension.
    replica_id: 0 in one of the processes that hold this part, 1, 2, ... in the others.
  """

  slice: tuple[slice, ...]
  replica_id: int


class LocalChunker:
  """Tells which part of an array this process holds.

  Args:
    global_mesh: the mesh; the devices of a process are a block in it.

  Attributes:
    num_chunks: {mesh axis: number of parts that are in different processes}.
    chunk_ids: {mesh axis: which of them this process holds}.
  """

  def __init__(self, global_mesh: Mesh):
    local = global_mesh.local_mesh
    place = np.argwhere(global_mesh.devices == local.devices.flat[0])[0]
    sizes = dict(local.shape)
    self.num_chunks = {axis: n // sizes[axis] for axis, n in global_mesh.shape.items()}
    self.chunk_ids = {
      axis: int(i) // sizes[axis] for axis, i in zip(self.num_chunks, place, strict=True)
    }

  def get_local_chunk_info(
    self, global_shape: Sequence[int], mesh_axes: Sequence[str | None]
  ) -> LocalChunkInfo:
    """Returns the part of an array that this process holds.

    Args:
      global_shape: shape of the array.
      mesh_axes: the mesh axis, or None, that divides each dimension.
    """
    parts = [slice(None)] * len(global_shape)
    for i, (size, axis) in enumerate(zip(global_shape, mesh_axes, strict=True)):
      if axis is not None:
        length = size // self.num_chunks[axis]
        parts[i] = slice(self.chunk_ids[axis] * length, (self.chunk_ids[axis] + 1) * length)
    others = [axis for axis in self.num_chunks if axis not in mesh_axes]
    counts = [self.num_chunks[axis] for axis in others]
    strides = [math.prod(counts[i + 1 :]) for i in range(len(counts))]
    ids = [self.chunk_ids[axis] for axis in others]
    replica = sum(i * stride for i, stride in zip(ids, strides, strict=True))
    return LocalChunkInfo(tuple(parts), replica)
