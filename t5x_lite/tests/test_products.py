"""Products of bfloat16 operands on a CPU: what is rounded, what is not, and how they are chosen."""

import functools

import gin
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x._infer.journal import config_hash
from t5x._process import matmul
from t5x.errors import T5XError
from t5x.examples.t5 import network, products

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")

SIZES = {"m": 192, "n": 136, "k": 160, "b": 3}
FORMS = ["mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn", "mk,kn->nm", "bmk,bnk->bmn"]


def _operands(form):
  inputs, out = form.split("->")
  rng = np.random.default_rng(0)
  letters = (*inputs.split(","), out)
  return [rng.normal(size=[SIZES[x] for x in part]).astype(np.float32) for part in letters]


def _rounded(x):
  return np.asarray(jnp.asarray(x).astype(jnp.bfloat16)).astype(np.float64)


@pytest.mark.parametrize("form", FORMS)
def test_only_the_operands_are_rounded(form):
  """Against NumPy in float64 on rounded operands: the result, and both gradients."""
  a, b, weight = _operands(form)

  def loss(a, b):
    out = products.einsum(form, a, b)
    return jnp.sum(out * weight), out

  with matmul.used("bfloat16"):
    (_, out), gradients = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(a, b)
  inputs, result = form.split("->")
  of_a, of_b = inputs.split(",")
  a, b, weight = map(_rounded, (a, b, weight))
  wanted = [
    np.einsum(form, a, b),
    np.einsum(f"{result},{of_b}->{of_a}", weight, b),
    np.einsum(f"{of_a},{result}->{of_b}", a, weight),
  ]
  for found, right in zip((out, *gradients), wanted, strict=True):
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_elsewhere_programs_do_not_change(dtype, monkeypatch):
  """On a TPU or GPU, and for networks of other dtypes, these are the products of jax.numpy."""
  x, kernel = jnp.ones((4, 192, 192), dtype), jnp.ones((192, 192), dtype)

  def ours(x, kernel):
    return products.dot(x, kernel), products.einsum("bmk,bnk->bmn", x, x, jnp.float32)

  def plain(x, kernel):
    einsum = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)
    return jnp.dot(x, kernel), einsum("bmk,bnk->bmn", x, x)

  wanted = str(jax.make_jaxpr(plain)(x, kernel))
  assert str(jax.make_jaxpr(ours)(x, kernel)) == wanted
  if dtype == "float32":
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
  with matmul.used("bfloat16"):
    assert str(jax.make_jaxpr(ours)(x, kernel)) == wanted


@pytest.mark.parametrize(
  "shape", [(63, 256, 256), (256, 63, 256), (256, 256, 63), (256, 128, 128), (128, 128, 256)]
)
def test_narrow_products_are_not_cast(shape):
  m, k, n = shape
  with matmul.used("bfloat16"):
    text = str(jax.make_jaxpr(products.dot)(jnp.ones((m, k)), jnp.ones((k, n))))
    wide = str(jax.make_jaxpr(products.dot)(jnp.ones((64, 129)), jnp.ones((129, 256))))
  assert "bf16" not in text
  assert "bf16" in wide


@pytest.mark.long
@pytest.mark.parametrize(("tied", "length"), [(False, 64), (True, 320)])  # 320: in blocks
def test_network(tied, length):
  """Loss and gradients stay near float32's, and the gradients are float32."""
  config = network.T5Config(
    vocab_size=256, emb_dim=192, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
    head_dim=64, mlp_dim=256, dropout_rate=0.0, logits_via_embedding=tied,
  )  # fmt: skip
  module = network.Transformer(config)
  keys = jax.random.split(jax.random.key(0), 3)
  inputs = jax.random.randint(keys[0], (4, length), 1, 256)
  targets = jax.random.randint(keys[1], (4, 32), 1, 256)
  init = jax.jit(functools.partial(module.init, enable_dropout=False))
  params = init(keys[2], inputs, targets, targets)["params"]

  def loss(params):
    logits = module.apply({"params": params}, inputs, targets, targets, enable_dropout=False)
    logits = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logits, targets[..., None], -1).mean()

  def run(dtype):
    with matmul.used(dtype):
      return jax.jit(lambda p: jax.value_and_grad(loss)(p))(params)

  (exact, exact_gradients), (near, gradients) = run("float32"), run("bfloat16")
  assert near != exact
  np.testing.assert_allclose(near, exact, rtol=2e-3)
  for found, right in zip(*map(jax.tree.leaves, (gradients, exact_gradients)), strict=True):
    assert found.dtype == jnp.float32
    assert jnp.linalg.norm(found - right) < 0.05 * jnp.linalg.norm(right)


def test_kernels_are_cast_once_and_nothing_else():
  params = {
    "wide": {"kernel": jnp.ones((64, 256))},
    "narrow": {"kernel": jnp.ones((256, 8))},
    "embedding": jnp.ones((256, 256)),
    "norm": {"scale": jnp.ones(64)},
  }
  assert products.cast_kernels(params) is params
  with matmul.used("bfloat16"):
    cast = products.cast_kernels(params)
  types = {jax.tree_util.keystr(k): str(x.dtype) for k, x in jax.tree.leaves_with_path(cast)}
  assert types.pop("['wide']['kernel']") == "bfloat16"
  assert set(types.values()) == {"float32"}


def test_journals_of_the_two_are_kept_apart():
  params = {"kernel": jnp.ones(3)}
  plain = config_hash(params, {})
  with matmul.used("float32"):
    assert config_hash(params, {}) == plain
  with matmul.used("bfloat16"):
    assert config_hash(params, {}) != plain


@pytest.fixture
def chosen(monkeypatch):
  """`cpu_matmul`, whose choice is undone at the end of a test."""
  monkeypatch.setattr(matmul, "_operands", "float32")
  return matmul.cpu_matmul


def test_float32_is_the_default(chosen):
  assert chosen() == chosen("float32") == matmul.operands() == "float32"
  assert matmul.describe() == ""


def test_bfloat16_by_choice(chosen):
  """Gin binds it; the log says so."""
  with gin.unlock_config():
    gin.bind_parameter("t5x.utils.cpu_matmul.operands", "bfloat16")
  try:
    assert chosen() == matmul.operands() == "bfloat16"
  finally:
    gin.clear_config()
  assert matmul.describe() == "float32 matrix products: bfloat16 operands"
  assert chosen() == "float32"


@pytest.mark.parametrize("wrong", ["auto", "int8", "bf16", "", None, 16])
def test_unknown(chosen, wrong):
  with pytest.raises(T5XError, match="is not an operand type") as e:
    chosen(wrong)
  assert e.value.found == repr(wrong)
  assert e.value.available == "float32 (the default), bfloat16"
  assert e.value.fix.startswith("utils.cpu_matmul.operands = ")
  assert matmul.operands() == "float32"
