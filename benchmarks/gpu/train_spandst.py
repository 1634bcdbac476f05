"""Trains SpanDST on one GPU and tracks test with it, without TensorFlow, SeqIO and gin files.

  python benchmarks/gpu/train_spandst.py DATA OUT [--steps 11700] [--seconds 300]

DATA is the folder of `prepare_training.py`. OUT gets predictions for `sgdx score`, not the weights.
Training ends after --seconds, compilation excluded, also where its schedule is not at its end.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from collections.abc import Iterator

import _engine
import jax
import numpy as np
import spandst
from flax import traverse_util

import sgdx_t5x
from sgdx_t5x.corpus.schema import Schema, load_schema
from sgdx_t5x.spandst import encoder, optimizer
from sgdx_t5x.spandst.span_features import LENGTHS
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.tracking.predicting import track_split
from sgdx_t5x.tracking.spandst import SpanDST

_PORTION = 100  # steps between two lines, and between two looks at the clock


def main() -> None:
  """Trains and tracks."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("data", type=pathlib.Path, help="the folder of prepare_training.py")
  parser.add_argument("out", type=pathlib.Path, help="folder for the predictions")
  parser.add_argument("--steps", type=int, help="(all that were prepared)")
  parser.add_argument("--seconds", type=float, default=300, help="of training, at most (300)")
  args = parser.parse_args()
  started = time.time()
  config = json.loads((args.data / "config.json").read_text())
  steps = args.steps or config["steps"]
  on_gpu = jax.default_backend() != "cpu"
  sizes = encoder.BertConfig(
    **config["encoder"],
    dtype="bfloat16" if on_gpu else "float32",
    dropout_rate=0.0,
    freeze_embeddings=True,
  )
  model = spandst.span_dst(sizes, optimizer.warmup_schedule(1e-4, steps))

  arrays: dict[str, np.ndarray] = {}
  for path in sorted(args.data.glob("weights-*.npz")):
    with np.load(path) as file:
      arrays |= dict(file)
  trained, done = train(model, arrays, batches(args.data), steps, args.seconds)
  print(f"{done:,} of {steps:,} steps, {time.time() - started:.0f} s", flush=True)

  tracker = SpanDST(
    spandst.Model(model, trained, LENGTHS),
    SpanStyle(**config["style"]),
    WordPieceFile(args.data),
  )
  corpus = sgdx_t5x.open_corpus(args.data / "corpus")
  schemas = {"original": corpus.schema("test"), **other_wordings(args.data)}
  for tracked in track_split(tracker, corpus, "test", schemas, args.out, overwrite=True):
    print(f"{tracked.folder}: {tracked.frames:,} frames, {time.time() - started:.0f} s", flush=True)


def batches(data: pathlib.Path) -> Iterator[dict[str, np.ndarray]]:
  """Yields the batches of training, {feature: int32 `[rows, L]`}."""
  for path in sorted(data.glob("rows-*.npz")):
    with np.load(path) as file:
      features = dict(file)
    for step in range(len(next(iter(features.values())))):
      yield {name: x[step].astype(np.int32) for name, x in features.items()}


def train(model, arrays, stream, steps: int, seconds: float) -> tuple[dict[str, np.ndarray], int]:
  """Returns the parameters after training, and the steps that it took."""
  first = next(stream)
  shapes = {name: x.shape for name, x in first.items()}
  loaded = _engine.Loaded(model, arrays, shapes, trains=True)
  trainer, on_device = loaded.trainer(), loaded.stream(stream)
  trainer.train(loaded.stream([first]), 1)  # compiles
  done, started = 1, time.time()
  while done < steps and time.time() - started < seconds:
    portion = min(_PORTION, steps - done)
    summary = trainer.train(on_device, portion).result()
    done += portion
    loss, took = summary["loss"].value, time.time() - started
    print(f"step {done:,}: loss {loss:.3f}, {took:.0f} s", flush=True)
  on_device.close()
  parameters = traverse_util.flatten_dict(dict(trainer.train_state.params), sep="/")
  return jax.device_get(parameters), done


def other_wordings(data: pathlib.Path) -> dict[str, Schema]:
  """Returns the schemas of v1 to v5."""
  schemas = {}
  for path in sorted(data.glob("v?.json")):
    schemas[path.stem] = load_schema(path.read_bytes(), str(path))
  return schemas


if __name__ == "__main__":
  main()
