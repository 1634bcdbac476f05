"""T5X's optimizer interface: per-step settings, logical axes, state dictionaries, parts."""

import functools
import re

import flax.core
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import traverse_util
from flax.linen.partitioning import AxisMetadata
from jax.sharding import PartitionSpec

from t5x import adafactor, optimizers, partitioning, train_state
from t5x.errors import T5XError

# flax deprecates the traversals that MultiOptimizer takes.
pytestmark = pytest.mark.filterwarnings("ignore:.*Traversal:DeprecationWarning")

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


def test_what_optax_passes_over_has_no_axes():
  labels = {"wi": {"kernel": "train"}, "scale": "keep"}
  parts = optax.multi_transform({"train": optax.adam(0.1), "keep": optax.set_to_zero()}, labels)
  wrapper = optimizers.OptaxWrapper(parts)
  state = train_state.FlaxOptimTrainState(wrapper.create(_params()))
  axes = wrapper.derive_logical_axes(state.optimizer, AXES)
  slots = axes.state.param_states.inner_states["train"].inner_state[0].mu
  assert slots["wi"] == AXES["wi"]
  assert isinstance(slots["scale"], optax.MaskedNode)


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


def test_roles_may_be_named_and_count_more_than_a_factor_map():
  roles = {"a": "row", "b": "Col", "c": "batch"}
  named = adafactor.Adafactor(logical_factor_rules=roles)
  kinds = adafactor.FactorDim.ROW, adafactor.FactorDim.COLUMN, adafactor.FactorDim.BATCH
  assert named == adafactor.Adafactor(
    logical_factor_rules=dict(zip(roles, kinds, strict=True)),
  )
  optimizer = adafactor.Adafactor(
    0.1, logical_factor_rules=roles, factor_map=adafactor.HParamMap([("", None)])
  )
  param = {"w": jnp.ones((2, 3, 4))}
  assert optimizer.create(param).state.param_states["w"].v.shape == (2, 3, 4)
  known = optimizer.with_logical_axes({"w": PartitionSpec("c", "a", "b")})
  assert known.create(param).state.param_states["w"].v_row.shape == (2, 3)
  with pytest.raises(T5XError, match="unknown role for axis 'a'"):
    adafactor.Adafactor(logical_factor_rules={"a": "rows"})


# -------------------------------------------------------------------------- MultiOptimizer


def _only(text):
  return traverse_util.ModelParamTraversal(lambda path, _: text in path)


def _multi():
  kernels = adafactor.Adafactor(0.1, min_dim_size_to_factor=4)
  return optimizers.MultiOptimizer([(_only("kernel"), kernels)])


def test_each_part_has_its_optimizer():
  kernels, scales = adafactor.Adafactor(0.1), adafactor.Adafactor(0.2, decay_rate=0.7)
  both = optimizers.MultiOptimizer([(_only("kernel"), kernels), (_only("scale"), scales)])
  optimizer = both.create(_params())
  alone = {"kernel": kernels.create(_params()), "scale": scales.create(_params())}
  for i in range(3):
    optimizer = jax.jit(lambda o, g: o.apply_gradient(g))(optimizer, _params(i))
    alone = {k: o.apply_gradient(_params(i)) for k, o in alone.items()}
  assert optimizer.state.step == 3
  for path, which in ((("wi", "kernel"), "kernel"), (("scale",), "scale")):
    for attribute in (lambda o: o.target, lambda o: o.state.param_states):
      got, want = (
        traverse_util.flatten_dict(attribute(o))[path] for o in (optimizer, alone[which])
      )
      jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), got, want)


def test_the_trainers_rate_is_that_of_all_parts():
  new = _multi().create(_params()).apply_gradient(_params(1), learning_rate=0.0).target
  jax.tree.map(np.testing.assert_array_equal, new, _params())


def test_what_is_in_no_part_stays_and_is_saved():
  multi = _multi()
  optimizer = multi.create(_params()).apply_gradient(_params(1))
  np.testing.assert_array_equal(optimizer.target["scale"], _params()["scale"])
  assert (optimizer.target["wi"]["kernel"] != _params()["wi"]["kernel"]).all()
  assert optimizer.state.param_states["scale"] is None
  tree = optimizer.state_dict()
  assert set(tree["state"]["param_states"]) == {"wi"}
  restored = multi.create(_params()).restore_state(tree)
  jax.tree.map(np.testing.assert_array_equal, restored, optimizer)


def test_parts_are_divided_over_a_mesh():
  variables = {
    "params": _params(),
    "params_axes": {
      "wi": {"kernel_axes": AxisMetadata(("embed", "mlp"))},
      "scale_axes": AxisMetadata(("embed",)),
    },
  }
  state = train_state.FlaxOptimTrainState.create(_multi(), variables)
  mesh_axes = partitioning.PjitPartitioner(num_partitions=1).get_mesh_axes(state)
  assert jax.tree_util.tree_structure(state) == jax.tree_util.tree_structure(mesh_axes)
  assert mesh_axes.params["wi"]["kernel"] == PartitionSpec(None, "model")
  assert mesh_axes.param_states["wi"]["kernel"].v_row == PartitionSpec()


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


@pytest.mark.parametrize(
  ("settings", "found"),
  [
    ({"factored": False, "factor_map": adafactor.HParamMap([(".*", None)])}, "with a factor_map"),
    ({"factor_map": {"w": None}}, "factor_map = {'w': None}"),
    ({"multiply_by_parameter_scale": None}, "multiply_by_parameter_scale = None"),
  ],
)
def test_adafactor_refuses_what_t5x_refuses(settings, found):
  with pytest.raises(T5XError, match=re.escape(found)):
    adafactor.Adafactor(**settings)


def test_a_spec_of_rows_and_columns_leaves_no_axis_out():
  rules = {"embed": "row", "heads": "col", "kv": "none"}
  optimizer = adafactor.Adafactor(logical_factor_rules=rules)
  optimizer = optimizer.with_logical_axes({"w": ("embed", "heads", "kv")})
  with pytest.raises(T5XError, match="no NONE beside ROW and COLUMN"):
    optimizer.init_state({"w": jnp.ones((2, 2, 2))})


def test_mistakes_are_named():
  twice = [(_only("kernel"), adafactor.Adafactor()), (_only("wi"), adafactor.Adafactor())]
  with pytest.raises(T5XError, match="wi/kernel"):
    optimizers.MultiOptimizer(twice).create(_params())
  with pytest.raises(T5XError, match="multi_transform"):
    optimizers.MultiOptimizer([(_only("kernel"), optimizers.adam(0.1))])
