"""Times inference on the first examples of a task, with random weights; a child process.

`evaluate` is in `__main__` like that of `t5x.eval`, so the same gin files configure it. Only the
function that `utils.get_infer_fn` returns is timed, on features that are read beforehand.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time

import _configured
import jax
import numpy as np
import tensorflow as tf

from t5x import utils


def evaluate(*, model, dataset_cfg, partitioner, **unused) -> None:
  """For each number of rounds read from standard input, prints the seconds they took."""
  del unused
  utils.cpu_matmul()
  ds = utils.get_dataset(dataset_cfg, 0, 1, model.FEATURE_CONVERTER_CLS)
  count = int(os.environ["EXAMPLES"]) // dataset_cfg.batch_size
  batches = list(itertools.islice(ds.as_numpy_iterator(), count))
  examples = {k: np.concatenate([batch[k] for batch in batches]) for k in batches[0]}
  shapes = {k: (dataset_cfg.batch_size, *x.shape[1:]) for k, x in examples.items()}
  initializer = utils.TrainStateInitializer(
    optimizer_def=None,
    init_fn=model.get_initial_variables,
    input_shapes=shapes,
    input_types={k: x.dtype for k, x in examples.items()},
    partitioner=partitioner,
  )
  state = initializer.from_scratch(jax.random.PRNGKey(0))
  answer = utils.get_infer_fn(
    model.predict_batch, dataset_cfg.batch_size, initializer.train_state_axes, partitioner
  )
  rows = tf.data.Dataset.from_tensor_slices(examples).enumerate()
  answer(rows, state)  # compiles
  arrays = jax.tree.leaves(state.params)
  about = {"examples": len(rows), "parameters": sum(x.size for x in arrays)}
  print("READY " + json.dumps(about), flush=True)
  for line in sys.stdin:
    started = time.perf_counter()
    for _ in range(int(line)):
      answer(rows, state)
    print(f"SECONDS {time.perf_counter() - started}", flush=True)


if __name__ == "__main__":
  _configured.run(evaluate)
