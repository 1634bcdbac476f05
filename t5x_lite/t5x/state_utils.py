"""State dictionaries read from a checkpoint: intersecting, merging and renaming them.

In gin: `state_transformation_fns = [@state_utils.apply_assignment_map]` with
`state_utils.apply_assignment_map.assignment_map = [...]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flax import traverse_util

from t5x._checkpoint.restore import match_names, with_names
from t5x._process.log import log
from t5x.errors import T5XError

_SPEC_KEYS = {"driver", "kvstore", "metadata"}


def tensorstore_leaf(_: Any, value: Mapping[str, Any]) -> bool:
  """Returns whether a node is TensorStore's description of an array; the name does not matter."""
  return set(value) >= _SPEC_KEYS


def flatten_state_dict(
  state_dict: Mapping[str, Any], keep_empty_nodes: bool = False
) -> dict[str, Any]:
  """`{'a': {'b': x}}` -> `{'a/b': x}`; descriptions of TensorStore arrays stay whole.

  Args:
    state_dict: nested dictionaries with names as keys.
    keep_empty_nodes: keep empty dictionaries as `flax.traverse_util.empty_node`.
  """
  return traverse_util.flatten_dict(
    state_dict, keep_empty_nodes=keep_empty_nodes, is_leaf=tensorstore_leaf, sep="/"
  )


def get_name_tree(state_dict: Mapping[str, Any], keep_empty_nodes: bool = False) -> dict[str, Any]:
  """Returns the same tree with each leaf's path, `'a/b'`, in its place.

  Args:
    state_dict: nested dictionaries.
    keep_empty_nodes: give empty dictionaries their path too; otherwise they vanish.
  """
  paths = traverse_util.flatten_dict(state_dict, keep_empty_nodes=keep_empty_nodes)
  return traverse_util.unflatten_dict({path: "/".join(path) for path in paths})


def intersect_state(
  state_dict: Mapping[str, Any], intersect_state_dict: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns those entries of `state_dict` whose path is also in `intersect_state_dict`."""
  known = flatten_state_dict(intersect_state_dict)
  flat = flatten_state_dict(state_dict)
  dropped = [name for name in flat if name not in known]
  if dropped:
    log(f"dropped, since the checkpoint does not have them: {', '.join(dropped)}")
  kept = {name: value for name, value in flat.items() if name in known}
  return traverse_util.unflatten_dict(kept, sep="/")


def merge_state(
  state_dict: Mapping[str, Any], from_scratch_state: Mapping[str, Any], overwrite: bool = False
) -> dict[str, Any]:
  """Adds entries to a state.

  Args:
    state_dict: the state.
    from_scratch_state: entries to add.
    overwrite: take the value of `from_scratch_state` where both have one.

  Returns:
    The union of both.
  """
  old, new = flatten_state_dict(state_dict), flatten_state_dict(from_scratch_state)
  added = [name for name in new if overwrite or name not in old]
  if added:
    log(f"added with their initial values: {', '.join(added)}")
  return traverse_util.unflatten_dict(old | {name: new[name] for name in added}, sep="/")


def apply_assignment_map(
  ckpt_optimizer_state: Mapping[str, Any],
  optimizer_state: Mapping[str, Any],
  assignment_map: Sequence[tuple[Any, str | None]],
  require_all_rules_match: bool = True,
  *,
  is_resuming: bool = False,
) -> Mapping[str, Any]:
  r"""Renames the arrays of a checkpoint to the names of a model.

  The first pattern that matches a name of the model counts. That name gets the array of the
  replacement, which may be used several times; with the replacement None it is left out. A name
  that no pattern matches keeps the array of that name. Arrays of the checkpoint that are not
  requested stay as they are.

  Args:
    ckpt_optimizer_state: tree of the checkpoint.
    optimizer_state: tree of the model; only its names are read.
    assignment_map: (regular expression for a whole name in the model, name in the checkpoint with
      `\1` for its groups, or None) pairs.
    require_all_rules_match: whether each pattern has to match something.
    is_resuming: True returns the checkpoint's tree: a run's own checkpoints have the new names.

  Returns:
    The renamed tree.

  Raises:
    T5XError: a pattern matches nothing, or the checkpoint lacks a requested array.
  """
  if is_resuming:
    return ckpt_optimizer_state
  stored, wanted = flatten_state_dict(ckpt_optimizer_state), flatten_state_dict(optimizer_state)
  renamed, skipped, unused = match_names(wanted, assignment_map)
  if unused and require_all_rules_match:
    raise T5XError(
      "assignment_map has patterns that match no array of the model.", found=", ".join(unused)
    )
  missing = [f"{source} (for {name})" for name, source in renamed.items() if source not in stored]
  if missing:
    raise T5XError(
      "The checkpoint lacks arrays that assignment_map refers to.",
      found="no " + ", ".join(missing),
      available=", ".join(sorted(stored)),
    )
  named = with_names(stored, wanted, renamed, skipped)
  return traverse_util.unflatten_dict(named, sep="/")
