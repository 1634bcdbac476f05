"""Losses and metrics against Google's T5X (golden set A), and the hand-written gradient."""

import itertools

import clu.metrics
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x import losses, metrics
from t5x.errors import T5XError

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")

FACTORS = {
  "none": None,
  "num_real": "NUM_REAL_TARGET_TOKENS",
  "num_total": "NUM_TOTAL_TARGET_TOKENS",
  "avg_per_seq": "AVERAGE_PER_SEQUENCE",
  "number": 37.5,
}


def _observed(loss, metrics):
  """Returns the values of `loss_fn` under the golden set's names."""
  values = {
    "loss": loss,
    "weight_sum": metrics["loss_per_nonpadding_target_token"].count,
    "accuracy_total": metrics["accuracy"].total,
    "accuracy_count": metrics["accuracy"].count,
    "z_loss": metrics["z_loss"].total,
    "cross_ent_loss": metrics["cross_ent_loss"].total,
  }
  computed = ("accuracy", "loss_per_nonpadding_target_token", "loss_per_all_target_tokens")
  values |= {name: metrics[name].compute() for name in computed}
  for name, metric in metrics.items():
    if name.startswith(("non_padding_fraction/", "effective_batch_size/")):
      assert isinstance(metric, clu.metrics.Metric)
      values[name.replace("/", "_")] = metric.compute()
  return values


@pytest.mark.parametrize("batch_name", ["unpacked", "packed", "weighted"])
def test_all_losses(golden, batch_name):
  logits = jnp.asarray(golden.expected[f"logits/{batch_name.replace('weighted', 'unpacked')}"])
  batch = {k: jnp.asarray(v) for k, v in golden.batches[batch_name].items()}
  settings = list(itertools.product(FACTORS, (0.0, 0.1)))

  @jax.jit
  def run(logits, batch):
    models = [
      golden.model(label_smoothing=smoothing, loss_normalizing_factor=FACTORS[factor])
      for factor, smoothing in settings
    ]
    return [_observed(*model.loss_from_logits(logits, batch)) for model in models]

  for (factor, smoothing), values in zip(settings, run(logits, batch), strict=True):
    prefix = f"loss/{batch_name}/{factor}/ls{smoothing}/"
    expected = {k[len(prefix) :]: v for k, v in golden.expected.items() if k.startswith(prefix)}
    assert expected
    for name, number in expected.items():
      # The floor was measured on the loss; the other numbers are no larger.
      np.testing.assert_allclose(
        values[name], number, rtol=1e-6, atol=golden.atol("loss") / 10, err_msg=prefix + name
      )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_equals_automatic_one(smoothing):
  rng = np.random.default_rng(0)
  logits = jnp.asarray(rng.normal(size=(2, 3, 7)), jnp.float32)
  targets = jnp.asarray(rng.integers(0, 7, size=(2, 3)))
  weights = jnp.asarray(rng.random((2, 3)), jnp.float32)

  def by_rule(logits):
    return losses.compute_weighted_cross_entropy(logits, targets, weights, smoothing, 1e-2)[0]

  def automatic(logits):
    distribution = jax.nn.one_hot(targets, 7) * (1 - smoothing - smoothing / 6) + smoothing / 6
    log_z = jax.nn.logsumexp(logits, axis=-1)
    loss = log_z - jnp.sum(distribution * logits, axis=-1) + 1e-2 * jnp.square(log_z)
    return jnp.sum(loss * weights)

  both = jax.jit(lambda x: (jax.grad(by_rule)(x), jax.grad(automatic)(x)))
  np.testing.assert_allclose(*both(logits), rtol=1e-5, atol=1e-6)


def test_best_smoothed_loss_is_zero():
  distribution = jnp.asarray([0.9, 0.05, 0.05])
  smoothed = jax.jit(lambda logits: losses.smoothed_cross_entropy(logits, jnp.asarray(0), 0.1))
  loss, _ = smoothed(jnp.log(distribution))
  np.testing.assert_allclose(loss, 0.0, atol=1e-6)


def test_unknown_factor_is_named():
  with pytest.raises(T5XError, match="AVERAGE_PER_SEQUENCE"):
    losses.get_loss_normalizing_factor_and_weights("NUM_TOKENS", {})


@pytest.mark.parametrize(
  ("factor", "divisor"), [("NUM_TOTAL_TARGET_TOKENS", 8), ("NUM_REAL_TARGET_TOKENS", 5)]
)
def test_padding_has_no_weight_unless_weights_are_given(factor, divisor):
  batch = {"decoder_target_tokens": jnp.asarray([[7, 8, 1, 0], [9, 1, 0, 0]])}
  found, weights = losses.get_loss_normalizing_factor_and_weights(factor, batch)
  assert found == divisor
  np.testing.assert_array_equal(weights, [[1, 1, 1, 0], [1, 1, 0, 0]])


def test_padding_of_a_packed_row_is_no_sequence():
  """By hand: two sequences and padding, which has weights by mistake."""
  batch = {
    "decoder_target_tokens": jnp.asarray([[7, 1, 8, 1, 0, 0]]),
    "decoder_loss_weights": jnp.asarray([[3.0, 1.0, 0.0, 2.0, 5.0, 5.0]]),
    "decoder_segment_ids": jnp.asarray([[1, 1, 2, 2, 0, 0]]),
    "decoder_positions": jnp.asarray([[0, 1, 0, 1, 0, 0]]),
  }
  found, weights = losses.get_loss_normalizing_factor_and_weights("AVERAGE_PER_SEQUENCE", batch)
  assert found == 2
  np.testing.assert_allclose(weights, [[0.75, 0.25, 0, 1, 0, 0]])


def test_accuracy_is_that_of_argmax_with_ties():
  rng = np.random.default_rng(0)
  logits = rng.integers(0, 4, (8, 9, 6)).astype(np.float32)  # most rows have ties for the largest
  targets, mask = rng.integers(0, 6, (8, 9), np.int32), rng.integers(0, 2, (8, 9))
  metric = metrics.compute_base_metrics(logits, targets, mask, np.float32(1))["accuracy"]
  want = (logits.argmax(-1) == targets)[mask > 0].mean()
  assert 0.1 < want < 0.9
  np.testing.assert_allclose(metric.compute(), want, rtol=1e-6)


def test_steps_are_set_where_they_count():
  """By hand: 12 in 4 steps is 3 per step; 4 steps in 2 seconds are 2 per second."""
  by_name = {
    "loss": metrics.AveragePerStep.from_model_output([5.0, 7.0]).replace_steps(4),
    "speed": metrics.StepsPerTime.from_model_output(steps=9).replace_steps(4),
    "sum": metrics.Sum.from_model_output(3.0),
  }
  by_name = metrics.set_time_metrics_duration(by_name, 2.0)
  assert {k: float(m.compute()) for k, m in by_name.items()} == {"loss": 3, "speed": 2, "sum": 3}
  assert float(metrics.untimed(by_name)["speed"].compute()) == 0
  assert by_name["speed"].merge(by_name["speed"]).steps == 8
