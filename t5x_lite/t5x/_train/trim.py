"""Training batches without the columns that are padding in every row, on a CPU.

T5X computes every column of `TASK_FEATURE_LENGTHS`: one program, as suits TPUs. On a CPU, padding
costs as much as tokens, and most of the paper's 256 target positions are padding: a value has
three tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import numpy as np
import seqio

from t5x._data.devices import Batch
from t5x.losses import SpecialLossNormalizingFactor
from t5x.models import BaseTransformerModel

# Inputs keep a multiple of 64 columns, targets 32 times a power of two: each is a program.
_INPUTS, _TARGETS = 64, 32
_TOKENS = {
  "encoder_input_tokens": "encoder",
  "decoder_input_tokens": "decoder",
  "decoder_target_tokens": "decoder",
  "decoder_loss_weights": "decoder",
}


def trimmed(ds, model) -> Iterable[Batch]:
  """Returns a dataset's batches, trimmed if the model's loss and this run allow it.

  In a run of several processes nothing is trimmed, since others could have longer rows.

  Args:
      ds: batched dataset of this host, or an iterable of batches.
      model: a `models.BaseModel`; a custom loss may depend on padding, so nothing is trimmed.
  """
  allowed = (
    jax.default_backend() == "cpu"
    and jax.process_count() == 1
    and model.FEATURE_CONVERTER_CLS is seqio.EncDecFeatureConverter
    and getattr(type(model), "loss_fn", None) is BaseTransformerModel.loss_fn
    and model._loss_normalizing_factor is not SpecialLossNormalizingFactor.NUM_TOTAL_TARGET_TOKENS
  )

  if not allowed:
    return ds
  return map(trim, ds.as_numpy_iterator() if hasattr(ds, "as_numpy_iterator") else ds)


def trim(batch: Batch) -> Batch:
  """Drops the trailing columns of a batch that are padding in every row.

  The loss and its gradients are those of the whole batch up to rounding; dropout masks differ
  with the length. Packed rows (with segment ids) stay as they are.

  Args:
      batch: {feature: [B, length]} of `seqio.EncDecFeatureConverter`.

  Returns:
      The batch with inputs of a multiple of 64 columns and targets of 32, 64, 128, ..., at most
      as many as before.
  """
  if set(batch) != set(_TOKENS):
    return batch
  inputs = _columns(batch["encoder_input_tokens"])
  targets = _columns(batch["decoder_target_tokens"], batch["decoder_loss_weights"])
  columns = {
    "encoder": max(-(-inputs // _INPUTS), 1) * _INPUTS,
    "decoder": _TARGETS << max(-(-targets // _TARGETS) - 1, 0).bit_length(),
  }
  return {name: rows[:, : columns[_TOKENS[name]]] for name, rows in batch.items()}


def _columns(*features: np.ndarray) -> int:
  """Number of columns up to the last in which a row of any feature is not 0."""
  used = np.flatnonzero(np.any([np.any(rows != 0, axis=0) for rows in features], axis=0))
  return int(used[-1]) + 1 if len(used) else 0
