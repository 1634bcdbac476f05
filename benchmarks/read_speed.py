"""Measures the frames/s that SpanDST reads on a CPU: NumPy, JAX, and PyTorch and ONNX Runtime.

  SGDX_ENCODER=minilm python benchmarks/read_speed.py PACKED --corpus sgd.zip \
    --checkpoint MODEL_DIR --peers PYTHON

PACKED is a folder of `sgdx weights pack`, MODEL_DIR the training run that it was made from. Each
round reads other frames of test, so that no answer is cached. Peers get the sums of the embeddings
and run only the encoder's layers, without heads; frames of similar lengths are batched. `--peers`
is an interpreter with torch, onnx, onnxscript and onnxruntime. The target is 1.0 x the best.
"""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence

import _common
import numpy as np
from train_step import Driver, script

import sgdx_t5x
from sgdx_t5x.spandst import numpy_network
from sgdx_t5x.tracking.protocol import Shown
from sgdx_t5x.tracking.spandst import SpanDST

NUMPY, JAX = "NumPy (packed)", "JAX (checkpoint)"
PEERS = ("PyTorch, bfloat16", "PyTorch, float32", "ONNX Runtime, float32")
Features = Mapping[str, Sequence[int]]


def main() -> None:
  """Collects frames, starts the peers, measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=5)
  parser.add_argument("packed", type=pathlib.Path)
  parser.add_argument("--corpus", required=True, help="the official SGD archive")
  parser.add_argument("--checkpoint", help="of t5x.train: measures JAX, too")
  parser.add_argument("--peers", metavar="PYTHON", help="with torch, onnx and onnxruntime")
  parser.add_argument("--frames", type=int, default=128, help="per measurement (default 128)")
  args = parser.parse_args()
  trackers = {NUMPY: sgdx_t5x.load_tracker(str(args.packed)).tracker}
  if args.checkpoint:
    trackers[JAX] = sgdx_t5x.load_tracker(args.checkpoint).tracker
  number = args.frames * (args.repeats + 1)  # one part to warm up
  frames = collect_frames(trackers[NUMPY], args.corpus, number)
  parts = [frames[i :: args.repeats + 1] for i in range(args.repeats + 1)]  # of similar lengths
  columns = {
    name: functools.partial(read, tracker._model.answer, iter(parts))
    for name, tracker in trackers.items()
  }
  work = (args.work_dir / "read_speed").resolve()
  work.mkdir(parents=True, exist_ok=True)
  drivers = []
  try:
    for name in PEERS if args.peers else ():
      network = trackers[NUMPY]._model.network
      np.savez(work / "frames.npz", **embedded(network, parts), **network._arrays)
      command = [args.peers, script("_torch_reading.py"), str(work / "frames.npz"), name]
      drivers.append(Driver(command, work / f"{_common.slug(name)}.log", _common.environment()))
      columns[name] = functools.partial(lambda x: args.frames * x.steps_per_second(1), drivers[-1])
    for measure in columns.values():
      measure()
    results = _common.interleave(columns, args.repeats)
  finally:
    for driver in drivers:
      driver.close()
  _common.print_table(results, "frames/s", NUMPY, 1)


def collect_frames(tracker: SpanDST, corpus: str, number: int) -> list[Features]:
  """Returns the features of the first frames of test that are tracked."""
  opened = sgdx_t5x.open_corpus(corpus)
  schema = opened.schema("test")
  shown = Shown("test", "original", schema, schema)
  frames: list[Features] = []
  answer = tracker._model.network.answer

  def recorded(features: Sequence[Features]) -> list[list[int]]:
    frames.extend(features)
    return answer(features)

  tracker._model.network.answer = recorded
  dialogues = opened["test"][::17]  # over all services
  for start in range(0, len(dialogues), 4):
    for _ in tracker.track(dialogues[start : start + 4], shown):
      pass
    if len(frames) >= number:
      break
  tracker._model.network.answer = answer
  tracker._model._answers.clear()
  return frames[:number]


def read(answer, parts: Iterator[Sequence[Features]]) -> float:
  """Reads the next part; returns frames/s."""
  part = next(parts)
  started = time.perf_counter()
  answer(part)
  return len(part) / (time.perf_counter() - started)


def embedded(
  network: numpy_network.SpanNetwork, parts: Sequence[Sequence[Features]]
) -> dict[str, np.ndarray]:
  """Returns the encoder's inputs, `[T, E]`, and the lengths of the frames in each part."""
  sums = [
    network._norm("encoder/embedding_layer_norm", network._embed(numpy_network._frame(x)))
    for part in parts
    for x in part
  ]
  lengths = [[len(x["inputs"]) for x in part] for part in parts]
  return {"embedded": np.concatenate(sums), "lengths": np.array(lengths)}


if __name__ == "__main__":
  main()
