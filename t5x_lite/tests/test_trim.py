"""Training on a CPU drops columns of padding: same loss and gradients, fewer tokens."""

import jax
import numpy as np
import pytest
import seqio
from tiny_model import tiny_model

from t5x import decoding, losses, models
from t5x._train import trim as trim_lib
from t5x._train.trim import trim, trimmed


def _batch(inputs, targets, rows=4, lengths=(256, 128)):
  """Random tokens; the first row has `inputs` and `targets` of them, the others fewer."""
  rng = np.random.default_rng(0)
  encoder, decoder = (np.zeros((rows, n), np.int32) for n in lengths)
  for row in range(rows):
    n, m = max(inputs - 3 * row, 0), max(targets - row, 0)
    encoder[row, :n], decoder[row, :m] = rng.integers(3, 300, n), rng.integers(3, 300, m)
  return {
    "encoder_input_tokens": encoder,
    "decoder_target_tokens": decoder,
    "decoder_input_tokens": np.pad(decoder, ((0, 0), (1, 0)))[:, :-1],
    "decoder_loss_weights": (decoder > 0).astype(np.int32),
  }


@pytest.mark.parametrize(
  ("inputs", "targets", "shape"),
  [
    (1, 1, (64, 32)),
    (64, 32, (64, 32)),
    (65, 33, (128, 64)),
    (130, 65, (192, 128)),
    (256, 128, (256, 128)),
    (0, 0, (64, 32)),
  ],
)
def test_columns_that_stay(inputs, targets, shape):
  found = trim(_batch(inputs, targets))
  assert found["encoder_input_tokens"].shape == (4, shape[0])
  assert {found[name].shape for name in found if name.startswith("decoder")} == {(4, shape[1])}


def test_never_longer_than_it_was():
  found = trim(_batch(20, 9, lengths=(40, 10)))
  assert found["encoder_input_tokens"].shape == (4, 40)
  assert found["decoder_loss_weights"].shape == (4, 10)


def test_a_weight_on_padding_keeps_its_column():
  batch = _batch(70, 20)
  batch["decoder_loss_weights"][2, 100] = 1
  assert trim(batch)["decoder_target_tokens"].shape == (4, 128)


def test_packed_rows_stay_whole():
  batch = _batch(70, 20)
  batch["encoder_segment_ids"] = (batch["encoder_input_tokens"] > 0).astype(np.int32)
  assert trim(batch) is batch


@pytest.mark.long
def test_loss_and_gradients_are_those_of_the_whole_batch():
  model = tiny_model(decoding.temperature_sample)
  model._loss_normalizing_factor = losses.checked_normalizing_factor("AVERAGE_PER_SEQUENCE")
  batch = _batch(40, 20, lengths=(128, 64))
  (short,) = trimmed([batch], model)
  assert short["encoder_input_tokens"].shape == (4, 64)
  shapes = {name: rows.shape for name, rows in batch.items()}
  params = model.get_initial_variables(jax.random.PRNGKey(0), shapes)["params"]
  grad = jax.jit(jax.value_and_grad(lambda p, b: model.loss_fn(p, b, None)[0]))
  (loss, grads), (short_loss, short_grads) = grad(params, batch), grad(params, short)
  assert loss > 1
  np.testing.assert_allclose(short_loss, loss, rtol=1e-5)
  for a, b in zip(jax.tree.leaves(short_grads), jax.tree.leaves(grads), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


class _OwnLoss(models.EncoderDecoderModel):
  def loss_fn(self, params, batch, dropout_rng):
    return super().loss_fn(params, batch, dropout_rng)


class _OwnFeatures(models.EncoderDecoderModel):
  FEATURE_CONVERTER_CLS = seqio.PrefixLMFeatureConverter


def test_who_may_care_for_padding_gets_whole_batches(monkeypatch):
  model, batches = tiny_model(decoding.temperature_sample), [_batch(70, 20)]

  def whole():
    return next(iter(trimmed(batches, model))) is batches[0]

  assert not whole()
  model._loss_normalizing_factor = losses.checked_normalizing_factor("NUM_TOTAL_TARGET_TOKENS")
  assert whole()
  model._loss_normalizing_factor = None
  for kind in (_OwnLoss, _OwnFeatures):
    model.__class__ = kind
    assert whole()
  model.__class__ = models.EncoderDecoderModel
  monkeypatch.setattr(trim_lib.jax, "process_count", lambda: 2)
  assert whole()
