"""The state a training step reads and writes: parameters, optimizer slots and step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.core
import flax.serialization
import flax.traverse_util
import jax
from flax import struct
from flax.linen import partitioning as flax_partitioning
from jax.sharding import PartitionSpec

from t5x import optimizers
from t5x.errors import T5XError

PyTree = Any
EMPTY: Mapping[str, Any] = flax.core.freeze({})


@struct.dataclass
class FlaxOptimTrainState:
  """Parameters with optimizer state, the only kind of train state of T5X that is used here.

  Make one with `create`. All arrays are leaves, so the state passes through `jax.jit`,
  `jax.eval_shape` and checkpointing as it is.

  Attributes:
    optimizer: parameters, slots and step.
    params_axes: `params_axes` collection of logical axis names, or None.
    flax_mutables: other variable collections of the model (empty for T5).
  """

  optimizer: optimizers.Optimizer
  params_axes: PyTree = struct.field(pytree_node=False, default=None)
  flax_mutables: PyTree = EMPTY

  @classmethod
  def create(
    cls, optimizer_def: optimizers.OptimizerDef, model_variables: Mapping[str, Any]
  ) -> FlaxOptimTrainState:
    """Makes a state at step 0 with fresh slots.

    Args:
      optimizer_def: the optimizer.
      model_variables: collections from `model.get_initial_variables`: `params`, and
        `params_axes` if the model records logical axes.

    Returns:
      The train state.
    """
    variables = dict(flax.core.unfreeze(model_variables))
    params = variables.pop("params")
    params_axes = variables.pop("params_axes", None)
    if params_axes is not None:
      _check_axes_cover(params, params_axes)
      axes = flax.core.unfreeze(flax_partitioning.get_axis_names(params_axes))
      optimizer_def = optimizer_def.with_logical_axes(axes)
      params_axes = flax.core.freeze(params_axes)
    return cls(
      optimizer=optimizer_def.create(params),
      params_axes=params_axes,
      flax_mutables=flax.core.freeze(variables),
    )

  @property
  def step(self) -> Any:
    """int32 scalar: updates made so far."""
    return self.optimizer.state.step

  @property
  def params(self) -> PyTree:
    """Tree of parameters."""
    return self.optimizer.target

  @property
  def param_states(self) -> PyTree:
    """Optimizer slots; for Adafactor a tree with one set of slots per parameter."""
    return self.optimizer.state.param_states

  def apply_gradient(
    self, grads: PyTree, learning_rate: Any, flax_mutables: PyTree = EMPTY
  ) -> FlaxOptimTrainState:
    """Returns the state after one update.

    Args:
      grads: tree like `params`.
      learning_rate: scalar; ignored by an optimizer that was given a rate of its own.
      flax_mutables: new values of the other collections.

    Returns:
      The new state; `step` is one higher.
    """
    optimizer = self.optimizer.apply_gradient(grads, learning_rate=learning_rate)
    return self.replace(optimizer=optimizer, flax_mutables=flax_mutables)

  # Part of T5X's surface: nothing here calls it; kept for users' code.
  def replace_params(self, params: PyTree) -> FlaxOptimTrainState:
    """Returns the state with other parameters."""
    return self.replace(optimizer=self.optimizer.replace(target=params))

  def replace_step(self, step: Any) -> FlaxOptimTrainState:
    """Returns the state with another step (int32 scalar)."""
    opt_state = self.optimizer.state.replace(step=step)
    return self.replace(optimizer=self.optimizer.replace(state=opt_state))

  def state_dict(self) -> dict[str, Any]:
    """Returns nested plain dicts, `{'state': {'step', 'param_states'}, 'target'}`.

    This is the tree a checkpoint holds, of either format.
    """
    state = self.optimizer.state_dict()
    if self.flax_mutables:
      state["flax_mutables"] = flax.serialization.to_state_dict(
        flax.core.unfreeze(self.flax_mutables)
      )
    return state

  def restore_state(self, state_dict: Mapping[str, Any]) -> FlaxOptimTrainState:
    """Returns this state with the values of `state_dict` (a tree as `state_dict()` makes)."""
    state_dict = dict(state_dict)
    mutables = state_dict.pop("flax_mutables", None)
    if mutables is None:
      mutables = self.flax_mutables
    return self.replace(
      optimizer=self.optimizer.restore_state(state_dict),
      flax_mutables=flax.core.freeze(mutables),
    )

  def as_logical_axes(self) -> FlaxOptimTrainState:
    """Returns a state of the same structure whose leaves are PartitionSpecs of logical names.

    A leaf without logical axes (step, factored and unused slots) has the empty spec.

    Raises:
      T5XError: the model recorded no logical axes.
    """
    if self.params_axes is None:
      raise T5XError(
        found="a train state without logical axes",
        expected="model variables with a 'params_axes' collection",
        fix="create parameters with layers.param_with_axes",
      )
    axes = flax.core.unfreeze(flax_partitioning.get_axis_names(self.params_axes))
    mutables = flax.core.freeze({})
    if self.flax_mutables:
      mutables = jax.tree_util.tree_map(lambda _: PartitionSpec(), self.flax_mutables)
    return self.replace(optimizer=self.optimizer.derive_logical_axes(axes), flax_mutables=mutables)


def _check_axes_cover(params: PyTree, params_axes: PyTree) -> None:
  """Raises T5XError unless exactly the parameters have logical axes."""
  names = flax.core.unfreeze(flax_partitioning.get_axis_names(params_axes))
  have = set(flax.traverse_util.flatten_dict(names, sep="/"))
  want = set(flax.traverse_util.flatten_dict(flax.core.unfreeze(params), sep="/"))
  if have != want:
    raise T5XError(
      found="parameters without logical axes: "
      f"{sorted(want - have)}; axes without a parameter: {sorted(have - want)}",
      expected="one axis name per dimension of every parameter",
      fix="declare parameters with layers.param_with_axes",
    )
