"""MiniLM's layers in PyTorch or ONNX Runtime, for read_speed.py in the peers' environment.

  python _torch_reading.py FRAMES.npz "PyTorch, bfloat16"

Frames are sorted by length and batched by 32, padded to the longest of the batch.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

_BATCH, _HEADS = 32, 12


class Layer(nn.Module):
  """A layer of BERT: queries, keys and values are one product."""

  def __init__(self, arrays, name: str):
    super().__init__()
    for part in ("joined", "out", "wi", "wo"):
      kernel, bias = (torch.tensor(arrays[f"{name}/{part}/{x}"]) for x in ("kernel", "bias"))
      if part == "joined":  # its queries are scaled for NumPy; attention does it here
        width = kernel.shape[0]
        kernel[:, :width] *= (width / _HEADS) ** 0.5
        bias[:width] *= (width / _HEADS) ** 0.5
      linear = nn.Linear(*kernel.shape)
      linear.weight.data, linear.bias.data = kernel.T.contiguous(), bias
      self.add_module(part, linear)
    for part in ("attention_layer_norm", "mlp_layer_norm"):
      norm = nn.LayerNorm(width, eps=1e-12)
      norm.weight.data, norm.bias.data = (
        torch.tensor(arrays[f"{name}/{part}/{x}"]) for x in ("scale", "bias")
      )
      self.add_module(part, norm)

  def forward(self, x, mask):
    """`[B, L, E]`, `[B, 1, 1, L]` (bool) -> `[B, L, E]`."""
    batch, length, width = x.shape
    joined = self.joined(x).view(batch, length, 3, _HEADS, width // _HEADS)
    queries, keys, values = joined.permute(2, 0, 3, 1, 4)
    y = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    y = y.transpose(1, 2).reshape(batch, length, width)
    x = self.attention_layer_norm(x + self.out(y))
    return self.mlp_layer_norm(x + self.wo(functional.gelu(self.wi(x))))


class Encoder(nn.Module):
  """All layers."""

  def __init__(self, arrays):
    super().__init__()
    number = sum(name.endswith("/wi/kernel") for name in arrays)
    self.layers = nn.ModuleList(Layer(arrays, f"encoder/layers_{i}") for i in range(number))

  def forward(self, x, mask):
    """See `Layer`."""
    for layer in self.layers:
      x = layer(x, mask)
    return x


def main() -> None:
  """Reads a part of the frames on request."""
  arrays, name = np.load(sys.argv[1]), sys.argv[2]
  torch.set_num_threads(os.cpu_count() or 1)
  torch.set_grad_enabled(False)
  encoder = Encoder(arrays).eval()
  dtype = torch.bfloat16 if "bfloat16" in name else torch.float32
  run = encoder.to(dtype)
  if name.startswith("ONNX"):
    run = onnx_session(encoder, pathlib.Path(sys.argv[1]).with_suffix(".onnx"))
  parts = batches(arrays["embedded"], arrays["lengths"], dtype)
  print("READY {}", flush=True)
  for i, _ in enumerate(sys.stdin):
    started = time.perf_counter()
    for x, mask in parts[i % len(parts)]:
      run(x, mask)
    print("SECONDS", time.perf_counter() - started, flush=True)


def batches(embedded, lengths, dtype):
  """Returns a list of `(x, mask)` for each part."""
  parts, start = [], 0
  for of_part in lengths:
    frames = []
    for length in of_part:
      frames.append(embedded[start : start + length])
      start += length
    frames.sort(key=len)
    part = []
    for first in range(0, len(frames), _BATCH):
      batch = frames[first : first + _BATCH]
      x = np.zeros((len(batch), len(batch[-1]), embedded.shape[-1]), np.float32)
      mask = np.zeros((len(batch), 1, 1, x.shape[1]), bool)
      for row, frame in enumerate(batch):
        x[row, : len(frame)] = frame
        mask[row, ..., : len(frame)] = True
      part.append((torch.tensor(x, dtype=dtype), torch.tensor(mask)))
    parts.append(part)
  return parts


def onnx_session(encoder, path):
  """Exports the encoder; returns a function that runs it in ONNX Runtime."""
  import onnxruntime

  x, mask = torch.zeros(2, 8, 384), torch.ones(2, 1, 1, 8, dtype=torch.bool)
  axes = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("length", min=2)}
  torch.onnx.export(
    encoder, (x, mask), path, dynamo=True, dynamic_shapes=(axes, {0: axes[0], 3: axes[1]})
  )
  session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
  first, second = (value.name for value in session.get_inputs())
  return lambda x, mask: session.run(None, {first: x.numpy(), second: mask.numpy()})


if __name__ == "__main__":
  main()
