"""Run on 8 devices: says in JSON why a batch does not fit; saves and restores other shards."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from t5x import checkpoints, partitioning
from t5x.errors import T5XError


class State:
  """A train state of one array."""

  def __init__(self, w):
    self.w, self.step = w, jnp.int32(1)

  def state_dict(self):
    """As a train state's."""
    return {"target": {"w": self.w}, "state": {"step": self.step}}

  def restore_state(self, tree):
    """As a train state's."""
    return State(tree["target"]["w"])


def main(folder) -> None:
  """Saves a checkpoint in `folder`."""
  partitioner = partitioning.PjitPartitioner(ici_mesh_shape=(4, 2))
  try:
    partitioner.get_data_layout(18)
  except T5XError as e:
    print(json.dumps(e.text))

  w = np.arange(48, dtype=np.float32).reshape(8, 6)
  halves = jax.device_put(w, partitioner.sharding(P(None, "model")))  # 4 copies of 2 halves
  saver = checkpoints.Checkpointer(folder)
  saver.save(State(halves))
  shardings = State(partitioner.sharding(P("data", None)))
  shardings.step = partitioner.sharding(P())
  restored = checkpoints.restore(
    checkpoints.choose_checkpoint(folder), State(jnp.zeros((8, 6))), shardings
  )
  assert restored.w.sharding.spec == P("data", None), restored.w.sharding
  np.testing.assert_array_equal(restored.w, w)


if __name__ == "__main__":
  main(sys.argv[1])
