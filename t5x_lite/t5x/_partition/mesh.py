"""Meshes of devices, with the axes ('data', 'model'). Re-exported by `t5x.partitioning`."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh

from t5x._process.devices import find_devices
from t5x.errors import T5XError, check_whole

AXES = ("data", "model")


def check_shape(shape: Any, name: str) -> None:
  """Raises T5XError unless `shape`, what the setting `name` is bound to, has sizes or is None."""
  if not isinstance(shape, (list, tuple, type(None))):
    raise T5XError(
      f"{name} is no list of sizes.",
      found=repr(shape),
      expected="a list with the size of each dimension, or None",
      fix=f"{name} = {'(1, 1, 1, 2)' if 'submesh' in name else '(1, 2)'}",
    )
  for size in shape or ():
    check_whole(size, f"Each size in {name}")


def default_mesh(
  num_partitions: int | None = None,
  model_parallel_submesh: Sequence[int] | None = None,
  backend: str | None = None,
  ici_mesh_shape: Sequence[int] | None = None,
  dcn_mesh_shape: Sequence[int] | None = None,
  devices: Sequence[Any] | None = None,
) -> Mesh:
  """Makes a mesh with the axes ('data', 'model').

  Args:
    num_partitions: devices that share one copy of the model. On CPU it is ignored, as in T5X,
      if it divides the number of devices: the mesh is (processes, local devices).
    model_parallel_submesh: the same as a product, e.g. (1, 1, 1, 2); applies on CPU too.
    backend: jax backend; None is the default one.
    ici_mesh_shape: (data, model) within a slice; overrides the first two.
    dcn_mesh_shape: (data, model) across slices.
    devices: devices to use; None is all.

  Raises:
    T5XError: there is no device, or they cannot be divided like this.
  """
  devices = list(find_devices(backend) if devices is None else devices)
  if ici_mesh_shape is not None:
    return _explicit_mesh(ici_mesh_shape, dcn_mesh_shape, devices)
  if model_parallel_submesh is not None:
    num_model = math.prod(model_parallel_submesh)
  elif devices[0].platform == "cpu" and len(devices) % (num_partitions or 1) == 0:
    # T5X gives every host of CPUs the whole model axis.
    num_model = len(devices) // len({d.process_index for d in devices})
    if num_partitions not in (None, num_model):
      logging.warning(
        "num_partitions=%s is ignored on CPU: the model axis has all %d local devices. "
        "Set model_parallel_submesh=(1, 1, 1, %s) to choose it.",
        num_partitions,
        num_model,
        num_partitions,
      )
  else:
    num_model = num_partitions or 1
  if num_model < 1 or len(devices) % num_model:
    raise T5XError(
      "The devices do not divide evenly into model partitions.",
      found=f"{num_model} model partitions for {len(devices)} "
      + ("device" if len(devices) == 1 else "devices"),
      expected="a divisor of the number of devices",
      available=listed(divisors(len(devices))),
      fix="set partitioning.PjitPartitioner.num_partitions",
    )
  shape = (len(devices) // num_model, num_model)
  return Mesh(_arrange(shape, devices), AXES)


def _explicit_mesh(ici: Sequence[int], dcn: Sequence[int] | None, devices: list[Any]) -> Mesh:
  """The mesh of (data, model) shapes within and across slices."""
  num_devices = math.prod(ici) * math.prod(dcn or (1,))
  if len(ici) != 2 or len(dcn or ici) != 2 or num_devices != len(devices):
    raise T5XError(
      found=f"ici_mesh_shape {tuple(ici)}, dcn_mesh_shape {dcn}, {len(devices)} devices",
      expected="shapes (data, model) whose products multiply to the number of devices",
      fix="set partitioning.PjitPartitioner.ici_mesh_shape and .dcn_mesh_shape",
    )
  if dcn is None or math.prod(dcn) == 1:
    return Mesh(_arrange(tuple(ici), devices), AXES)
  grid = mesh_utils.create_hybrid_device_mesh(tuple(ici), tuple(dcn), devices)
  return Mesh(_host_by_host(grid), AXES)


def _arrange(shape: tuple[int, ...], devices: list[Any]) -> np.ndarray:
  if devices[0].platform != "tpu":
    # Devices are listed process by process: model partitions stay within a process.
    return np.array(devices).reshape(shape)
  grid = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
  return _host_by_host(grid)


def _host_by_host(grid: np.ndarray) -> np.ndarray:
  """Sorts the data partitions by the processes they are in.

  A process reads one contiguous range of each batch's rows, so its data partitions have to be
  neighbours. Sorted by coordinates, as on a TPU of 4 x 4 chips and 4 hosts, they are not.
  """

  def processes(row: int) -> list[int]:
    return sorted({device.process_index for device in grid[row]})

  return grid[sorted(range(len(grid)), key=processes)]


def describe_mesh(mesh: Mesh) -> str:
  """Returns for instance `16 data x 2 model`."""
  return " x ".join(f"{size} {name}" for name, size in mesh.shape.items())


def divisors(n: int) -> list[int]:
  """Returns the positive divisors of n, ascending."""
  return [i for i in range(1, n + 1) if n % i == 0]


def listed(numbers: Sequence[int]) -> str:
  """Returns numbers as text, for messages."""
  return ", ".join(map(str, numbers)) or "none"
