"""Models: a network with vocabularies, optimizer, loss, metrics and decoding.

`EncoderDecoderModel` is what gin binds as MODEL. Shape letters: B batch, S encoder length,
T decoder length, N decodes per example.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.core
import jax
import jax.numpy as jnp
import seqio
from flax import linen as nn

from t5x import decoding, optimizers
from t5x._base_model import BaseModel, BaseTransformerModel
from t5x.errors import T5XError

__all__ = [
  "BaseModel",
  "BaseTransformerModel",
  "DecoderOnlyModel",
  "DecoderParams",
  "EncoderDecoderModel",
  "get_input_vocabulary",
  "get_output_vocabulary",
]

Array = jax.Array
PyTree = Any
Batch = Mapping[str, Array]


@dataclasses.dataclass(frozen=True)
class DecoderParams:
  """Defaults for decoding, bound in gin; None leaves a setting to the decode function.

  Attributes:
    num_decodes: decodes per example.
    alpha: length penalty of beam search.
    temperature: of sampling.
    topk: sample among the k most probable tokens; 1 is greedy, 0 is all.
    topp: sample among the tokens that hold this probability mass.
    max_decode_len: tokens to decode at most.
  """

  num_decodes: int | None = None
  alpha: float | None = None
  temperature: float | None = None
  topk: int | None = None
  topp: float | None = None
  max_decode_len: int | None = None

  def as_kwargs(self) -> dict[str, Any]:
    """Returns the settings that are not None."""
    return {k: v for k, v in dataclasses.asdict(self).items() if v is not None}


class EncoderDecoderModel(BaseTransformerModel):
  """T5: see `BaseTransformerModel` for most arguments.

  Args:
    feature_converter_cls: replaces `seqio.EncDecFeatureConverter`.
    default_decoder_params: defaults for `decode_fn`.
  """

  FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter

  def __init__(
    self,
    module: nn.Module,
    input_vocabulary: seqio.Vocabulary,
    output_vocabulary: seqio.Vocabulary,
    optimizer_def: optimizers.OptimizerDef,
    decode_fn: Callable[..., Any] = decoding.beam_search,
    feature_converter_cls: Callable[..., seqio.FeatureConverter] | None = None,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    loss_normalizing_factor: Any = None,
    default_decoder_params: DecoderParams | None = None,
  ):
    if feature_converter_cls is not None:
      self.FEATURE_CONVERTER_CLS = feature_converter_cls
    self._default_decoder_params = default_decoder_params or DecoderParams()
    super().__init__(
      module=module,
      input_vocabulary=input_vocabulary,
      output_vocabulary=output_vocabulary,
      optimizer_def=optimizer_def,
      decode_fn=decode_fn,
      label_smoothing=label_smoothing,
      z_loss=z_loss,
      loss_normalizing_factor=loss_normalizing_factor,
    )

  def get_initial_variables(
    self,
    rng: Array,
    input_shapes: Mapping[str, Sequence[int]],
    input_types: Mapping[str, Any] | None = None,
  ) -> flax.core.FrozenDict:
    """Initialises the network.

    Args:
      rng: key.
      input_shapes: shapes of `encoder_input_tokens` and `decoder_input_tokens` at least.
      input_types: their types; int32 if left out.

    Returns:
      Collections `params` (float32) and `params_axes` (logical axis names).
    """
    types = input_types or {}

    def ones(name: str, other: str) -> Array:
      return jnp.ones(input_shapes.get(name) or input_shapes[other], types.get(name, jnp.int32))

    decoder_input = ones("decoder_input_tokens", "decoder_target_tokens")
    variables = self.module.init(
      rng,
      ones("encoder_input_tokens", "encoder_input_tokens"),
      decoder_input,
      decoder_input,
      enable_dropout=False,
    )
    return flax.core.freeze(variables)

  def _compute_logits(
    self, params: PyTree, batch: Batch, dropout_rng: Array | None = None, mutable: Any = False
  ) -> Any:
    return self.module.apply(
      {"params": params},
      batch["encoder_input_tokens"],
      batch["decoder_input_tokens"],
      batch["decoder_target_tokens"],
      encoder_segment_ids=batch.get("encoder_segment_ids"),
      decoder_segment_ids=batch.get("decoder_segment_ids"),
      encoder_positions=batch.get("encoder_positions"),
      decoder_positions=batch.get("decoder_positions"),
      decode=False,
      enable_dropout=dropout_rng is not None,
      rngs=None if dropout_rng is None else {"dropout": dropout_rng},
      mutable=mutable,
    )

  def prefill(
    self, params: PyTree, encoder_input_tokens: Array, decode_length: int
  ) -> tuple[PyTree, PyTree]:
    """Encodes inputs and makes the caches for decoding them.

    Args:
      params: parameters.
      encoder_input_tokens: int `[B, S]`.
      decode_length: T, tokens to decode at most.

    Returns:
      (cache, cross_cache): the first changes with every step, the second never.
    """
    encoded = self.module.apply(
      {"params": params}, encoder_input_tokens, enable_dropout=False, method="encode"
    )
    # Only shapes of these tokens matter; under jit nothing but the caches is computed.
    tokens = jnp.ones((encoder_input_tokens.shape[0], decode_length), jnp.int32)
    _, variables = self.module.apply(
      {"params": params},
      encoded,
      encoder_input_tokens,
      tokens,
      tokens,
      enable_dropout=False,
      decode=True,
      mutable=["cache", "cross_cache"],
      method="decode",
    )
    return variables["cache"], variables["cross_cache"]

  def decode_step(
    self,
    params: PyTree,
    cross_cache: PyTree,
    encoder_input_tokens: Array,
    decode_length: int,
    state: decoding.DecodingState,
  ) -> tuple[Array, PyTree]:
    """Computes the logits of the next token.

    Args:
      params: parameters.
      cross_cache: from `prefill`.
      encoder_input_tokens: int `[B, S]`, not repeated per decode.
      decode_length: T, as in `prefill`.
      state: `cur_token` `[B*N, 1]` and `cache` are read.

    Returns:
      (logits `[B*N, V]`, new cache).
    """
    logits, variables = self.module.apply(
      {"params": params, "cache": state.cache, "cross_cache": cross_cache},
      None,
      encoder_input_tokens,
      state.cur_token,
      state.cur_token,
      enable_dropout=False,
      decode=True,
      max_decode_length=decode_length,
      mutable=["cache"],
      method="decode",
    )
    return logits[:, 0, :], variables["cache"]

  def predict_batch_with_aux(
    self,
    params: PyTree,
    batch: Batch,
    rng: Array | None = None,
    decoder_params: Mapping[str, Any] | None = None,
    return_all_decodes: bool = False,
    num_decodes: int | None = None,
    prompt_with_targets: bool = False,
  ) -> tuple[Array, Mapping[str, Array]]:
    """Decodes a batch.

    Args:
      params: parameters.
      batch: `encoder_input_tokens` `[B, S]` and `decoder_input_tokens` `[B, T]`; T limits the
        decodes, the values matter only for `prompt_with_targets`.
      rng: key for sampling.
      decoder_params: keyword arguments for the decode function.
      return_all_decodes: return all decodes, sorted with the best last, instead of the best.
      num_decodes: decodes per example (beams); None is 1 or the default decoder params'.
      prompt_with_targets: decodes start with the tokens of `decoder_input_tokens`, up to an EOS.

    Returns:
      (decodes, {'scores'}): int32 `[B, T]` and float32 `[B]`, or with all decodes `[B, N, T]`
      and `[B, N]`.

    Raises:
      T5XError: a key is given twice.
    """
    kwargs = self._default_decoder_params.as_kwargs() | dict(decoder_params or {})
    if rng is not None:
      if kwargs.get("decode_rng") is not None:
        raise T5XError(
          found="a sampling key both as rng and in decoder_params",
          expected="one of them",
          fix="drop decoder_params['decode_rng']",
        )
      kwargs["decode_rng"] = rng
    kwargs.setdefault("eos_id", self.output_vocabulary.eos_id)
    if num_decodes is not None:
      kwargs["num_decodes"] = num_decodes
    kwargs.setdefault("num_decodes", 1)
    encoder_input_tokens, prompt = batch["encoder_input_tokens"], batch["decoder_input_tokens"]
    if prompt_with_targets:
      # The forced part of a row ends at its EOS: a 0 forces nothing.
      prompt = jnp.where(prompt == kwargs["eos_id"], 0, prompt)
    else:
      prompt = jnp.zeros_like(prompt)
    length = prompt.shape[1]
    cache, cross_cache = self.prefill(params, encoder_input_tokens, length)
    step = functools.partial(self.decode_step, params, cross_cache, encoder_input_tokens, length)
    decodes, scores = self._decode_fn(inputs=prompt, cache=cache, tokens_to_logits=step, **kwargs)
    if return_all_decodes:
      return decodes, {"scores": scores}
    return decodes[:, -1, :], {"scores": scores[:, -1]}


class DecoderOnlyModel:
  """Not covered; making one says where to find it."""

  def __init__(self, *args: Any, **kwargs: Any):
    del args, kwargs
    raise T5XError(
      found="models.DecoderOnlyModel",
      expected="an encoder-decoder model",
      available="models.EncoderDecoderModel",
      fix="install Google's T5X, which has DecoderOnlyModel",
    )


def get_input_vocabulary(model: BaseTransformerModel) -> seqio.Vocabulary:
  """Returns the vocabulary of a model's inputs."""
  return model.input_vocabulary


def get_output_vocabulary(model: BaseTransformerModel) -> seqio.Vocabulary:
  """Returns the vocabulary of a model's targets."""
  return model.output_vocabulary
