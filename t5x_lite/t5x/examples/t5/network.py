"""T5 1.0 and 1.1 encoder-decoder (Raffel et al. 2020, arXiv:1910.10683), as T5X names it.

The parameter tree, logical axes and numbers are those of T5X, so that its public checkpoints load
and its gin files run. Shape letters: B batch, S encoder length, T decoder length, E embedding,
V vocabulary, N decodes per example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import struct

from t5x.errors import check_flag, check_float_type, check_number, check_whole
from t5x.examples.t5 import cached_attention, layers

Array = jax.Array


@struct.dataclass
class T5Config:
  """Sizes and settings of a T5 model.

  Attributes:
    vocab_size: rows of the embedding (pad it to a multiple of 128 for TPU).
    dtype: type of activations; parameters are float32.
    emb_dim: width of the residual stream.
    num_heads: attention heads.
    num_encoder_layers: encoder layers.
    num_decoder_layers: decoder layers.
    head_dim: size of a head; `num_heads * head_dim` need not equal `emb_dim`.
    mlp_dim: hidden width of the feed-forward blocks.
    mlp_activations: ('relu',) for T5 1.0, ('gelu', 'linear') for T5 1.1.
    dropout_rate: probability in [0, 1) of dropping an activation in training.
    logits_via_embedding: reuse the embedding for the output (T5 1.0).
    float32_attention_logits: attention logits in float32 even if `dtype` is bfloat16.
  """

  vocab_size: int
  dtype: Any = jnp.float32
  emb_dim: int = 512
  num_heads: int = 8
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ("relu",)
  dropout_rate: float = 0.1
  logits_via_embedding: bool = False
  float32_attention_logits: bool = False

  def __post_init__(self):
    for name in ("vocab_size", "emb_dim", "num_heads", "head_dim", "mlp_dim"):
      check_whole(getattr(self, name), f"network.T5Config.{name}")
    for name in ("num_encoder_layers", "num_decoder_layers"):
      check_whole(getattr(self, name), f"network.T5Config.{name}", minimum=0)
    for name in ("logits_via_embedding", "float32_attention_logits"):
      check_flag(getattr(self, name), f"network.T5Config.{name}")
    check_float_type(self.dtype, "network.T5Config.dtype")
    layers.check_activations(self.mlp_activations)
    name = "network.T5Config.dropout_rate (DROPOUT_RATE)"
    check_number(self.dropout_rate, name, 0, below=1, fix="--gin.DROPOUT_RATE=0.1")


def _attention(config: T5Config, name: str) -> layers.MultiHeadDotProductAttention:
  return layers.MultiHeadDotProductAttention(
    num_heads=config.num_heads,
    head_dim=config.head_dim,
    dtype=config.dtype,
    dropout_rate=config.dropout_rate,
    float32_logits=config.float32_attention_logits,
    name=name,
  )


def _mlp(config: T5Config) -> layers.MlpBlock:
  return layers.MlpBlock(
    intermediate_dim=config.mlp_dim,
    activations=config.mlp_activations,
    intermediate_dropout_rate=config.dropout_rate,
    dtype=config.dtype,
    name="mlp",
  )


def _dropout(config: T5Config, x: Array, deterministic: bool) -> Array:
  # One mask for all positions of a row, as in T5.
  return layers.Dropout(config.dropout_rate, broadcast_dims=(-2,))(x, deterministic)


class EncoderLayer(nn.Module):
  """Self-attention and feed-forward, each as `x + dropout(f(norm(x)))`."""

  config: T5Config

  @nn.compact
  def __call__(self, x: Array, bias: Array, mask: Array, deterministic: bool) -> Array:
    """`[B, S, E]` -> `[B, S, E]`; `bias` is `[1, H, S, S]`, `mask` `[B, 1, S, S]`."""
    cfg = self.config
    y = layers.LayerNorm(dtype=cfg.dtype, name="pre_attention_layer_norm")(x)
    y = _attention(cfg, "attention")(y, y, mask, bias, deterministic=deterministic)
    x = x + _dropout(cfg, y, deterministic)
    y = layers.LayerNorm(dtype=cfg.dtype, name="pre_mlp_layer_norm")(x)
    y = _mlp(cfg)(y, deterministic=deterministic)
    return x + _dropout(cfg, y, deterministic)


class DecoderLayer(nn.Module):
  """Self-attention, cross-attention and feed-forward."""

  config: T5Config

  @nn.compact
  def __call__(
    self,
    x: Array,
    encoded: Array | None,
    self_bias: Array,
    self_mask: Array | None,
    cross_mask: Array | None,
    deterministic: bool,
    decode: bool,
    cross_decode: str | None,
  ) -> Array:
    """`[B, T, E]` -> `[B, T, E]`, or `[B*N, 1, E]` of one decoding step."""
    cfg = self.config
    y = layers.LayerNorm(dtype=cfg.dtype, name="pre_self_attention_layer_norm")(x)
    y = _attention(cfg, "self_attention")(
      y, y, self_mask, self_bias, decode=decode, deterministic=deterministic
    )
    x = x + _dropout(cfg, y, deterministic)
    y = layers.LayerNorm(dtype=cfg.dtype, name="pre_cross_attention_layer_norm")(x)
    y = _attention(cfg, "encoder_decoder_attention")(
      y, encoded, cross_mask, deterministic=deterministic, cross_decode=cross_decode
    )
    x = x + _dropout(cfg, y, deterministic)
    y = layers.LayerNorm(dtype=cfg.dtype, name="pre_mlp_layer_norm")(x)
    y = _mlp(cfg)(y, deterministic=deterministic)
    return x + _dropout(cfg, y, deterministic)


class Encoder(nn.Module):
  """The stack of encoder layers."""

  config: T5Config
  embedder: nn.Module

  @nn.compact
  def __call__(self, tokens: Array, mask: Array, deterministic: bool) -> Array:
    """Tokens `[B, S]` and mask `[B, 1, S, S]` -> `[B, S, E]`."""
    cfg = self.config
    length = tokens.shape[1]
    bias = layers.RelativePositionBiases(cfg.num_heads, dtype=cfg.dtype, name="relpos_bias")(
      length, length, bidirectional=True
    )
    x = _dropout(cfg, self.embedder(tokens), deterministic)
    for i in range(cfg.num_encoder_layers):
      x = EncoderLayer(cfg, name=f"layers_{i}")(x, bias, mask, deterministic)
    x = layers.LayerNorm(dtype=cfg.dtype, name="encoder_norm")(x)
    # Only here does T5X draw a mask for every position.
    return layers.Dropout(cfg.dropout_rate)(x, deterministic)


class Decoder(nn.Module):
  """The stack of decoder layers and the output projection."""

  config: T5Config
  embedder: nn.Module

  @nn.compact
  def __call__(
    self,
    encoded: Array | None,
    tokens: Array,
    self_mask: Array | None,
    cross_mask: Array,
    deterministic: bool,
    decode: bool,
    max_decode_length: int | None,
  ) -> Array:
    """Returns float32 logits `[B, T, V]` (`[B*N, 1, V]` in a decoding step)."""
    cfg = self.config
    self_bias = self._relative_bias(tokens.shape[1], decode, max_decode_length)
    cross_decode = "cached" if decode else None
    # In a step, the encoder's output is only passed by whom it shall be attended to directly.
    if decode and max_decode_length and encoded is not None:
      cross_decode = "direct"
    x = _dropout(cfg, self.embedder(tokens), deterministic)
    for i in range(cfg.num_decoder_layers):
      x = DecoderLayer(cfg, name=f"layers_{i}")(
        x, encoded, self_bias, self_mask, cross_mask, deterministic, decode, cross_decode
      )
    x = layers.LayerNorm(dtype=cfg.dtype, name="decoder_norm")(x)
    x = _dropout(cfg, x, deterministic)
    if cfg.logits_via_embedding:
      # The embedding has unit variance, so its products are rescaled by the width.
      return self.embedder.attend(x) / jnp.sqrt(jnp.float32(cfg.emb_dim))
    return layers.DenseGeneral(
      cfg.vocab_size,
      dtype=jnp.float32,  # also of a bfloat16 model, as in T5X
      kernel_axes=("embed", "vocab"),
      name="logits_dense",
    )(x)

  def _relative_bias(self, length: int, decode: bool, max_decode_length: int | None) -> Array:
    """`[1, H, T, T]`, or this step's row `[1, H, 1, T]`; counts the steps in the cache."""
    cfg = self.config
    relpos = layers.RelativePositionBiases(cfg.num_heads, dtype=cfg.dtype, name="relpos_bias")
    if not (decode and max_decode_length):
      if decode:
        self.variable("cache", "decode_index", lambda: jnp.zeros((), jnp.int32))
      return relpos(length, length, bidirectional=False)
    index: nn.Variable = self.variable("cache", "decode_index")
    bias = relpos(1, max_decode_length, bidirectional=False, query_index=index.value)
    index.value = index.value + 1
    return bias


class Transformer(nn.Module):
  """T5: `encode`, `decode`, and both in one call."""

  config: T5Config

  @property
  def cache_length_axis(self) -> int:
    """Axis of every array in `cache` that counts tokens: what pausing a decode relies on."""
    return cached_attention.length_axis()

  def setup(self) -> None:
    """Declares the embedding shared by encoder and decoder, and both stacks."""
    cfg = self.config
    self.token_embedder = layers.Embed(
      cfg.vocab_size,
      cfg.emb_dim,
      cast_input_dtype=jnp.int32,
      dtype=cfg.dtype,
      attend_dtype=jnp.float32 if cfg.logits_via_embedding else None,
      embedding_init=nn.initializers.normal(stddev=1.0),
    )
    self.encoder = Encoder(cfg, self.token_embedder)
    self.decoder = Decoder(cfg, self.token_embedder)

  def encode(
    self,
    encoder_input_tokens: Array,
    encoder_segment_ids: Array | None = None,
    enable_dropout: bool = True,
  ) -> Array:
    """Encodes tokens.

    Args:
      encoder_input_tokens: int `[B, S]`; 0 is padding.
      encoder_segment_ids: int `[B, S]` of packed examples (1, 2, …; 0 padding), or None.
      enable_dropout: True in training (needs a 'dropout' rng).

    Returns:
      `[B, S, E]` in `config.dtype`. Values at padding positions have no meaning.
    """
    valid = encoder_input_tokens > 0
    mask = _pair_mask(valid, valid) & _same_segment(encoder_segment_ids, encoder_segment_ids)
    return self.encoder(encoder_input_tokens, mask, not enable_dropout)

  def decode(
    self,
    encoded: Array | None,
    encoder_input_tokens: Array,
    decoder_input_tokens: Array,
    decoder_target_tokens: Array,
    encoder_segment_ids: Array | None = None,
    decoder_segment_ids: Array | None = None,
    decoder_positions: Array | None = None,
    enable_dropout: bool = True,
    decode: bool = False,
    max_decode_length: int | None = None,
  ) -> Array:
    """Decodes with teacher forcing, or one token at a time from a cache.

    With `decode=True` and no cache yet, tokens of the full length `[B, T]` create the collections
    `cache` (empty, T positions) and `cross_cache` (from `encoded`); call it with these mutable.
    Each further call takes one token per row, `[B*N, 1]`, and `max_decode_length` T, while
    `encoder_input_tokens` stay `[B, S]` for any number N of decodes. With `encoded` None it reads
    `cross_cache`; given `encoded` again it attends to that (less work if steps are few).

    Args:
      encoded: `[B, S, E]` from `encode`.
      encoder_input_tokens: int `[B, S]`; only whether they are positive is used.
      decoder_input_tokens: int `[B, T]`, the targets shifted right.
      decoder_target_tokens: int `[B, T]`; only whether they are positive is used.
      encoder_segment_ids: int `[B, S]` of packed examples, or None.
      decoder_segment_ids: int `[B, T]` of packed examples, or None.
      decoder_positions: not used (relative positions need none); kept for T5X's signature.
      enable_dropout: True in training.
      decode: True for cached decoding.
      max_decode_length: T, the length of the cache, in a decoding step.

    Returns:
      float32 logits `[B, T, V]`.
    """
    del decoder_positions
    encoder_valid = encoder_input_tokens > 0
    if decode:
      # A query per decode attends to the same keys, hence one row of mask per example.
      self_mask, cross_mask = None, encoder_valid[:, None, None, :]
    else:
      valid = decoder_target_tokens > 0
      causal = jnp.tril(jnp.ones((valid.shape[1], valid.shape[1]), bool))
      self_mask = _pair_mask(valid, valid) & causal
      self_mask = self_mask & _same_segment(decoder_segment_ids, decoder_segment_ids)
      cross_mask = _pair_mask(valid, encoder_valid)
      cross_mask = cross_mask & _same_segment(decoder_segment_ids, encoder_segment_ids)
    return self.decoder(
      encoded,
      decoder_input_tokens,
      self_mask,
      cross_mask,
      not enable_dropout,
      decode,
      max_decode_length,
    )

  def __call__(
    self,
    encoder_input_tokens: Array,
    decoder_input_tokens: Array,
    decoder_target_tokens: Array,
    encoder_segment_ids: Array | None = None,
    decoder_segment_ids: Array | None = None,
    encoder_positions: Array | None = None,
    decoder_positions: Array | None = None,
    *,
    enable_dropout: bool = True,
    decode: bool = False,
  ) -> Array:
    """Encodes and decodes; see `encode` and `decode`. Returns float32 logits `[B, T, V]`."""
    del encoder_positions
    encoded = self.encode(encoder_input_tokens, encoder_segment_ids, enable_dropout)
    return self.decode(
      encoded,
      encoder_input_tokens,
      decoder_input_tokens,
      decoder_target_tokens,
      encoder_segment_ids,
      decoder_segment_ids,
      decoder_positions,
      enable_dropout,
      decode,
    )


def _pair_mask(query_valid: Array, key_valid: Array) -> Array:
  """Boolean `[B, Q]`, `[B, K]` -> `[B, 1, Q, K]`."""
  return query_valid[:, None, :, None] & key_valid[:, None, None, :]


def _same_segment(query_ids: Array | None, key_ids: Array | None) -> Array | bool:
  """True where query and key belong to one packed example, `[B, 1, Q, K]`; True if not packed."""
  if query_ids is None or key_ids is None:
    return True
  return query_ids[:, None, :, None] == key_ids[:, None, None, :]
