"""BERT (Devlin et al. 2019, arXiv:1810.04805) in Linen, with T5X's logical axes, and MPNet.

MPNet (Song et al. 2020, arXiv:2004.09297) is a BERT without token types whose layers share a bias
per head and relative position. Outputs match `transformers`' BertModel and MPNetModel. Matrix
products and attention are T5X's own layers, which are fast on a CPU. Shape letters: B batch, L
length, E width, H heads, D head size, P positions, T types.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen.partitioning import param_with_axes

from sgdx_t5x.errors import SgdxError
from t5x.examples.t5 import layers

Array = jax.Array
UNDIVIDED = "relpos_buckets"  # a logical axis that T5X's rules leave unpartitioned
_MASKED = -1e10
# A mask needs no gradient: t5x_lite takes it separately from biases, Google's T5X does not.
_ATTENTION = inspect.signature(layers.dot_product_attention).parameters
_MASK_ARGUMENT = "mask_bias" if "mask_bias" in _ATTENTION else "bias"


@dataclasses.dataclass(frozen=True)
class BertConfig:
  """Sizes and settings of a BERT.

  Attributes:
    vocab_size: rows of the embedding.
    emb_dim: E.
    num_heads: H; divides E.
    num_layers: number of layers.
    mlp_dim: hidden width of the feed-forward blocks.
    max_positions: P, the maximum input length.
    first_position: rows of the position table before that of the first token: 2 in MPNet.
    num_types: T, token types ("segments" of BERT); 0 in MPNet.
    relative_buckets: buckets of relative positions, as in T5, whose biases all layers share: 32 in
      MPNet; 0 for none.
    epsilon: added to the variance in layer norms.
    dtype: type of activations; parameters are float32.
    dropout_rate: probability in [0, 1) of dropping an activation in training; all tokens of a row
      share a mask, as in T5X: it takes far fewer random numbers.
    attention_dropout_rate: same for attention weights; all queries of a row share a mask.
    freeze_embeddings: compute no gradient for the three embedding tables; the optimizer must freeze
      them too (`optimizer.bert_adam.frozen`).
  """

  vocab_size: int
  emb_dim: int = 768
  num_heads: int = 12
  num_layers: int = 12
  mlp_dim: int = 3072
  max_positions: int = 512
  first_position: int = 0
  num_types: int = 2
  relative_buckets: int = 0
  epsilon: float = 1e-12
  dtype: Any = "float32"
  dropout_rate: float = 0.1
  attention_dropout_rate: float = 0.0
  freeze_embeddings: bool = False

  def __post_init__(self):
    positive = ("vocab_size", "emb_dim", "num_heads", "mlp_dim", "max_positions")
    for name in (*positive, "num_layers", "first_position", "num_types", "relative_buckets"):
      value, least = getattr(self, name), int(name in positive)
      if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SgdxError(
          f"BertConfig.{name} = {value!r}",
          expected=f"an integer of at least {least}",
          fix="use the sizes of BERT Base, see gin/models/bert_base_cased.gin",
        )
    if self.emb_dim % self.num_heads:
      raise SgdxError(
        f"BertConfig.emb_dim = {self.emb_dim}, num_heads = {self.num_heads}",
        expected="an emb_dim that is a multiple of num_heads",
        fix=f"set num_heads to a divisor of {self.emb_dim}",
      )
    for name in ("dropout_rate", "attention_dropout_rate"):
      if not 0 <= getattr(self, name) < 1:
        raise SgdxError(
          f"BertConfig.{name} = {getattr(self, name)!r}",
          expected="a number of at least 0 and below 1",
          fix=f"set BertConfig.{name} = 0.1",
        )

  def check_length(self, length: int) -> None:
    """Raises SgdxError if there are fewer positions than tokens of an input."""
    limit = self.max_positions
    if length > limit:
      raise SgdxError(
        f"inputs of {length} tokens, {length - limit} more than the encoder has positions",
        expected=f"at most {limit} tokens (encoder.BertConfig.max_positions)",
        fix=f"set 'inputs', and 'segments' if there are, to {limit} or less in "
        "TASK_FEATURE_LENGTHS, and in FRAME_LENGTHS or PACKED_LENGTHS where a gin file has it: "
        "turns are cut, never the schema",
      )


def gelu(x: Array) -> Array:
  """The exact GELU (Hendrycks and Gimpel 2016) by erf; `jax.nn.gelu`'s erfc takes twice as long."""
  return 0.5 * x * (1 + jax.lax.erf(x / math.sqrt(2)))


class Dense(layers.DenseGeneral):
  """T5X's linear layer plus a bias: `kernel` `[in, out]`, `bias` `[out]`."""

  kernel_init: Any = nn.initializers.truncated_normal(stddev=0.02)  # BERT's

  @nn.compact
  def __call__(self, inputs: Array) -> Array:
    """`[..., in]` -> `[..., features]`."""
    y = super().__call__(inputs)
    axes = (self.kernel_axes[-1],)
    bias = param_with_axes("bias", nn.initializers.zeros, (y.shape[-1],), jnp.float32, axes=axes)
    return y + bias.astype(y.dtype)


class LayerNorm(nn.Module):
  """Normalizes to mean 0 and variance 1, then scales and shifts; in float32."""

  epsilon: float
  dtype: Any

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """`[..., E]` -> the same shape in `dtype`."""
    size = (x.shape[-1],)
    scale = param_with_axes("scale", nn.initializers.ones, size, jnp.float32, axes=("embed",))
    bias = param_with_axes("bias", nn.initializers.zeros, size, jnp.float32, axes=("embed",))
    x = x.astype(jnp.float32)
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    return (x * jax.lax.rsqrt(variance + self.epsilon) * scale + bias).astype(self.dtype)


class Table(nn.Module):
  """An embedding table, `[rows, E]`."""

  rows: int
  width: int
  axes: tuple[str, str]
  frozen: bool = False

  @nn.compact
  def __call__(self, numbers: Array) -> Array:
    """int `[...]` -> float32 `[..., E]`."""
    init = nn.initializers.truncated_normal(stddev=0.02)
    shape = (self.rows, self.width)
    table = param_with_axes("embedding", init, shape, jnp.float32, axes=self.axes)
    table = jax.lax.stop_gradient(table) if self.frozen else table
    return jnp.take(table, numbers, axis=0)


class Layer(nn.Module):
  """Self-attention and feed-forward, each as `norm(x + f(x))`."""

  config: BertConfig

  @nn.compact
  def __call__(
    self,
    x: Array,
    bias: Array,
    positional: Array | None,
    valid: Array,
    deterministic: bool,
  ) -> Array:
    """Applies the layer to `x`, `[B, L, E]`, and returns the same shape.

    Args:
      x: hidden states.
      bias: masks attention logits, `[B, 1, 1 or L, L]`.
      positional: added to them, too, `[1, H, L, L]`; or None.
      valid: which tokens are not padding, bool `[B, L, 1]`.
      deterministic: False enables dropout.
    """
    cfg = self.config
    y = self._attend(x, bias, positional, deterministic)
    x = self._add_and_norm("attention_layer_norm", x, y, valid, deterministic)
    y = gelu(self._dense("wi", cfg.mlp_dim, ("embed", "mlp"))(x))
    y = self._dense("wo", cfg.emb_dim, ("mlp", "embed"))(y)
    return self._add_and_norm("mlp_layer_norm", x, y, valid, deterministic)

  def _attend(self, x: Array, bias: Array, positional: Array | None, deterministic: bool) -> Array:
    """Attention of each token to all tokens of its row. Args: see `__call__`."""
    cfg, joined = self.config, ("embed", "joined_kv")
    head_dim = cfg.emb_dim // cfg.num_heads

    def heads_of(name: str) -> Array:  # [B, L, H, D]
      y = self._dense(name, cfg.emb_dim, joined)(x)
      return y.reshape(*y.shape[:2], cfg.num_heads, head_dim)

    drops = not deterministic and cfg.attention_dropout_rate > 0
    biases: dict[str, Any] = {_MASK_ARGUMENT: bias}
    if positional is not None:
      biases["bias"] = positional + biases.get("bias", 0)
    y = layers.dot_product_attention(
      heads_of("query") / jnp.sqrt(head_dim).astype(x.dtype),
      heads_of("key"),
      heads_of("value"),
      **biases,
      dropout_rng=self.make_rng("dropout") if drops else None,
      dropout_rate=cfg.attention_dropout_rate,
      deterministic=not drops,
      dtype=x.dtype,
    )
    return self._dense("out", cfg.emb_dim, joined[::-1])(y.reshape(x.shape))

  def _dense(self, name: str, features: int, axes: tuple[str, str]) -> Dense:
    return Dense(features, dtype=self.config.dtype, kernel_axes=axes, name=name)

  def _add_and_norm(
    self, name: str, x: Array, y: Array, valid: Array, deterministic: bool
  ) -> Array:
    cfg = self.config
    y = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))(y, deterministic)
    # On a CPU a select also keeps the matrix product from being fused into the norm's sums, where
    # XLA computes it at half the speed.
    y = jnp.where(valid, y, 0)
    return LayerNorm(cfg.epsilon, cfg.dtype, name=name)(x + y)


class Bert(nn.Module):
  """The encoder: embeddings, layers, and a pooler of each row's or example's first token."""

  config: BertConfig

  def setup(self) -> None:
    """Declares the modules."""
    cfg = self.config

    def table(rows: int, axis: str) -> Table:
      return Table(rows, cfg.emb_dim, (axis, "embed"), cfg.freeze_embeddings)

    self.token_embedder = table(cfg.vocab_size, "vocab")
    self.position_embedder = table(cfg.first_position + cfg.max_positions, "abspos_buckets")
    if cfg.num_types:
      self.type_embedder = table(cfg.num_types, UNDIVIDED)
    if cfg.relative_buckets:
      self.relpos_bias = layers.RelativePositionBiases(
        num_buckets=cfg.relative_buckets,
        max_distance=128,
        num_heads=cfg.num_heads,
        dtype=cfg.dtype,
        embedding_init=nn.initializers.truncated_normal(stddev=0.02),
      )
    self.embedding_layer_norm = LayerNorm(cfg.epsilon, cfg.dtype)
    self.dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
    self.layers = [Layer(cfg) for _ in range(cfg.num_layers)]
    self.pooler = Dense(cfg.emb_dim, dtype=cfg.dtype, kernel_axes=("embed", "mlp"))

  def __call__(
    self,
    tokens: Array,
    types: Array | None = None,
    positions: Array | None = None,
    segment_ids: Array | None = None,
    extra_embeddings: Array | None = None,
    deterministic: bool = True,
    visible: Array | None = None,
  ) -> Array:
    """Encodes tokens.

    Args:
      tokens: int `[B, L]`.
      types: token types, int `[B, L]`; None means 0.
      positions: int `[B, L]`; None counts from 0.
      segment_ids: int `[B, L]`: which example of a packed row a token belongs to, 0 for padding;
        None treats all nonzero tokens of a row as one example.
      extra_embeddings: added to those of tokens before layer norm, `[B, L, E]`.
      deterministic: False enables dropout (needs a 'dropout' rng).
      visible: which tokens (last axis) each token attends to, bool `[B, L, L]`; None means all of
        its example.

    Returns:
      `[B, L, E]`. Values at padding are meaningless.

    Raises:
      SgdxError: the input is longer than `max_positions`.
    """
    cfg, length = self.config, tokens.shape[1]
    if positions is None:  # else, each example of a packed row has its own
      cfg.check_length(length)
      positions = jnp.broadcast_to(jnp.arange(length), tokens.shape)
    x = self.token_embedder(tokens) + self.position_embedder(cfg.first_position + positions)
    if cfg.num_types:
      x = x + self.type_embedder(jnp.zeros_like(tokens) if types is None else types)
    x = x if extra_embeddings is None else x + extra_embeddings
    x = self.dropout(self.embedding_layer_norm(x), deterministic)
    valid = tokens > 0 if segment_ids is None else segment_ids > 0
    # A mask needs no gradient, see `_MASK_ARGUMENT`.
    bias = jax.lax.stop_gradient(_attention_mask(valid, segment_ids, visible)).astype(x.dtype)
    # Between two tokens of an example, places in the row differ by as much as positions do.
    positional = self.relpos_bias(length, length) if cfg.relative_buckets else None
    for layer in self.layers:
      x = layer(x, bias, positional, valid[..., None], deterministic)
    if self.is_initializing():
      self.pool(x[:, 0])  # its parameters are part of every BERT
    return x

  def pool(self, first_states: Array) -> Array:
    """Maps hidden states of first tokens to pooled vectors, `[..., E]`."""
    return jnp.tanh(self.pooler(first_states))


def _attention_mask(valid: Array, segment_ids: Array | None, visible: Array | None) -> Array:
  """Returns what masks attention logits, `[B, 1, 1 or L, L]`. Args: see `Bert.__call__`."""
  bias = jnp.where(valid, 0.0, _MASKED)[:, None, None, :]
  if segment_ids is not None:
    is_same_example = segment_ids[:, None, :, None] == segment_ids[:, None, None, :]
    bias = bias + jnp.where(is_same_example, 0.0, _MASKED)
  if visible is not None:
    bias = bias + jnp.where(visible, 0.0, _MASKED)[:, None]
  return bias
