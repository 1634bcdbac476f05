"""Checks of what gin binds to a partitioner, before any devices are requested."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from t5x.errors import T5XError, check_whole


def check_mesh_settings(num_partitions: Any, submesh: Any, ici: Any, dcn: Any) -> None:
  """Raises T5XError for an impossible mesh.

  Args:
    num_partitions: `PjitPartitioner.num_partitions`.
    submesh: `.model_parallel_submesh`.
    ici: `.ici_mesh_shape`.
    dcn: `.dcn_mesh_shape`.
  """
  prefix = "partitioning.PjitPartitioner."
  fix = f"{prefix}num_partitions = 1"
  check_whole(num_partitions, f"{prefix}num_partitions", optional=True, fix=fix)
  for name, shape, example in (
    ("model_parallel_submesh", submesh, "(1, 1, 1, 2)"),
    ("ici_mesh_shape", ici, "(1, 2)"),
    ("dcn_mesh_shape", dcn, "(1, 2)"),
  ):
    if shape is None:
      continue
    if isinstance(shape, str) or not isinstance(shape, Sequence):
      raise T5XError(
        f"{prefix}{name} is not a shape.",
        found=repr(shape),
        expected="numbers of devices, or None",
        fix=f"{prefix}{name} = {example}",
      )
    for size in shape:
      check_whole(size, f"Each number of {prefix}{name}", fix=f"{prefix}{name} = {example}")
    if name != "model_parallel_submesh" and len(shape) != 2:
      raise T5XError(
        f"{prefix}{name} has {len(shape)} numbers.",
        found=repr(tuple(shape)),
        expected="(data, model); what T5X calls 'replica' is part of data",
        fix=f"{prefix}{name} = {example}",
      )
  if dcn is not None and ici is None:
    raise T5XError(
      f"{prefix}dcn_mesh_shape without ici_mesh_shape.",
      found=repr(tuple(dcn)),
      expected="both, or neither",
      fix=f"{prefix}ici_mesh_shape = (1, 2), the shape within a slice",
    )


def checked_rules(rules: Any) -> tuple[tuple[str, Any], ...]:
  """Returns (logical axis, mesh axis) pairs; raises T5XError if `rules` are invalid."""
  with contextlib.suppress(TypeError, ValueError):
    pairs = tuple((logical, mesh) for logical, mesh in rules)
    axes = [axis for _, mesh in pairs for axis in (mesh if isinstance(mesh, tuple) else (mesh,))]
    if all(isinstance(a, str) for a, _ in pairs) and {*axes} <= {"data", "model", None}:
      return pairs
  raise T5XError(
    "partitioning.PjitPartitioner.logical_axis_rules is not a list of rules.",
    found=repr(rules)[:200],
    expected="(logical axis, mesh axis or None) pairs, with the mesh axes 'data' and 'model'",
    fix="logical_axis_rules = @partitioning.standard_logical_axis_rules()",
  )
