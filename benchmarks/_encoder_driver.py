"""Times training steps of the span tracker on MiniLM's sizes; a child process.

  python _encoder_driver.py OPERANDS ROWS LENGTH

OPERANDS is what `utils.cpu_matmul` takes. Rows are packed. Communicates with its parent like
_step_driver.py: READY, a number of steps, SECONDS.
"""

from __future__ import annotations

import json
import sys
import time

import _encoder_frames
import jax
import numpy as np

from sgdx_t5x.spandst import features, optimizer, span_model
from sgdx_t5x.spandst.encoder import BertConfig
from t5x import optimizers, utils

_BATCHES = 4
_LISTS = {"slots": 32, "values": 40, "memory": 20, "intents": 10}
_FROZEN = "encoder/(token|position|type)_embedder"


def main() -> None:
  """Takes steps on request."""
  operands, rows, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
  utils.cpu_matmul(operands)
  config = BertConfig(
    _encoder_frames.VOCAB_SIZE, 384, 12, 6, 1536, 512, dropout_rate=0.1, freeze_embeddings=True
  )
  adam = optimizer.bert_adam(1e-4, frozen=[_FROZEN])
  model = span_model.SpanModel(
    span_model.SpanTracker(config), features.numbers(), features.numbers(),
    optimizers.chain([adam]),
  )  # fmt: skip
  batches = _batches(rows, length)
  shapes = {name: array.shape for name, array in batches[0].items()}
  params = model.get_initial_variables(jax.random.key(0), shapes)["params"]
  state = model.optimizer_def.create(params)

  def step(state, batch, rng):
    gradient = jax.grad(lambda p: model.loss_fn(p, batch, rng)[0])
    return state.apply_gradient(gradient(state.target))

  step = jax.jit(step, donate_argnums=0)
  on_device = [jax.device_put(batch) for batch in batches]
  tokens = float(np.mean([(batch["encoder_frames"] > 0).sum() for batch in batches]))
  frames = float(np.mean([batch["encoder_frames"].max(axis=-1).sum() for batch in batches]))
  state = jax.block_until_ready(step(state, on_device[0], jax.random.key(1)))
  about = {"tokens_per_step": tokens, "frames_per_step": frames, "filled": tokens / rows / length}
  print("READY " + json.dumps(about), flush=True)
  taken = 1
  for line in sys.stdin:
    started = time.perf_counter()
    for _ in range(int(line)):
      state = step(state, on_device[taken % _BATCHES], jax.random.key(taken))
      taken += 1
    jax.block_until_ready(state)
    print(f"SECONDS {time.perf_counter() - started}", flush=True)


def _batches(rows: int, length: int) -> list[dict[str, np.ndarray]]:
  lengths = {"inputs": length, "segments": length, "targets": 120}
  lengths |= {**_LISTS, "slot_context": 32, "value_slots": 40, "intent_context": 10}
  converter = features.SpanFeatureConverter(pack=True)
  lengths = converter.get_model_feature_lengths(lengths)
  frames = _encoder_frames.frames(_BATCHES * rows * 5)
  packed = [
    features.pack([frames[i] for i in row], lengths) for row in features.rows_of(frames, lengths)
  ]
  order = np.random.default_rng(0).permutation(len(packed))[: _BATCHES * rows]
  return [
    {name: np.stack([packed[i][name] for i in part]) for name in packed[0]}
    for part in np.split(order, _BATCHES)
  ]


if __name__ == "__main__":
  main()
