"""Layers of T5 in Flax linen, with T5X's names, parameter names and logical axes."""

from __future__ import annotations

from t5x.examples.t5.attention import MultiHeadDotProductAttention, dot_product_attention
from t5x.examples.t5.dense import (
  DenseGeneral,
  Dropout,
  Initializer,
  LayerNorm,
  MlpBlock,
  check_activations,
  keep_mask,
  param_with_axes,
)
from t5x.examples.t5.embedding import (
  Embed,
  RelativePositionBiases,
  default_embed_init,
  relative_position_bucket,
)
from t5x.examples.t5.masks import (
  attention_mask_bias,
  combine_masks,
)

__all__ = [
  "DenseGeneral",
  "Dropout",
  "Embed",
  "Initializer",
  "LayerNorm",
  "MlpBlock",
  "MultiHeadDotProductAttention",
  "RelativePositionBiases",
  "attention_mask_bias",
  "check_activations",
  "combine_masks",
  "default_embed_init",
  "dot_product_attention",
  "keep_mask",
  "param_with_axes",
  "relative_position_bucket",
]
