"""Train states restored through T5X's interface, and related functions in `utils`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.linen.partitioning import AxisMetadata

from t5x import checkpoints, optimizers, partitioning, utils


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


def test_functions_see_the_names_that_an_assignment_map_gives(folder, tmp_path):
  """As in T5X, whose map is the first of the functions."""

  def init_fn(rng, input_shapes, input_types):
    made = _init_fn(rng, input_shapes, input_types)
    return {"params": {"new": made["params"]}, "params_axes": {"new": made["params_axes"]}}

  seen = []

  def double(stored, wanted, *, is_resuming):
    del wanted
    seen.append((sorted(stored["target"]), is_resuming))
    return stored | {"target": {"new": {"w": 2 * stored["target"]["new"]["w"]}}}

  cfg = _config(
    str(folder), assignment_map=[("(.*)/new/w", r"\1/w")], state_transformation_fns=[double]
  )
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  made = utils.TrainStateInitializer(optimizers.sgd(0.1), init_fn, {"x": (2, 3)}, partitioner)
  choice = checkpoints.CheckpointChoice(f"{folder}/checkpoint_10", "as asked")
  restored = made.from_choice(choice, cfg)
  np.testing.assert_array_equal(restored.params["new"]["w"], np.full((2, 3), 20))
  assert seen == [(["new"], False)]


class OwnCheckpointer(checkpoints.Checkpointer):
  """A custom checkpointer that overrides `restore`."""

  def __init__(self, directory):
    self.directory = directory

  def restore(self, path):
    return self.directory, path


def test_a_checkpointer_of_ones_own_reads_by_itself(initializer, folder):
  cfg = _config(str(folder), checkpointer_cls=OwnCheckpointer)
  choice = checkpoints.CheckpointChoice(f"{folder}/checkpoint_10", "as asked")
  assert initializer.from_choice(choice, cfg) == (str(folder), choice.path)
