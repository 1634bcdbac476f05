"""An action for the tests on many devices: looks at where the train state lies."""

import jax
from flax import traverse_util
from jax.sharding import PartitionSpec


class CheckShardings:
  """After each step, slots must be sharded as their parameters are."""

  def run(self, train_state, metrics_by_task):
    """Returns False: training goes on. Raises AssertionError where they are not."""
    del metrics_by_task
    params = traverse_util.flatten_dict(train_state.params, sep="/")
    slots = traverse_util.flatten_dict(train_state.param_states, sep="/")
    assert params.keys() == slots.keys()
    compared = sharded = 0
    for name, param in params.items():
      assert len(param.sharding.device_set) == jax.device_count(), name
      sharded += param.sharding.spec != PartitionSpec()
      for slot in jax.tree.leaves(slots[name]):
        if slot.shape == param.shape:
          assert slot.sharding.is_equivalent_to(param.sharding, slot.ndim), name
          compared += 1
    assert compared
    assert sharded or train_state.step.sharding.mesh.shape["model"] == 1
    return False
