"""Layers of T5 in Flax linen, with T5X's parameter names and logical axes.

Source of the formulas: Raffel et al. 2020 (T5, arXiv:1910.10683) for the architecture and the
relative position bias; Shazeer 2020 (arXiv:2002.05202) for the gated MLP of T5 1.1; Zhang and
Sennrich 2019 (arXiv:1910.07467) for RMS normalisation.

Shape letters: B batch, Q query length, K key length, E embedding, H heads, D head size, F MLP
hidden, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import partitioning as flax_partitioning

from t5x import active_mesh
from t5x.errors import T5XError

Array = jax.Array
Initializer = Callable[..., Array]

# Large enough that float32 addition swallows the logit it is added to: a query with no key left
# attends uniformly to everything, as in T5X. A larger value would overflow bfloat16 sums.
MASK_BIAS = -1e10

kernel_init = nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
relpos_init = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")


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
    The parameter, constrained to the active mesh if there is one.
  """
  value = module.param(name, init, tuple(shape), jnp.float32)
  module.sow(
    "params_axes",
    f"{name}_axes",
    flax_partitioning.AxisMetadata(tuple(axes)),
    reduce_fn=lambda _, new: new,
    init_fn=lambda: None,
  )
  return value


def relative_position_bucket(
  relative_position: Array,
  bidirectional: bool = True,
  num_buckets: int = 32,
  max_distance: int = 128,
) -> Array:
  """Maps relative positions to buckets (Raffel et al. 2020, section 2.1).

  Half of the buckets hold one offset each, the rest grow logarithmically up to `max_distance`;
  everything beyond shares the last one.

  Args:
    relative_position: int array, key position minus query position.
    bidirectional: True for the encoder (the sign gets half of the buckets each); False for the
      decoder (keys after the query share bucket 0).
    num_buckets: number of buckets in all.
    max_distance: distance in tokens from which on all offsets share the last bucket.

  Returns:
    int32 array of the same shape with values in [0, num_buckets).
  """
  distance = -relative_position
  offset = jnp.zeros_like(relative_position, dtype=jnp.int32)
  if bidirectional:
    num_buckets //= 2
    offset = (distance < 0).astype(jnp.int32) * num_buckets
    distance = jnp.abs(distance)
  else:
    distance = jnp.maximum(distance, 0)
  num_exact = num_buckets // 2
  # log(0) is never selected below, but must not become an undefined integer either.
  ratio = jnp.log(jnp.maximum(distance, 1).astype(jnp.float32) / num_exact)
  growth = (num_buckets - num_exact) / math.log(max_distance / num_exact)
  logarithmic = jnp.minimum(num_exact + (ratio * growth).astype(jnp.int32), num_buckets - 1)
  return offset + jnp.where(distance < num_exact, distance, logarithmic).astype(jnp.int32)


class RelativePositionBiases(nn.Module):
  """One learnt bias per head and bucket of relative positions, shared by the layers of a stack."""

  num_heads: int
  num_buckets: int = 32
  max_distance: int = 128
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(
    self,
    query_length: int,
    key_length: int,
    bidirectional: bool,
    query_index: Array | None = None,
  ) -> Array:
    """Returns the bias to add to attention logits.

    Args:
      query_length: number of query positions (1 when decoding).
      key_length: number of key positions.
      bidirectional: as in `relative_position_bucket`.
      query_index: scalar position of the only query when decoding; None if queries start at 0.

    Returns:
      `[1, H, query_length, key_length]`.
    """
    table = param_with_axes(
      self,
      "rel_embedding",
      relpos_init,
      (self.num_heads, self.num_buckets),
      ("heads", "relpos_buckets"),
    )
    if query_length > 1 and jax.default_backend() == "tpu":
      # A product with one-hot vectors: the matrix unit has that done before shifting begins.
      offsets = jnp.arange(key_length)[None, :] - jnp.arange(query_length)[:, None]
      buckets = relative_position_bucket(
        offsets, bidirectional, self.num_buckets, self.max_distance
      )
      one_hot = jax.nn.one_hot(buckets, self.num_buckets, dtype=self.dtype)
      return jnp.einsum("hn,qkn->hqk", table.astype(self.dtype), one_hot)[None]
    first = -(query_length - 1) if query_index is None else -query_index
    offsets = first + jnp.arange(query_length + key_length - 1, dtype=jnp.int32)
    buckets = relative_position_bucket(offsets, bidirectional, self.num_buckets, self.max_distance)
    per_offset = jnp.take(table.astype(self.dtype), buckets, axis=1)
    return _toeplitz(per_offset, query_length, key_length)[None]


def _toeplitz(per_offset: Array, query_length: int, key_length: int) -> Array:
  """Spreads a bias per offset, `[H, Q+K-1]`, over the diagonals of `[H, Q, K]`.

  Only the Q+K-1 distinct offsets are looked up. Rows are then shifted by padding each by one
  and reshaping, so that neither direction needs a gather or scatter over Q*K entries.
  """
  if query_length == 1:
    return per_offset[:, None, :]
  num_heads, width = per_offset.shape
  rows = jnp.broadcast_to(per_offset[:, None, :], (num_heads, query_length, width))
  rows = jnp.pad(rows, ((0, 0), (0, 0), (0, 1))).reshape(num_heads, -1)
  rows = rows[:, : query_length * width].reshape(num_heads, query_length, width)
  return rows[:, :, query_length - 1 :]


def keep_mask(rng: Array, rate: float, shape: Sequence[int]) -> Array:
  """Draws what dropout keeps.

  Threefry's numbers are computed wherever they are needed. Those of a hardware generator come out
  of one operation, which the partitioner does not divide: every device would draw the numbers of
  the whole batch. So each data partition draws its own rows there, and which they are depends on
  the number of partitions.

  Args:
    rng: key.
    rate: probability in [0, 1) of dropping.
    shape: of the result, examples first.

  Returns:
    bool array of `shape`.
  """

  def draw(key: Array, parts: int) -> Array:
    return jax.random.bernoulli(key, 1.0 - rate, (shape[0] // parts, *shape[1:]))

  if jax.config.jax_default_prng_impl == "threefry2x32":
    keep = draw(rng, 1)
  else:
    keep = active_mesh.map_over_data(draw, rng)
  # Without the barrier, XLA on TPU draws anew in every product that reads what was dropped from.
  return jax.lax.optimization_barrier(keep)


class Dropout(nn.Module):
  """Drops elements and scales up the others, as flax's module of this name.

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


class LayerNorm(nn.Module):
  """RMS normalisation: no mean, no bias; statistics in float32."""

  epsilon: float = 1e-6
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Normalises the last axis of `x`, `[..., E]`."""
    scale = param_with_axes(self, "scale", nn.initializers.ones, (x.shape[-1],), ("embed",))
    x = x.astype(jnp.float32)
    mean_square = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    y = (x * jax.lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    return y * active_mesh.whole_over_data(scale.astype(self.dtype), ("embed",))


class Dense(nn.Module):
  """A linear map of the last axis without bias; kernel `[in, out]`."""

  features: int
  axes: tuple[str, str]
  init: Initializer = kernel_init
  dtype: Any = jnp.float32
  # Accumulated and returned in this type; None keeps `dtype`.
  out_dtype: Any = None

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """`[..., in]` -> `[..., features]`."""
    kernel = param_with_axes(self, "kernel", self.init, (x.shape[-1], self.features), self.axes)
    kernel = active_mesh.whole_over_data(kernel.astype(self.dtype), self.axes)
    return jnp.dot(x.astype(self.dtype), kernel, preferred_element_type=self.out_dtype)


class Embed(nn.Module):
  """Token embedding, looked up by `take` (a one-hot product would cost 2*V*E flops a token)."""

  num_embeddings: int
  features: int
  dtype: Any = jnp.float32

  def setup(self) -> None:
    """Declares the table."""
    axes = ("vocab", "embed")
    self.embedding = param_with_axes(
      self,
      "embedding",
      nn.initializers.normal(stddev=1.0),
      (self.num_embeddings, self.features),
      axes,
    )
    table = jnp.asarray(self.embedding, self.dtype)
    self.table = active_mesh.whole_over_data(table, axes)
    self.copies = active_mesh.copy_per_data_partition(self.table, axes)  # [P, V, E]

  def __call__(self, tokens: Array) -> Array:
    """int tokens `[B, L]` -> `[B, L, E]`."""
    if not jnp.issubdtype(tokens.dtype, jnp.integer):
      raise T5XError(
        found=f"token ids of type {tokens.dtype}",
        expected="integer token ids",
        available="int32",
        fix="let the seqio feature converter produce the batch, or cast it to int32",
      )
    if self._divides(tokens):
      x = jax.vmap(_lookup)(self.copies, self._split(tokens)).reshape(*tokens.shape, -1)
    else:
      x = _lookup(self.table, tokens)
    return active_mesh.with_logical_constraint(x, ("batch", "length", "embed"))

  def attend(self, x: Array) -> Array:
    """Logits `[..., V]` in float32 of `x`, `[..., E]`, against the embedding."""
    x, float32 = x.astype(self.dtype), jnp.float32
    if not self._divides(x):
      return jnp.dot(x, self.table.T, preferred_element_type=float32)
    logits = jnp.einsum(
      "p...e,pve->p...v", self._split(x), self.copies, preferred_element_type=float32
    )
    return logits.reshape(*x.shape[:-1], -1)

  def _divides(self, x: Array) -> bool:
    """Whether there are several data partitions, with whole rows of `x` each."""
    return len(self.copies) > 1 and x.shape[0] % len(self.copies) == 0

  def _split(self, x: Array) -> Array:
    """`[B, ...]` -> `[P, B/P, ...]`, the rows of each data partition."""
    return x.reshape(len(self.copies), -1, *x.shape[1:])


@jax.custom_vjp
def _lookup(table: Array, tokens: Array) -> Array:
  return jnp.take(table, tokens, axis=0)


def _lookup_backward(residuals, grad):
  # Summed in float32: a token can stand in a batch thousands of times.
  tokens, zeros = residuals
  total = zeros.astype(jnp.float32).at[tokens].add(grad.astype(jnp.float32))
  return total.astype(zeros.dtype), None


_lookup.defvjp(
  lambda table, tokens: (_lookup(table, tokens), (tokens, jnp.zeros_like(table))),
  _lookup_backward,
)


class MlpBlock(nn.Module):
  """The feed-forward block; several activations are multiplied (gated) as in T5 1.1."""

  intermediate_dim: int
  activations: Sequence[str] = ("relu",)
  dropout_rate: float = 0.0
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(self, x: Array, deterministic: bool) -> Array:
    """`[B, L, E]` -> `[B, L, E]`."""
    hidden = None
    for i, name in enumerate(self.activations):
      layer_name = "wi" if len(self.activations) == 1 else f"wi_{i}"
      branch = Dense(self.intermediate_dim, ("embed", "mlp"), dtype=self.dtype, name=layer_name)(x)
      branch = _activation(name)(branch)
      hidden = branch if hidden is None else hidden * branch
    # One mask for all positions of a row, as in T5: fewer random bits.
    hidden = Dropout(self.dropout_rate, broadcast_dims=(-2,))(hidden, deterministic)
    hidden = active_mesh.with_logical_constraint(hidden, ("batch", "length", "mlp"))
    return Dense(x.shape[-1], ("mlp", "embed"), dtype=self.dtype, name="wo")(hidden)


def _activation(name: str) -> Callable[[Array], Array]:
  """Returns the activation called `name` ('linear' or a function of flax.linen)."""
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


def check_activations(names: Sequence[str]) -> None:
  """Raises T5XError unless `names` are a list of one activation or more."""
  if isinstance(names, str) or not isinstance(names, Sequence) or not names:
    raise T5XError(
      "network.T5Config.mlp_activations is no list of activations.",
      found=repr(names),
      expected="names of activations, as a tuple or list",
      fix="network.T5Config.mlp_activations = ('relu',)",
    )
  for name in names:
    _activation(name)


def attention_mask_bias(mask: Array | None, dtype: Any) -> Array | None:
  """Turns a boolean mask (True = attend) into an additive bias of the same shape."""
  if mask is None:
    return None
  return jnp.where(mask, 0.0, MASK_BIAS).astype(dtype)
