"""What trainer and evaluator need from a model, and the loss and scores of a transformer.

Shape letters: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.core
import jax
import seqio
from clu import metrics as clu_metrics
from flax import linen as nn

from t5x import decoding, losses, optimizers
from t5x import metrics as metrics_lib
from t5x.errors import check_number

Array = jax.Array
PyTree = Any
Batch = Mapping[str, Array]
MetricsMap = dict[str, clu_metrics.Metric]


class BaseModel(abc.ABC):
  """What trainer, evaluator and inference need from a model.

  Args:
    optimizer_def: the optimizer.
  """

  FEATURE_CONVERTER_CLS: Callable[..., seqio.FeatureConverter]

  def __init__(self, optimizer_def: optimizers.OptimizerDef):
    self.optimizer_def = optimizer_def

  @abc.abstractmethod
  def get_initial_variables(
    self,
    rng: Array,
    input_shapes: Mapping[str, Sequence[int]],
    input_types: Mapping[str, Any] | None = None,
  ) -> flax.core.FrozenDict:
    """Returns freshly initialised variable collections."""

  @abc.abstractmethod
  def loss_fn(
    self, params: PyTree, batch: Batch, dropout_rng: Array | None
  ) -> tuple[Array, MetricsMap]:
    """Returns the loss to differentiate, and metrics. Without a key, dropout is off."""

  def eval_fn(self, params: PyTree, batch: Batch) -> tuple[Array, MetricsMap]:
    """Returns loss and metrics without dropout."""
    return self.loss_fn(params, batch, dropout_rng=None)

  def predict_batch(
    self, params: PyTree, batch: Batch, rng: Array | None = None, **kwargs: Any
  ) -> Array | decoding.Paused:
    """Returns the best decode of each example, int32 `[B, T]` (in a `Paused` for a segment)."""
    result = self.predict_batch_with_aux(params, batch, rng=rng, **kwargs)
    if isinstance(result, decoding.Paused):
      return result.replace(outputs=result.outputs[0])
    return result[0]

  @property
  def predicts_once(self) -> bool:
    """Whether `predict_batch` is `predict_batch_with_aux` without the values, as it is here."""
    return type(self).predict_batch is BaseModel.predict_batch

  @abc.abstractmethod
  def predict_batch_with_aux(
    self, params: PyTree, batch: Batch, rng: Array | None = None
  ) -> tuple[Array, Mapping[str, Array]] | decoding.Paused:
    """Returns decodes and auxiliary values (in a `Paused` for a segment, if it takes segments)."""

  @abc.abstractmethod
  def score_batch(self, params: PyTree, batch: Batch) -> Array:
    """Returns log likelihoods of the targets, `[B]`."""


class BaseTransformerModel(BaseModel):
  """Loss and metrics of a model that gives logits for target tokens.

  Args:
    module: the network.
    input_vocabulary: vocabulary of the inputs.
    output_vocabulary: vocabulary of the targets.
    optimizer_def: the optimizer.
    decode_fn: `decoding.beam_search`, `decoding.temperature_sample`, or similar.
    label_smoothing: in [0, 1).
    z_loss: coefficient of log(Z)^2.
    loss_normalizing_factor: see `losses.get_loss_normalizing_factor_and_weights`.
  """

  def __init__(
    self,
    module: nn.Module,
    input_vocabulary: seqio.Vocabulary,
    output_vocabulary: seqio.Vocabulary,
    optimizer_def: optimizers.OptimizerDef,
    decode_fn: Callable[..., Any] | None = None,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    loss_normalizing_factor: Any = None,
  ):
    super().__init__(optimizer_def=optimizer_def)
    # All of these fail when the model is made, not at the first step.
    check_number(label_smoothing, "label_smoothing (LABEL_SMOOTHING)", 0, below=1)
    check_number(z_loss, "z_loss (Z_LOSS)", 0)
    self.module = module
    self._input_vocabulary = input_vocabulary
    self._output_vocabulary = output_vocabulary
    self._decode_fn: Any = decode_fn  # gin gives any function of prompts and caches
    self._label_smoothing = label_smoothing
    self._z_loss = z_loss
    self._loss_normalizing_factor = losses.checked_normalizing_factor(loss_normalizing_factor)

  @property
  def input_vocabulary(self) -> seqio.Vocabulary:
    """Vocabulary of the inputs."""
    return self._input_vocabulary

  @property
  def output_vocabulary(self) -> seqio.Vocabulary:
    """Vocabulary of the targets."""
    return self._output_vocabulary

  @property
  def decode_fn(self) -> Any:
    """The decode function."""
    return self._decode_fn

  @abc.abstractmethod
  def _compute_logits(
    self, params: PyTree, batch: Batch, dropout_rng: Array | None = None
  ) -> Array:
    """Returns teacher-forced logits `[B, T, V]`."""

  def loss_fn(
    self, params: PyTree, batch: Batch, dropout_rng: Array | None
  ) -> tuple[Array, MetricsMap]:
    """Returns (loss with z-loss, a float32 scalar, metrics); without a key, dropout is off."""
    logits = self._compute_logits(params, batch, dropout_rng)
    return self.loss_from_logits(logits, batch)

  def loss_from_logits(self, logits: Array, batch: Batch) -> tuple[Array, MetricsMap]:
    """Computes loss and metrics from teacher-forced logits `[B, T, V]`."""
    factor, weights = losses.get_loss_normalizing_factor_and_weights(
      self._loss_normalizing_factor, batch
    )
    targets = batch["decoder_target_tokens"]
    loss, z_loss, weight_sum = losses.compute_weighted_cross_entropy(
      logits,
      targets,
      weights=weights,
      label_smoothing=self._label_smoothing,
      z_loss=self._z_loss,
      loss_normalizing_factor=factor,
    )
    metrics = metrics_lib.compute_base_metrics(
      logits, targets, weights, loss, weight_sum=weight_sum, z_loss=z_loss
    )
    features = [f for f in ("encoder_input_tokens", "decoder_target_tokens") if f in batch]
    metrics.update(metrics_lib.compute_padding_metrics(batch, tuple(features)))
    return loss, metrics

  def score_batch(self, params: PyTree, batch: Batch) -> Array:
    """Returns the log likelihoods of the targets.

    They are float32 `[B]`, sums of weight * log p, 0 for an empty row.
    """
    logits = self._compute_logits(params, batch)
    scores = -losses.smoothed_cross_entropy(logits, batch["decoder_target_tokens"])[0]
    return (scores * batch.get("decoder_loss_weights", 1)).sum(axis=-1)
