"""Times training with and without the bound on how far the host runs ahead of the device.

  python benchmarks/run_ahead.py

Two models on random tokens, with steps of about 10 ms and 100 ms; batches come from
the prefetcher, as in `t5x.train`. Each model has one trainer, whose steps are taken alternately
with and without `Trainer.wait_for_room`. Target: at least 0.99 of the steps/s without.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from types import SimpleNamespace

import _common
import jax
import numpy as np

from t5x import adafactor, models, partitioning, trainer, utils
from t5x.examples.t5 import network

BOUNDED, UNBOUNDED = "bounded", "not bounded"
_VOCABULARY = 1024
# Per model: layers, width, rows, input tokens (targets: a quarter), steps per measurement.
MODELS = {"small steps": (1, 64, 8, 32, 500), "large steps": (2, 192, 8, 128, 10)}


def make(layers: int, width: int, rows: int, tokens: int) -> tuple[trainer.Trainer, dict]:
  """Returns a trainer in its initial state and a batch of random tokens as numpy."""
  config = network.T5Config(
    vocab_size=_VOCABULARY,
    emb_dim=width,
    num_heads=4,
    num_encoder_layers=layers,
    num_decoder_layers=layers,
    head_dim=width // 4,
    mlp_dim=2 * width,
  )
  vocabulary = SimpleNamespace(vocab_size=_VOCABULARY)
  model = models.EncoderDecoderModel(
    network.Transformer(config), vocabulary, vocabulary, adafactor.Adafactor(learning_rate=1e-3)
  )
  shapes = {"encoder_input_tokens": (rows, tokens)} | dict.fromkeys(
    ("decoder_input_tokens", "decoder_target_tokens", "decoder_loss_weights"), (rows, tokens // 4)
  )
  rng = np.random.default_rng(0)
  batch = {k: rng.integers(1, _VOCABULARY, shape, np.int32) for k, shape in shapes.items()}
  batch["decoder_loss_weights"] = np.ones_like(batch["decoder_loss_weights"])
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  initializer = utils.TrainStateInitializer(
    model.optimizer_def, model.get_initial_variables, shapes, partitioner
  )
  state = initializer.from_scratch(jax.random.PRNGKey(0))
  axes = initializer.train_state_axes
  return trainer.Trainer(model, state, partitioner, train_state_axes=axes), batch


def steps_per_second(of: trainer.Trainer, batches, steps: int, bounded: bool) -> float:
  """Takes steps and waits for the last; returns their rate."""
  started = time.perf_counter()
  for batch in itertools.islice(batches, steps):
    if bounded:
      of.wait_for_room()
    of.step(batch)
  of.check_losses()
  return steps / (time.perf_counter() - started)


def main() -> None:
  """Measures and prints a table per model."""
  parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
  parser.add_argument("--repeats", type=int, default=15, help="rounds (default 15)")
  args = parser.parse_args()
  for name, (*sizes, steps) in MODELS.items():
    of, batch = make(*sizes)
    batches = utils.DevicePrefetcher(itertools.repeat(batch))
    measure = functools.partial(steps_per_second, of, batches, steps)
    measure(False)  # compiles
    columns = {
      BOUNDED: functools.partial(measure, True),
      UNBOUNDED: functools.partial(measure, False),
    }
    results = _common.interleave(columns, args.repeats)
    _common.print_table(results, f"steps/s, {name}", UNBOUNDED, digits=3)
    batches.close()


if __name__ == "__main__":
  main()
