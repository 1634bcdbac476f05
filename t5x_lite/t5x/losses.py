"""Cross entropy with label smoothing and z-loss, and the ways to normalise a loss.

Source: Szegedy et al. 2016 (arXiv:1512.00567) for label smoothing; the z-loss, which keeps the
log partition function near 0, is from Mesh TensorFlow (Shazeer et al. 2018, arXiv:1811.02084).

Shape letters: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from t5x.errors import T5XError, check_number

Array = jax.Array

_FACTOR = "loss_normalizing_factor (LOSS_NORMALIZING_FACTOR)"


@enum.unique
class SpecialLossNormalizingFactor(enum.Enum):
  """Normalising factors that depend on the batch.

  NUM_REAL_TARGET_TOKENS: sum of the loss weights.
  NUM_TOTAL_TARGET_TOKENS: tokens including padding, B * T.
  AVERAGE_PER_SEQUENCE: each sequence counts the same, whatever its length.
  """

  NUM_REAL_TARGET_TOKENS = 1
  NUM_TOTAL_TARGET_TOKENS = 2
  AVERAGE_PER_SEQUENCE = 3


# A custom gradient rule: it keeps only the logits and log(Z), and its one pass over [B, T, V]
# fuses softmax, target and smoothing.
@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def smoothed_cross_entropy(
  logits: Array, targets: Array, label_smoothing: float = 0.0, z_loss: float = 0.0
) -> tuple[Array, Array]:
  """Cross entropy per token against integer targets, without a one-hot `[..., V]` array.

  With smoothing s, the target has probability 1 - s and every other token s / (V - 1); the
  entropy of that distribution is subtracted, so that the best loss is 0.

  Args:
    logits: `[..., V]`.
    targets: int `[...]`.
    label_smoothing: s in [0, 1).
    z_loss: coefficient of log(Z)^2, added to the loss.

  Returns:
    (loss with z-loss, z-loss), each float32 `[...]`.
  """
  return _sparse_forward(logits, targets, label_smoothing, z_loss)[0]


def _smoothing_constants(label_smoothing: float, vocab_size: int) -> tuple[float, float, float]:
  """Returns probability of the target, of each other token, and the entropy in nats."""
  high = 1.0 - label_smoothing
  low = label_smoothing / max(vocab_size - 1, 1)
  entropy = 0.0
  if label_smoothing:
    # The epsilon is T5X's; it matters in the last digits only.
    entropy = -(high * math.log(high) + (vocab_size - 1) * low * math.log(low + 1e-20))
  return high, low, entropy


def _sparse_forward(logits, targets, label_smoothing, z_loss):
  """Returns ((loss with z-loss, z-loss), what the backward pass reads)."""
  high, low, entropy = _smoothing_constants(label_smoothing, logits.shape[-1])
  x = logits.astype(jnp.float32)
  log_z = jax.nn.logsumexp(x, axis=-1)
  # A masked sum rather than a gather: it fuses, and shards over the vocabulary.
  target_logit = jnp.sum(jnp.where(_is_target(targets, x.shape[-1]), x, 0.0), axis=-1)
  loss = log_z - (high - low) * target_logit - entropy
  if label_smoothing:  # a pass over all logits more
    loss = loss - low * jnp.sum(x, axis=-1)
  total_z_loss = z_loss * jnp.square(log_z)
  return (loss + total_z_loss, total_z_loss), (logits, targets, log_z)


def _sparse_backward(label_smoothing, z_loss, residuals, cotangents):
  logits, targets, log_z = residuals
  g_loss, g_z_loss = cotangents
  high, low, _ = _smoothing_constants(label_smoothing, logits.shape[-1])
  softmax = jnp.exp(logits.astype(jnp.float32) - log_z[..., None])
  d_log_z = g_loss + 2.0 * z_loss * log_z * (g_loss + g_z_loss)
  target_probability = jnp.where(_is_target(targets, logits.shape[-1]), high, low)
  grad = d_log_z[..., None] * softmax - g_loss[..., None] * target_probability
  return grad.astype(logits.dtype), None


smoothed_cross_entropy.defvjp(_sparse_forward, _sparse_backward)


def _is_target(targets: Array, vocab_size: int) -> Array:
  return targets[..., None] == jnp.arange(vocab_size, dtype=targets.dtype)


def compute_weighted_cross_entropy(
  logits: Array,
  targets: Array,
  weights: Array | None = None,
  label_smoothing: float = 0.0,
  z_loss: float = 0.0,
  loss_normalizing_factor: Any = None,
) -> tuple[Array, Array, Array]:
  """Sums the weighted cross entropy of a batch.

  Args:
    logits: `[B, T, V]`.
    targets: int `[B, T]`.
    weights: `[B, T]`, or None for 1 everywhere.
    label_smoothing, z_loss: see `smoothed_cross_entropy`.
    loss_normalizing_factor: loss and z-loss are divided by it; None is a plain sum.

  Returns:
    (loss with z-loss, z-loss, sum of weights), scalars.

  Raises:
    T5XError: the shapes of logits and targets do not match.
  """
  if logits.ndim != targets.ndim + 1 or logits.shape[:-1] != targets.shape:
    raise T5XError(
      f"Logits {logits.shape} need integer targets {logits.shape[:-1]}: {targets.shape}."
    )
  loss, total_z_loss = smoothed_cross_entropy(logits, targets, label_smoothing, z_loss)
  if weights is None:
    weight_sum = jnp.asarray(targets.size)  # an array, as in the other case
  else:
    loss, total_z_loss = loss * weights, total_z_loss * weights
    weight_sum = jnp.sum(weights)
  if loss_normalizing_factor is not None:
    loss = loss / loss_normalizing_factor
    total_z_loss = total_z_loss / loss_normalizing_factor
  return jnp.sum(loss), jnp.sum(total_z_loss), weight_sum


def convert_special_loss_normalizing_factor_to_enum(name: str) -> SpecialLossNormalizingFactor:
  """Returns the factor called `name`, ignoring case.

  Raises:
    T5XError: there is none.
  """
  try:
    return SpecialLossNormalizingFactor[name.strip().upper()]
  except KeyError:
    raise T5XError(
      found=f"loss_normalizing_factor = {name!r}",
      expected="None, a number, or the name of a factor",
      available=", ".join(factor.name for factor in SpecialLossNormalizingFactor),
      fix="set LOSS_NORMALIZING_FACTOR",
    ) from None


def checked_normalizing_factor(factor: Any) -> Any:
  """Returns what LOSS_NORMALIZING_FACTOR was set to, names as enum members.

  Raises:
    T5XError: it is neither None, the name of a factor, nor a number above 0.
  """
  if isinstance(factor, str):
    return convert_special_loss_normalizing_factor_to_enum(factor)
  if not isinstance(factor, SpecialLossNormalizingFactor):
    check_number(factor, _FACTOR, 0, optional=True)
    if isinstance(factor, (int, float)) and factor == 0:
      raise T5XError(
        f"{_FACTOR} is 0.",
        found=repr(factor),
        expected="None, a number above 0, or the name of a factor",
        available=", ".join(name.name for name in SpecialLossNormalizingFactor),
        fix="set LOSS_NORMALIZING_FACTOR; None is a plain sum",
      )
  return factor


def get_loss_normalizing_factor_and_weights(
  loss_normalizing_factor: float | int | str | SpecialLossNormalizingFactor | None,
  batch: Mapping[str, Array],
) -> tuple[Any, Array | None]:
  """Returns the divisor of the loss and the weights of its tokens for a batch.

  Args:
    loss_normalizing_factor: None, a number, a SpecialLossNormalizingFactor or its name.
    batch: reads `decoder_target_tokens`, `decoder_loss_weights` (optional) and, for
      AVERAGE_PER_SEQUENCE of packed examples, `decoder_segment_ids`.

  Returns:
    (factor or None, weights `[B, T]`). Without `decoder_loss_weights`, a special factor gives every
    token but padding (0) the weight 1; any other factor returns None as weights.
  """
  weights = batch.get("decoder_loss_weights")
  factor = loss_normalizing_factor
  if isinstance(factor, str):
    factor = convert_special_loss_normalizing_factor_to_enum(factor)
  if not isinstance(factor, SpecialLossNormalizingFactor):
    return factor, weights
  targets = batch["decoder_target_tokens"]
  if weights is None:
    weights = (targets > 0).astype(jnp.float32)
  if factor is SpecialLossNormalizingFactor.NUM_TOTAL_TARGET_TOKENS:
    return targets.size, weights
  if factor is SpecialLossNormalizingFactor.AVERAGE_PER_SEQUENCE:
    weights = _weights_per_sequence(weights, batch.get("decoder_segment_ids"))
  return jnp.sum(weights), weights


def _weights_per_sequence(weights: Array, segments: Array | None) -> Array:
  """Divides weights by their sum over the sequence, `[B, T]` -> float32 `[B, T]`.

  Padding of packed rows, segment 0, is not a sequence: its weights become 0.
  """
  weights = weights.astype(jnp.float32)
  if segments is None:
    sums = jnp.sum(weights, axis=-1, keepdims=True)
  else:
    weights = jnp.where(segments == 0, 0.0, weights)
    same_sequence = segments[:, :, None] == segments[:, None, :]
    sums = jnp.sum(jnp.where(same_sequence, weights[:, None, :], 0.0), axis=-1)
  return weights / jnp.where(sums == 0, 1.0, sums)
