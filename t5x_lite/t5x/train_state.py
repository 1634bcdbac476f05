"""The state a training step reads and writes: parameters, optimizer slots and step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.core
import flax.traverse_util
import jax.numpy as jnp
from flax import struct
from flax.linen import partitioning as flax_partitioning

from t5x import optimizers
from t5x.errors import T5XError, not_in_lite

PyTree = Any


class FlaxOptimTrainState(struct.PyTreeNode):
  """Parameters with optimizer state: the kind of train state that training uses here.

  Make one with `create`. All arrays are leaves, so the state passes through `jax.jit`,
  `jax.eval_shape` and checkpointing as it is.

  Attributes:
    optimizer: parameters, slots and step.
    params_axes: `params_axes` collection of logical axis names, or None.
  """

  optimizer: optimizers.Optimizer
  params_axes: PyTree = struct.field(pytree_node=False, default=None)

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
    params, params_axes = _split(model_variables)
    if params_axes is not None:
      axes = flax.core.unfreeze(flax_partitioning.get_axis_names(params_axes))
      optimizer_def = optimizer_def.with_logical_axes(axes)
    return cls(optimizer=optimizer_def.create(params), params_axes=params_axes)

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

  def apply_gradient(self, grads: PyTree, learning_rate: Any) -> FlaxOptimTrainState:
    """Returns the state after one update.

    Args:
      grads: tree like `params`.
      learning_rate: scalar; ignored by an optimizer that was given its own rate.

    Returns:
      The new state; `step` is one higher.
    """
    optimizer = self.optimizer.apply_gradient(grads, learning_rate=learning_rate)
    return self.replace(optimizer=optimizer)

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
    return self.optimizer.state_dict()

  def restore_state(self, state_dict: Mapping[str, Any]) -> FlaxOptimTrainState:
    """Returns this state with the values of `state_dict` (a tree as `state_dict()` makes)."""
    return self.replace(optimizer=self.optimizer.restore_state(state_dict))

  def as_logical_axes(self) -> FlaxOptimTrainState:
    """Returns a state whose leaves are PartitionSpecs of logical names.

    A leaf without logical axes (step, factored and unused slots) is None. As in T5X, the
    parameters are a FrozenDict, and there is no `params_axes`; `partitioning.in_structure` gives it
    the structure of this state.

    Raises:
      T5XError: the model recorded no logical axes.
    """
    axes = flax.core.unfreeze(_axis_names(self.params_axes))
    optimizer = self.optimizer.derive_logical_axes(axes)
    return type(self)(optimizer=optimizer.replace(target=flax.core.freeze(axes)))


class InferenceState(struct.PyTreeNode):
  """Parameters and step, without an optimizer: what evaluation reads from a checkpoint.

  Attributes:
    step: int32 scalar: updates made so far.
    params: tree of parameters, a FrozenDict from `create` and `restore_state`.
    params_axes: as for FlaxOptimTrainState.
  """

  step: Any
  params: PyTree
  params_axes: PyTree = struct.field(pytree_node=False, default=None)

  @classmethod
  def create(cls, model_variables: Mapping[str, Any]) -> InferenceState:
    """Makes a state at step 0 from `model.get_initial_variables(...)`."""
    params, params_axes = _split(model_variables)
    return cls(jnp.zeros((), jnp.int32), flax.core.freeze(params), params_axes)

  def state_dict(self) -> dict[str, Any]:
    """Returns `{'target': params, 'state': {'step'}}`, a part of a train state's."""
    return {"target": flax.core.unfreeze(self.params), "state": {"step": self.step}}

  def restore_state(self, state_dict: Mapping[str, Any]) -> InferenceState:
    """Returns the state with the values of `state_dict`."""
    params = flax.core.freeze(state_dict["target"])
    return self.replace(params=params, step=state_dict["state"]["step"])

  def replace_params(self, params: PyTree) -> InferenceState:
    """Returns the state with other parameters."""
    return self.replace(params=params)

  def replace_step(self, step: Any) -> InferenceState:
    """Returns the state with another step (int32 scalar)."""
    return self.replace(step=step)

  def as_logical_axes(self) -> InferenceState:
    """As for FlaxOptimTrainState."""
    return type(self)(step=None, params=flax.core.freeze(_axis_names(self.params_axes)))


def _split(model_variables: PyTree) -> tuple[PyTree, PyTree]:
  """Returns (parameters as plain dicts, their axes or None).

  Raises:
    T5XError: the model has other collections, or parameters and axes do not match.
  """
  variables = dict(flax.core.unfreeze(model_variables))
  params, axes = variables.pop("params"), variables.pop("params_axes", None)
  if variables:
    raise not_in_lite(f"A model with mutable collections ({', '.join(variables)})")
  if axes is None:
    return params, None
  _check_axes_cover(params, axes)
  return params, flax.core.freeze(axes)


def _axis_names(params_axes: PyTree) -> PyTree:
  """Returns a tree of PartitionSpecs of logical names.

  Raises:
    T5XError: the model recorded no logical axes.
  """
  if params_axes is None:
    raise T5XError("The model records no logical axes: declare parameters with param_with_axes.")
  return flax_partitioning.get_axis_names(params_axes)


def _check_axes_cover(params: PyTree, params_axes: PyTree) -> None:
  """Raises T5XError unless exactly the parameters have logical axes."""
  names = flax.core.unfreeze(flax_partitioning.get_axis_names(params_axes))
  have = set(flax.traverse_util.flatten_dict(names, sep="/"))
  want = set(flax.traverse_util.flatten_dict(flax.core.unfreeze(params), sep="/"))
  if have != want:
    raise T5XError(
      f"Parameters without logical axes: {sorted(want - have)}; axes without a parameter: "
      f"{sorted(have - want)}. Declare parameters with layers.param_with_axes."
    )
