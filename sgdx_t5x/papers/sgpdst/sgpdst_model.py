"""SGP-DST's sub-models: an encoder that masks options from each other, and the heads of one part.

Inputs and answers are described in README.md. Shape letters: B batch, L length, E width, N options.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax import linen as nn

from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.spandst import heads
from sgdx_t5x.spandst.encoder import UNDIVIDED, Bert, BertConfig, Dense, Table
from sgdx_t5x.spandst.model import Batch, EncoderModel, Metrics, millionths, share
from sgdx_t5x.spandst.padded import PaddedFeatureConverter, specs

Array = jax.Array
_CONTEXTS = {"intent": 8, "combine": 8, "copy": 100, "cross": 100}  # embedding rows, as released


class SgpFeatureConverter(PaddedFeatureConverter):
  """One example per row."""

  FEATURES = {  # noqa: RUF012
    "encoder_input_tokens": "inputs",
    "encoder_segments": "segments",
    "encoder_positions": "positions",
    "encoder_context": "context",
    "targets": "targets",
  }
  TASK_FEATURES = specs(*FEATURES.values())
  MODEL_FEATURES = specs(*FEATURES)


class SgpTracker(nn.Module):
  """The encoder and the heads of one sub-model.

  Attributes:
    config: of the encoder.
    part: "intent", "combine", "copy" or "cross".
  """

  config: BertConfig
  part: str = "combine"

  @nn.compact
  def __call__(self, batch: Batch, deterministic: bool = True) -> dict[str, Array]:
    """Scores the answers.

    Args:
      batch: model features except `targets`.
      deterministic: False enables dropout.

    Returns:
      Float32 log probabilities: intent and combine `options` `[B, N]`; combine `starts` and `ends`
      `[B, L]` and `requested` `[B, 2]`; copy and cross `copied` `[B, 2]`, NO before YES.
    """
    segments = batch["encoder_segments"]
    context = Table(_CONTEXTS[self.part], self.config.emb_dim, (UNDIVIDED, "embed"), name="context")
    encoder = Bert(self.config, name="encoder")
    hidden = encoder(
      batch["encoder_input_tokens"],
      types=(segments >= a.SECOND).astype(jnp.int32),
      positions=batch["encoder_positions"],
      segment_ids=(segments > 0).astype(jnp.int32),
      extra_embeddings=context(batch["encoder_context"]),
      deterministic=deterministic,
      visible=visible(segments),
    )
    if self.part in ("copy", "cross"):
      pooled = encoder.pool(hidden[:, 0]).astype(jnp.float32)
      return {"copied": jax.nn.log_softmax(_linear("copied", 2)(pooled))}
    scores = {"options": self._options(hidden, segments)}
    if self.part == "combine":
      logits = _linear("spans", 2)(hidden.astype(jnp.float32))
      is_utterance = (segments >= a.SYSTEM) & (segments <= a.NULL)
      for number, name in enumerate(("starts", "ends")):
        scores[name] = heads.log_softmax(logits[..., number], is_utterance)
      first_state = hidden[:, 0].astype(jnp.float32)
      scores["requested"] = jax.nn.log_softmax(_linear("requested", 2)(first_state))
    return scores

  def _options(self, hidden: Array, segments: Array) -> Array:
    """Returns log probabilities of the options, each max-pooled over its tokens' states."""
    lowest = jnp.finfo(hidden.dtype).min
    pooled, is_option = [], []
    for number in range(a.OPTION, a.OPTION + a.MAX_OPTIONS):
      mine = segments == number
      pooled.append(jnp.max(hidden, axis=1, where=mine[..., None], initial=lowest))
      is_option.append(mine.any(axis=1))
    opened = jnp.stack(is_option, axis=1)
    states = jnp.where(opened[..., None], jnp.stack(pooled, axis=1), 0).astype(jnp.float32)
    axes = ("embed", "mlp")
    x = jnp.tanh(Dense(hidden.shape[-1], kernel_axes=axes, name="option")(states))
    return heads.log_softmax(_linear("options", 1)(x)[..., 0], opened)


def visible(segments: Array) -> Array:
  """Returns which tokens (last axis) each attends to: options do not see each other.

  Args:
    segments: int `[B, L]`, see `sgpdst_answers`.

  Returns:
    Bool `[B, L, L]`.
  """
  query, key = segments[:, :, None], segments[:, None, :]
  return (query < a.OPTION) | (key < a.OPTION) | (query == key)


def _linear(name: str, features: int) -> Dense:
  return Dense(features, kernel_axes=("embed", UNDIVIDED), name=name)


class SgpModel(EncoderModel):
  """A sub-model of SGP-DST for T5X's scripts.

  Args:
    module: an `SgpTracker`.
    input_vocabulary: of the inputs.
    output_vocabulary: `seqio.PassThroughVocabulary`, of targets and answers.
    optimizer_def: the optimizer.

  Raises:
    SgdxError: the vocabulary has more pieces than the encoder has rows for.
  """

  FEATURE_CONVERTER_CLS = SgpFeatureConverter

  def likelihoods(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns log likelihoods of the gold answers, each `[B]`."""
    targets, by_head = batch["targets"], {}
    for name, column in self._columns().items():
      labels = targets[:, column]
      # Positions count from 0, which is [CLS] and never a label; all else from 1.
      index = labels if name in ("starts", "ends") else labels - 1
      index = jnp.clip(index, 0, scores[name].shape[-1] - 1)
      value = jnp.take_along_axis(scores[name], index[:, None], axis=-1)[:, 0]
      by_head[name] = jnp.where((labels > 0) & (value > heads.CLOSED / 2), value, 0.0)
    return by_head

  def answers(self, scores: Mapping[str, Array], batch: Batch) -> Array:
    """Returns int32 vectors, see `sgpdst_answers`: `[B, 2]`, for combine `[B, 6]`."""
    part = self.module.part
    if part in ("copy", "cross"):
      return millionths(jnp.exp(scores["copied"]))
    options = scores["options"]
    best = [jnp.argmax(options, axis=-1) + 1, millionths(jnp.exp(jnp.max(options, axis=-1)))]
    if part == "intent":
      return jnp.stack(best, axis=-1).astype(jnp.int32)
    start, end, score = best_pair(jnp.exp(scores["starts"]), jnp.exp(scores["ends"]))
    requested = millionths(jnp.exp(scores["requested"][:, a.YES - 1]))
    columns = [start, end, millionths(score), *best, requested]
    return jnp.stack(columns, axis=-1).astype(jnp.int32)

  def accuracies(self, scores: Mapping[str, Array], batch: Batch) -> Metrics:
    """Returns the accuracy of each head."""
    by_head = {}
    for name, column in self._columns().items():
      labels = batch["targets"][:, column]
      best = jnp.argmax(scores[name], axis=-1) + (name not in ("starts", "ends"))
      by_head[f"accuracy_{name}"] = share((best == labels) & (labels > 0), labels > 0)
    return by_head

  def _columns(self) -> dict[str, int]:
    """Returns each head's column in `targets`."""
    part = self.module.part
    if part == "combine":
      return {"starts": 0, "ends": 1, "options": 2, "requested": 3}
    return {"options" if part == "intent" else "copied": 0}


def best_pair(starts: Array, ends: Array) -> tuple[Array, Array, Array]:
  """Returns first <= last with the greatest sum of probabilities, and that sum, each `[B]`.

  Args:
    starts: probabilities of first tokens, `[B, L]`.
    ends: same for last tokens.
  """
  # The best probability of a first token up to each last one.
  best = jax.lax.cummax(starts, axis=1)
  end = jnp.argmax(best + ends, axis=1)
  up_to_last = jnp.arange(starts.shape[1])[None] <= end[:, None]
  start = jnp.argmax(jnp.where(up_to_last, starts, -1.0), axis=1)
  score = jnp.take_along_axis(best + ends, end[:, None], axis=1)[:, 0]
  return start, end, score
