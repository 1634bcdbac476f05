"""Train states restored through T5X's interface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.linen.partitioning import AxisMetadata

from t5x import checkpoints, optimizers, partitioning, utils
from t5x.errors import T5XError


def _init_fn(rng, input_shapes, input_types):
  del rng, input_types
  return {
    "params": {"w": jnp.zeros(input_shapes["x"])},
    "params_axes": {"w_axes": AxisMetadata(("batch", "embed"))},
  }


@pytest.fixture
def initializer():
  return utils.TrainStateInitializer(
    optimizers.sgd(0.1), _init_fn, {"x": (2, 3)}, partitioning.PjitPartitioner(num_partitions=1)
  )


@pytest.fixture
def folder(tmp_path, initializer):
  """Checkpoints of steps 2, 5 and 10, whose parameters all equal the step."""
  writer = checkpoints.Checkpointer(str(tmp_path / "run"))
  state = initializer.from_scratch(jax.random.PRNGKey(0))
  for step in (2, 5, 10):
    params = {"w": jnp.full((2, 3), float(step))}
    assert writer.save(state.replace_step(jnp.asarray(step)).replace_params(params))
  writer.close()
  return tmp_path / "run"


def _config(path, mode="latest", **settings):
  return utils.RestoreCheckpointConfig(path=path, mode=mode, **settings)


def test_the_first_configuration_with_a_checkpoint_counts(initializer, folder):
  none, one = _config([]), _config([f"{folder}/checkpoint_2"], "specific")
  for cfgs, step in (([_config(str(folder)), one], 10), ([none, one], 2)):
    state = initializer.from_checkpoint(cfgs)
    assert int(state.step) == step
    np.testing.assert_array_equal(state.params["w"], np.full((2, 3), step))
  assert initializer.from_checkpoint([none]) is None
  with pytest.raises(T5XError, match=r"no complete checkpoint in .*nowhere"):
    initializer.from_checkpoint([_config(f"{folder}/nowhere")])


def test_functions_see_the_names_that_an_assignment_map_gives(folder, tmp_path):
  """As in T5X, whose map is the first of the functions."""

  def init_fn(rng, input_shapes, input_types):
    made = _init_fn(rng, input_shapes, input_types)
    return {"params": {"new": made["params"]}, "params_axes": {"new": made["params_axes"]}}

  seen = []

  def double(stored, wanted):  # T5X passes `is_resuming` only where a run resumes
    del wanted
    seen.append(sorted(stored["target"]))
    return stored | {"target": {"new": {"w": 2 * stored["target"]["new"]["w"]}}}

  cfg = _config(
    str(folder), assignment_map=[("(.*)/new/w", r"\1/w")], state_transformation_fns=[double]
  )
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  made = utils.TrainStateInitializer(optimizers.sgd(0.1), init_fn, {"x": (2, 3)}, partitioner)
  restored = made.from_checkpoint([cfg])
  np.testing.assert_array_equal(restored.params["new"]["w"], np.full((2, 3), 20))
  assert seen == [["new"]]
