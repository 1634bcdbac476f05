"""Meshes of TPUs with several hosts: each host reads its own part of the data."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

from t5x import active_mesh, partitioning


@dataclasses.dataclass(frozen=True)
class Chip:
  """The attributes of a TPU core that a mesh reads."""

  id: int
  process_index: int
  coords: tuple[int, int, int]
  core_on_chip: int
  device_kind: str = "TPU v3"
  platform: str = "tpu"


def _slice(width, height):
  """Cores of a slice: two per chip, and 2 x 2 chips per host."""
  places = itertools.product(range(height), range(width), range(2))
  return [
    Chip(i, (y // 2) * (width // 2) + x // 2, (x, y, 0), core)
    for i, (y, x, core) in enumerate(places)
  ]


@pytest.mark.parametrize("num_partitions", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(4, 4), (8, 4)])
def test_hosts_read_all_data_once(monkeypatch, shape, num_partitions):
  """On 4 x 4 chips, 4 model partitions once gave hosts 0 and 2 the same half of each batch."""
  chips = _slice(*shape)
  monkeypatch.setattr(jax, "devices", lambda backend=None: chips)
  partitioner = partitioning.PjitPartitioner(num_partitions)
  grid = partitioner.mesh.devices
  assert grid.shape == (len(chips) // num_partitions, num_partitions)
  assert set(grid.flat) == set(chips)
  shards = {}
  for host in {chip.process_index for chip in chips}:
    layout = partitioner.get_data_layout(batch_size=64, host_index=host)
    rows = {i for i, row in enumerate(grid) if any(d.process_index == host for d in row)}
    size = len(grid) // layout.num_shards
    assert rows == set(range(layout.shard_id * size, (layout.shard_id + 1) * size))
    shards.setdefault(layout.shard_id, []).append(layout.is_first_host_in_replica_set)
  assert sorted(shards) == list(range(layout.num_shards))
  assert all(sum(first) == 1 for first in shards.values())


def test_rules_over_several_mesh_axes_divide_what_they_can():
  mesh = AbstractMesh((2, 4), ("data", "model"))
  rules = [("batch", "data"), ("vocab", ("data", "model")), ("mlp", ("model",))]
  for axes, size, expected in (
    (("vocab", None), 16, PartitionSpec(("data", "model"), None)),
    (("vocab", None), 12, PartitionSpec(None, None)),
    (("batch", "mlp"), 2, PartitionSpec("data", "model")),
  ):
    with active_mesh.entered(mesh, rules):
      ask = functools.partial(active_mesh.with_logical_constraint, axes=axes)
      assert _constraint(ask, size) == expected
  assert active_mesh.partitions(("data", "model"), mesh.shape) == 8
  copies = active_mesh._without_data(PartitionSpec(("data", "model"), "data", None))
  assert copies == [("model",), None, None]


def _constraint(function, size):
  """Returns the spec that a function asks for."""
  (equation,) = jax.make_jaxpr(function)(np.zeros((size, 8))).eqns
  return equation.params["sharding"].spec
