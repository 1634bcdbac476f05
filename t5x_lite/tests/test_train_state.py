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
  "stats": {"wi": {"mean": np.zeros(6)}},
  "stats_axes": {"wi": {"mean_axes": AxisMetadata(names=("mlp",))}},
  "counters": {"calls": np.zeros(())},
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


def test_collections_and_their_axes_are_told_apart(create):
  state = create(VARIABLES)
  assert state.step == 0
  assert set(state.flax_mutables) == {"stats", "counters"}
  assert set(state.flax_mutables_axes) == {"stats"}
  assert create({"params": VARIABLES["params"]}).flax_mutables_axes is None


def test_logical_axes_are_those_of_google_t5x(create):
  axes = create(VARIABLES).as_logical_axes()
  assert axes.params_axes is None
  assert axes.flax_mutables_axes is None
  assert axes.params == flax.core.freeze({"wi": {"kernel": PartitionSpec("embed", "mlp")}})
  assert axes.flax_mutables == flax.core.freeze({"stats": {"wi": {"mean": PartitionSpec("mlp")}}})


def test_mesh_axes_have_the_structure_of_the_state(create):
  """So that a jitted function can take both; what has no axes is replicated."""
  state = create(VARIABLES)
  mesh_axes = partitioning.PjitPartitioner(num_partitions=1).get_mesh_axes(state)
  assert jax.tree_util.tree_structure(state) == jax.tree_util.tree_structure(mesh_axes)
  assert mesh_axes.params["wi"]["kernel"] == PartitionSpec(None, "model")
  assert mesh_axes.flax_mutables["stats"]["wi"]["mean"] == PartitionSpec("model")
  assert mesh_axes.flax_mutables["counters"]["calls"] == PartitionSpec()


def test_states_survive_their_state_dict(create):
  state = create(VARIABLES).replace_step(jnp.asarray(7))
  state = state.replace_params(jax.tree.map(lambda x: x + 1, state.params))
  state = state.replace(flax_mutables=jax.tree.map(lambda x: x + 2, state.flax_mutables))
  tree = state.state_dict()
  assert type(tree["target"]) is dict
  restored = create(VARIABLES).restore_state(tree)
  assert restored.step == 7
  assert jax.tree_util.tree_structure(restored) == jax.tree_util.tree_structure(state)
  jax.tree.map(np.testing.assert_array_equal, restored, state)


def test_a_state_for_inference_is_part_of_one_for_training():
  train, inference = (make(VARIABLES).state_dict() for make in _states().values())
  assert set(inference["state"]) == {"step"}
  assert set(train) == set(inference) == {"state", "target", "flax_mutables"}
  assert utils.InferenceState is train_state.InferenceState


def test_missing_axes_are_named():
  for name, array in (("params", "wi/kernel"), ("stats", "wi/mean")):
    wrong = VARIABLES | {f"{name}_axes": {}}
    for make in (*_states().values(),):
      with pytest.raises(T5XError, match=array):
        make(wrong)
    with pytest.raises(T5XError, match=array):
      train_state.FlaxOptimTrainState.create(adafactor.Adafactor(), wrong)
