"""Run as a script on 8 host devices: inference on a mesh of 4 x 2 against the plain path."""

import functools

import jax
import numpy as np
import tensorflow as tf
from tiny_model import tiny_model

from t5x import decoding, partitioning, utils
from t5x._infer import staged_decode

LENGTH, TARGETS, ROWS = 32, 18, 21


def main() -> None:
  """Prints `same` if greedy decodes in stages are those of the plain path."""
  assert jax.device_count() == 8
  staged_decode._SHORT_DECODE = 8
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))
  partitioner = partitioning.PjitPartitioner(model_parallel_submesh=(1, 1, 1, 2))
  assert dict(partitioner.mesh.shape) == {"data": 4, "model": 2}
  rng = np.random.default_rng(0)
  inputs = np.zeros((ROWS, LENGTH), np.int32)
  for row in inputs:
    size = rng.integers(1, LENGTH + 1)
    row[:size] = rng.integers(3, 200, size)
  targets = np.zeros((ROWS, TARGETS), np.int32)
  features = {
    "encoder_input_tokens": inputs,
    "decoder_input_tokens": targets,
    "decoder_target_tokens": targets,
    "decoder_loss_weights": targets,
  }
  initializer = utils.TrainStateInitializer(
    None,
    model.get_initial_variables,
    {k: (8, *v.shape[1:]) for k, v in features.items()},
    partitioner,
  )
  state = initializer.from_scratch(jax.random.PRNGKey(3))
  ds = tf.data.Dataset.from_tensor_slices(features).enumerate()

  def run(efficient):
    fn = utils.get_infer_fn(
      model.predict_batch, 8, initializer.train_state_axes, partitioner, efficient=efficient
    )
    return fn(ds, state), fn.inference.stats["shapes"]

  (plain, _), (staged, shapes) = run(False), run(True)
  ends = {(np.argmax(np.asarray(d) == 1) if 1 in d else TARGETS) for _, d in plain}
  assert min(ends) < 8 < max(ends), ends  # rows leave after different stages
  assert shapes > 1
  print("same" if staged == plain else "different")


if __name__ == "__main__":
  main()
