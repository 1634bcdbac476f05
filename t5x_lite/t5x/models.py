"""Models: a network with vocabularies, optimizer, loss, metrics and decoding.

`EncoderDecoderModel` is what gin binds as MODEL. Shape letters: B batch, S encoder length,
T decoder length, N decodes per example.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.core
import jax
import jax.numpy as jnp
import seqio
from flax import linen as nn

from t5x import active_mesh, decoding, optimizers
from t5x._model.base import BaseModel, BaseTransformerModel
from t5x._model.decode_rows import cache_of_rows, rows_of_cache, tokens_and_prompt
from t5x.errors import T5XError, check_flag
from t5x.examples.t5 import network, products

__all__ = [
  "BaseModel",
  "BaseTransformerModel",
  "DecoderParams",
  "EncoderDecoderModel",
  "get_input_vocabulary",
  "get_output_vocabulary",
]

Array = jax.Array
PyTree = Any
Batch = Mapping[str, Array]


# Tokens that a CPU encodes at once: 64 rows of 240 are a third faster 4 at a time (T5 Small, 2
# cores). A narrow network's activations are smaller; there, attention should get more at once.
_CHUNK = 1024
_NARROW_CHUNK = 4096
# Multiplications per key and query, heads times width, up to which attending to the encoder's
# output takes less time than reading keys and values, however many steps a decode has (2 cores: at
# 256 and 512 half the time with inputs of 512 tokens, at 1,024 the same).
_NARROW = 512


@dataclasses.dataclass(frozen=True)
class DecoderParams:
  """Defaults for decoding, bound in gin; None leaves a setting to the decode function.

  Attributes:
    return_all_decodes: return all decodes of an example instead of the best.
    num_decodes: decodes per example.
    alpha: length penalty of beam search.
    temperature: sampling temperature.
    topk: sample among the k most probable tokens; 1 is greedy, 0 is all.
    topp: sample among the tokens that hold this probability mass.
    max_decode_len: maximum tokens to decode.
  """

  return_all_decodes: bool = False
  num_decodes: int | None = None
  alpha: float | None = None
  temperature: float | None = None
  topk: int | None = None
  topp: float | None = None
  max_decode_len: int | None = None

  def __post_init__(self):
    check_flag(self.return_all_decodes, "DecoderParams.return_all_decodes")

  def as_kwargs(self) -> dict[str, Any]:
    """Returns the settings of the decode function that are not None."""
    settings = dataclasses.asdict(self)
    del settings["return_all_decodes"]  # the model chooses among what the function returns
    return {k: v for k, v in settings.items() if v is not None}


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

    def ones(name: str, alternative: str) -> Array:
      return jnp.ones(
        input_shapes.get(name) or input_shapes[alternative], types.get(name, jnp.int32)
      )

    # Only shapes matter: the values of parameters do not depend on tokens.
    decoder_input = ones("decoder_input_tokens", "decoder_target_tokens")
    variables = self.module.init(
      rng,
      ones("encoder_input_tokens", "encoder_input_tokens"),
      decoder_input,
      decoder_input,
      enable_dropout=False,
    )
    return flax.core.freeze(variables)

  def _apply(self, params: PyTree, *args: Any, **kwargs: Any) -> Any:
    """Calls the network with parameters alone, so without a cache."""
    return self.module.apply({"params": params}, *args, **kwargs)

  def _compute_logits(
    self, params: PyTree, batch: Batch, dropout_rng: Array | None = None
  ) -> Array:
    """Teacher-forced logits `[B, T, V]`; dropout is on if it has a key."""
    return self._apply(
      params,
      batch["encoder_input_tokens"],
      batch["decoder_input_tokens"],
      batch["decoder_target_tokens"],  # the network only looks which are padding
      encoder_segment_ids=batch.get("encoder_segment_ids"),
      decoder_segment_ids=batch.get("decoder_segment_ids"),
      encoder_positions=batch.get("encoder_positions"),
      decoder_positions=batch.get("decoder_positions"),
      decode=False,
      enable_dropout=dropout_rng is not None,
      rngs=None if dropout_rng is None else {"dropout": dropout_rng},
    )

  def prefill(
    self, params: PyTree, encoder_input_tokens: Array, decode_length: int
  ) -> tuple[PyTree, PyTree]:
    """Encodes inputs and makes the caches for decoding them.

    Args:
      params: parameters.
      encoder_input_tokens: int `[B, S]`.
      decode_length: T, maximum tokens to decode.

    Returns:
      (cache, cross_cache): the first changes with every step, the second never. The second is the
      encoder's output, `[B, S, E]`, where the network keeps no cache of it, as T5X's own.
    """
    encoded = self._encode(params, encoder_input_tokens)
    return self._make_caches(params, encoded, encoder_input_tokens, decode_length)

  def gains_by_packing(self, length: int) -> bool:
    """Whether `encode_packed` pays off on a CPU: if attention to a whole row is little work.

    Args:
      length: S, tokens of a packed row.

    Returns:
      Whether it does; False for networks other than T5, which may count positions across a row.
    """
    if not isinstance(self.module, network.Transformer):
      return False
    cfg = self.module.config
    heads = cfg.num_heads * cfg.head_dim
    dense = (4 * heads + (len(cfg.mlp_activations) + 1) * cfg.mlp_dim) * cfg.emb_dim
    # Multiplications per token and layer. Attention, to a row's tokens once for the scores and once
    # for the values, should be at most a quarter of all else: in a packed row, most of it is to
    # other examples, and masked.
    return 4 * (2 * length * heads) <= dense

  def _is_narrow(self) -> bool:
    """Whether reading keys and values takes longer than attending to the encoder's output."""
    if not isinstance(self.module, network.Transformer):
      return False
    return self.module.config.num_heads * self.module.config.emb_dim <= _NARROW

  def encode_packed(
    self, params: PyTree, encoder_input_tokens: Array, encoder_segment_ids: Array
  ) -> Array:
    """Encodes rows that hold several examples each; `decoding.Segment.encoded` is taken from it.

    Args:
      params: parameters.
      encoder_input_tokens: int `[B, S]`.
      encoder_segment_ids: int `[B, S]`: 1, 2, ... for the examples of a row, 0 for padding.

    Returns:
      `[B, S, E]`.
    """
    params = products.cast_kernels(params)
    return self._encode_in_chunks(params, encoder_input_tokens, encoder_segment_ids)

  def _encode(self, params: PyTree, *tokens_and_segments: Array) -> Array:
    """int `[B, S]`, and segment ids of packed rows -> `[B, S, E]`."""
    return self._apply(params, *tokens_and_segments, enable_dropout=False, method="encode")

  def _encode_in_chunks(self, params: PyTree, *tokens_and_segments: Array) -> Array:
    """`_encode`; on a CPU, a few rows at a time, so that activations stay in its caches."""
    batch, length = tokens_and_segments[0].shape
    if jax.default_backend() != "cpu" or active_mesh.num_devices() > 1:
      return self._encode(params, *tokens_and_segments)
    max_tokens = _NARROW_CHUNK if self._is_narrow() else _CHUNK
    # The most rows that divide the batch, as one program needs equal chunks.
    rows = max(max_tokens // length, 1)
    while batch % rows:
      rows -= 1
    chunks = [x.reshape(batch // rows, rows, length) for x in tokens_and_segments]
    encoded = jax.lax.map(lambda chunk: self._encode(params, *chunk), chunks)
    return encoded.reshape(batch, length, -1)

  def _make_caches(
    self, params: PyTree, encoded: Array, encoder_input_tokens: Array, decode_length: int
  ) -> tuple[PyTree, PyTree]:
    """Returns (empty cache of `decode_length` tokens, cross_cache)."""
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
    return variables["cache"], variables.get("cross_cache", encoded)

  def decode_step(
    self,
    params: PyTree,
    cross_cache: PyTree,
    encoder_input_tokens: Array,
    decode_length: int,
    state: decoding.DecodingState,
    encoded: Array | None = None,
  ) -> tuple[Array, PyTree]:
    """Computes the logits of the next token.

    Args:
      params: parameters.
      cross_cache: from `prefill`.
      encoder_input_tokens: int `[B, S]`, not repeated per decode.
      decode_length: T, as in `prefill`.
      state: `cur_token` `[B*N, 1]` and `cache` are read.
      encoded: `[B, S, E]`, to attend to directly instead of through `cross_cache`.

    Returns:
      (logits `[B*N, V]`, new cache).
    """
    variables = {"params": params, "cache": state.cache}
    if isinstance(cross_cache, Mapping):
      variables["cross_cache"] = cross_cache
    else:
      # A network without such a cache, as T5X's own, projects keys and values at every step.
      decodes = len(state.cur_token) // len(cross_cache)
      encoded = jnp.repeat(cross_cache, decodes, axis=0)
      encoder_input_tokens = jnp.repeat(encoder_input_tokens, decodes, axis=0)
    logits, variables = self.module.apply(
      variables,
      encoded,
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
    return_all_decodes: bool | None = None,
    num_decodes: int | None = None,
    prompt_with_targets: bool = False,
    segment: decoding.Segment | None = None,
  ) -> tuple[Array, Mapping[str, Array]] | decoding.Paused:
    """Decodes a batch.

    Args:
      params: parameters.
      batch: `encoder_input_tokens` `[B, S]` and `decoder_input_tokens` `[B, T]`; T limits the
        decodes, the values matter only for `prompt_with_targets`.
      rng: key for sampling.
      decoder_params: keyword arguments for the decode function.
      return_all_decodes: return all decodes, sorted with the best last, instead of the best; None
        is what the default decoder params say.
      num_decodes: decodes per example (beams); None is 1 or the default decoder params'.
      prompt_with_targets: decodes start with the tokens of `decoder_input_tokens`, up to an EOS.
      segment: decode only this segment; after the first one, `batch` is not read.

    Returns:
      (decodes, {'scores'}): int32 `[B, T]` and float32 `[B]`, or with all decodes `[B, N, T]`
      and `[B, N]`. With a segment, `decoding.Paused` with that as outputs.

    Raises:
      T5XError: a sampling key is given twice.
      decoding.CannotPauseError: a segment of a decode that cannot be cut.
    """
    kwargs = self._decode_settings(rng, decoder_params, num_decodes)
    if isinstance(self.module, network.Transformer):
      params = products.cast_kernels(params)  # here, once for all tokens
    if segment is not None:
      result = self._decode_segment(params, batch, segment, prompt_with_targets, kwargs)
      decodes, scores = result.outputs
    else:
      tokens, prompt = tokens_and_prompt(batch, prompt_with_targets, self.output_vocabulary.eos_id)
      length = prompt.shape[1]
      cache, cross_cache = self.prefill(params, tokens, length)
      step = functools.partial(self.decode_step, params, cross_cache, tokens, length)
      decodes, scores = self._decode_fn(inputs=prompt, cache=cache, tokens_to_logits=step, **kwargs)
    if return_all_decodes is None:
      return_all_decodes = self._default_decoder_params.return_all_decodes
    if not return_all_decodes:
      decodes, scores = decodes[:, -1, :], scores[:, -1]
    outputs = decodes, {"scores": scores}
    return outputs if segment is None else result.replace(outputs=outputs)

  def _decode_settings(
    self,
    rng: Array | None,
    decoder_params: Mapping[str, Any] | None,
    num_decodes: int | None,
  ) -> dict[str, Any]:
    """Keyword arguments of the decode function: a call's win over the defaults bound in gin."""
    kwargs = self._default_decoder_params.as_kwargs() | dict(decoder_params or {})
    if rng is not None:
      if kwargs.get("decode_rng") is not None:
        raise T5XError("There is a sampling key both as rng and in decoder_params.")
      kwargs["decode_rng"] = rng
    # T5X's default for vocabularies that name none, such as seqio.PassThroughVocabulary.
    kwargs.setdefault("eos_id", self.output_vocabulary.eos_id or 1)
    if num_decodes is not None:
      kwargs["num_decodes"] = num_decodes
    kwargs.setdefault("num_decodes", 1)
    # A network that scans over its layers stacks their caches on an axis before the batch's.
    kwargs["cache_offset"] = int(bool(getattr(self.module, "scan_layers", False)))
    return kwargs

  def _decode_segment(
    self,
    params: PyTree,
    batch: Batch,
    segment: decoding.Segment,
    prompt_with_targets: bool,
    kwargs: Mapping[str, Any],
  ) -> decoding.Paused:
    """Decodes from `segment.start` to `segment.stop` tokens.

    The caches are only as long as the segment needs, not the longest decode. Between segments the
    encoder's output is kept, not the keys and values made from it, which are many times larger
    (2 * layers * heads * head size against the width of the network).
    """
    axis = getattr(self.module, "cache_length_axis", None)
    # Another network does not tell which axis of its caches counts tokens.
    if axis is None or "segment" not in inspect.signature(self._decode_fn).parameters:
      raise decoding.CannotPauseError
    if segment.rows is None:
      tokens, prompt = tokens_and_prompt(batch, prompt_with_targets, self.output_vocabulary.eos_id)
      encoded, decoded = segment.encoded, None
      if encoded is None:
        encoded = self._encode_in_chunks(params, tokens)
    else:
      encoder, decoder = segment.rows["encoder"], segment.rows["decoder"]
      tokens, encoded = encoder["tokens"], encoder["encoded"]
      prompt, decoded = decoder["prompt"], decoder["decoded"]
    stop = min(segment.stop, prompt.shape[1])  # of a last, shorter segment
    cache, cross_cache = self._make_caches(params, encoded, tokens, stop)
    if segment.rows is not None:
      cache = cache_of_rows(cache, decoder["cache"], segment.start, axis)
    step = functools.partial(self.decode_step, params, cross_cache, tokens, stop)
    if jax.default_backend() == "cpu" and (segment.rows is None or self._is_narrow()):
      # Few steps: attending to the encoder's output is less work than making keys and values.
      step = functools.partial(step, encoded=encoded)
    paused = self._decode_fn(
      inputs=prompt,
      cache=cache,
      tokens_to_logits=step,
      segment=decoding.Segment(segment.start, stop, decoded, segment.active),
      **kwargs,
    )
    rows = {
      "encoder": {"tokens": tokens, "encoded": encoded},
      "decoder": {
        "prompt": prompt,
        "decoded": paused.rows,
        "cache": rows_of_cache(paused.cache, len(tokens)),
      },
    }
    return paused.replace(rows=rows, cache=None)


def get_input_vocabulary(model: BaseTransformerModel) -> seqio.Vocabulary:
  """Returns the vocabulary of a model's inputs."""
  return model.input_vocabulary


def get_output_vocabulary(model: BaseTransformerModel) -> seqio.Vocabulary:
  """Returns the vocabulary of a model's targets."""
  return model.output_vocabulary
