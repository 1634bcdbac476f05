"""Layers with T5X's signatures, as custom networks call them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util
from flax.linen.partitioning import AxisMetadata

from t5x.errors import T5XError
from t5x.examples.t5 import layers, network, softmax_attention

B, H, L, D, E = 2, 3, 4, 5, 6


def _normal(seed, *shape):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


# ------------------------------------------------------------------------------------ masks


def test_masks_are_combined():
  a, b = jnp.asarray([[1.0, 0.0, 2.0]]), jnp.asarray([[1.0, 1.0, 0.0]])
  np.testing.assert_array_equal(layers.combine_masks(a, None, b), [[1, 0, 0]])
  assert layers.combine_masks(None) is None
  with pytest.raises(T5XError, match="differ in rank"):
    layers.combine_masks(a, b[0])


# ------------------------------------------------------------------------------- linear maps


@pytest.mark.parametrize(
  ("features", "axis", "formula"),
  [
    (7, -1, "abc,cx->abx"),
    ((2, 3), -1, "abc,cxy->abxy"),
    (7, (-2, -1), "abc,bcx->ax"),
    ((2, 3), (0, 2), "abc,acxy->bxy"),
  ],
)
def test_linear_maps_of_any_axes(features, axis, formula):
  x = _normal(0, 4, 5, 6)
  module = layers.DenseGeneral(features, axis, kernel_axes=("embed", "mlp"))
  variables = module.init(jax.random.PRNGKey(0), x)
  kernel = variables["params"]["kernel"]
  assert kernel.ndim == 2
  assert variables["params_axes"]["kernel_axes"] == AxisMetadata(("embed", "mlp"))
  axes = (axis,) if isinstance(axis, int) else axis
  sizes = [x.shape[i] for i in axes] + list(np.atleast_1d(features))
  want = jnp.einsum(formula, x, kernel.reshape(sizes))
  np.testing.assert_allclose(module.apply(variables, x), want, rtol=0, atol=1e-5)


def test_feed_forward_takes_functions_and_its_own_initialiser():
  init = jax.nn.initializers.ones
  module = layers.MlpBlock(3, (jnp.abs, "linear"), kernel_init=init, intermediate_dropout_rate=0.0)
  x = jnp.asarray([[[1.0, -3.0]]])
  variables = module.init(jax.random.PRNGKey(0), x)
  # Both branches give x0 + x1 = -2, three times; their product is |-2| * -2.
  np.testing.assert_allclose(module.apply(variables, x), np.full((1, 1, 2), -12.0))


def test_embedding_casts_tokens_and_queries():
  module = layers.Embed(
    5, E, cast_input_dtype=jnp.int32, attend_dtype=jnp.float32, dtype=jnp.bfloat16, one_hot=True
  )
  variables = module.init(jax.random.PRNGKey(0), jnp.ones((1, 2)))
  table = variables["params"]["embedding"]
  rows = module.apply(variables, jnp.asarray([[3.0]]))
  assert rows.dtype == jnp.bfloat16
  np.testing.assert_array_equal(rows, table.astype(jnp.bfloat16)[3][None, None])
  query = _normal(0, E)
  logits = module.apply(variables, query, method="attend")
  np.testing.assert_allclose(logits, table @ query, rtol=1e-5)


@pytest.mark.parametrize("via_embedding", [False, True])
def test_logits_are_products_in_float32(via_embedding):
  """As in T5X, whatever the type of activations: rounding the kernel changes the logits."""
  config = network.T5Config(
    16, jnp.bfloat16, E, H, 1, 1, D, 8, dropout_rate=0.0, logits_via_embedding=via_embedding
  )
  module, tokens = network.Transformer(config), jnp.asarray([[3, 4, 1]])
  init = functools.partial(module.init, enable_dropout=False)
  shapes = jax.eval_shape(init, jax.random.PRNGKey(0), *[tokens] * 3)["params"]
  name = ("token_embedder", "embedding") if via_embedding else ("decoder", "logits_dense", "kernel")
  params = traverse_util.flatten_dict(jax.tree.map(lambda x: _normal(0, *x.shape), shapes))

  @jax.jit
  def logits(kernel):
    changed = traverse_util.unflatten_dict({**params, name: kernel})
    return module.apply({"params": changed}, *[tokens] * 3, enable_dropout=False)

  rounded = params[name].astype(jnp.bfloat16).astype(jnp.float32)
  assert jnp.any(logits(params[name]) != logits(rounded))


# --------------------------------------------------------------------------------- attention


def _attention(**settings):
  module = layers.MultiHeadDotProductAttention(H, D, **settings)
  init = jax.jit(module.init)
  return module, init(jax.random.PRNGKey(0), _normal(1, B, L, E), _normal(2, B, L + 1, E))


def _plain(params, inputs_q, inputs_kv, logit_terms):
  query, key, value = (
    (x @ params[name]["kernel"]).reshape(*x.shape[:2], H, D)
    for name, x in (("query", inputs_q), ("key", inputs_kv), ("value", inputs_kv))
  )
  weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) + logit_terms, axis=-1)
  x = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
  return x.reshape(*x.shape[:2], -1) @ params["out"]["kernel"]


@pytest.mark.parametrize("dtype", [bool, jnp.float32])
def test_masks_hide_keys_and_biases_are_added(dtype):
  module, variables = _attention()
  inputs = _normal(1, B, L, E), _normal(2, B, L + 1, E)
  mask = jnp.asarray(np.random.default_rng(3).random((B, H, L, L + 1)) < 0.6)
  bias = _normal(4, B, H, L, L + 1)
  apply = jax.jit(functools.partial(module.apply, deterministic=True))
  got = apply(variables, *inputs, mask.astype(dtype), bias)
  want = _plain(variables["params"], *inputs, bias + jnp.where(mask, 0, -1e10))
  np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_attention_starts_from_a_normal_distribution():
  """Of variance 1 / fan_in, as in T5X, whose other kernels start from a truncated one."""
  x = jnp.ones((1, 1, 64))
  init = jax.jit(layers.MultiHeadDotProductAttention(8, 8).init)
  params = init(jax.random.PRNGKey(0), x, x)["params"]
  for name, scale in (("query", 8**-0.5), ("key", 1.0), ("value", 1.0), ("out", 1.0)):
    kernel = params[name]["kernel"] * 8 / scale
    assert abs(float(jnp.std(kernel)) - 1) < 0.05
    assert float(jnp.max(jnp.abs(kernel))) > 2.5  # truncated, all are below 2.28


@pytest.mark.parametrize("whole_bias", [True, False])
def test_steps_of_a_decode_are_rows_of_the_whole(whole_bias):
  """With the bias of all steps, from which the module takes a row, or only the step's."""
  module, variables = _attention()
  x, bias = _normal(1, B, L, E), _normal(4, 1, H, L, L)
  hidden = jnp.ones((B, 1, 1, L)).at[0, ..., 1].set(0)  # a key that no query may see
  mask = layers.combine_masks(jnp.tril(jnp.ones((1, 1, L, L))), hidden)
  want = jax.jit(module.apply)(variables, x, x, mask, bias)
  decode = jax.jit(functools.partial(module.apply, decode=True, mutable=["cache"]))
  params = {"params": variables["params"]}
  _, cache = decode(params, x, x)
  for i in range(L):
    row = bias if whole_bias else bias[:, :, i : i + 1]
    step = x[:, i : i + 1]
    y, cache = decode(params | cache, step, step, hidden, row)
    if i != 1:  # where the hidden key is the row's own
      np.testing.assert_allclose(y[:, 0], want[:, i], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(B, H, L, L), (1, 1, L, L), (B, 1, 1, L), (1, H, L, 1)])
def test_gradients_of_biases_of_any_shape(shape):
  query, key, value = (_normal(i, B, H, L, D) for i in range(3))
  weight = _normal(3, B, H, L, D)

  def loss(bias):
    return jnp.sum(weight * softmax_attention.attend(query, key, value, bias))

  def plain(bias):
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) + bias
    return jnp.sum(weight * (jax.nn.softmax(scores) @ value))

  got, want = jax.grad(loss)(_normal(4, *shape)), jax.grad(plain)(_normal(4, *shape))
  assert got.shape == shape
  np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)
