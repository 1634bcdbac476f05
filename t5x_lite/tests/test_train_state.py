"""Train states: what they hold, and their logical axes."""

import flax.core
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.linen.partitioning import AxisMetadata
from jax.sharding import PartitionSpec

from t5x import adafactor, optimizers, partitioning, train_state, utils
from t5x.errors import T5XError

VARIABLES = {
  "params": {"wi": {"kernel": np.ones((4, 6), np.float32)}},
  "params_axes": {"wi": {"kernel_axes": AxisMetadata(names=("embed", "mlp"))}},
}


def _states():
  sgd = optimizers.sgd(0.5)
  return {
    "train": lambda v: train_state.FlaxOptimTrainState.create(sgd, v),
    "inference": train_state.InferenceState.create,
  }


@pytest.fixture(params=["train", "inference"])
def create(request):
  return _states()[request.param]


def test_other_collections_are_refused(create):
  assert create(VARIABLES).step == 0
  assert create({"params": VARIABLES["params"]}).params_axes is None
  with pytest.raises(T5XError, match=r"mutable collections \(stats\)"):
    create(VARIABLES | {"stats": {"wi": {"mean": np.zeros(6)}}})


def test_logical_axes_are_those_of_google_t5x(create):
  axes = create(VARIABLES).as_logical_axes()
  assert axes.params_axes is None
  assert axes.params == flax.core.freeze({"wi": {"kernel": PartitionSpec("embed", "mlp")}})


def test_mesh_axes_have_the_structure_of_the_state(create):
  """So that a jitted function can take both; what has no axes is replicated."""
  state = create(VARIABLES)
  mesh_axes = partitioning.PjitPartitioner(num_partitions=1).get_mesh_axes(state)
  assert jax.tree_util.tree_structure(state) == jax.tree_util.tree_structure(mesh_axes)
  assert mesh_axes.params["wi"]["kernel"] == PartitionSpec(None, "model")


def test_states_survive_their_state_dict(create):
  state = create(VARIABLES).replace_step(jnp.asarray(7))
  state = state.replace_params(jax.tree.map(lambda x: x + 1, state.params))
  tree = state.state_dict()
  assert type(tree["target"]) is dict
  restored = create(VARIABLES).restore_state(tree)
  assert restored.step == 7
  assert jax.tree_util.tree_structure(restored) == jax.tree_util.tree_structure(state)
  jax.tree.map(np.testing.assert_array_equal, restored, state)


def test_a_state_for_inference_is_part_of_one_for_training():
  train, inference = (make(VARIABLES).state_dict() for make in _states().values())
  assert set(inference["state"]) == {"step"}
  assert set(train) == set(inference) == {"state", "target"}
  assert utils.InferenceState is train_state.InferenceState


def test_missing_axes_are_named():
  wrong = VARIABLES | {"params_axes": {}}
  for make in _states().values():
    with pytest.raises(T5XError, match="wi/kernel"):
      make(wrong)
  with pytest.raises(T5XError, match="wi/kernel"):
    train_state.FlaxOptimTrainState.create(adafactor.Adafactor(), wrong)
