"""Times training steps with whichever T5X this interpreter imports; a child process.

`train` is in `__main__` like that of `t5x.train`, so the same gin files configure it. It makes
model, state and trainer from T5X's public classes, takes a step with each batch to compile, and
then, for each number read from standard input, takes that many steps and prints the seconds they
took. The batches are read and counted beforehand: only `trainer.Trainer`'s step is timed.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time

import _configured
import jax
import numpy as np

from t5x import utils

try:
  from t5x._train.trim import trimmed
except ImportError:  # Google's, or a checkout that does not trim padding

  def trimmed(batches, model):
    """Returns the batches unchanged."""
    del model
    return batches


_BATCHES = 4  # distinct batches, used in turn
_COUNTED = 100  # batches in which examples are counted: their number varies in packed rows


def read_batches(cfg, converter_cls) -> tuple[list[dict[str, np.ndarray]], float]:
  """Returns the first batches of the training data, and how many examples a batch has.

  Unpacked, the batches are the same for every engine.
  """
  ds = utils.get_dataset(dataclasses.replace(cfg, seed=0), 0, 1, converter_cls)
  batches, counts = [], []
  for batch in itertools.islice(iter(ds.as_numpy_iterator()), _COUNTED if cfg.pack else _BATCHES):
    counts.append(count_examples(batch))
    batches += [batch] if len(batches) < _BATCHES else []
  return batches, float(np.mean(counts))


def count_examples(batch: dict[str, np.ndarray]) -> int:
  """Number of examples in a batch: its rows, or the examples packed into them."""
  segments = batch.get("decoder_segment_ids")
  if segments is None:
    return len(batch["decoder_target_tokens"])
  return int(segments.max(axis=-1).sum())


def take_steps(trainer, batches) -> None:
  """Takes one step per batch and waits for the last."""
  if hasattr(trainer, "step"):  # t5x_lite
    for batch in batches:
      trainer.step(batch)
  else:
    trainer.train(iter(batches), len(batches), start_step=0).result()
  jax.block_until_ready(trainer.train_state.params)


def train(*, model, train_dataset_cfg, partitioner, trainer_cls, random_seed, **unused) -> None:
  """For each number of steps read from standard input, prints the seconds they took."""
  del unused
  if hasattr(utils, "cpu_matmul"):  # t5x_lite
    utils.cpu_matmul()
  batches, examples = read_batches(train_dataset_cfg, model.FEATURE_CONVERTER_CLS)
  shapes = {name: rows.shape for name, rows in batches[0].items()}
  batches = list(trimmed(batches, model))
  sharding = jax.sharding.NamedSharding(partitioner.mesh, partitioner.data_partition_spec)
  on_device = [jax.device_put(batch, sharding) for batch in batches]
  init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(random_seed))
  initializer = utils.TrainStateInitializer(
    optimizer_def=model.optimizer_def,
    init_fn=model.get_initial_variables,
    input_shapes=shapes,
    input_types={k: v.dtype for k, v in batches[0].items()},
    partitioner=partitioner,
  )
  trainer = trainer_cls(
    model=model,
    train_state=initializer.from_scratch(init_rng),
    partitioner=partitioner,
    train_state_axes=initializer.train_state_axes,
    eval_names=[],
    summary_dir=None,
    rng=trainer_rng,
  )
  if hasattr(trainer, "compile_train"):
    trainer.compile_train(on_device[0])
  take_steps(trainer, on_device)
  answer = {
    "examples_per_step": examples,
    "rows": len(batches[0]["decoder_target_tokens"]),
    "lengths": [
      [batch[k].shape[1] for k in ("encoder_input_tokens", "decoder_target_tokens")]
      for batch in batches
    ],
  }
  print("READY " + json.dumps(answer), flush=True)
  taken = 0
  for line in sys.stdin:
    chosen = [on_device[(taken + i) % _BATCHES] for i in range(int(line))]
    started = time.perf_counter()
    take_steps(trainer, chosen)
    print(f"SECONDS {time.perf_counter() - started}", flush=True)
    taken += len(chosen)


if __name__ == "__main__":
  _configured.run(train)
