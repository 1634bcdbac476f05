"""The mesh of the partitioned function being traced: what a network may ask of it.

`PjitPartitioner` enters it; outside of a partitioned function there is none, and all of this does
nothing, so a network also runs by itself.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
from flax.linen import partitioning as flax_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MeshAxis = str | tuple[str, ...] | None  # of a rule or a spec; several divide one dimension
LogicalAxisRules = Sequence[tuple[str, MeshAxis]]

_ACTIVE: contextvars.ContextVar[tuple[Mesh, LogicalAxisRules] | None] = contextvars.ContextVar(
  "t5x_mesh", default=None
)


def mesh_spec(axes: tuple[str | None, ...], rules: LogicalAxisRules) -> PartitionSpec:
  """Returns the spec of mesh axes that the rules make of logical axes."""
  # flax would return None only for None.
  return flax_partitioning.logical_to_mesh_axes(axes, rules) or PartitionSpec()


def _names(axis: MeshAxis) -> tuple[str, ...]:
  return (axis,) if isinstance(axis, str) else axis or ()


def _without_data(spec: PartitionSpec) -> list[MeshAxis]:
  axes: list[MeshAxis] = []
  for axis in spec:
    axes.append(tuple(name for name in _names(axis) if name != "data") or None)
  return axes


def partitions(axis: MeshAxis, sizes: Mapping[str, int]) -> int:
  """Returns over how many partitions a mesh axis, or several, divide a dimension."""
  return math.prod(sizes[name] for name in _names(axis))


@contextlib.contextmanager
def entered(mesh: Mesh, rules: LogicalAxisRules) -> Iterator[None]:
  """Makes a mesh and its rules the active ones for what is traced in the block."""
  token = _ACTIVE.set((mesh, rules))
  try:
    yield
  finally:
    _ACTIVE.reset(token)


def num_devices() -> int:
  """Devices of the partitioned function being traced; 1 outside of one."""
  active = _ACTIVE.get()
  return 1 if active is None else active[0].size


def num_model_partitions() -> int:
  """Model partitions of the partitioned function being traced; 1 outside of one."""
  active = _ACTIVE.get()
  return 1 if active is None else active[0].shape["model"]


def whole_over_data(x: jax.Array, axes: tuple[str | None, ...]) -> jax.Array:
  """Gathers a parameter that is divided over the data partitions (ZeRO-3), once.

  Called on the parameter in the type it is used in, it moves no more bytes than necessary, and
  the backward pass uses what the forward pass has gathered. The gradient is divided again.

  Args:
    x: a parameter, or a cast of one.
    axes: its logical axes.

  Returns:
    `x`, whole in every data partition; still divided over the model partitions.
  """
  active = _ACTIVE.get()
  if active is None:
    return x
  mesh, rules = active
  spec = mesh_spec(axes, rules)
  if mesh.shape["data"] == 1 or not any("data" in _names(axis) for axis in spec):
    return x
  divided = NamedSharding(mesh, spec)
  gathered = NamedSharding(mesh, PartitionSpec(*_without_data(spec)))

  @jax.custom_vjp
  def gather(x):
    return jax.lax.with_sharding_constraint(x, gathered)

  gather.defvjp(
    lambda x: (gather(x), None),
    lambda _, g: (jax.lax.with_sharding_constraint(g, divided),),
  )
  return gather(x)


def copy_per_data_partition(x: jax.Array, axes: tuple[str | None, ...]) -> jax.Array:
  """Gives each data partition a copy of a parameter to work with.

  A parameter that is used several times gets a gradient from each use, and the partitioner sums
  every one of them over the devices. With a copy per partition, gradients are added up locally,
  and summed over the devices once.

  Args: as for `whole_over_data`.

  Returns:
    `[P, *x.shape]`, P the number of data partitions, 1 outside of a partitioned function. It takes
    no more memory than `x` does.
  """
  active = _ACTIVE.get()
  if active is None or active[0].shape["data"] == 1:
    return x[None]
  mesh, rules = active
  spec = PartitionSpec("data", *_without_data(mesh_spec(axes, rules)))
  copies = jax.lax.broadcast(x, (mesh.shape["data"],))
  return jax.lax.with_sharding_constraint(copies, NamedSharding(mesh, spec))


def map_over_data(function: Callable[[jax.Array, int], jax.Array], key: jax.Array) -> jax.Array:
  """Calls a function once per data partition, each time with a different key.

  Args:
    function: called with a key and the number of partitions; returns the rows of one partition.
    key: random key.

  Returns:
    The rows of all partitions, divided over them. Outside of a partitioned function there is one.
  """
  active = _ACTIVE.get()
  if active is None or active[0].shape["data"] == 1:
    return function(key, 1)
  num_partitions = active[0].shape["data"]

  def own(key: jax.Array) -> jax.Array:
    return function(jax.random.fold_in(key, jax.lax.axis_index("data")), num_partitions)

  return jax.shard_map(
    own,
    mesh=active[0],
    in_specs=PartitionSpec(),
    out_specs=PartitionSpec("data"),
    check_vma=False,
  )(key)


def with_logical_constraint(x: jax.Array, axes: tuple[str | None, ...]) -> jax.Array:
  """Asks GSPMD to shard `x` by logical axis names; does nothing outside a partitioned function.

  Args:
    x: an array.
    axes: one logical axis name or None per dimension.

  Returns:
    `x`. Dimensions that the mesh does not divide stay whole.
  """
  active = _ACTIVE.get()
  if active is None or active[0].size == 1 or x.ndim != len(axes):
    return x
  mesh, rules = active
  divided = [
    axis if axis and size % partitions(axis, mesh.shape) == 0 else None
    for axis, size in zip(mesh_spec(axes, rules), x.shape, strict=True)
  ]
  return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*divided)))
