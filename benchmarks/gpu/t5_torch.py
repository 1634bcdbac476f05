"""The same work as t5_jax.py with `transformers` on PyTorch at its best; a child process.

  python t5_torch.py train WEIGHTS DATA ROWS
  python t5_torch.py answer WEIGHTS PROMPTS ROWS MOST OUTPUT [NUMBER]

Training: bfloat16 by autocast, `torch.compile`, scaled dot product attention, fused AdamW. It takes
the same rows; examples side by side in one see each other, which costs the same. Answers: weights
in bfloat16, batches of similar lengths; of a compiled encoder with a growing cache, and a cache of
fixed size with a compiled decoding step, the faster.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib
import sys
import time

import _data
import torch
from transformers import T5ForConditionalGeneration

_GRAIN = 128  # batches are padded to few lengths: each is compiled
_START = 0
_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load(folder: str, dtype: torch.dtype) -> T5ForConditionalGeneration:
  """Returns the model on the device."""
  model = T5ForConditionalGeneration.from_pretrained(
    folder, dtype=dtype, attn_implementation="sdpa"
  )
  return model.to(_DEVICE)


def train(folder: str, data: str, rows: int) -> None:
  """Takes training steps on request."""
  model = load(folder, torch.float32).train()
  compiled = torch.compile(model)
  optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
  packed = _data.batches(pathlib.Path(data, "t5dst.npz"), rows)
  stream = itertools.cycle(map(on_device, packed))

  def steps(number: int) -> None:
    for _ in range(number):
      optimizer.zero_grad()
      with torch.autocast(_DEVICE, torch.bfloat16):
        loss = compiled(**next(stream)).loss
      loss.backward()
      optimizer.step()
    synchronize()

  steps(len(packed))
  serve(steps, {**_data.about(packed, _data.T5_TOKENS), "attention": attention(model)})


def on_device(batch: dict) -> dict[str, torch.Tensor]:
  """Returns a batch as `transformers` names its features."""
  ids, targets, inputs = (
    torch.tensor(batch[name], dtype=torch.long)
    for name in ("encoder_input_tokens", "decoder_target_tokens", "decoder_input_tokens")
  )
  labels = targets.masked_fill(targets == 0, -100)
  features = {"input_ids": ids, "attention_mask": (ids > 0).long()}
  features |= {"labels": labels, "decoder_input_ids": inputs}
  return {name: x.to(_DEVICE) for name, x in features.items()}


def answer(
  folder: str, path: str, rows: int, most: int, output: str, number: int | None = None
) -> None:
  """Answers all prompts on request."""
  model = load(folder, torch.bfloat16).eval()
  prompts = _data.prompts(path)[:number]
  order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
  parts = [order[start : start + rows] for start in range(0, len(order), rows)]
  generate = functools.partial(
    model.generate, max_new_tokens=most, do_sample=False, num_beams=1,
    decoder_start_token_id=_START, eos_token_id=_data.EOS, pad_token_id=0,
  )  # fmt: skip

  def answers_of(part: list[int], **options) -> list[list[int]]:
    width = -(-len(prompts[part[0]]) // _GRAIN) * _GRAIN
    ids = torch.zeros(rows, width, dtype=torch.long)
    for i, number in enumerate(part):
      ids[i, : len(prompts[number])] = torch.from_numpy(prompts[number])
    ids[len(part) :] = ids[len(part) - 1]  # so that each width is one shape
    ids = ids.to(_DEVICE)
    found = generate(input_ids=ids, attention_mask=(ids > 0).long(), **options)
    return [_data.until_end(row[1:]) for row in found[: len(part)].tolist()]

  def one_pass(options: dict) -> list[list[int]]:
    answers: list[list[int]] = [[]] * len(prompts)
    for part in parts:
      for number, ids in zip(part, answers_of(part, **options), strict=True):
        answers[number] = ids
    return answers

  model.encoder = torch.compile(model.encoder)
  seconds, failures = {}, {}
  for cache in ("dynamic", "static"):
    options = {"cache_implementation": cache}
    try:
      with torch.inference_mode():
        widths = {-(-len(prompts[part[0]]) // _GRAIN): part for part in parts}
        for part in widths.values():  # compiles
          answers_of(part, **options)
          answers_of(part, **options)
        started = time.perf_counter()
        found = one_pass(options)
        seconds[cache] = time.perf_counter() - started
    except Exception as e:  # the other one may work
      failures[cache] = f"{type(e).__name__}: {e}"[:300]
      continue
    if seconds[cache] == min(seconds.values()):
      pathlib.Path(output).write_text(json.dumps(found))
  if not seconds:
    sys.exit(f"transformers could not answer: {failures}")
  best = {"cache_implementation": min(seconds, key=seconds.get)}

  def passes(number: int) -> None:
    with torch.inference_mode():
      for _ in range(number):
        one_pass(best)

  about = {"prompts": len(prompts), "rows": rows, "attention": attention(model)}
  serve(passes, about | best | {"first passes, seconds": seconds, "failures": failures})


def attention(model: T5ForConditionalGeneration) -> str:
  """Returns the name of the attention that the model really uses."""
  return str(model.config._attn_implementation)


def synchronize() -> None:
  """Waits for the device."""
  if _DEVICE == "cuda":
    torch.cuda.synchronize()


def serve(take, about: dict) -> None:
  """Says that all is compiled; then takes steps on request and prints their seconds."""
  peak = torch.cuda.max_memory_allocated() if _DEVICE == "cuda" else 0
  about |= {"torch": torch.__version__, "peak_gb": round(peak / 1e9, 1)}
  print("READY " + json.dumps(about), flush=True)
  for line in sys.stdin:
    started = time.perf_counter()
    take(int(line))
    synchronize()
    print(f"SECONDS {time.perf_counter() - started}", flush=True)


def main() -> None:
  """See the module."""
  work, folder, data, rows, *rest = sys.argv[1:]
  torch.manual_seed(0)
  torch.set_float32_matmul_precision("high")
  if work == "train":
    train(folder, data, int(rows))
  else:
    answer(folder, data, int(rows), int(rest[0]), rest[1], *map(int, rest[2:]))


if __name__ == "__main__":
  main()
