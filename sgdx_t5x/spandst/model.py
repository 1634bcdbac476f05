"""The base class of encoder trackers' models, for T5X's scripts.

Shape letters: B batch, L length.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import flax.core
import jax
import jax.numpy as jnp
import seqio
from clu import metrics as clu_metrics
from flax import linen as nn

from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from t5x import metrics as metrics_lib
from t5x import models

Array = jax.Array
Batch = Mapping[str, Array]
Metrics = dict[str, clu_metrics.Metric]


class EncoderModel(models.BaseModel):
  """An encoder with heads: a weighted sum of named losses, and answers as integer vectors.

  Subclasses set `FEATURE_CONVERTER_CLS` and implement `likelihoods` and `answers`.

  Args:
    module: a network with a `BertConfig` as `config`, called with a batch.
    input_vocabulary: of the inputs.
    output_vocabulary: `seqio.PassThroughVocabulary`, of targets and answers.
    optimizer_def: the optimizer.
    weights: loss name -> weight; those left out default to 1.

  Raises:
    SgdxError: the vocabulary has more pieces than the encoder has rows for.
  """

  def __init__(
    self,
    module: nn.Module,
    input_vocabulary: seqio.Vocabulary,
    output_vocabulary: seqio.Vocabulary,
    optimizer_def: Any,
    weights: Mapping[str, float] | None = None,
  ):
    super().__init__(optimizer_def=optimizer_def)
    self.module = module
    self.input_vocabulary, self.output_vocabulary = input_vocabulary, output_vocabulary
    self._weights = dict(weights or {})
    if isinstance(input_vocabulary, WordPieceVocabulary):
      input_vocabulary.check_fits(module.config.vocab_size)

  @abc.abstractmethod
  def likelihoods(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns the log likelihoods of gold answers by loss, each `[B, ...]`, 0 without a label."""

  def losses(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns the losses by name, each a scalar: here the mean over examples."""
    number = jnp.maximum(self.num_examples(batch), 1)
    log_likelihoods = self.likelihoods(scores, batch)
    return {name: -jnp.sum(part) / number for name, part in log_likelihoods.items()}

  @abc.abstractmethod
  def answers(self, scores: Mapping[str, Array], batch: Batch) -> Array:
    """Returns the answers as int32 vectors, `[B, numbers]`."""

  def num_examples(self, batch: Batch) -> Array:
    """Returns the number of examples in a batch; padding rows do not count."""
    return jnp.sum(jnp.max(batch["encoder_segments"], axis=-1) > 0)

  def accuracies(self, scores: Mapping[str, Array], batch: Batch) -> Metrics:
    """Returns further metrics. Args: see `likelihoods`."""
    del scores, batch
    return {}

  def get_initial_variables(
    self,
    rng: Array,
    input_shapes: Mapping[str, Sequence[int]],
    input_types: Mapping[str, Any] | None = None,
  ) -> flax.core.FrozenDict:
    """Returns freshly initialised `params` and their `params_axes`."""
    self.module.config.check_length(input_shapes["encoder_input_tokens"][-1])
    batch, types = {}, input_types or {}
    for name, shape in input_shapes.items():
      batch[name] = jnp.zeros(shape, types.get(name, jnp.int32))
    return flax.core.freeze(self.module.init(rng, batch))

  def loss_fn(self, params: Any, batch: Batch, dropout_rng: Array | None) -> tuple[Array, Metrics]:
    """Returns the weighted sum of the losses, and metrics."""
    scores = self.scores(params, batch, dropout_rng)
    losses = self.losses(scores, batch)
    weighted = [self._weights.get(name, 1.0) * value for name, value in losses.items()]
    loss = jnp.stack(weighted).sum()
    metrics: Metrics = {"loss": metrics_lib.AveragePerStep(total=loss)}
    for name, value in losses.items():
      metrics[f"loss_{name}"] = metrics_lib.AveragePerStep(total=value)
    return loss, metrics | self.accuracies(scores, batch) | _fill(batch)

  def eval_fn(self, params: Any, batch: Batch) -> tuple[Array, Metrics]:
    """Same as `loss_fn`, without dropout."""
    return self.loss_fn(params, batch, dropout_rng=None)

  def predict_batch_with_aux(
    self, params: Any, batch: Batch, rng: Array | None = None
  ) -> tuple[Array, Mapping[str, Array]]:
    """Predicts answers for unpacked examples.

    Args:
      params: parameters.
      batch: model features; `targets` are not read.
      rng: not used.

    Returns:
      (int32 vectors `[B, numbers]`, an empty dict); README.md says what the numbers mean.
    """
    del rng
    return self.answers(self.scores(params, batch), batch), {}

  def score_batch(self, params: Any, batch: Batch, return_intermediates: bool = False) -> Array:
    """Returns the log likelihood of the gold answers, `[B]`."""
    del return_intermediates
    log_likelihoods = self.likelihoods(self.scores(params, batch), batch)
    rows = [part.reshape(len(part), -1).sum(axis=-1) for part in log_likelihoods.values()]
    return jnp.stack(rows).sum(axis=0)

  def scores(self, params: Any, batch: Batch, dropout_rng: Array | None = None) -> Any:
    """Returns the module's output for a batch. Args: dropout_rng, None disables dropout."""
    rngs = None if dropout_rng is None else {"dropout": dropout_rng}
    return self.module.apply(
      {"params": params}, batch, deterministic=dropout_rng is None, rngs=rngs
    )


def share(true: Array, total: Array) -> clu_metrics.Metric:
  """Returns a metric: the fraction of `total` that is `true`."""
  return clu_metrics.Average(
    total=jnp.sum(true, dtype=jnp.float32), count=jnp.sum(total, dtype=jnp.float32)
  )


def target_rows(batch: Batch) -> Array:
  """Returns the columns of `targets`: slot, kind, first, last, each `[B, rows]`."""
  # From [B, 4 x rows]: the last axis becomes the first, so that callers can unpack the columns.
  return jnp.moveaxis(batch["targets"].reshape(len(batch["targets"]), -1, answers.ROW), -1, 0)


def millionths(probability: Array) -> Array:
  """Returns probabilities as int32 millionths, rounded."""
  return jnp.round(probability * 1_000_000).astype(jnp.int32)


def _fill(batch: Batch) -> Metrics:
  """Returns the fraction of non-padding tokens, under T5X's names."""
  tokens = batch["encoder_segments"]
  fraction = share(tokens > 0, jnp.ones_like(tokens))
  return {f"non_padding_fraction/{name}": fraction for name in ("encoder_input_tokens", "overall")}
