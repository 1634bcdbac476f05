"""Run on 8 devices: a training step on a mesh of 4 x 2 against one device."""

import jax
import numpy as np

from t5x import adafactor, losses, partitioning, train_state
from t5x.examples.t5 import network


def main() -> None:
  """Says so if both give the same loss and gradients."""
  module = network.Transformer(
    network.T5Config(
      vocab_size=64,
      emb_dim=16,
      num_heads=4,
      head_dim=8,
      mlp_dim=32,
      num_encoder_layers=1,
      num_decoder_layers=1,
      dropout_rate=0.0,
      mlp_activations=("gelu", "linear"),
    )
  )
  rng = np.random.default_rng(0)
  x, y = (rng.integers(1, 64, (8, n)).astype("int32") for n in (6, 5))
  key = jax.random.PRNGKey(0)

  def make(key):
    variables = module.init(key, x, y, y, enable_dropout=False)
    return train_state.FlaxOptimTrainState.create(adafactor.Adafactor(), variables)

  def step(state, x, y):
    def loss(params):
      logits = module.apply({"params": params}, x, y, y, enable_dropout=False)
      return losses.compute_weighted_cross_entropy(logits, y)[0]

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradient(grads, 0.0), value, grads

  state = jax.jit(make)(key)
  _, want, want_grads = jax.jit(step)(state, x, y)
  cpu = partitioning.PjitPartitioner(num_partitions=2)
  assert cpu.mesh.devices.shape == (1, 8), cpu.mesh
  # Both kinds of dimensions on both mesh axes: the hardest of the four settings.
  partitioner = partitioning.PjitPartitioner(
    model_parallel_submesh=(1, 1, 1, 2),
    logical_axis_rules=partitioning.standard_logical_axis_rules(2, 2),
  )
  assert partitioner.mesh.devices.shape == (4, 2)
  assert partitioner.get_data_layout(8).num_shards == 1
  axes = partitioner.get_mesh_axes(jax.eval_shape(make, key))
  state = jax.device_put(state, partitioner.get_shardings(axes))
  data = partitioner.data_partition_spec
  x, y = jax.device_put((x, y), partitioner.sharding(data))
  run = partitioner.partition(step, (axes, data, data), (axes, None, axes.params))
  _, got, grads = run(state, x, y)
  np.testing.assert_allclose(got, want, rtol=1e-5)
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3), grads, want_grads)
  print("sharded equals single")


if __name__ == "__main__":
  main()
