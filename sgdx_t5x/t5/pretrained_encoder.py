"""T5's decoder on a pretrained BERT: a generative tracker where there is no T5 checkpoint.

The encoder and its WordPiece vocabulary are the pretrained ones, the decoder is T5X's own, from
random weights. Both read one embedding table, the encoder's. Shape letters: B batch, S encoder
length, T decoder length, E width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flax.core
import jax
import jax.numpy as jnp
from flax import linen as nn

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.encoder import Bert, BertConfig, Dense
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from t5x import models
from t5x.examples.t5 import layers, network

Array = jax.Array
# Of `start_copying`: the attention logit of a token whose predecessor was written last, about 0 for
# others; the weight of the attended token beside the last one, which a decoder repeats otherwise;
# and that of the other attention outputs, which are noise at first.
_MATCH, _GAIN, _OTHERS = 24.0, 4.0, 0.3


class TiedEmbedding(nn.Module):
  """The encoder's token embeddings as T5's decoder wants them: each of mean square 1.

  Attributes:
    table: the encoder's.
    rows: V.
    dtype: of the embeddings.
  """

  table: nn.Module
  rows: int
  dtype: Any

  def __call__(self, tokens: Array) -> Array:
    """int `[B, T]` -> `[B, T, E]`."""
    return _unit(self.table(tokens.astype(jnp.int32))).astype(self.dtype)

  def attend(self, x: Array) -> Array:
    """`[B, T, E]` -> float32 products with all embeddings, `[B, T, V]`."""
    table = _unit(self.table(jnp.arange(self.rows)))
    return jnp.einsum("bte,ve->btv", x.astype(jnp.float32), table)


def _unit(rows: Array) -> Array:
  return rows * jax.lax.rsqrt(jnp.mean(jnp.square(rows), axis=-1, keepdims=True) + 1e-9)


class BertToT5(nn.Module):
  """A BERT encoder and T5's decoder, with the methods of `network.Transformer`.

  What the decoder attends to is a token's hidden state, projected, plus the embeddings of the token
  and, rotated, of the one before it: hidden states of a pretrained encoder no longer hold these as
  such, and `start_copying` needs both.

  Attributes:
    config: of the decoder; `emb_dim` and `vocab_size` are the encoder's, `logits_via_embedding`.
    encoder_config: of the encoder.
  """

  config: network.T5Config
  encoder_config: BertConfig

  cache_length_axis = getattr(network.Transformer, "cache_length_axis", None)  # not in Google's T5X
  decode = network.Transformer.decode
  __call__ = network.Transformer.__call__  # `encode`, then `decode`

  def setup(self) -> None:
    """Declares both stacks, which share the encoder's embedding."""
    cfg, of_encoder = self.config, self.encoder_config
    for name in ("emb_dim", "vocab_size"):
      ours, theirs = getattr(cfg, name), getattr(of_encoder, name)
      if ours != theirs:
        raise SgdxError(
          f"network.T5Config.{name} = {ours}, encoder.BertConfig.{name} = {theirs}",
          expected="one width and one vocabulary for decoder and encoder",
          fix=f"set network.T5Config.{name} = {theirs}, as gin/models/minilm_t5.gin does",
        )
    self.encoder = Bert(of_encoder)
    self.projection = Dense(cfg.emb_dim, dtype=cfg.dtype, kernel_axes=("embed", "mlp"))
    self.previous = layers.DenseGeneral(
      cfg.emb_dim,
      dtype=cfg.dtype,
      kernel_axes=("embed", "mlp"),
      kernel_init=nn.initializers.orthogonal(),
    )
    self.encoder_norm = layers.LayerNorm(dtype=cfg.dtype)
    self.embedding = TiedEmbedding(self.encoder.token_embedder, cfg.vocab_size, cfg.dtype)
    self.decoder = network.Decoder(cfg, self.embedding)

  def encode(
    self,
    encoder_input_tokens: Array,
    encoder_segment_ids: Array | None = None,
    enable_dropout: bool = True,
  ) -> Array:
    """Encodes tokens.

    Args:
      encoder_input_tokens: int `[B, S]`; 0 is padding.
      encoder_segment_ids: int `[B, S]` of packed examples (1, 2, ...; 0 padding), or None.
      enable_dropout: True in training (needs a 'dropout' rng).

    Returns:
      `[B, S, E]` in `config.dtype`. Values at padding positions have no meaning.
    """
    tokens = self.embedding(encoder_input_tokens)
    previous = jnp.pad(tokens, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    positions = None
    if encoder_segment_ids is not None:
      positions = _positions(encoder_segment_ids)
      previous *= (positions > 0)[..., None]  # before it is another example's
    hidden = self.encoder(
      encoder_input_tokens,
      positions=positions,
      segment_ids=encoder_segment_ids,
      deterministic=not enable_dropout,
    )
    return self.encoder_norm(tokens + self.previous(previous) + self.projection(hidden))


def _positions(segment_ids: Array) -> Array:
  """Returns the position of each token in its packed example. Args: segment_ids, int `[B, S]`."""
  index = jnp.arange(segment_ids.shape[1])
  is_first = jnp.diff(segment_ids, axis=1, prepend=-1) != 0
  return index - jax.lax.cummax(jnp.where(is_first, index, 0), axis=1)


class BertToT5Model(models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a `BertToT5` that starts from copying.

  Raises:
    SgdxError: a vocabulary that is not the encoder's, or inputs longer than its positions.
  """

  def __init__(self, module: BertToT5, input_vocabulary: Any, *args: Any, **kwargs: Any):
    super().__init__(module, input_vocabulary, *args, **kwargs)
    if not isinstance(input_vocabulary, WordPieceVocabulary):
      raise SgdxError(
        f"the vocabulary {input_vocabulary} with a pretrained BERT",
        expected="the WordPiece vocabulary of the encoder",
        fix="SGDX_VOCAB=minilm/vocab.txt, and in gin VOCABULARY = @tasks.wordpiece_vocabulary()",
      )

  def get_initial_variables(
    self, rng: Array, input_shapes: Mapping[str, Sequence[int]], *args: Any, **kwargs: Any
  ) -> flax.core.FrozenDict:
    """See `models.EncoderDecoderModel`."""
    self.module.encoder_config.check_length(input_shapes["encoder_input_tokens"][-1])
    variables = super().get_initial_variables(rng, input_shapes, *args, **kwargs)
    params = start_copying(flax.core.unfreeze(variables["params"]))
    return flax.core.freeze({**variables, "params": params})


def start_copying(params: Mapping[str, Any]) -> dict[str, Any]:
  """Returns initial parameters of a `BertToT5` whose decoder writes what follows a token.

  A value of several tokens is copied by attending, in the input, to the token after the last one
  written. That takes long to learn from random weights, so the first layer's cross-attention starts
  with it: its keys find the token before, its outputs are the token's embedding.
  """
  decoder = dict(params["decoder"])
  for name in [name for name in decoder if name.startswith("layers_")]:
    layer = dict(decoder[name])
    for part in ("self_attention", "encoder_decoder_attention"):
      out = layer[part]["out"]["kernel"] * _OTHERS
      layer[part] = {**layer[part], "out": {"kernel": out}}
    decoder[name] = layer
  attention = decoder["layers_0"]["encoder_decoder_attention"]
  query = attention["query"]["kernel"] * _MATCH**0.5
  decoder["layers_0"]["encoder_decoder_attention"] = {
    **attention,
    "query": {"kernel": query},
    "key": {"kernel": params["previous"]["kernel"].T @ query},
    "out": {"kernel": attention["value"]["kernel"].T * _GAIN},
  }
  return {**params, "decoder": decoder}
