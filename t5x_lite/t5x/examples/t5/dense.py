"""Dense layers of T5 in Flax linen: linear maps, the feed-forward block, norms and dropout.

Source of the formulas: Raffel et al. 2020 (T5, arXiv:1910.10683) for the architecture; Shazeer 2020
(arXiv:2002.05202) for the gated MLP of T5 1.1; Zhang and Sennrich 2019 (arXiv:1910.07467) for RMS
normalisation.

Shape letters: B batch, L length, E embedding, F MLP hidden.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import partitioning as flax_partitioning

from t5x import active_mesh
from t5x.errors import T5XError
from t5x.examples.t5 import products

Array = jax.Array
Initializer = Callable[..., Array]

kernel_init = nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")


def param_with_axes(
  module: nn.Module, name: str, init: Initializer, shape: Sequence[int], axes: Sequence[str]
) -> Array:
  """Declares a float32 parameter and records its logical axes in `params_axes`.

  Args:
    module: the linen module that owns the parameter.
    name: name of the parameter.
    init: initialiser called as `init(rng, shape, float32)`.
    shape: shape of the parameter.
    axes: one logical axis name per dimension.

  Returns:
    The parameter.
  """
  value = module.param(name, init, tuple(shape), jnp.float32)
  module.sow(
    "params_axes",
    f"{name}_axes",
    flax_partitioning.AxisMetadata(tuple(axes)),
    reduce_fn=lambda _, latest: latest,
    init_fn=lambda: None,
  )
  return value


class DenseGeneral(nn.Module):
  """A linear map without bias, of one or several axes to one or several.

  Attributes:
    features: sizes of the new axes, which come last.
    axis: axes that are mapped.
    dtype: type of the computation; the kernel is float32 `[product of axis, product of features]`.
    kernel_init: initialiser of the kernel.
    kernel_axes: its two logical axes.
  """

  features: int | Sequence[int]
  axis: int | Sequence[int] = -1
  dtype: Any = jnp.float32
  kernel_init: Initializer = kernel_init
  kernel_axes: tuple[str, ...] = ()

  @nn.compact
  def __call__(self, inputs: Array) -> Array:
    """Maps `inputs`, with the axes that are not mapped first: `[..., in]` -> `[..., features]`."""
    x = jnp.asarray(inputs, self.dtype)
    features = (self.features,) if isinstance(self.features, int) else tuple(self.features)
    axes = (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
    x = jnp.moveaxis(x, axes, range(-len(axes), 0))
    batch_shape = x.shape[: x.ndim - len(axes)]
    x = x.reshape(*batch_shape, math.prod(x.shape[len(batch_shape) :]))
    shape = (x.shape[-1], math.prod(features))
    kernel = param_with_axes(self, "kernel", self.kernel_init, shape, self.kernel_axes)
    kernel = active_mesh.whole_over_data(kernel.astype(self.dtype), self.kernel_axes)
    y = products.dot(x, kernel)
    return y.reshape(*batch_shape, *features)


class MlpBlock(nn.Module):
  """The feed-forward block; several activations are multiplied (gated) as in T5 1.1.

  Attributes:
    intermediate_dim: F.
    activations: 'linear', names of functions in flax.linen, or functions.
    kernel_init: initialiser of the kernels.
    intermediate_dropout_rate: probability in [0, 1) of dropping a hidden value.
    dtype: type of the computation.
  """

  intermediate_dim: int = 2048
  activations: Sequence[str | Callable[[Array], Array]] = ("relu",)
  kernel_init: Initializer = kernel_init
  intermediate_dropout_rate: float = 0.1
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(self, inputs: Array, decode: bool = False, deterministic: bool = False) -> Array:
    """`[B, L, E]` -> `[B, L, E]`; `decode` is ignored."""
    del decode
    branches = []
    for i, name in enumerate(self.activations):
      layer_name = "wi" if len(self.activations) == 1 else f"wi_{i}"
      branch = self._dense(self.intermediate_dim, ("embed", "mlp"), layer_name)(inputs)
      branches.append(_activation(name)(branch))
    hidden = functools.reduce(operator.mul, branches)
    # One mask for all positions of a row, as in T5: fewer random bits.
    hidden = Dropout(self.intermediate_dropout_rate, broadcast_dims=(-2,))(hidden, deterministic)
    hidden = active_mesh.with_logical_constraint(hidden, ("batch", "length", "mlp"))
    return self._dense(inputs.shape[-1], ("mlp", "embed"), "wo")(hidden)

  def _dense(self, features: int, axes: tuple[str, str], name: str) -> DenseGeneral:
    return DenseGeneral(
      features, dtype=self.dtype, kernel_init=self.kernel_init, kernel_axes=axes, name=name
    )


def _activation(name: str | Callable[[Array], Array]) -> Callable[[Array], Array]:
  """Returns the activation called `name` ('linear' or a function of flax.linen)."""
  if not isinstance(name, str) and callable(name):
    return name
  if name == "linear":
    return lambda x: x
  function = getattr(nn, name, None) if isinstance(name, str) else None
  if not callable(function) or isinstance(function, type):
    raise T5XError(
      found=f"mlp_activations has {name!r}",
      expected="'linear' or the name of an activation in flax.linen",
      available="linear, relu, gelu, silu, swish, tanh, sigmoid",
      fix="set network.T5Config.mlp_activations, e.g. ('gelu', 'linear')",
    )
  return function


def check_activations(names: Sequence[str | Callable[[Array], Array]]) -> None:
  """Raises T5XError for a name that is not that of an activation."""
  for name in names:
    _activation(name)


class LayerNorm(nn.Module):
  """RMS normalisation: no mean, no bias; statistics in float32."""

  epsilon: float = 1e-6
  dtype: Any = jnp.float32
  scale_init: Initializer = nn.initializers.ones

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Normalises the last axis of `x`, `[..., E]`."""
    scale = param_with_axes(self, "scale", self.scale_init, (x.shape[-1],), ("embed",))
    x = x.astype(jnp.float32)
    mean_square = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    y = (x * jax.lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    return y * active_mesh.whole_over_data(scale.astype(self.dtype), ("embed",))


def keep_mask(rng: Array, rate: float, shape: Sequence[int]) -> Array:
  """Draws the mask of what dropout keeps.

  Threefry's numbers are computed wherever they are needed. Those of a hardware generator come from
  one operation, which the partitioner does not divide: every device would draw the numbers of the
  whole batch. So there each data partition draws its own rows, and the result depends on the number
  of partitions.

  Args:
    rng: key.
    rate: probability in [0, 1) of dropping.
    shape: shape of the result, examples first.

  Returns:
    bool array of `shape`.
  """

  def draw(key: Array, num_partitions: int) -> Array:
    return jax.random.bernoulli(key, 1.0 - rate, (shape[0] // num_partitions, *shape[1:]))

  generator = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
  keep = draw(rng, 1) if generator == "threefry2x32" else active_mesh.map_over_data(draw, rng)
  # Without the barrier, XLA on TPU draws again in every product that reads dropout's result.
  return jax.lax.optimization_barrier(keep)


class Dropout(nn.Module):
  """Drops elements and scales up the others, like flax's module of this name.

  Attributes:
    rate: probability in [0, 1) of dropping.
    broadcast_dims: dimensions along which all elements are dropped or kept together.
  """

  rate: float
  broadcast_dims: Sequence[int] = ()

  @nn.compact
  def __call__(self, x: Array, deterministic: bool) -> Array:
    """`[B, ...]` -> the same shape and type; `deterministic` returns `x`."""
    if deterministic or self.rate == 0.0:
      return x
    shape = list(x.shape)
    for dim in self.broadcast_dims:
      shape[dim] = 1
    keep = keep_mask(self.make_rng("dropout"), self.rate, shape)
    return jnp.where(keep, x / (1.0 - self.rate), jnp.zeros_like(x))
