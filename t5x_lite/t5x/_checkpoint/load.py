"""`checkpoints.load_t5x_checkpoint`: a whole checkpoint for users' code, with T5X's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from etils import epath

from t5x._checkpoint.read import checkpoint_steps, load_checkpoint
from t5x.errors import not_in_lite


def load_t5x_checkpoint(
  path: str,
  step: int | None = None,
  state_transformation_fns: Sequence[Callable] = (),
  remap: bool = True,
  restore_dtype: Any = None,
  lazy_parameters: bool = False,
) -> dict[str, Any]:
  """Reads a whole checkpoint of either layout as a nested dictionary of numpy arrays.

  Args:
      path: a checkpoint_N folder, its msgpack file `checkpoint`, or a folder of checkpoints.
      step: in a folder of checkpoints, the step wanted; None for the latest.
      state_transformation_fns: called in turn as fn(tree, {}, is_resuming=False).
      remap: accepted for T5X's signature; names are those of the checkpoint.
      restore_dtype: of parameters that are floating-point; None for that of the checkpoint.
      lazy_parameters: must be False.

  Returns:
      {'target': parameters, 'state': {'step': ..., 'param_states': ...}}.

  Raises:
      T5XError: no such checkpoint, or `lazy_parameters`.
  """
  del remap
  if lazy_parameters:
    raise not_in_lite("load_t5x_checkpoint with lazy_parameters")
  folder = epath.Path(path)
  if folder.name == "checkpoint" and folder.is_file():
    folder = folder.parent
  elif step is not None or (steps := checkpoint_steps(str(folder))):
    folder /= f"checkpoint_{steps[-1] if step is None else step}"
  tree = load_checkpoint(str(folder))
  for fn in state_transformation_fns:
    tree = fn(tree, {}, is_resuming=False)
  if restore_dtype is None:
    return tree

  def cast(array: Any) -> Any:
    return array.astype(restore_dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array

  return {**tree, "target": jax.tree_util.tree_map(cast, tree["target"])}
