"""Renames the arrays of a checkpoint.

In gin: `state_transformation_fns = [@state_utils.apply_assignment_map]` with
`state_utils.apply_assignment_map.assignment_map = [...]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flax import traverse_util

from t5x._checkpoint.restore import check_assignment_map, match_names, with_names
from t5x.errors import T5XError


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
    T5XError: the map is invalid or a pattern of it matches nothing, or the checkpoint lacks a
      requested array.
  """
  if is_resuming:
    return ckpt_optimizer_state
  check_assignment_map(assignment_map)
  stored = traverse_util.flatten_dict(ckpt_optimizer_state, sep="/")
  model_arrays = traverse_util.flatten_dict(optimizer_state, sep="/")
  renamed, skipped, unused = match_names(model_arrays, assignment_map)
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
  renamed_arrays = with_names(stored, model_arrays, renamed, skipped)
  return traverse_util.unflatten_dict(renamed_arrays, sep="/")
