"""The SGD paper's zero-shot baseline: heads over an utterance and embeddings of schema elements.

Rastogi et al. 2020 (arXiv:1909.05855), section 5.1, with the heads of the code released with it.
Inputs and answers are described in README.md. Shape letters: B batch, L length, E width, S slots,
V values, I intents, N elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import seqio
from flax import linen as nn
from flax.linen.partitioning import param_with_axes

from sgdx_t5x.papers.sgd_baseline.schema_table import SchemaTable
from sgdx_t5x.spandst import answers, heads
from sgdx_t5x.spandst.encoder import UNDIVIDED, Bert, BertConfig, Dense
from sgdx_t5x.spandst.model import Batch, EncoderModel, Metrics, millionths, share, target_rows
from sgdx_t5x.spandst.padded import PaddedFeatureConverter, specs

Array = jax.Array
_NONE, _DONTCARE, _ACTIVE = range(3)  # statuses
_LOSSES = (
  "intent", "requested", "categorical_status", "value", "free_status", "start", "end",
)  # fmt: skip
# Features of the model that are called as in the task.
_SAME_NAMES = ("slots", "slot_context", "values", "value_slots", "intents", "targets")


class BaselineFeatureConverter(PaddedFeatureConverter):
  """Converts the features of `baseline_features` to the model's."""

  FEATURES = {  # noqa: RUF012  # SeqIO's names
    "encoder_input_tokens": "inputs",
    "encoder_segments": "segments",
    **{name: name for name in _SAME_NAMES},
  }
  TASK_FEATURES = specs(*FEATURES.values())
  MODEL_FEATURES = specs(*FEATURES)


class Projection(nn.Module):
  """F in the paper's equations 1 to 3: logits of elements, given an utterance.

  Attributes:
    classes: number of logits per element.
  """

  classes: int

  @nn.compact
  def __call__(self, utterance: Array, elements: Array) -> Array:
    """`[B, E]` and `[B, N, E]` -> float32 `[B, N, classes]`."""
    width, axes = elements.shape[-1], ("embed", "mlp")
    projected = nn.gelu(Dense(width, kernel_axes=axes, name="utterance")(utterance))
    projected = jnp.broadcast_to(projected[:, None], (*elements.shape[:2], projected.shape[-1]))
    pairs = jnp.concatenate([elements, projected], axis=-1)
    x = nn.gelu(Dense(width, kernel_axes=axes, name="element")(pairs))
    return Dense(self.classes, kernel_axes=("mlp", UNDIVIDED), name="logits")(x)


class SpanProjection(nn.Module):
  """Start and end logits of each token for each slot's value, as in the released code.

  The paper has a `Projection` for each end; the code shares one hidden layer.
  """

  @nn.compact
  def __call__(self, tokens: Array, slots: Array) -> tuple[Array, Array]:
    """`[B, L, E]` and `[B, S, E]` -> two of float32 `[B, S, L]`."""
    width, axes = tokens.shape[-1], ("embed", "mlp")
    # A product with the concatenation [slot, token], split in two: there are many pairs.
    x = Dense(width, kernel_axes=axes, name="slot")(slots)[:, :, None]
    x = nn.gelu(x + Dense(width, kernel_axes=axes, name="token")(tokens)[:, None])
    logits = Dense(2, kernel_axes=("mlp", UNDIVIDED), name="logits")(x)
    return logits[..., 0], logits[..., 1]


class BaselineTracker(nn.Module):
  """The utterance encoder and the heads.

  Attributes:
    config: of the encoder.
    table: the schema embeddings, which are frozen; from `schema_table.embedded`.
  """

  config: BertConfig
  # Not in the repr, by which `sgdx track` knows the network: it has a digest of the vectors.
  table: SchemaTable = dataclasses.field(repr=False)

  @nn.compact
  def __call__(self, batch: Batch, deterministic: bool = True) -> dict[str, Array]:
    """Scores the answers for all slots.

    Args:
      batch: model features except `targets`.
      deterministic: False enables dropout.

    Returns:
      Float32 log probabilities `intents` `[B, 1 + I]`, `statuses` `[B, S, 3]`,
      `values` `[B, S, V]`, `starts` and `ends` `[B, S, L]`, and logits `requested` `[B, S]`.
    """
    segments = batch["encoder_segments"]
    encoder = Bert(self.config, name="encoder")
    hidden = encoder(
      batch["encoder_input_tokens"],
      types=token_types(segments),
      segment_ids=(segments > 0).astype(jnp.int32),
      deterministic=deterministic,
    )
    drop = nn.Dropout(self.config.dropout_rate)
    utterance = drop(encoder.pool(hidden[:, 0]), deterministic).astype(jnp.float32)
    tokens = drop(hidden, deterministic).astype(jnp.float32)
    slots, values, intents = (self._embedded(batch[n]) for n in ("slots", "values", "intents"))
    none = param_with_axes(
      "no_intent",
      nn.initializers.truncated_normal(stddev=0.02),
      (self.config.emb_dim,),
      jnp.float32,
      axes=("embed",),
    )
    none = jnp.broadcast_to(none, (len(intents), 1, self.config.emb_dim))
    intents = jnp.concatenate([none, intents], axis=1)
    is_intent = jnp.pad(batch["intents"] > 0, ((0, 0), (1, 0)), constant_values=True)
    is_free = (batch["slot_context"] & answers.SPAN_OPEN) > 0
    statuses = jnp.where(
      is_free[..., None],
      Projection(3, name="free_status")(utterance, slots),
      Projection(3, name="categorical_status")(utterance, slots),
    )
    starts, ends = SpanProjection(name="spans")(tokens, slots)
    number = jnp.arange(1, slots.shape[1] + 1)[:, None]
    of_slot = (batch["value_slots"][:, None] == number) & (batch["values"] > 0)[:, None]
    of_values = Projection(1, name="values")(utterance, values)[:, None, :, 0]
    spoken = (segments > 0)[:, None]
    return {
      "intents": heads.log_softmax(
        Projection(1, name="intents")(utterance, intents)[..., 0], is_intent
      ),
      "requested": Projection(1, name="requested")(utterance, slots)[..., 0],
      "statuses": jax.nn.log_softmax(statuses, axis=-1),
      "values": heads.log_softmax(of_values, of_slot),
      "starts": heads.log_softmax(starts, spoken),
      "ends": heads.log_softmax(ends, spoken),
    }

  def _embedded(self, rows: Array) -> Array:
    """Schema embeddings of table rows, numbered from 1."""
    return jnp.asarray(self.table.vectors, jnp.float32)[jnp.maximum(rows - 1, 0)]


def token_types(segments: Array) -> Array:
  """Returns BERT's token types: 1 after the first [SEP], `[B, L]`."""
  separators = segments == answers.SEPARATOR  # [CLS], [SEP], [SEP]
  separators_before = jnp.cumsum(separators, axis=-1) - separators
  return ((separators_before >= 2) & (segments > 0)).astype(jnp.int32)


class BaselineModel(EncoderModel):
  """The baseline for T5X's scripts: the unweighted mean of seven losses.

  Args:
    module: a `BaselineTracker`.
    input_vocabulary: of the inputs.
    output_vocabulary: `seqio.PassThroughVocabulary`, of targets and answers.
    optimizer_def: the optimizer.
    longest_span: maximum tokens in a span, which is within one utterance.

  Raises:
    SgdxError: the vocabulary does not fit the encoder.
  """

  FEATURE_CONVERTER_CLS = BaselineFeatureConverter

  def __init__(
    self,
    module: BaselineTracker,
    input_vocabulary: seqio.Vocabulary,
    output_vocabulary: seqio.Vocabulary,
    optimizer_def: Any,
    longest_span: int = 14,
  ):
    weights = dict.fromkeys(_LOSSES, 1 / len(_LOSSES))
    super().__init__(module, input_vocabulary, output_vocabulary, optimizer_def, weights)
    self._longest_span = longest_span

  def likelihoods(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns the log likelihoods of gold answers by loss, 0 where none counts."""
    return {
      name: likelihood * counts for name, (likelihood, counts) in _parts(scores, batch).items()
    }

  def losses(self, scores: Mapping[str, Array], batch: Batch) -> dict[str, Array]:
    """Returns each loss as the mean over the items in the batch that it counts."""
    return {
      name: -jnp.sum(likelihood * counts) / jnp.maximum(jnp.sum(counts), 1)
      for name, (likelihood, counts) in _parts(scores, batch).items()
    }

  def accuracies(self, scores: Mapping[str, Array], batch: Batch) -> Metrics:
    """Returns status accuracies: over all tracked slots, and over those that are updated."""
    status, tracked = _right_statuses(batch)[0], _tracked(batch)
    is_right = jnp.argmax(scores["statuses"], axis=-1) == status
    changes = tracked & (status != _NONE)
    return {
      "status_accuracy": share(is_right & tracked, tracked),
      "status_accuracy_of_changes": share(is_right & changes, changes),
    }

  def answers(self, scores: Mapping[str, Array], batch: Batch) -> Array:
    """Returns the answers as int32 vectors, `[B, 2 + 6 S]`."""
    start, end, of_span = heads.best_spans(
      scores["starts"], scores["ends"], batch["encoder_segments"], self._longest_span
    )
    tracked = _tracked(batch)
    status = jnp.where(tracked, jnp.argmax(scores["statuses"], axis=-1), _NONE)
    is_active, is_free = status == _ACTIVE, (batch["slot_context"] & answers.SPAN_OPEN) > 0
    is_span, is_value = is_active & is_free, is_active & ~is_free
    value = jnp.argmax(scores["values"], axis=-1) + 1  # its number in `values`
    kind = jnp.where(status == _DONTCARE, answers.DONTCARE, answers.KEEP)
    kind = jnp.where(is_span, answers.SPAN, jnp.where(is_value, answers.VALUE, kind))
    of_value = jnp.max(scores["values"], axis=-1)
    likelihood = jnp.max(scores["statuses"], axis=-1)
    likelihood += jnp.where(is_span, of_span, jnp.where(is_value, of_value, 0.0))
    keep = jnp.exp(scores["statuses"][..., _NONE])
    columns = [
      kind,
      jnp.where(is_span, start, jnp.where(is_value, value, 0)),
      jnp.where(is_span, end, 0),
      millionths(jnp.where(tracked, jnp.exp(likelihood), 1.0)),
      millionths(jnp.where(tracked, keep, 1.0)),
      millionths(jax.nn.sigmoid(scores["requested"])),
    ]
    slots = jnp.where((batch["slots"] > 0)[..., None], jnp.stack(columns, axis=-1), 0)
    intents = scores["intents"]
    intent = [jnp.argmax(intents, axis=-1), millionths(jnp.exp(jnp.max(intents, axis=-1)))]
    head = jnp.stack(intent, axis=-1)
    return jnp.concatenate([head, slots.reshape(len(slots), -1)], axis=-1).astype(jnp.int32)


def _tracked(batch: Batch) -> Array:
  return (batch["slots"] > 0) & ((batch["slot_context"] & answers.FILLABLE) > 0)


def _right_statuses(batch: Batch) -> tuple[Array, Array, Array]:
  """Returns each slot's gold status, value number or first token, and last token, `[B, S]`."""
  slot, kind, start, end = target_rows(batch)
  mine = slot[..., None] == jnp.arange(1, batch["slots"].shape[1] + 1)  # [B, R, S]
  of_status = ((kind >= answers.DONTCARE) & (kind <= answers.MEMORY))[..., None] & mine

  def of_slot(numbers: Array) -> Array:
    return jnp.max(jnp.where(of_status, numbers[..., None], 0), axis=1)

  kinds = of_slot(kind)
  is_active = (kinds == answers.SPAN) | (kinds == answers.VALUE)
  status = jnp.where(is_active, _ACTIVE, jnp.where(kinds == answers.DONTCARE, _DONTCARE, _NONE))
  return status, of_slot(start), of_slot(end)


def _parts(scores: Mapping[str, Array], batch: Batch) -> dict[str, tuple[Array, Array]]:
  """Returns, by loss, the log likelihoods of gold answers, and which of them count (0 or 1)."""
  slot, kind, number, _ = target_rows(batch)
  is_slot, tracked = batch["slots"] > 0, _tracked(batch)
  is_free = (batch["slot_context"] & answers.SPAN_OPEN) > 0
  mine = slot[..., None] == jnp.arange(1, is_slot.shape[1] + 1)
  is_requested = (mine & (kind == answers.REQUESTED)[..., None]).any(axis=1)
  sign = jnp.where(is_requested, 1.0, -1.0)
  status, start, end = _right_statuses(batch)
  of_status = _at(scores["statuses"], status)
  is_active = tracked & (status == _ACTIVE)
  is_value = is_active & ~is_free & (start > 0)
  is_intent = kind == answers.INTENT
  intent = jnp.max(jnp.where(is_intent, number, 0), axis=-1)
  scored = {
    "intent": (_at(scores["intents"], intent), is_intent.any(axis=-1)),
    "requested": (jax.nn.log_sigmoid(sign * scores["requested"]), is_slot),
    "categorical_status": (of_status, tracked & ~is_free),
    "value": (_at(scores["values"], start - 1), is_value),
    "free_status": (of_status, tracked & is_free),
    "start": (_at(scores["starts"], start), is_active & is_free),
    "end": (_at(scores["ends"], end), is_active & is_free),
  }
  return {
    name: (jnp.where(counts, likelihood, 0.0), counts.astype(jnp.float32))
    for name, (likelihood, counts) in scored.items()
  }


def _at(likelihoods: Array, numbers: Array) -> Array:
  """Returns the entries of `[..., C]` at indices `[...]`, which are clipped to the range."""
  numbers = jnp.clip(numbers, 0, likelihoods.shape[-1] - 1)
  return jnp.take_along_axis(likelihoods, numbers[..., None], axis=-1)[..., 0]
