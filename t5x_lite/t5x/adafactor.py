"""Adafactor (Shazeer and Stern 2018, arXiv:1804.04235) as T5X configures it.

The second moment of a matrix is kept as one mean per row and one per column. Updates are clipped
by their root mean square and, by default, scaled by that of the parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
from flax import struct

from t5x import optimizers
from t5x._optim.factoring import FactorDim, Factoring, factoring_of, role_of
from t5x.errors import T5XError, check_flag

__all__ = ["Adafactor", "AdafactorParamState", "FactorDim", "standard_logical_factor_rules"]

Array = jax.Array
PyTree = Any


def standard_logical_factor_rules() -> dict[str, FactorDim]:
  """Returns the role of each logical axis of T5; a gin binding may replace it."""
  return {
    "vocab": FactorDim.COLUMN,
    "embed": FactorDim.ROW,
    "mlp": FactorDim.COLUMN,
    "heads": FactorDim.COLUMN,
    "kv": FactorDim.COLUMN,
    "joined_kv": FactorDim.COLUMN,
    "relpos_buckets": FactorDim.NONE,
    "layers": FactorDim.BATCH,
    "stack": FactorDim.BATCH,
    "batch": FactorDim.NONE,
    "length": FactorDim.NONE,
    "unmodeled": FactorDim.NONE,
    "q_wi_fused": FactorDim.COLUMN,
    "o_wo_fused": FactorDim.COLUMN,
    "multiquery_heads": FactorDim.COLUMN,
    "kv_fused": FactorDim.COLUMN,
    "layer_norm_scale": FactorDim.NONE,
    "mlp_activations": FactorDim.COLUMN,
  }


class AdafactorParamState(struct.PyTreeNode):
  """Slots of one parameter; an unused one is zeros of shape [1]."""

  v_row: Any
  v_col: Any
  v: Any
  m: Any


@dataclasses.dataclass(frozen=True)
class Adafactor(optimizers.OptimizerDef):
  """Adafactor.

  Attributes:
    learning_rate: rate used if the caller gives none.
    factored: keep second moments of matrices as row and column means.
    multiply_by_parameter_scale: multiply updates by max(RMS of the parameter, epsilon2).
    beta1: decay in [0, 1) of the first moment; None keeps none.
    decay_rate: exponent c of the second moment's decay, 1 - (step + 1 - step_offset)^-c.
    step_offset: step at which the decay's clock starts; set it to the step of the pre-trained
      checkpoint to forget its second moments. A step below it gives NaN, as in T5X.
    clipping_threshold: largest root mean square of an update before scaling; None: no clipping.
    weight_decay_rate: share of the parameter subtracted per step; None: none; with the exponent
      below, None and 0 are 1, as in T5X.
    min_dim_size_to_factor: factor a matrix only if its second largest dimension is at least this.
    epsilon1: added to squared gradients.
    epsilon2: smallest parameter scale.
    dtype_momentum: type of the first moment.
    logical_factor_rules: role of each logical axis, or its name such as "row" (parameters of rank 3
      and more; smaller ones factor over their two largest dimensions), or None.
    weight_decay_rate_lr_exponent: multiply the weight decay by learning_rate ** this; None or 0: do
      not.
    global_norm_clip_threshold: largest norm of all gradients together; None or 0: no clipping.
    max_parameter_scale: largest parameter scale; None: no limit.
    skip_nan_updates: keep the entries of parameters and slots that an update would make NaN.
    axes_by_param: (path, logical axes) of each parameter, filled in by the train state.
  """

  learning_rate: Any = None
  factored: bool = True
  multiply_by_parameter_scale: bool = True
  beta1: float | None = None
  decay_rate: float = 0.8
  step_offset: int = 0
  clipping_threshold: float | None = 1.0
  weight_decay_rate: float | None = None
  min_dim_size_to_factor: int = 128
  epsilon1: float = 1e-30
  epsilon2: float = 1e-3
  dtype_momentum: Any = jnp.float32
  logical_factor_rules: Any = None
  weight_decay_rate_lr_exponent: float | None = None
  global_norm_clip_threshold: float | None = None
  max_parameter_scale: float | None = None
  skip_nan_updates: bool = False
  axes_by_param: tuple[tuple[str, tuple[str | None, ...]], ...] = ()

  def __post_init__(self) -> None:
    for name in ("factored", "multiply_by_parameter_scale", "skip_nan_updates"):
      check_flag(getattr(self, name), f"adafactor.Adafactor.{name}")
    rules = self.logical_factor_rules
    if isinstance(rules, Mapping):
      # Hashable, since an optimizer is static data of a jitted train step.
      rules = tuple(sorted((axis, role_of(axis, role)) for axis, role in rules.items()))
      object.__setattr__(self, "logical_factor_rules", rules)

  @property
  def hyper_params(self) -> Adafactor:
    """The settings, of which a step may override any."""
    return self

  def replace(self, **settings: Any) -> Adafactor:
    """Returns a copy with other settings; `hyper_params` of the other optimizers have this too."""
    return dataclasses.replace(self, **settings)

  def with_logical_axes(self, axes: PyTree) -> Adafactor:
    """Returns an Adafactor that can apply its `logical_factor_rules` to these parameters."""
    flat = flax.traverse_util.flatten_dict(axes, sep="/")
    items = tuple(sorted((path, tuple(spec)) for path, spec in flat.items()))
    return dataclasses.replace(self, axes_by_param=items)

  def init_state(self, params: PyTree) -> optimizers.OptimizerState:
    """Returns zero slots and step 0."""
    slots = self._map(self._init_slots, params)
    return optimizers.OptimizerState(step=jnp.zeros((), jnp.int32), param_states=slots)

  def apply_gradient(
    self,
    hyper_params: Adafactor,
    params: PyTree,
    state: optimizers.OptimizerState,
    grads: PyTree,
  ) -> tuple[PyTree, optimizers.OptimizerState]:
    """Returns parameters and state after one update with these settings.

    Raises:
      T5XError: there is no learning rate.
    """
    if hyper_params.learning_rate is None:
      raise T5XError(
        found="no learning rate",
        expected="one from the trainer or from adafactor.Adafactor.learning_rate",
        fix="bind trainer.Trainer.learning_rate_fn",
      )
    if hyper_params.global_norm_clip_threshold:
      grads = _clip_global_norm(grads, hyper_params.global_norm_clip_threshold)
    step, learning_rate = state.step, jnp.float32(hyper_params.learning_rate)
    age = step.astype(jnp.float32) - hyper_params.step_offset + 1.0
    decay = 1.0 - age ** (-hyper_params.decay_rate)

    def update(path, param, slots, grad):
      return hyper_params._update(path, param, slots, grad, decay, learning_rate)

    pairs = self._map(update, params, state.param_states, grads)
    new_params = jax.tree_util.tree_map(lambda p: p[0], pairs, is_leaf=_is_pair)
    new_slots = jax.tree_util.tree_map(lambda p: p[1], pairs, is_leaf=_is_pair)
    return new_params, optimizers.OptimizerState(step=step + 1, param_states=new_slots)

  def derive_logical_axes(
    self, optimizer: optimizers.Optimizer, param_logical_axes: PyTree
  ) -> optimizers.Optimizer:
    """Gives slots of the parameters' shapes their axes, and None to all else."""

    def derive(path, param, spec):
      # Row and column means are small: they stay on every device. So does a single number, which
      # T5X stores inside a checkpoint's index, and reads there.
      is_small = factoring_of(self, path, param.shape).factored or param.shape == (1,)
      v = None if is_small else spec
      m = None if self.beta1 is None else spec
      return AdafactorParamState(v_row=None, v_col=None, v=v, m=m)

    slots = self._map(derive, optimizer.target, param_logical_axes)
    state = optimizers.OptimizerState(step=None, param_states=slots)
    return optimizer.replace(state=state, target=param_logical_axes)

  def _map(self, function: Any, params: PyTree, *trees: PyTree) -> PyTree:
    """Maps `function(path, param, *other leaves)` over a (nested dict of) parameters."""
    flat = flax.traverse_util.flatten_dict(params)
    columns = [flax.traverse_util.flatten_dict(tree) for tree in trees]
    result = {}
    for key, param in flat.items():
      leaves = [column[key] for column in columns]
      result[key] = function("/".join(key), param, *leaves)
    return flax.traverse_util.unflatten_dict(result)

  def _init_slots(self, path: str, param: Array) -> AdafactorParamState:
    """Zero slots for a parameter, factored or not."""
    shape = param.shape
    factoring = factoring_of(self, path, shape)
    v_row = v_col = v = m = (1,)  # unused ones, float32 as in T5X's checkpoints
    m_dtype = jnp.float32
    if factoring.factored:
      v_row = tuple(n for i, n in enumerate(shape) if i not in factoring.columns)
      v_col = tuple(n for i, n in enumerate(shape) if i not in factoring.rows)
    else:
      v = shape
    if self.beta1 is not None:
      m, m_dtype = shape, self.dtype_momentum
    return AdafactorParamState(
      v_row=jnp.zeros(v_row, jnp.float32),
      v_col=jnp.zeros(v_col, jnp.float32),
      v=jnp.zeros(v, jnp.float32),
      m=jnp.zeros(m, m_dtype),
    )

  def _update(
    self,
    path: str,
    param: Array,
    slots: AdafactorParamState,
    grad: Array,
    decay: Array,
    learning_rate: Array,
  ) -> tuple[Array, AdafactorParamState]:
    """Updates one parameter; formulas 4 and 6 of the paper."""
    factoring = factoring_of(self, path, param.shape)
    update, new_slots = self._precondition(grad.astype(jnp.float32), slots, factoring, decay)
    scale = learning_rate
    if self.multiply_by_parameter_scale:
      size = jnp.maximum(_rms(param, factoring.averaged), self.epsilon2)
      if self.max_parameter_scale is not None:
        size = jnp.minimum(size, self.max_parameter_scale)
      scale = scale * size
    if self.clipping_threshold is not None:
      # Clipped before it is scaled: the threshold does not depend on parameter or learning rate.
      clip = _rms(update, factoring.averaged) / self.clipping_threshold
      update = update / jnp.maximum(1.0, clip)
    update = scale * update
    if self.beta1 is not None:
      update = self.beta1 * slots.m.astype(jnp.float32) + (1.0 - self.beta1) * update
      new_slots = new_slots.replace(m=update.astype(self.dtype_momentum))
    new_param = param.astype(jnp.float32)
    rate = self.weight_decay_rate
    if self.weight_decay_rate_lr_exponent:
      rate = (rate or 1.0) * learning_rate**self.weight_decay_rate_lr_exponent
    if rate is not None:
      new_param = new_param * (1.0 - rate)
    new_param = (new_param - update).astype(param.dtype)
    if self.skip_nan_updates:
      new_slots, new_param = jax.tree.map(
        lambda previous, x: jnp.where(jnp.isnan(x), previous, x),
        (slots, param),
        (new_slots, new_param),
      )
    return new_param, new_slots

  def _precondition(
    self, grad: Array, slots: AdafactorParamState, factoring: Factoring, decay: Array
  ) -> tuple[Array, AdafactorParamState]:
    """Divides a gradient by the root of its (factored) second moment; returns the new slots."""
    squared = jnp.square(grad) + self.epsilon1  # a zero gradient must not divide by zero
    if not factoring.factored:
      v = decay * slots.v + (1.0 - decay) * squared
      return grad * jax.lax.rsqrt(v), slots.replace(v=v)
    rows, columns = factoring.rows, factoring.columns
    v_row = decay * slots.v_row + (1.0 - decay) * jnp.mean(squared, columns)
    v_col = decay * slots.v_col + (1.0 - decay) * jnp.mean(squared, rows)
    full_row = jnp.expand_dims(v_row, columns)
    full_col = jnp.expand_dims(v_col, rows)
    # Dividing by it keeps the overall scale, which both factors have.
    row_mean = jnp.mean(full_row, rows, keepdims=True)
    update = grad * jax.lax.rsqrt(full_row / row_mean) * jax.lax.rsqrt(full_col)
    return update, slots.replace(v_row=v_row, v_col=v_col)


def _is_pair(x: Any) -> bool:
  return isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], AdafactorParamState)


def _rms(x: Array, axes: tuple[int, ...]) -> Array:
  """Root mean square over `axes`, kept as dimensions of size 1."""
  return jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), axes, keepdims=True))


def _clip_global_norm(grads: PyTree, threshold: float) -> PyTree:
  """Scales all gradients so that their joint norm is at most `threshold`."""
  leaves = jax.tree_util.tree_leaves(grads)
  norm = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in leaves))
  factor = jnp.minimum(1.0, threshold / norm)
  return jax.tree_util.tree_map(lambda g: g * factor, grads)
