"""PyTorch's training step of T5 Small, for benchmarks/train_step.py in the peers' environment.

  python _torch_step.py DTYPE ROWS LENGTHS

DTYPE is float32 or bfloat16 (autocast: float32 parameters, products in bfloat16). LENGTHS is a JSON
list of [inputs, targets], the lengths of the batches to take in turn. Random tokens in rows of full
length, which cost as much as padded ones; Adafactor, dropout, no clipping, as in gin/t5dst.gin.
Communicates with its parent like _step_driver.py: READY, a number of steps, SECONDS.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time

_VOCABULARY = 32128


def main() -> None:
  """Takes steps on request."""
  import torch
  from transformers import Adafactor, T5Config, T5ForConditionalGeneration

  dtype = sys.argv[1]
  rows, lengths = int(sys.argv[2]), json.loads(sys.argv[3])
  torch.set_num_threads(os.cpu_count() or 1)
  torch.manual_seed(0)
  config = T5Config(
    vocab_size=_VOCABULARY, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8,
    dropout_rate=0.1, decoder_start_token_id=0, pad_token_id=0,
  )  # fmt: skip
  model = T5ForConditionalGeneration(config).train()
  optimizer = Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=True)
  batches = itertools.cycle(
    [[torch.randint(1, _VOCABULARY, (rows, n)) for n in pair] for pair in lengths]
  )

  def step() -> None:
    ids, labels = next(batches)
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
      loss = model(input_ids=ids, labels=labels).loss
    loss.backward()
    optimizer.step()

  for _ in lengths:
    step()
  print("READY", json.dumps({"examples_per_step": rows, "torch": torch.__version__}), flush=True)
  for line in sys.stdin:
    started = time.perf_counter()
    for _ in range(int(line)):
      step()
    print("SECONDS", time.perf_counter() - started, flush=True)


if __name__ == "__main__":
  main()
