"""Optimizers with T5X's interface: Adafactor's base classes, and wrapped optax optimizers.

In gin: `OPTIMIZER = @optimizers.adamw()` with `optimizers.adamw.learning_rate = None` (the
trainer's schedule applies, as with Adafactor), a number, or a schedule
(`@utils.create_learning_rate_scheduler()`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flax.serialization
import jax
import jax.numpy as jnp
import optax
from flax import struct

from t5x.errors import T5XError

PyTree = Any


class OptimizerState(struct.PyTreeNode):
  """Step (int32 scalar) and slots."""

  step: Any
  param_states: Any


class HyperParams(struct.PyTreeNode):
  """What a step may override: the learning rate."""

  learning_rate: Any = None


class OptimizerDef:
  """What an optimizer does; holds settings, no arrays.

  Args:
    hyper_params: a dataclass of the settings that a step may override.
  """

  def __init__(self, hyper_params: Any = None):
    self.hyper_params = hyper_params

  def init_state(self, params: PyTree) -> OptimizerState:
    """Returns the state at step 0."""
    raise NotImplementedError

  def apply_gradient(
    self, hyper_params: Any, params: PyTree, state: OptimizerState, grads: PyTree
  ) -> tuple[PyTree, OptimizerState]:
    """Returns parameters and state after one update.

    Args:
      hyper_params: from `update_hyper_params`.
      params: parameters.
      state: from `init_state` or the previous update.
      grads: tree like `params`.
    """
    raise NotImplementedError

  def update_hyper_params(self, **hyper_param_overrides: Any) -> Any:
    """Returns the settings of one step: `hyper_params` (or the optimizer's own) with overrides."""
    hyper_params = hyper_param_overrides.pop("hyper_params", self.hyper_params)
    return (
      dataclasses.replace(hyper_params, **hyper_param_overrides)
      if hyper_param_overrides
      else hyper_params
    )

  def derive_logical_axes(self, optimizer: Optimizer, param_logical_axes: PyTree) -> Optimizer:
    """Returns the optimizer with logical axes instead of arrays.

    Args:
      optimizer: optimizer of arrays, or their shapes.
      param_logical_axes: tree of PartitionSpecs, structured like the parameters.

    Returns:
      PartitionSpecs for what is divided like a parameter, None for all else.
    """
    raise NotImplementedError

  def with_logical_axes(self, axes: PyTree) -> OptimizerDef:
    """Returns an optimizer that knows the logical axes of its parameters."""
    del axes
    return self

  def create(self, target: PyTree) -> Optimizer:
    """Returns an optimizer for the parameters `target`, at step 0."""
    return Optimizer(self, self.init_state(target), target)

  def state_dict(self, target: PyTree, state: OptimizerState) -> dict[str, Any]:
    """Returns `{'state': {'step', 'param_states'}, 'target'}`, without empty nodes."""
    slots = _without_empty_nodes(flax.serialization.to_state_dict(state.param_states))
    return {
      "state": {"step": state.step, "param_states": slots},
      "target": flax.serialization.to_state_dict(target),
    }

  def restore_state(
    self, opt_target: PyTree, opt_state: OptimizerState, state_dict: Mapping[str, Any]
  ) -> tuple[PyTree, OptimizerState]:
    """Returns parameters and state with the values of a `state_dict`, perhaps read from disk."""
    template = flax.serialization.to_state_dict(opt_state)
    state = _with_empty_nodes(state_dict["state"], template)
    return (
      flax.serialization.from_state_dict(opt_target, state_dict["target"]),
      flax.serialization.from_state_dict(opt_state, state),
    )


class Optimizer(struct.PyTreeNode):
  """Parameters (`target`) with the state of their optimizer."""

  optimizer_def: OptimizerDef = struct.field(pytree_node=False)
  state: Any
  target: Any

  def apply_gradient(
    self, grads: PyTree, learning_rate: Any = None, **hyper_param_overrides: Any
  ) -> Optimizer:
    """Returns the optimizer after one update with `grads`, a tree like `target`.

    Args:
      grads: gradients.
      learning_rate: this step's learning rate; None is the optimizer's own.
      hyper_param_overrides: see `OptimizerDef.update_hyper_params`.
    """
    if learning_rate is not None:
      hyper_param_overrides["learning_rate"] = learning_rate
    hyper_params = self.optimizer_def.update_hyper_params(**hyper_param_overrides)
    target, state = self.optimizer_def.apply_gradient(hyper_params, self.target, self.state, grads)
    return self.replace(target=target, state=state)

  def state_dict(self) -> dict[str, Any]:
    """Returns `{'state': {'step', 'param_states'}, 'target'}` as nested dicts."""
    return self.optimizer_def.state_dict(self.target, self.state)

  def restore_state(self, state_dict: Mapping[str, Any]) -> Optimizer:
    """Returns the optimizer with the values of a `state_dict()`, perhaps read from disk."""
    target, state = self.optimizer_def.restore_state(self.target, self.state, state_dict)
    return self.replace(target=target, state=state)

  def derive_logical_axes(self, axes: PyTree) -> Optimizer:
    """Like `OptimizerDef.derive_logical_axes`, of this optimizer."""
    return self.optimizer_def.derive_logical_axes(self, axes)


def _with_empty_nodes(tree: Any, like: Any) -> Any:
  """Puts back nodes without arrays, which a checkpoint does not hold.

  optax keeps an empty state for each transformation of a chain that needs none (clipping).
  """
  if not isinstance(like, Mapping) or not isinstance(tree, Mapping):
    return tree
  empty = {k: v for k, v in like.items() if k not in tree and not jax.tree_util.tree_leaves(v)}
  return {**{k: _with_empty_nodes(v, like.get(k)) for k, v in tree.items()}, **empty}


def _without_empty_nodes(tree: Any) -> Any:
  """Removes from a nested dict what `_with_empty_nodes` puts back."""
  if not isinstance(tree, Mapping):
    return tree
  nonempty = {k: v for k, v in tree.items() if jax.tree_util.tree_leaves(v)}
  return {k: _without_empty_nodes(v) for k, v in nonempty.items()}


class OptaxWrapper(OptimizerDef):
  """An optax transformation as an OptimizerDef.

  Args:
    optax_optimizer: the transformation; its updates are added to the parameters.
    scale_by_trainer: True if the updates were built with learning rate 1 and are to be
      multiplied by the rate the trainer gives at each step.
  """

  def __init__(self, optax_optimizer: optax.GradientTransformation, scale_by_trainer: bool = False):
    super().__init__(HyperParams())
    self.optax_optimizer = optax_optimizer
    self.scale_by_trainer = scale_by_trainer

  def init_state(self, params: PyTree) -> OptimizerState:
    """Returns optax's state and step 0."""
    return OptimizerState(
      step=jnp.zeros((), jnp.int32), param_states=self.optax_optimizer.init(params)
    )

  def apply_gradient(
    self, hyper_params: HyperParams, params: PyTree, state: OptimizerState, grads: PyTree
  ) -> tuple[PyTree, OptimizerState]:
    """Returns parameters and state after one update."""
    updates, param_states = self.optax_optimizer.update(grads, state.param_states, params)
    if self.scale_by_trainer:
      if hyper_params.learning_rate is None:
        raise T5XError(
          "An optax optimizer without a learning rate needs the trainer's.",
          found="neither learning_rate of the optimizer nor trainer.Trainer.learning_rate_fn",
          expected="one of the two",
          fix="trainer.Trainer.learning_rate_fn = @utils.create_learning_rate_scheduler()",
        )
      updates = jax.tree_util.tree_map(lambda u: u * hyper_params.learning_rate, updates)
    params = optax.apply_updates(params, updates)
    return params, OptimizerState(step=state.step + 1, param_states=param_states)

  def derive_logical_axes(self, optimizer: Optimizer, param_logical_axes: PyTree) -> Optimizer:
    """Gives slots of the parameters' shapes their axes, and None to all else."""

    def is_of_params(node: Any) -> bool:
      return _has_form(node, optimizer.target) and not _is_masked(node)

    def spec_of(slot: Any, spec: Any) -> Any:
      return slot if _is_masked(slot) else spec

    def axes_of(node: Any) -> Any:
      if not is_of_params(node):
        return None
      return jax.tree_util.tree_map(spec_of, node, param_logical_axes, is_leaf=_is_masked)

    # Not optax's tree_map_params: it shows functions of the parameters, as those that label or mask
    # them, something else in their place.
    states = optimizer.state.param_states
    param_states = jax.tree_util.tree_map(axes_of, states, is_leaf=is_of_params)
    state = OptimizerState(step=None, param_states=param_states)
    return optimizer.replace(state=state, target=param_logical_axes)


def _is_masked(x: Any) -> bool:
  """Whether it stands for a parameter that optax skips (`optax.masked`)."""
  return isinstance(x, optax.MaskedNode)


def _has_form(node: Any, params: PyTree) -> bool:
  """Whether a part of an optimizer's state has the form of parameters, of which some are masked."""
  if _is_masked(node):
    return True
  if not isinstance(params, Mapping):
    return jax.tree_util.all_leaves([node])
  if not isinstance(node, Mapping) or node.keys() != params.keys():
    return False
  return all(_has_form(node[key], params[key]) for key in params)


def wrap_optax_optimizer(
  optax_optimizer: Callable[..., optax.GradientTransformation],
  needs_rate: Callable[[Mapping[str, Any]], Any] = lambda kwargs: False,
) -> Callable[..., OptaxWrapper]:
  """Makes an optax optimizer usable as `OPTIMIZER` in gin.

  Args:
    optax_optimizer: e.g. `optax.adamw`; called with whatever gin binds. One whose first parameter
      is not `learning_rate` scales by the rate itself, as in T5X.
    needs_rate: whether, with these keyword arguments, updates are not proportional to the rate of
      their step, for example because momentum is summed after scaling by it.

  Returns:
    A function with the same arguments that returns an OptimizerDef. If `learning_rate` is left
    out or None, the trainer's schedule gives it at each step: updates at rate 1 times the rate of
    the step are the same, unless `needs_rate`; then it raises T5XError.
  """

  if next(iter(inspect.signature(optax_optimizer).parameters), None) != "learning_rate":

    @functools.wraps(optax_optimizer)
    def passed_on(*args, **kwargs) -> OptaxWrapper:
      return OptaxWrapper(optax_optimizer(*args, **kwargs))

    return passed_on

  @functools.wraps(optax_optimizer)
  def wrapped(learning_rate=None, *args, **kwargs) -> OptaxWrapper:
    if learning_rate is None and needs_rate(kwargs):
      name = f"optimizers.{optax_optimizer.__name__}"
      raise T5XError(
        f"{name} needs a learning rate: its updates are not proportional to that of their step.",
        found=f"{name}.learning_rate = None",
        expected="a number or a schedule",
        fix=f"{name}.learning_rate = @utils.create_learning_rate_scheduler()",
      )
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
fromage = wrap_optax_optimizer(optax.fromage, needs_rate=lambda kwargs: True)
lamb = wrap_optax_optimizer(optax.lamb)
lars = wrap_optax_optimizer(optax.lars, needs_rate=lambda kwargs: True)
lion = wrap_optax_optimizer(optax.lion)
nadam = wrap_optax_optimizer(optax.nadam)
nadamw = wrap_optax_optimizer(optax.nadamw)
noisy_sgd = wrap_optax_optimizer(optax.noisy_sgd)
radam = wrap_optax_optimizer(optax.radam)
rmsprop = wrap_optax_optimizer(optax.rmsprop, lambda kwargs: kwargs.get("momentum") is not None)
sgd = wrap_optax_optimizer(optax.sgd)
yogi = wrap_optax_optimizer(optax.yogi)


def chain(transformations: Any) -> OptaxWrapper:
  """Applies optax transformations one after the other (`optax.chain`).

  Args:
    transformations: list of optax transformations, e.g.
      `[@optax.clip_by_global_norm(), @optax.scale_by_adam()]`; as in T5X, the list itself scales
      by the learning rate and its sign.

  Raises:
    T5XError: it is no such list.
  """
  wrong = [transformations]
  # A transformation is itself a tuple, of two functions.
  if isinstance(transformations, (list, tuple)) and not hasattr(transformations, "init"):
    wrong = [x for x in transformations if not hasattr(x, "init")]
  if wrong:
    raise T5XError(
      "optimizers.chain takes a list of optax transformations.",
      found=repr(wrong[0]),
      expected="a list, also of a single one; append () to a function to create one",
      fix="optimizers.chain.transformations = [@optax.clip_by_global_norm(), @optax.adam()]",
    )
  return OptaxWrapper(optax.chain(*transformations))
