"""Optimizers with T5X's interface: Adafactor's base classes, and optax wrapped in it.

In gin: `OPTIMIZER = @optimizers.adamw()` with `optimizers.adamw.learning_rate = None` (the
trainer's schedule applies, as with Adafactor), a number, or a schedule
(`@utils.create_learning_rate_scheduler()`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import flax.serialization
import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.sharding import PartitionSpec

from t5x.errors import T5XError

PyTree = Any


@struct.dataclass
class OptimizerState:
  """Step (int32 scalar) and slots."""

  step: Any
  param_states: Any


class OptimizerDef:
  """What an optimizer does; holds settings, no arrays."""

  def init_state(self, params: PyTree) -> OptimizerState:
    """Returns the state at step 0."""
    raise NotImplementedError

  def apply_gradient(
    self, params: PyTree, state: OptimizerState, grads: PyTree, learning_rate: Any
  ) -> tuple[PyTree, OptimizerState]:
    """Returns parameters and state after one update."""
    raise NotImplementedError

  def derive_logical_axes(self, params: PyTree, state: OptimizerState, axes: PyTree) -> PyTree:
    """Returns `state` with PartitionSpecs of logical axes instead of arrays."""
    raise NotImplementedError

  def with_logical_axes(self, axes: PyTree) -> OptimizerDef:
    """Returns an optimizer that knows the logical axes of its parameters."""
    del axes
    return self

  def create(self, target: PyTree) -> Optimizer:
    """Returns an optimizer for the parameters `target`, at step 0."""
    return Optimizer(self, self.init_state(target), target)


@struct.dataclass
class Optimizer:
  """Parameters (`target`) with the state of their optimizer."""

  optimizer_def: OptimizerDef = struct.field(pytree_node=False)
  state: Any
  target: Any

  def apply_gradient(self, grads: PyTree, learning_rate: Any = None) -> Optimizer:
    """Returns the optimizer after one update with `grads`, a tree like `target`.

    Without `learning_rate`, the optimizer's own applies.
    """
    target, state = self.optimizer_def.apply_gradient(self.target, self.state, grads, learning_rate)
    return self.replace(target=target, state=state)

  def state_dict(self) -> dict[str, Any]:
    """Returns `{'state': {'step', 'param_states'}, 'target'}` as nested dicts."""
    return {
      "state": flax.serialization.to_state_dict(self.state),
      "target": flax.serialization.to_state_dict(self.target),
    }

  def restore_state(self, state_dict: Mapping[str, Any]) -> Optimizer:
    """Returns the optimizer with the values of a `state_dict()`, perhaps read from disk."""
    state = _with_empty_nodes(state_dict["state"], flax.serialization.to_state_dict(self.state))
    return self.replace(
      target=flax.serialization.from_state_dict(self.target, state_dict["target"]),
      state=flax.serialization.from_state_dict(self.state, state),
    )

  def derive_logical_axes(self, axes: PyTree) -> Optimizer:
    """Returns the same structure with PartitionSpecs of logical names at the leaves.

    Args:
      axes: tree like `target` of PartitionSpecs.
    """
    state = self.optimizer_def.derive_logical_axes(self.target, self.state, axes)
    return self.replace(target=axes, state=state)


# T5X's names for annotations.
OptimizerDefType = OptimizerDef
OptimizerType = Optimizer


def _with_empty_nodes(tree: Any, like: Any) -> Any:
  """Puts nodes without arrays back that a checkpoint does not hold.

  optax keeps an empty state for each transformation of a chain that needs none (clipping).
  """
  if not isinstance(like, Mapping) or not isinstance(tree, Mapping):
    return tree
  empty = {k: v for k, v in like.items() if k not in tree and not jax.tree_util.tree_leaves(v)}
  return {**{k: _with_empty_nodes(v, like.get(k)) for k, v in tree.items()}, **empty}


class OptaxWrapper(OptimizerDef):
  """An optax transformation as an OptimizerDef.

  Args:
    optax_optimizer: the transformation; its updates are added to the parameters.
    scale_by_trainer: True if the updates were built with learning rate 1 and are to be
      multiplied by the rate the trainer gives at each step.
  """

  def __init__(self, optax_optimizer: optax.GradientTransformation, scale_by_trainer: bool = False):
    self.optax_optimizer = optax_optimizer
    self.scale_by_trainer = scale_by_trainer

  def init_state(self, params: PyTree) -> OptimizerState:
    """Returns optax's state and step 0."""
    return OptimizerState(
      step=jnp.zeros((), jnp.int32), param_states=self.optax_optimizer.init(params)
    )

  def apply_gradient(
    self, params: PyTree, state: OptimizerState, grads: PyTree, learning_rate: Any
  ) -> tuple[PyTree, OptimizerState]:
    """Returns parameters and state after one update."""
    updates, param_states = self.optax_optimizer.update(grads, state.param_states, params)
    if self.scale_by_trainer:
      updates = jax.tree_util.tree_map(lambda u: u * learning_rate, updates)
    params = optax.apply_updates(params, updates)
    return params, OptimizerState(step=state.step + 1, param_states=param_states)

  def derive_logical_axes(
    self, params: PyTree, state: OptimizerState, axes: PyTree
  ) -> OptimizerState:
    """Gives slots like the parameters their axes, and all else none."""
    del params
    param_states = optax.tree_utils.tree_map_params(
      self.optax_optimizer,
      lambda _, spec: spec,
      state.param_states,
      axes,
      transform_non_params=lambda _: PartitionSpec(),
    )
    return OptimizerState(step=PartitionSpec(), param_states=param_states)


def wrap_optax_optimizer(
  optax_optimizer: Callable[..., optax.GradientTransformation],
) -> Callable[..., OptaxWrapper]:
  """Makes an optax optimizer usable as `OPTIMIZER` in gin.

  Args:
    optax_optimizer: e.g. `optax.adamw`; called with whatever gin binds.

  Returns:
    A function with the same arguments that returns an OptimizerDef. If `learning_rate` is left
    out or None, the trainer's schedule gives it at each step: optax scales by it last, so
    updates at rate 1 times the rate of the step are the same.
  """

  @functools.wraps(optax_optimizer)
  def wrapped(learning_rate=None, *args, **kwargs) -> OptaxWrapper:
    rate = 1.0 if learning_rate is None else learning_rate
    transformation = optax_optimizer(rate, *args, **kwargs)
    return OptaxWrapper(transformation, scale_by_trainer=learning_rate is None)

  # gin must see `learning_rate=None`, not the signature of optax, where it has no default.
  del wrapped.__wrapped__
  wrapped.__module__ = __name__
  return wrapped


adabelief = wrap_optax_optimizer(optax.adabelief)
adagrad = wrap_optax_optimizer(optax.adagrad)
adam = wrap_optax_optimizer(optax.adam)
adamw = wrap_optax_optimizer(optax.adamw)
lamb = wrap_optax_optimizer(optax.lamb)
lars = wrap_optax_optimizer(optax.lars)
lion = wrap_optax_optimizer(optax.lion)
nadam = wrap_optax_optimizer(optax.nadam)
nadamw = wrap_optax_optimizer(optax.nadamw)
noisy_sgd = wrap_optax_optimizer(optax.noisy_sgd)
radam = wrap_optax_optimizer(optax.radam)
rmsprop = wrap_optax_optimizer(optax.rmsprop)
sgd = wrap_optax_optimizer(optax.sgd)
yogi = wrap_optax_optimizer(optax.yogi)


def chain(transformations: Any, learning_rate: Any = None) -> OptaxWrapper:
  """Applies optax transformations one after the other (`optax.chain`).

  Args:
    transformations: list of optax transformations, e.g.
      `[@optax.clip_by_global_norm(), @optax.scale_by_adam()]`; as in T5X, the list itself scales
      by the learning rate and its sign.
    learning_rate: must be None; kept so that a mistaken binding says why.

  Raises:
    T5XError: `learning_rate` was given, or something that is no transformation.
  """
  if learning_rate is not None:
    raise T5XError(
      found="optimizers.chain.learning_rate",
      expected="a learning rate inside the list of transformations",
      fix="add @optax.scale_by_learning_rate() to optimizers.chain.transformations",
    )
  parts = list(transformations) if isinstance(transformations, (list, tuple)) else [transformations]
  wrong = [part for part in parts if not isinstance(part, optax.GradientTransformation)]
  if wrong or not parts or not isinstance(transformations, (list, tuple)):
    raise T5XError(
      "optimizers.chain.transformations is no list of optax transformations.",
      found=repr((wrong or [transformations])[0])[:200],
      expected="a list such as [@optax.scale_by_adam(), @optax.scale_by_learning_rate()]",
      fix="set optimizers.chain.transformations; () behind a name makes the transformation",
    )
  return OptaxWrapper(optax.chain(*transformations))


_ONLY_IN_GOOGLES = ("MultiOptimizer", "amos")


def __getattr__(name: str) -> Any:
  if name in _ONLY_IN_GOOGLES:
    raise T5XError(
      found=f"t5x.optimizers.{name}",
      expected="an optimizer this lite T5X covers",
      available="adafactor.Adafactor, optimizers.adamw, adam, sgd, lion, lamb, chain, …",
      fix="use one of these, or install Google's T5X, which has it",
    )
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
