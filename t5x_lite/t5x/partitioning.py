"""Meshes and sharding: T5X's `PjitPartitioner` on `jax.jit` with NamedSharding.

The mesh has the axes ('data', 'model'). Parameters carry logical axis names; rules map these to
mesh axes (Xu et al. 2021, GSPMD, arXiv:2105.04663).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from flax.linen import partitioning as flax_partitioning
from jax.sharding import PartitionSpec

from t5x import active_mesh
from t5x._partition.base import BasePartitioner, DataLayout, PjittedFnWithContext, is_spec
from t5x._partition.mesh import default_mesh, describe_mesh, divisors, listed
from t5x._partition.settings import checked_rules
from t5x.active_mesh import LogicalAxisRules
from t5x.errors import T5XError

__all__ = [
  "BasePartitioner",
  "DataLayout",
  "LogicalAxisRules",
  "PartitionSpec",
  "PjitPartitioner",
  "PjittedFnWithContext",
  "default_mesh",
  "describe_mesh",
  "divisors",
  "standard_logical_axis_rules",
]

PyTree = Any


# By kind of device. Of a v5e's 128 MiB of VMEM, XLA gives an operation 16 by default; with 32,
# attention of T5 Base takes a fifth less time by XLA's own estimate, but a decoded token takes a
# quarter more (t5x_lite/docs/tpu-aot.md).
_V5E = {"xla_tpu_scoped_vmem_limit_kib": "32768"}
_TRAINING_OPTIONS = {"TPU v5 lite": _V5E, "TPU v5e": _V5E}


def standard_logical_axis_rules(
  activation_partitioning_dims: int = 1,
  parameter_partitioning_dims: int = 1,
  additional_rules: LogicalAxisRules | None = None,
) -> list[tuple[str, str | None]]:
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
  model = [("mlp", "model"), ("heads", "model"), ("kv", None), ("joined_kv", "model")]
  rules = [("batch", "data"), ("vocab", "model")]
  if (activation_partitioning_dims, parameter_partitioning_dims) == (1, 1):
    rules += [("embed", None), *model]
  else:
    rules += model
    if activation_partitioning_dims == 2:
      rules.append(("embed", "model"))
    if parameter_partitioning_dims == 2:
      rules.append(("embed", "data"))
  whole = ("relpos_buckets", "abspos_buckets", "length", "layers", "stack", "mlp_activations")
  return rules + [(name, None) for name in whole] + list(additional_rules or ())


class PjitPartitioner(BasePartitioner):
  """Partitions functions and train states over a mesh by rules for logical axes.

  Args:
    num_partitions: see `BasePartitioner`, also for the next five.
    model_parallel_submesh: as above.
    params_on_devices: as above.
    backend: as above.
    ici_mesh_shape: as above.
    dcn_mesh_shape: as above.
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
    super().__init__(
      num_partitions,
      model_parallel_submesh,
      params_on_devices,
      backend,
      ici_mesh_shape,
      dcn_mesh_shape,
    )
    rules = standard_logical_axis_rules() if logical_axis_rules is None else logical_axis_rules
    self.logical_axis_rules = checked_rules(rules)

  def _check_divides(self, logical: PyTree, params: PyTree) -> None:
    """Raises T5XError for parameters that their shardings do not divide; JAX would fail later."""
    if self.mesh.size == 1:
      return
    divided = {}  # (logical axis, mesh axis, size): a parameter that has it
    paths = jax.tree_util.tree_flatten_with_path(logical, is_leaf=is_spec)[0]
    for (path, axes), array in zip(paths, jax.tree_util.tree_leaves(params), strict=True):
      name = "/".join(str(getattr(key, "key", key)) for key in path)
      specs = self.logical_to_mesh(axes or PartitionSpec())
      for axis, mesh_axis, size in zip(axes or (), specs, array.shape, strict=False):
        if mesh_axis is not None:
          divided.setdefault((axis, mesh_axis, size), name)
    wrong = [key for key in divided if key[2] % active_mesh.partitions(key[1], self.mesh.shape)]
    if not wrong:
      return
    shown = [
      f"{axis} {size} over {mesh!r} ({divided[axis, mesh, size]})" for axis, mesh, size in wrong
    ]
    counts = self._model_partitions(
      lambda data, model: all(
        n % active_mesh.partitions(m, {"data": data, "model": model}) == 0 for _, m, n in divided
      )
    )
    raise T5XError(
      f"Parameters do not divide evenly over the mesh of {describe_mesh(self.mesh)}.",
      found="\n".join(shown),
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
    logical = self.get_logical_axes(train_state)
    if hasattr(train_state, "params"):  # the optimizer's slots have the same axes or fewer
      self._check_divides(logical.params, train_state.params)
    if hasattr(train_state, "in_structure"):
      logical = train_state.in_structure(logical)
    return jax.tree_util.tree_map(self.logical_to_mesh, logical)

  def logical_to_mesh(self, axes: PartitionSpec) -> PartitionSpec:
    """Maps a spec of logical axes to one of mesh axes.

    Raises:
      T5XError: an axis has no rule.
    """
    known = {name for name, _ in self.logical_axis_rules}
    unknown = [name for name in axes if name is not None and name not in known]
    if unknown:
      raise T5XError(
        found=f"logical axis {unknown[0]!r}",
        expected="a rule for it",
        available=", ".join(sorted(known)),
        fix="add it with standard_logical_axis_rules.additional_rules",
      )
    return flax_partitioning.logical_to_mesh_axes(tuple(axes), self.logical_axis_rules)

  def partition(
    self,
    fn: Callable[..., Any],
    in_axis_resources: PyTree,
    out_axis_resources: PyTree,
    static_argnums: int | Sequence[int] = (),
    donate_argnums: int | Sequence[int] = (),
    compiler_options: Mapping[str, str] | None = None,
  ) -> PjittedFnWithContext:
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
    return PjittedFnWithContext(jitted, self.mesh, self.logical_axis_rules, by_spec=False)

  def training_options(self) -> dict[str, str]:
    """Returns compiler options for a training step on these devices.

    Options that LIBTPU_INIT_ARGS sets are left out.
    """
    kind = self.mesh.devices.flat[0].device_kind
    own = os.environ.get("LIBTPU_INIT_ARGS", "")
    return {k: v for k, v in _TRAINING_OPTIONS.get(kind, {}).items() if k not in own}

  def activate(self) -> contextlib.AbstractContextManager[None]:
    """Makes networks traced in the `with` block use this mesh and these rules."""
    return active_mesh.entered(self.mesh, self.logical_axis_rules)
