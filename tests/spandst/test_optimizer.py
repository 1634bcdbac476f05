"""BertAdam against its formulas, computed here for three steps with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import optimizer

PARAMS = {
  "dense": {"kernel": np.array([[1.0, -2.0], [0.5, 4.0]]), "bias": np.array([0.1, 0.2])},
  "norm": {"scale": np.array([1.0, 1.5])},
}
GRADIENTS = (0.01, -0.02, 3.0)  # each times (parameter + 1)


def gradients_of(params, factor):
  return jax.tree.map(lambda p: jnp.asarray(factor * (np.asarray(p) + 1), jnp.float32), params)


def run(transformation):
  params = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), PARAMS)
  state = transformation.init(params)
  for factor in GRADIENTS:
    updates, state = transformation.update(gradients_of(params, factor), state, params)
    params = optax.apply_updates(params, updates)
  return params, state


def by_hand(rates):
  """The three steps: clipping, moments without bias correction, weight decay of the kernel only."""
  params = {k: {n: a.copy() for n, a in v.items()} for k, v in PARAMS.items()}
  moments = {k: {n: [0.0 * a, 0.0 * a] for n, a in v.items()} for k, v in PARAMS.items()}
  for rate, factor in zip(rates, GRADIENTS, strict=True):
    grads = {k: {n: factor * (a + 1) for n, a in v.items()} for k, v in params.items()}
    whole = np.sqrt(sum((a**2).sum() for v in grads.values() for a in v.values()))
    for k, v in grads.items():
      for n, g in v.items():
        g = g * min(1.0, 1.0 / whole)
        m, s = moments[k][n]
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g**2
        moments[k][n] = [m, s]
        update = m / (np.sqrt(s) + 1e-6) + (0.01 * params[k][n] if n == "kernel" else 0.0)
        params[k][n] = params[k][n] - rate * update
  return params


def test_three_steps_are_the_formulas():
  # 10 steps, 20% of them warm-up: 0, half of the peak, the peak.
  schedule = optimizer.warmup_schedule(0.1, 10, 0.2)
  params, state = run(optimizer.bert_adam(schedule))
  expected = by_hand([0.0, 0.05, 0.1])
  for path, array in jax.tree_util.tree_leaves_with_path(expected):
    found = params[path[0].key][path[1].key]
    np.testing.assert_allclose(found, array, rtol=2e-5, err_msg=str(path))
  states = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, optax.ScaleByAdamState))
  assert any(isinstance(x, optax.ScaleByAdamState) for x in states)


def test_unbiased_is_the_adam_of_optax():  # 1 - 0.999 has four correct digits in float32
  adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1, eps=1e-6))
  found, expected = (
    run(t)[0] for t in (optimizer.bert_adam(0.1, weight_decay=0.0, unbiased=True), adam)
  )
  for path, array in jax.tree_util.tree_leaves_with_path(expected):
    np.testing.assert_allclose(found[path[0].key][path[1].key], array, rtol=1e-4, err_msg=str(path))


def test_rates_of_parameters_by_their_paths():
  params = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), PARAMS)

  def first_step(**settings):
    adam = optimizer.bert_adam(0.1, frozen=["norm/"], **settings)
    return adam.update(gradients_of(params, 0.01), adam.init(params), params)[0]

  plain, scaled = first_step(), first_step(times={"(?!.*bias)": 3.0})
  np.testing.assert_allclose(scaled["dense"]["kernel"], 3 * plain["dense"]["kernel"], rtol=1e-6)
  np.testing.assert_array_equal(scaled["dense"]["bias"], plain["dense"]["bias"])
  assert not scaled["norm"]["scale"].any()


def test_what_is_frozen_stays_and_has_no_moments():
  transformation = optimizer.bert_adam(0.1, frozen=["dense/"])
  params, state = run(transformation)
  np.testing.assert_array_equal(params["dense"]["kernel"], PARAMS["dense"]["kernel"])
  assert not np.allclose(params["norm"]["scale"], PARAMS["norm"]["scale"])
  sizes = [np.shape(x) for x in jax.tree.leaves(state)]
  assert (2, 2) not in sizes


def test_schedules():
  x = np.arange(11)
  linear = optimizer.warmup_schedule(2.0, 10, 0.2)(x)
  np.testing.assert_allclose(linear, [0, 1, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25, 0], atol=1e-6)
  with_jump = optimizer.warmup_schedule(2.0, 10, 0.2, from_peak=False)(x)
  factor = np.array([0, 0.5, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0])
  np.testing.assert_allclose(with_jump, 2 * factor, atol=1e-6)
  assert optimizer.warmup_schedule(2.0, 10, 0.0)(0) == 2.0
  assert optimizer.warmup_schedule(2.0, 10)(12) == 0


@pytest.mark.parametrize("changes", [{"total_steps": 0}, {"warmup": 1.0}])
def test_schedules_that_cannot_be(changes):
  with pytest.raises(SgdxError, match="warmup"):
    optimizer.warmup_schedule(**{"learning_rate": 1.0, "total_steps": 10, **changes})


def test_a_learning_rate_is_needed_to_train_alone():
  params = {"kernel": jnp.ones(2)}
  transformation = optimizer.bert_adam()  # as in the gin files for inference
  state = transformation.init(params)
  with pytest.raises(SgdxError, match="without a learning rate"):
    transformation.update(params, state, params)
