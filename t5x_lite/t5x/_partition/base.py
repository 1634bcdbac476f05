"""What all partitioners have: a mesh, and which part of the data a process reads.

Re-exported by `t5x.partitioning`.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t5x import active_mesh
from t5x._partition.mesh import default_mesh, divisors, listed
from t5x._partition.settings import check_mesh_settings
from t5x.active_mesh import LogicalAxisRules
from t5x.errors import T5XError

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


class BasePartitioner(abc.ABC):
  """Places train states and batches on a mesh.

  A custom partitioner defines `get_mesh_axes` and `partition`.

  Args:
    num_partitions: see `default_mesh`.
    model_parallel_submesh: see `default_mesh`; give at most one of the two.
    params_on_devices: False keeps parameters on the host between steps (not covered here).
    backend: jax backend; None is the default one.
    ici_mesh_shape: see `default_mesh`.
    dcn_mesh_shape: see `default_mesh`.
  """

  def __init__(
    self,
    num_partitions: int | None = None,
    model_parallel_submesh: Sequence[int] | None = None,
    params_on_devices: bool = True,
    backend: str | None = None,
    ici_mesh_shape: Sequence[int] | None = None,
    dcn_mesh_shape: Sequence[int] | None = None,
  ):
    check_mesh_settings(num_partitions, model_parallel_submesh, ici_mesh_shape, dcn_mesh_shape)
    if num_partitions and model_parallel_submesh:
      raise T5XError(
        found="both num_partitions and model_parallel_submesh",
        expected="at most one of them",
        fix="bind partitioning.PjitPartitioner.num_partitions = None",
      )
    if not params_on_devices:
      raise T5XError(
        found="params_on_devices = False",
        expected="True: t5x_lite keeps parameters on devices",
        fix="bind True, or install Google's T5X, which supports False",
      )
    self._params_on_devices = params_on_devices
    self._mesh_args = dict(
      num_partitions=num_partitions,
      model_parallel_submesh=model_parallel_submesh,
      backend=backend,
      ici_mesh_shape=ici_mesh_shape,
      dcn_mesh_shape=dcn_mesh_shape,
    )

  @functools.cached_property
  def mesh(self) -> Mesh:
    """The mesh; made on first use, since that starts the backend."""
    return default_mesh(**self._mesh_args)

  @property
  def params_on_devices(self) -> bool:
    """Whether parameters stay on the devices between steps."""
    return self._params_on_devices

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
    if self._mesh_args["ici_mesh_shape"] is not None:
      return prefix + "ici_mesh_shape"
    if self._mesh_args["model_parallel_submesh"] is not None:
      return prefix + f"model_parallel_submesh = (1, 1, 1, {num_model})"
    if self.mesh.devices.flat[0].platform == "cpu":
      return prefix + f"model_parallel_submesh = (1, 1, 1, {num_model}) and .num_partitions = None"
    return prefix + f"num_partitions = {num_model}"

  def get_logical_axes(self, train_state: Any) -> Any:
    """Returns the train state with PartitionSpecs of logical axes as leaves."""
    return train_state.as_logical_axes()

  @abc.abstractmethod
  def get_mesh_axes(self, train_state: Any) -> Any:
    """Returns the train state with PartitionSpecs of mesh axes as leaves."""

  def get_shardings(self, mesh_axes: PyTree) -> PyTree:
    """Maps a tree of PartitionSpecs (or None: replicated) to NamedShardings."""
    return jax.tree_util.tree_map(self.sharding, mesh_axes, is_leaf=is_spec)

  @abc.abstractmethod
  def partition(
    self,
    fn: Callable[..., Any],
    in_axis_resources: PyTree,
    out_axis_resources: PyTree,
    static_argnums: int | Sequence[int] = (),
    donate_argnums: int | Sequence[int] = (),
  ) -> PjittedFnWithContext:
    """Compiles a function for the mesh."""

  def compile(self, partitioned_fn: PjittedFnWithContext, *args: Any) -> Any:
    """Compiles ahead of time for arguments (arrays or ShapeDtypeStructs) like these."""
    return partitioned_fn.lower(*args).compile()


class PjittedFnWithContext:
  """A jitted function that is called and traced with a mesh and its rules active.

  Args:
    pjitted_fn: from `jax.jit`; its shardings may be PartitionSpecs.
    partition_mesh: the mesh.
    logical_axis_rules: (logical, mesh) pairs.
    by_spec: False if the function's shardings name the mesh themselves.
  """

  def __init__(
    self,
    pjitted_fn: Any,
    partition_mesh: Mesh,
    logical_axis_rules: LogicalAxisRules = (),
    by_spec: bool = True,
  ):
    self._pjitted_fn, self._by_spec = pjitted_fn, by_spec
    self._mesh, self._rules = partition_mesh, logical_axis_rules

  def __call__(self, *args: Any) -> Any:
    """Calls the compiled function."""
    with self._context():
      return self._pjitted_fn(*args)

  def lower(self, *args: Any) -> Any:
    """Lowers for these arguments, like `jax.jit(...).lower`."""
    with self._context():
      return self._pjitted_fn.lower(*args)

  @contextlib.contextmanager
  def _context(self) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
      stack.enter_context(active_mesh.entered(self._mesh, self._rules))
      if self._by_spec:
        with warnings.catch_warnings():
          warnings.simplefilter("ignore", DeprecationWarning)
          stack.enter_context(self._mesh)  # what `jax.experimental.pjit` looks at
        stack.enter_context(jax.set_mesh(self._mesh))  # and what `jax.jit` does
      yield


def is_spec(x: Any) -> bool:
  """Whether `x` is a PartitionSpec, or None (replicated)."""
  return x is None or isinstance(x, PartitionSpec)
