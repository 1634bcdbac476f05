"""Attention that makes few passes over the scores, against plain softmax attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x.examples.t5 import (
  attention,
  blocked_attention,
  cached_attention,
  layers,
  softmax_attention,
)

B, H, Q, K, D = 3, 4, 5, 7, 8


def _normal(seed, *shape):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _plain(query, key, value, bias, mask):
  scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
  scores = scores + (0 if bias is None else bias) + (0 if mask is None else mask)
  return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), value)


def _inputs(with_bias, with_mask):
  query, key, value = (_normal(i, B, H, n, D) for i, n in enumerate((Q, K, K)))
  bias = _normal(3, 1, H, Q, K) if with_bias else None
  mask = None
  if with_mask:
    keep = np.random.default_rng(4).random((B, 1, Q, K)) < 0.7
    keep[0, 0, 0] = False  # a fully masked query attends to all keys equally
    mask = layers.attention_mask_bias(jnp.asarray(keep), jnp.float32)
  return query, key, value, bias, mask


@pytest.fixture(params=["whole", "rows", "rows of head pairs"])
def attend(request, monkeypatch):
  """Attention over the whole batch, and in blocks of one row with all heads or with two."""
  if request.param == "whole":
    return softmax_attention.attend
  if request.param == "rows of head pairs":
    monkeypatch.setattr(blocked_attention, "_GROUP", 2)
  return blocked_attention.attend


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_mask", [False, True])
def test_output_and_gradients_are_those_of_softmax(attend, with_bias, with_mask):
  inputs, mask = _inputs(with_bias, with_mask)[:4], _inputs(with_bias, with_mask)[4]
  given = [x for x in inputs if x is not None]
  weight = _normal(5, B, H, Q, D)

  def loss(function):
    def of(*args):
      args = (*args, None) if not with_bias else args
      return jnp.sum(weight * function(*args, mask))

    return jax.jit(jax.value_and_grad(of, argnums=tuple(range(len(given)))))(*given)

  (got, got_grads), (want, want_grads) = loss(attend), loss(_plain)
  np.testing.assert_allclose(got, want, rtol=1e-5)
  for name, a, b in zip(("query", "key", "value", "bias"), got_grads, want_grads, strict=False):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5, err_msg=name)


def test_a_mask_for_all_queries_or_rows(attend):
  query, key, value, bias, mask = _inputs(True, True)
  for some in (mask[:, :, :1], mask[:1], mask[:1, :, :1]):
    got, want = attend(query, key, value, bias, some), _plain(query, key, value, bias, some)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_blocks_are_for_one_cpu_and_scores_past_its_cache(monkeypatch):
  query, short = (jnp.zeros((32, 8, n, 1)) for n in (256, 64))
  assert blocked_attention.applies(query, query, None, None)
  assert not blocked_attention.applies(short, short, None, None)
  monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
  assert not blocked_attention.applies(query, query, None, None)


def test_bfloat16_is_as_near_to_the_truth_as_a_plain_softmax(attend):
  """Against float64; the plain softmax in bfloat16 is what T5X computes."""
  query, key, value, bias, mask = _inputs(True, True)
  truth = _plain(*(np.asarray(x, np.float64) for x in (query, key, value, bias, mask)))
  short = [x.astype(jnp.bfloat16) for x in (query, key, value, bias, mask)]
  ours, plain = attend(*short), _plain(*short)
  assert ours.dtype == jnp.bfloat16
  error, of_plain = (np.abs(np.asarray(x, np.float64) - truth).max() for x in (ours, plain))
  assert error <= 1.1 * of_plain


def test_dropping_values_is_dropping_weights():
  """T5's dropout of attention weights, the same for all queries of a row (T5X: broadcast)."""
  query, key, value, bias, mask = _inputs(True, True)
  rng, rate = jax.random.PRNGKey(1), 0.4
  joined = [x.swapaxes(1, 2) for x in (query, key, value)]
  got = attention.dot_product_attention(
    *joined, bias, dropout_rng=rng, dropout_rate=rate, mask_bias=mask
  )
  keep = jax.random.bernoulli(rng, 1 - rate, (B, H, 1, K))
  weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", query, key) + bias + mask, axis=-1)
  want = jnp.einsum("bhqk,bhkd->bqhd", weights * keep / (1 - rate), value)
  np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)
  assert not keep.all()


@pytest.mark.parametrize("model_partitions", [1, 2, 3])
def test_caches_of_a_tpu_give_what_those_of_a_cpu_give(monkeypatch, model_partitions):
  """4 heads do not divide over 3 partitions, so they form one group."""
  query, key, value, bias, mask = _inputs(True, False)
  mask = layers.attention_mask_bias(jnp.arange(K)[None, None, None] < 5, jnp.float32)
  query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
  results = []
  for side_by_side in (False, True):
    monkeypatch.setattr(cached_attention, "heads_side_by_side", lambda x=side_by_side: x)
    monkeypatch.setattr(
      cached_attention.active_mesh, "num_model_partitions", lambda: model_partitions
    )
    caches = [cached_attention.to_cache(x) for x in (key, value)]
    assert caches[0].shape[cached_attention.length_axis()] == K
    results.append(cached_attention.attend(query, *caches, bias[:, :, :1], mask))
  np.testing.assert_allclose(*results, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_keeps_its_share_and_the_mean(rate):
  x = jnp.ones((64, 10, 32))
  module = layers.Dropout(rate, broadcast_dims=(-2,))
  y = module.apply({}, x, False, rngs={"dropout": jax.random.PRNGKey(0)})
  assert set(np.unique(y)) == {0.0, np.float32(1 / (1 - rate))}
  assert np.ptp(y, axis=1).max() == 0  # all positions of a row alike
  # 2,048 draws: four standard deviations.
  assert abs(np.mean(y == 0) - rate) < 4 * np.sqrt(rate * (1 - rate) / 2048)
  assert module.apply({}, x, True) is x
