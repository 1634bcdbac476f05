"""Meshes and sharding: T5X's `PjitPartitioner` on `jax.jit` with NamedSharding.

The mesh has the axes ('data', 'model'). Parameters carry logical axis names; rules map these to
mesh axes (Xu et al. 2021, GSPMD, arXiv:2105.04663).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t5x import active_mesh
from t5x._partition.mesh import AXES, check_shape, default_mesh, describe_mesh, divisors, listed
from t5x.active_mesh import LogicalAxisRules, MeshAxis
from t5x.errors import T5XError, check_whole, not_in_lite

__all__ = [
  "DataLayout",
  "LogicalAxisRules",
  "PartitionSpec",
  "PjitPartitioner",
  "default_mesh",
  "describe_mesh",
  "divisors",
  "standard_logical_axis_rules",
]

PyTree = Any


@dataclasses.dataclass(frozen=True)
class DataLayout:
  """How a global batch is divided among processes.

  Attributes:
    batch_size: examples in a global batch.
    shard_id: which shard of the data this process reads, in [0, num_shards).
    num_shards: shards the data is read in.
    is_first_host_in_replica_set: False if another process reads the same shard first.
  """

  batch_size: int
  shard_id: int
  num_shards: int
  is_first_host_in_replica_set: bool


class MeshFunction:
  """A jitted function that is called and traced with a mesh and its rules active.

  Networks ask for these while they are traced, at the first call with arguments of such shapes.

  Args:
    jitted: from `jax.jit`.
    partitioner: has the mesh and the rules.
  """

  def __init__(self, jitted: Any, partitioner: PjitPartitioner):
    self._jitted, self._partitioner = jitted, partitioner

  def __call__(self, *args: Any) -> Any:
    """Calls the compiled function."""
    with self._partitioner.activate():
      return self._jitted(*args)

  def lower(self, *args: Any) -> Any:
    """Lowers for these arguments, like `jax.jit(...).lower`."""
    with self._partitioner.activate():
      return self._jitted.lower(*args)


# By kind of device. Of a v5e's 128 MiB of VMEM, XLA gives an operation 16 by default; with 32,
# attention of T5 Base takes a fifth less time by XLA's own estimate, but a decoded token takes a
# quarter more (t5x_lite/docs/tpu-aot.md).
_V5E = {"xla_tpu_scoped_vmem_limit_kib": "32768"}
_TRAINING_OPTIONS = {"TPU v5 lite": _V5E, "TPU v5e": _V5E}


def standard_logical_axis_rules(
  activation_partitioning_dims: int = 1,
  parameter_partitioning_dims: int = 1,
  additional_rules: LogicalAxisRules | None = None,
) -> list[tuple[str, MeshAxis]]:
  """Returns the rules from logical to mesh axes; the first that fits an array wins.

  Args:
    activation_partitioning_dims: 1, or 2 to shard activations over 'model' along embed too.
    parameter_partitioning_dims: 1, or 2 to shard parameters over 'data' along embed too (ZeRO-3).
    additional_rules: appended (logical, mesh) pairs.

  Raises:
    T5XError: a number of dimensions is neither 1 nor 2.
  """
  for name, dims in (
    ("activation_partitioning_dims", activation_partitioning_dims),
    ("parameter_partitioning_dims", parameter_partitioning_dims),
  ):
    if dims not in (1, 2):
      raise T5XError(
        found=f"{name} = {dims!r}",
        expected="1 or 2",
        fix=f"set partitioning.standard_logical_axis_rules.{name}",
      )
  model: list[tuple[str, MeshAxis]] = [
    ("mlp", "model"),
    ("heads", "model"),
    ("kv", None),
    ("joined_kv", "model"),
  ]
  # In T5X's order: an axis may have several rules, of which the first that is free counts.
  rules: list[tuple[str, MeshAxis]] = [("batch", "data"), ("vocab", "model")]
  if (activation_partitioning_dims, parameter_partitioning_dims) == (1, 1):
    rules += [("embed", None), *model]
  else:
    rules += model
    if activation_partitioning_dims == 2:
      rules.append(("embed", "model"))
    if parameter_partitioning_dims == 2:
      rules.append(("embed", "data"))
  replicated = ("relpos_buckets", "abspos_buckets", "length", "layers", "stack", "mlp_activations")
  return [*rules, *((name, None) for name in replicated), *(additional_rules or ())]


def _check_rules(rules: Any) -> None:
  """Raises T5XError unless they are pairs of a logical axis and axes of the mesh."""
  for rule in rules if isinstance(rules, (list, tuple)) else [rules]:
    if isinstance(rule, (list, tuple)) and len(rule) == 2 and isinstance(rule[0], str):
      mesh_axes = rule[1] if isinstance(rule[1], (list, tuple)) else [rule[1]]
      if all(axis in AXES for axis in mesh_axes) or rule[1] is None:
        continue
    raise T5XError(
      "A rule for logical axes is no pair of a logical axis and an axis of the mesh.",
      found=repr(rule),
      expected="a list of (logical axis, mesh axis or None) pairs",
      available=f"mesh axes {', '.join(AXES)}",
      fix="partitioning.standard_logical_axis_rules.additional_rules = [('my_axis', None)]",
    )


class PjitPartitioner:
  """Places train states and batches on a mesh, by rules for logical axes.

  Args:
    num_partitions, model_parallel_submesh: see `default_mesh`; give at most one of the two.
    params_on_devices: False keeps parameters on the host between steps (not covered here).
    backend, ici_mesh_shape, dcn_mesh_shape: see `default_mesh`.
    logical_axis_rules: (logical, mesh) pairs; None is `standard_logical_axis_rules()`.
  """

  def __init__(
    self,
    num_partitions: int | None = None,
    model_parallel_submesh: Sequence[int] | None = None,
    params_on_devices: bool = True,
    backend: str | None = None,
    ici_mesh_shape: Sequence[int] | None = None,
    dcn_mesh_shape: Sequence[int] | None = None,
    logical_axis_rules: LogicalAxisRules | None = None,
  ):
    name = "partitioning.PjitPartitioner.num_partitions"
    check_whole(num_partitions, name, optional=True, fix=f"{name} = 1")
    if num_partitions and model_parallel_submesh:
      raise T5XError(
        found="both num_partitions and model_parallel_submesh",
        expected="at most one of them",
        fix=f"bind {name} = None",
      )
    if not params_on_devices:
      raise not_in_lite("PjitPartitioner.params_on_devices = False", "bind True")
    self._mesh_args: dict[str, Any] = dict(
      num_partitions=num_partitions,
      model_parallel_submesh=model_parallel_submesh,
      backend=backend,
      ici_mesh_shape=ici_mesh_shape,
      dcn_mesh_shape=dcn_mesh_shape,
    )
    for setting in ("model_parallel_submesh", "ici_mesh_shape", "dcn_mesh_shape"):
      check_shape(self._mesh_args[setting], f"partitioning.PjitPartitioner.{setting}")
    # As tuples, so that those from gin, which are lists, compare equal to them.
    rules = standard_logical_axis_rules() if logical_axis_rules is None else logical_axis_rules
    _check_rules(rules)
    self.logical_axis_rules = tuple((logical, mesh) for logical, mesh in rules)

  @functools.cached_property
  def mesh(self) -> Mesh:
    """The mesh; made on first use, since that starts the backend."""
    return default_mesh(**self._mesh_args)

  @property
  def data_partition_spec(self) -> PartitionSpec:
    """Spec of a batch: the first dimension over 'data'."""
    return PartitionSpec("data")

  def sharding(self, spec: PartitionSpec | None) -> NamedSharding:
    """Returns the sharding of an array with this spec of mesh axes (None: replicated)."""
    return NamedSharding(self.mesh, PartitionSpec() if spec is None else spec)

  def get_data_layout(
    self, batch_size: int | None = None, host_index: int | None = None
  ) -> DataLayout:
    """Returns which part of each global batch this process has to read.

    Args:
      batch_size: examples in a global batch; None is one per data partition.
      host_index: the process; None is this one.

    Raises:
      T5XError: the batch does not divide into data partitions.
    """
    grid = self.mesh.devices
    num_data = grid.shape[0]
    batch_size = num_data if batch_size is None else batch_size
    if batch_size % num_data:
      raise self._batch_error(batch_size)
    host_index = jax.process_index() if host_index is None else host_index
    # A data partition of several devices may span processes, which then read the same rows. A
    # process's partitions are neighbours (see `_partition/mesh.py`): it reads one range.
    owners = np.vectorize(lambda d: d.process_index, otypes=[int])(grid)
    rows = np.flatnonzero((owners == host_index).any(axis=1))
    first_row = owners[rows[0]]
    return DataLayout(
      batch_size=batch_size,
      shard_id=int(rows[0]) // len(rows),
      num_shards=num_data // len(rows),
      is_first_host_in_replica_set=bool(first_row[0] == host_index),
    )

  def check_microbatches(self, batch_size: int, num_microbatches: int) -> None:
    """Raises T5XError if microbatches do not have whole rows on every data partition."""
    num_data = self.mesh.shape["data"]
    if batch_size % (num_microbatches * num_data):
      raise T5XError(
        "The microbatches do not divide evenly across the devices.",
        found=f"batch size {batch_size} in {num_microbatches} microbatches on {num_data} data "
        "partitions",
        expected="microbatches of whole rows on every device",
        available=f"microbatches {listed(divisors(batch_size // num_data))}",
        fix="set trainer.Trainer.num_microbatches or BATCH_SIZE",
      )

  def _batch_error(self, batch_size: int) -> T5XError:
    """The error for a batch that the data partitions do not divide, with sizes that they do."""
    num_data, num_devices = self.mesh.shape["data"], self.mesh.size
    below = batch_size - batch_size % num_data
    sizes = [size for size in (below, below + num_data) if size]
    nearest = min(sizes, key=lambda size: abs(size - batch_size))
    counts = self._model_partitions(lambda data, _: batch_size % data == 0)
    return T5XError(
      "The batch does not divide evenly across the devices.",
      found=f"batch size {batch_size} on {num_data} data partitions ({num_devices} devices)",
      expected=f"a multiple of {num_data}",
      available=f"batch sizes {listed(sizes)}; model partitions for {batch_size}: "
      + listed(counts),
      fix=f"set BATCH_SIZE = {nearest}, or {self._setting(counts[0])}",
    )

  def _model_partitions(self, fits: Callable[[int, int], bool]) -> list[int]:
    """Numbers of model partitions for which `fits(data partitions, model partitions)` holds."""
    return [n for n in divisors(self.mesh.size) if fits(self.mesh.size // n, n)]

  def _setting(self, num_model: int) -> str:
    """The setting that gives this many model partitions, as far as it is known."""
    prefix = "partitioning.PjitPartitioner."
    # The setting that the user has chosen: the others would be overridden by it, or refused.
    if self._mesh_args["ici_mesh_shape"] is not None:
      return prefix + "ici_mesh_shape"
    if self._mesh_args["model_parallel_submesh"] is not None:
      return prefix + f"model_parallel_submesh = (1, 1, 1, {num_model})"
    if self.mesh.devices.flat[0].platform == "cpu":
      return prefix + f"model_parallel_submesh = (1, 1, 1, {num_model}) and .num_partitions = None"
    return prefix + f"num_partitions = {num_model}"

  def get_shardings(self, mesh_axes: PyTree) -> PyTree:
    """Maps a tree of PartitionSpecs (or None: replicated) to NamedShardings."""
    return jax.tree_util.tree_map(self.sharding, mesh_axes, is_leaf=is_spec)

  def _check_divides(self, logical: PyTree, params: PyTree) -> None:
    """Raises T5XError for parameters that their shardings do not divide; JAX would fail later."""
    if self.mesh.size == 1:
      return
    # (logical axis, mesh axis, size): a parameter that has it.
    divided: dict[tuple[str, MeshAxis, int], str] = {}
    paths = jax.tree_util.tree_flatten_with_path(logical, is_leaf=is_spec)[0]
    for (path, axes), array in zip(paths, jax.tree_util.tree_leaves(params), strict=True):
      name = "/".join(str(getattr(key, "key", key)) for key in path)
      specs = self.logical_to_mesh(axes or PartitionSpec())
      for axis, mesh_axis, size in zip(axes or (), specs, array.shape, strict=False):
        if mesh_axis is not None:
          divided.setdefault((axis, mesh_axis, size), name)
    indivisible = []
    for (axis, mesh_axis, size), name in divided.items():
      if size % active_mesh.partitions(mesh_axis, self.mesh.shape):
        indivisible.append(f"{axis} {size} over {mesh_axis!r} ({name})")
    if not indivisible:
      return

    def fits(data: int, model: int) -> bool:
      mesh = {"data": data, "model": model}
      return all(size % active_mesh.partitions(axis, mesh) == 0 for _, axis, size in divided)

    counts = self._model_partitions(fits)
    raise T5XError(
      f"Parameters do not divide evenly over the mesh of {describe_mesh(self.mesh)}.",
      found="\n".join(indivisible),
      expected="sizes that are multiples of the partitions they are divided over",
      available=f"model partitions that divide all: {listed(counts)}",
      fix=(f"set {self._setting(max(counts))}, or change" if counts else "change")
      + " the model's sizes (network.T5Config)",
    )

  def get_mesh_axes(self, train_state: Any) -> Any:
    """Returns the train state with PartitionSpecs of mesh axes as leaves.

    Raises:
      T5XError: an axis has no rule, or a parameter does not divide over the mesh.
    """
    logical = train_state.as_logical_axes()
    if hasattr(train_state, "params"):  # the optimizer's slots have the same axes or fewer
      self._check_divides(logical.params, train_state.params)
    return jax.tree_util.tree_map(self.logical_to_mesh, in_structure(train_state, logical))

  def logical_to_mesh(self, axes: PartitionSpec) -> PartitionSpec:
    """Maps a spec of logical axes to one of mesh axes.

    Raises:
      T5XError: an axis has no rule.
    """
    axes_with_rules = {name for name, _ in self.logical_axis_rules}
    unknown = [name for name in axes if name is not None and name not in axes_with_rules]
    if unknown:
      raise T5XError(
        found=f"logical axis {unknown[0]!r}",
        expected="a rule for it",
        available=", ".join(sorted(axes_with_rules)),
        fix="add it with standard_logical_axis_rules.additional_rules",
      )
    return active_mesh.mesh_spec(tuple(axes), self.logical_axis_rules)

  def partition(
    self,
    fn: Callable[..., Any],
    in_axis_resources: PyTree,
    out_axis_resources: PyTree,
    static_argnums: int | Sequence[int] = (),
    donate_argnums: int | Sequence[int] = (),
    compiler_options: Mapping[str, str] | None = None,
  ) -> MeshFunction:
    """Compiles a function for the mesh.

    Args:
      fn: function of arrays.
      in_axis_resources: per non-static argument a tree prefix of PartitionSpecs of mesh axes;
        None is replicated.
      out_axis_resources: the same for the result.
      static_argnums: positions of arguments that are not arrays.
      donate_argnums: positions of arguments whose memory may be reused.
      compiler_options: XLA's, by name.

    Returns:
      The function; `.lower(*args)` compiles it ahead of time.
    """
    jitted = jax.jit(
      fn,
      in_shardings=self.get_shardings(in_axis_resources),
      out_shardings=self.get_shardings(out_axis_resources),
      static_argnums=static_argnums,
      donate_argnums=donate_argnums,
      compiler_options=dict(compiler_options) if compiler_options else None,
    )
    return MeshFunction(jitted, self)

  def training_options(self) -> dict[str, str]:
    """Returns compiler options for a training step on these devices.

    Options that LIBTPU_INIT_ARGS sets are left out.
    """
    kind = self.mesh.devices.flat[0].device_kind
    user_flags = os.environ.get("LIBTPU_INIT_ARGS", "")
    return {k: v for k, v in _TRAINING_OPTIONS.get(kind, {}).items() if k not in user_flags}

  def activate(self) -> contextlib.AbstractContextManager[None]:
    """Makes networks traced in the `with` block use this mesh and these rules."""
    return active_mesh.entered(self.mesh, self.logical_axis_rules)


def in_structure(train_state: Any, logical: Any) -> Any:
  """Returns the result of `train_state.as_logical_axes()` in the tree structure of that state.

  A leaf without logical axes has the empty spec.
  """
  leaves = jax.tree_util.tree_leaves(logical, is_leaf=is_spec)
  specs = [PartitionSpec() if spec is None else spec for spec in leaves]
  return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(train_state), specs)


def is_spec(x: Any) -> bool:
  """Whether `x` is a PartitionSpec, or None (replicated)."""
  return x is None or isinstance(x, PartitionSpec)
