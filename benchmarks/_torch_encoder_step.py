"""PyTorch's training step of a span tracker, for encoder_step.py in the peers' environment.

  python _torch_encoder_step.py DTYPE FRAMES

DTYPE is float32 or bfloat16 (autocast: float32 parameters, products in bfloat16). The encoder is
`transformers`' BertModel with plain attention and dropout of activations, its embeddings frozen;
heads of the same sizes as ours. Frames of similar lengths are batched, padded to multiples of 64.
"""

from __future__ import annotations

import json
import os
import sys
import time

import _encoder_frames
import numpy as np

_BATCHES, _GRAIN = 4, 64


def main() -> None:
  """Takes steps on request."""
  import torch
  from torch import nn
  from transformers import BertConfig, BertModel

  dtype, number = sys.argv[1], int(sys.argv[2])
  torch.set_num_threads(os.cpu_count() or 1)
  torch.manual_seed(0)
  config = BertConfig(
    vocab_size=_encoder_frames.VOCAB_SIZE, hidden_size=384, num_hidden_layers=6,
    num_attention_heads=12, intermediate_size=1536, attention_probs_dropout_prob=0.0,
    attn_implementation="eager",
  )  # fmt: skip

  def classes(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(384, 384), nn.GELU(), nn.Linear(384, outputs))

  encoder = BertModel(config, add_pooling_layer=False).train()
  encoder.embeddings.requires_grad_(False)
  pointers = nn.ModuleList([nn.Linear(384, 384) for _ in range(4)])
  options = nn.ModuleList([nn.Linear(384, 384), nn.Linear(384, 384), nn.Linear(384, 1)])
  heads = nn.ModuleDict({"kinds": classes(5), "requested": classes(1), "intents": classes(1)})
  modules = nn.ModuleList([encoder, pointers, options, *heads.values()])
  trained = [p for p in modules.parameters() if p.requires_grad]
  optimizer = torch.optim.AdamW(trained, lr=1e-4)
  ce = nn.functional.cross_entropy

  def loss_of(batch) -> torch.Tensor:
    hidden = encoder(
      input_ids=batch["inputs"], token_type_ids=batch["types"], attention_mask=batch["mask"]
    ).last_hidden_state

    def at(name: str) -> torch.Tensor:
      return hidden.gather(1, batch[name][..., None].expand(-1, -1, 384))

    slots = at("slots")
    starts, ends = (torch.einsum("bse,ble->bsl", pointers[i](slots), hidden) for i in (0, 1))
    memory = torch.einsum("bse,bme->bsm", pointers[2](slots), pointers[3](at("memory")))
    owners = slots[:, batch["owners"]]
    values = options[2](nn.functional.gelu(options[0](at("values")) + options[1](owners)))
    values = values[..., 0][:, None].expand(-1, slots.shape[1], -1)
    choices = torch.cat([heads["kinds"](slots), values, memory], dim=-1).float()
    spoken = batch["spoken"][:, None] == 0
    starts, ends = (x.float().masked_fill(spoken, -1e9)[:, 0] for x in (starts, ends))
    loss = ce(choices.flatten(0, 1), batch["right"].flatten()) + ce(starts, batch["start"])
    requested = nn.functional.softplus(heads["requested"](slots).float()).mean()
    intents = heads["intents"](at("intents")).float()[..., 0]
    return loss + ce(ends, batch["start"] + 1) + requested + ce(intents, batch["intent"])

  def step(batch) -> None:
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
      loss = loss_of(batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()

  batches, tokens = _batches(number)
  batches = [{name: torch.tensor(x) for name, x in batch.items()} for batch in batches]
  step(batches[-1])
  about = {"tokens_per_step": tokens / _BATCHES, "frames_per_step": number}
  print("READY", json.dumps(about), flush=True)
  taken = 0
  for line in sys.stdin:
    started = time.perf_counter()
    for _ in range(int(line)):
      step(batches[taken % _BATCHES])
      taken += 1
    print("SECONDS", time.perf_counter() - started, flush=True)


def _batches(number: int) -> tuple[list[dict[str, np.ndarray]], int]:
  frames = sorted(_encoder_frames.frames(_BATCHES * number), key=lambda frame: len(frame["inputs"]))
  batches, tokens = [], 0
  for i in range(_BATCHES):
    part = frames[i * number : (i + 1) * number]
    longest = -(-len(part[-1]["inputs"]) // _GRAIN) * _GRAIN
    tokens += sum(len(frame["inputs"]) for frame in part)

    def padded(name: str, part=part, longest=longest) -> np.ndarray:
      rows = [np.pad(f[name], (0, longest - len(f[name]))) for f in part]
      return np.stack(rows).astype(np.int64)

    segments = padded("segments")
    targets = np.stack([f["targets"].reshape(-1, 4) for f in part]).astype(np.int64)
    right = np.zeros((number, _encoder_frames.SLOTS), np.int64)
    right[:, :3] = [4, 6, 1]
    batch = {
      "inputs": padded("inputs"),
      "types": (segments >= 4).astype(np.int64),
      "mask": (segments > 0).astype(np.int64),
      "spoken": np.isin(segments, [1, 2]).astype(np.int64),
      "owners": np.arange(_encoder_frames.VALUES) % _encoder_frames.SLOTS,
      "right": right,
      "start": targets[:, 0, 2],
      "intent": np.zeros(number, np.int64),
    }
    for name in ("slots", "values", "memory", "intents"):
      batch[name] = np.stack([f[name] for f in part]).astype(np.int64)
    batches.append(batch)
  return batches, tokens


if __name__ == "__main__":
  main()
