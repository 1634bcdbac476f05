"""A packed SpanDST of one layer with random weights, on MiniLM's embeddings."""

import dataclasses

import numpy as np

from sgdx_t5x.spandst import packed
from sgdx_t5x.spandst.act_reader import ACTS
from sgdx_t5x.spandst.span_features import LENGTHS
from sgdx_t5x.spandst.span_text import SpanStyle

WIDTH, HEADS, LAYERS = 384, 12, 1
CONFIG = packed.PackedConfig(
  num_heads=HEADS,
  epsilon=1e-12,
  lexical=True,
  pooled=True,
  longest_span=14,
  style=dataclasses.asdict(SpanStyle(plain_text=0.5)),
  lengths=LENGTHS,
  trained_on="plain_spandst_sgd",
  step=1,
  bits=8,
)


def arrays():
  """Random weights of a SpanDST with one layer on MiniLM's embeddings."""
  rng, found = np.random.default_rng(0), {}

  def dense(name, rows, columns):
    found[f"{name}/kernel"] = rng.normal(0, 0.05, (rows, columns)).astype(np.float32)
    found[f"{name}/bias"] = rng.normal(0, 0.05, columns).astype(np.float32)

  def norm(name):
    found[f"{name}/scale"] = np.ones(WIDTH, np.float32)
    found[f"{name}/bias"] = np.zeros(WIDTH, np.float32)

  norm("encoder/embedding_layer_norm")
  for layer in (f"encoder/layers_{i}" for i in range(LAYERS)):
    for name in ("query", "key", "value", "out"):
      dense(f"{layer}/{name}", WIDTH, WIDTH)
    dense(f"{layer}/wi", WIDTH, 4 * WIDTH)
    dense(f"{layer}/wo", 4 * WIDTH, WIDTH)
    norm(f"{layer}/attention_layer_norm")
    norm(f"{layer}/mlp_layer_norm")
  dense("encoder/pooler", WIDTH, WIDTH)
  for name, outputs in (("kinds", 5), ("requested", 1), ("no_intent", 1), ("intents", 1)):
    dense(f"{name}/hidden", WIDTH, WIDTH)
    dense(f"{name}/logits", WIDTH, outputs)
  for name in ("starts/query", "ends/query", "memory/query", "memory/key"):
    dense(name, WIDTH, WIDTH)
  dense("values/option", WIDTH, WIDTH)
  dense("values/owner", WIDTH, WIDTH)
  dense("values/logits", WIDTH, 1)
  for name, rows in (("marks/embedding", 10), ("marks/texts", 160)):
    found[name] = rng.normal(0, 0.02, (rows, WIDTH)).astype(np.float32)
  for name in ("slot_context", "intent_context"):
    found[f"{name}/embedding"] = rng.normal(0, 0.02, (15, WIDTH)).astype(np.float32)
  return found


def act_arrays():
  """Random weights of an `ActReader`."""
  rng, found = np.random.default_rng(1), {}
  sizes = {"hidden": (WIDTH, 8), "logits": (8, len(ACTS)), "starts": (WIDTH, WIDTH)}
  sizes["ends"] = sizes["starts"]
  for name, (rows, columns) in sizes.items():
    found[f"{name}/kernel"] = rng.normal(0, 1, (rows, columns)).astype(np.float32)
    found[f"{name}/bias"] = np.zeros(columns, np.float32)
  return found
