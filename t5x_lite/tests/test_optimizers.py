"""T5X's optimizer interface: per-step settings, logical axes, state dictionaries."""

import functools

import flax.core
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec

from t5x import adafactor, optimizers, train_state
from t5x.errors import T5XError

AXES = {"wi": {"kernel": PartitionSpec("embed", "mlp")}, "scale": PartitionSpec("embed")}


def _params(seed=0):
  rng = np.random.default_rng(seed)
  return {
    "wi": {"kernel": jnp.asarray(rng.normal(size=(4, 6)), jnp.float32)},
    "scale": jnp.asarray(rng.normal(size=4), jnp.float32),
  }


def test_slots_like_parameters_have_their_axes():
  wrapper = optimizers.OptaxWrapper(optax.chain(optax.adamw(0.1), optax.clip(1.0)))
  for freeze in (flax.core.freeze, flax.core.unfreeze):
    axes = freeze(AXES)
    got = wrapper.derive_logical_axes(wrapper.create(freeze(_params())), axes)
    adam = got.state.param_states[0][0]
    assert got.target == adam.mu == adam.nu == axes
    assert adam.count is None
    assert got.state.step is None
  factored = adafactor.Adafactor(0.1, beta1=0.9, min_dim_size_to_factor=4)
  got = factored.derive_logical_axes(factored.create(_params()), AXES).state.param_states
  kernel, scale = got["wi"]["kernel"], got["scale"]
  assert (kernel.v_row, kernel.v_col, kernel.v) == (None, None, None)
  assert kernel.m == AXES["wi"]["kernel"]
  assert (scale.v, scale.m) == (AXES["scale"], AXES["scale"])


LABELS = {"wi": {"kernel": "train"}, "scale": "keep"}


@pytest.mark.parametrize("labels", [LABELS, {"wi": "train", "scale": "keep"}, lambda _: LABELS])
def test_what_optax_passes_over_has_no_axes(labels):
  parts = optax.multi_transform({"train": optax.adam(0.1), "keep": optax.set_to_zero()}, labels)
  wrapper = optimizers.OptaxWrapper(parts)
  state = train_state.FlaxOptimTrainState(wrapper.create(_params()))
  axes = wrapper.derive_logical_axes(state.optimizer, AXES)
  slots = axes.state.param_states.inner_states["train"].inner_state[0].mu
  assert slots["wi"] == AXES["wi"]
  assert isinstance(slots["scale"], optax.MaskedNode)
  assert axes.state.param_states.inner_states["train"].inner_state[0].count is None


def test_state_dicts_leave_out_what_is_empty_and_are_restored():
  wrapper = optimizers.OptaxWrapper(optax.adamw(0.1))
  optimizer = wrapper.create(_params()).apply_gradient(_params(1))
  tree = optimizer.state_dict()
  assert set(tree["state"]["param_states"]) == {"0"}  # the other two transformations have no state
  restored = wrapper.create(_params(2)).restore_state(tree)
  jax.tree.map(np.testing.assert_array_equal, restored, optimizer)
  sgd = optimizers.sgd(0.1).create(_params())
  assert sgd.state_dict()["state"]["param_states"] == {}
  jax.tree.map(np.testing.assert_array_equal, sgd.restore_state(sgd.state_dict()), sgd)


def test_a_flag_in_quotes_is_refused():
  with pytest.raises(T5XError, match=r"Adafactor\.factored is neither True nor False"):
    adafactor.Adafactor(0.1, factored="False")


def test_a_step_may_override_settings():
  optimizer = adafactor.Adafactor(0.1, multiply_by_parameter_scale=False)

  def step(**overrides):
    return optimizer.create(_params()).apply_gradient(_params(1), **overrides).target

  own = adafactor.Adafactor(0.3, multiply_by_parameter_scale=True)
  want = own.create(_params()).apply_gradient(_params(1)).target
  got = step(learning_rate=0.3, multiply_by_parameter_scale=True)
  jax.tree.map(np.testing.assert_array_equal, got, want)
  jax.tree.map(np.testing.assert_array_equal, step(hyper_params=own), want)
  hyper_params = optimizer.update_hyper_params(learning_rate=0.3)
  assert hyper_params.learning_rate == 0.3
  assert optimizer.hyper_params.replace(learning_rate=0.3) == hyper_params
  assert optimizer.hyper_params.learning_rate == 0.1
  state = optimizer.init_state(_params())
  by_hand, _ = optimizer.apply_gradient(hyper_params, _params(), state, _params(1))
  jax.tree.map(np.testing.assert_array_equal, by_hand, step(learning_rate=0.3))


def _step(grads=None, **settings):
  optimizer = adafactor.Adafactor(0.1, **settings).create(_params())
  return optimizer.apply_gradient(grads or _params(1))


@pytest.mark.parametrize(
  ("zero", "same"),
  [
    ({"weight_decay_rate_lr_exponent": 0.0}, {}),
    (
      {"weight_decay_rate_lr_exponent": 1.0, "weight_decay_rate": 0.0},
      {"weight_decay_rate": 0.1},  # 1 * the learning rate
    ),
    ({"global_norm_clip_threshold": 0.0}, {}),
  ],
)
def test_zeros_that_google_t5x_takes_for_none(zero, same):
  for got, want in zip(*(jax.tree.leaves(_step(**x).target) for x in (zero, same)), strict=True):
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_entries_that_would_be_nan_stay():
  grads = _params(1)
  grads["scale"] = grads["scale"].at[1].set(jnp.nan)
  got = _step(grads, skip_nan_updates=True, clipping_threshold=None)
  want = _step(clipping_threshold=None)
  bad, good = np.arange(4) == 1, np.arange(4) != 1
  np.testing.assert_array_equal(got.target["scale"][bad], _params()["scale"][bad])
  np.testing.assert_array_equal(got.target["scale"][good], want.target["scale"][good])
  slots, wanted = (x.state.param_states["scale"].v for x in (got, want))
  np.testing.assert_array_equal(slots[bad], 0)
  np.testing.assert_array_equal(slots[good], wanted[good])


def test_an_unused_slot_has_the_type_it_has_in_t5x():
  params = _params()
  for beta1, dtype in ((None, jnp.float32), (0.9, jnp.bfloat16)):
    optimizer = adafactor.Adafactor(beta1=beta1, dtype_momentum=jnp.bfloat16)
    assert optimizer.init_state(params).param_states["scale"].m.dtype == dtype


def test_roles_may_be_named():
  roles = {"a": "row", "b": "Col", "c": "batch"}
  named = adafactor.Adafactor(logical_factor_rules=roles)
  kinds = adafactor.FactorDim.ROW, adafactor.FactorDim.COLUMN, adafactor.FactorDim.BATCH
  assert named == adafactor.Adafactor(
    logical_factor_rules=dict(zip(roles, kinds, strict=True)),
  )
  known = named.with_logical_axes({"w": PartitionSpec("c", "a", "b")})
  slots = known.create({"w": jnp.ones((2, 3, 4))}).state.param_states
  assert slots["w"].v_row.shape == (2, 3)
  with pytest.raises(T5XError, match="unknown role for axis 'a'"):
    adafactor.Adafactor(logical_factor_rules={"a": "rows"})


RATES = jnp.linspace(0.01, 0.1, 5)


def _assert_same_steps(optimizer, name, settings):
  """Compares steps with RATES with those of optax."""
  found, params = optimizer.create(_params()), _params()
  reference = getattr(optax, name)(lambda step: RATES[step], **settings)
  state = reference.init(params)
  for step in range(4):
    gradients = _params(step + 1)
    found = found.apply_gradient(gradients, learning_rate=RATES[step])
    updates, state = reference.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
  close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
  jax.tree.map(close, found.target, params)


@pytest.mark.parametrize(
  ("name", "settings"), [("fromage", {}), ("lars", {}), ("rmsprop", {"momentum": 0.9})]
)
def test_the_trainers_rate_is_refused_where_updates_are_not_proportional_to_it(name, settings):
  """With a schedule of their own they take optax's steps."""
  make = getattr(optimizers, name)
  with pytest.raises(T5XError, match=f"{name} needs a learning rate"):
    make(**settings)
  _assert_same_steps(make(learning_rate=lambda step: RATES[step], **settings), name, settings)


@pytest.mark.parametrize(
  ("name", "settings"),
  [
    ("adam", {}),
    ("lion", {}),
    ("sgd", {"momentum": 0.9}),
    ("rmsprop", {}),
    ("noisy_sgd", {"key": 0}),
  ],
)
def test_the_trainers_rate_is_that_of_a_schedule(name, settings):
  _assert_same_steps(getattr(optimizers, name)(**settings), name, settings)


def test_an_optimizer_without_a_learning_rate_gets_its_own_arguments():
  """As in T5X: the trainer's rate once became the first of them, here the decay of the momentum."""

  def mine(b1=0.9, *, rate=1e-3):
    return optax.chain(optax.scale_by_adam(b1=b1), optax.scale(-rate))

  params = {"w": jnp.ones(3)}
  optimizer = optimizers.wrap_optax_optimizer(mine)(rate=1e-2).create(params)
  for _ in range(2):  # each step of Adam with equal gradients is as long as the rate
    optimizer = optimizer.apply_gradient({"w": jnp.ones(3)}, learning_rate=1.0)
  np.testing.assert_allclose(optimizer.target["w"], 0.98, rtol=1e-5)


def test_a_spec_of_rows_and_columns_leaves_no_axis_out():
  rules = {"embed": "row", "heads": "col", "kv": "none"}
  optimizer = adafactor.Adafactor(logical_factor_rules=rules)
  optimizer = optimizer.with_logical_axes({"w": ("embed", "heads", "kv")})
  with pytest.raises(T5XError, match="no NONE beside ROW and COLUMN"):
    optimizer.init_state({"w": jnp.ones((2, 2, 2))})
