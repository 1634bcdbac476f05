"""The encoder against values of `transformers`' BertModel from tests/fixtures/hf_bert/make.py.

`hf_bert/two_heads` is a random model of other sizes, recorded by somebody else.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from places import FIXTURES

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import states
from sgdx_t5x.spandst.encoder import Bert, BertConfig
from sgdx_t5x.weights import bert_layout

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")

DATA = FIXTURES / "hf_bert"


@functools.cache
def golden():
  config, params = states.load(DATA / "bert")
  return config, params, dict(np.load(DATA / "outputs.npz"))


def encode(config, params, batch):
  inputs = [batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")]
  return _encode(config, params, *inputs)


@functools.partial(jax.jit, static_argnums=0)
def _encode(config, params, tokens, types, mask):
  def run(module):
    hidden = module(tokens, types, segment_ids=mask)
    return hidden, module.pool(hidden[:, 0])

  return Bert(config).apply({"params": params}, method=run)


@pytest.mark.parametrize("model", ["bert", "two_heads"])
def test_hidden_states_and_pooled_equal_torchs(model):
  if model == "two_heads":
    config, params = states.load(DATA / model)
    batch = dict(np.load(DATA / model / "outputs.npz"))
  else:
    config, params, batch = golden()
  hidden, pooled = encode(config, params, batch)
  real = batch["attention_mask"].astype(bool)
  np.testing.assert_allclose(hidden[real], batch["last_hidden_state"][real], atol=1e-5, rtol=0)
  np.testing.assert_allclose(pooled, batch["pooler_output"], atol=1e-5, rtol=0)


def test_gradients_equal_torchs():
  config, params, batch = golden()

  def loss(params):
    hidden, pooled = encode(config, params, batch)
    hidden = hidden * batch["hidden_weights"] * batch["attention_mask"][..., None]
    return hidden.sum() + (pooled * batch["pooled_weights"]).sum()

  gradients = jax.jit(jax.grad(loss))(params)
  sizes = bert_layout.BertSizes(**sizes_of(config))
  for tensor in bert_layout.tensors(sizes):
    ours = functools.reduce(lambda tree, key: tree[key], tensor.t5x.split("/")[1:], gradients)
    torchs = batch[f"gradient/{tensor.hf}"]
    torchs = torchs.T if tensor.transposed else torchs
    # A key bias shifts all scores of a query equally: its gradient is only rounding error.
    scale = max(np.abs(torchs).max(), 1e-2)
    assert np.abs(ours - torchs).max() < 1e-4 * scale, tensor.t5x


def sizes_of(config):
  names = ("vocab_size", "emb_dim", "num_heads", "num_layers", "mlp_dim")
  return {name: getattr(config, name) for name in (*names, "max_positions", "num_types")}


def test_bfloat16_is_near_float32():
  config, params, batch = golden()
  half = BertConfig(**{**sizes_of(config), "dtype": "bfloat16"})
  hidden, _ = encode(half, params, batch)
  assert hidden.dtype == jnp.bfloat16
  real = batch["attention_mask"].astype(bool)
  error = np.abs(np.asarray(hidden, np.float32)[real] - batch["last_hidden_state"][real])
  assert error.mean() < 2e-2


def test_packed_rows_give_what_their_examples_give_alone():
  config, params, batch = golden()
  tokens, ids = np.zeros((2, 3, 20), np.int32)
  positions = np.tile(np.arange(20), (3, 1))
  tokens[1, :13], tokens[2, :6] = batch["input_ids"][1, :13], batch["input_ids"][2, :6]
  tokens[0, :19] = [*tokens[1, :13], *tokens[2, :6]]
  positions[0, 13:19] = range(6)
  ids[0, :19], ids[1, :13], ids[2, :6] = [1] * 13 + [2] * 6, 1, 1
  run = jax.jit(functools.partial(Bert(config).apply, {"params": params}))
  packed, first, second = run(tokens, positions=positions, segment_ids=ids)
  np.testing.assert_allclose(packed[:13], first[:13], atol=1e-5)
  np.testing.assert_allclose(packed[13:19], second[:6], atol=1e-5)


def test_its_parameters_have_logical_axes_that_t5x_has_rules_for():
  from t5x import partitioning

  known = {axis for axis, _ in partitioning.standard_logical_axis_rules()}
  variables = jax.eval_shape(
    Bert(BertConfig(64, 16, 2, 1, 24, 32)).init, jax.random.key(0), jnp.ones((1, 4), jnp.int32)
  )
  axes = jax.tree.leaves(variables["params_axes"], is_leaf=lambda x: hasattr(x, "names"))
  assert len(axes) == len(jax.tree.leaves(variables["params"]))
  assert {name for each in axes for name in each.names} <= known


def test_frozen_embeddings_have_no_gradient():
  config, params, batch = golden()
  config = BertConfig(**sizes_of(config) | {"num_layers": 0}, freeze_embeddings=True)
  loss = jax.jit(jax.grad(lambda p: (encode(config, p, batch)[0] ** 3).sum()))
  gradients = loss(params)
  assert not np.any(gradients["token_embedder"]["embedding"])
  assert np.any(gradients["embedding_layer_norm"]["scale"])


def test_what_is_longer_than_the_positions_says_by_how_much():
  config, params, _ = golden()
  with pytest.raises(SgdxError, match="40 tokens, 8 more"):
    Bert(config).apply({"params": params}, jnp.ones((1, 40), jnp.int32))


@pytest.mark.parametrize(
  ("change", "named"),
  [
    ({"emb_dim": 0}, "emb_dim"),
    ({"num_heads": 5}, "a multiple of num_heads"),
    ({"dropout_rate": 1.0}, "dropout"),
  ],
)
def test_sizes_that_cannot_be(change, named):
  with pytest.raises(SgdxError, match=named):
    BertConfig(**{"vocab_size": 64, "emb_dim": 16, "num_heads": 2, **change})
