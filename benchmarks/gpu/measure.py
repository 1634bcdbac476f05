"""Measures T5DST and SpanDST on one GPU beside `transformers`; `run.sh` starts it.

Every column is a process of its own. All start together, so that they compile side by side; then
they work in turn (A B C A B C ...), one at a time. Prints a table, and writes all figures as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Mapping
from concurrent import futures

import _common
import numpy as np
from train_step import Driver

from sgdx_t5x.weights import huggingface, layout

FOLDER = pathlib.Path(__file__).parent
SMALL = layout.Sizes(32128, 512, 6, 64, 1024, 8, 8, gated=True, tied=False)
BASE = layout.Sizes(32128, 768, 12, 64, 2048, 12, 12, gated=True, tied=False)
SIZES = {"Small": SMALL, "Base": BASE}
SIZES["tiny"] = layout.Sizes(32128, 64, 2, 32, 128, 2, 2, gated=True, tied=False)
TRAINED = "trained"
# FLOP/s of dense products of bfloat16, from NVIDIA's data sheets.
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
OURS, PYTORCH = "T5X", "PyTorch"
EQUAL = "answers equal to T5X's"


@dataclasses.dataclass(frozen=True)
class Column:
  """A process to measure.

  Attributes:
    work: what it does, a row of the table.
    engine: OURS or PYTORCH.
    command: starts it.
    size: of its T5; "" for SpanDST.
    unit: key of `about` that says how many units a step or pass has.
    answers: file of its answers, if it gives any.
  """

  work: str
  engine: str
  command: list[str]
  size: str
  unit: str
  answers: pathlib.Path | None = None

  @property
  def name(self) -> str:
    """See `work` and `engine`."""
    return f"{self.work}, {self.engine}"


def write_weights(sizes: layout.Sizes, folder: pathlib.Path) -> None:
  """Writes random weights of T5's initial sizes, the same for the same sizes."""
  random = np.random.default_rng(0)
  arrays = {}
  for tensor in layout.tensors(sizes):
    array = np.ones(tensor.shape, np.float32)
    if not tensor.t5x.endswith("scale"):
      fan_in = 1 if tensor.t5x.endswith("embedding") else tensor.shape[0]
      fan_in *= sizes.head_dim if tensor.t5x.endswith("query/kernel") else 1
      array = random.standard_normal(tensor.shape, np.float32) / np.sqrt(np.float32(fan_in))
    arrays[tensor.t5x] = array
  huggingface.write_huggingface(layout.Weights(sizes, arrays), folder)


def columns_of(args: argparse.Namespace, work: pathlib.Path) -> list[Column]:
  """Returns the processes to measure."""
  engines = {OURS: (sys.executable, "t5_jax.py")}
  if args.peers:
    engines[PYTORCH] = (args.peers, "t5_torch.py")
  models = {size: (work / size, args.data / "prompts.npz") for size in args.sizes}
  if (args.data / TRAINED).is_dir():
    models[TRAINED] = (args.data / TRAINED, args.data / TRAINED / "prompts.npz")
  columns = []
  for size, (weights, prompts) in models.items():
    if size != TRAINED:
      write_weights(SIZES[size], weights)
    for engine, (python, script) in engines.items():
      command = [python, str(FOLDER / script)]
      if size != TRAINED:
        train = [*command, "train", str(weights), str(args.data), str(args.train_rows)]
        work_name = f"T5 1.1 {size}, training step"
        columns.append(Column(work_name, engine, train, size, "tokens_per_step"))
      out = work / f"{_common.slug(size + engine)}.json"
      answer = [*command, "answer", str(weights), str(prompts), str(args.answer_rows)]
      answer += [str(args.decode), str(out), *([str(args.prompts)] if args.prompts else [])]
      columns.append(Column(f"T5 1.1 {size}, answers", engine, answer, size, "prompts", out))
  spandst = [sys.executable, str(FOLDER / "spandst.py")]
  for rows in args.spandst_rows:
    command = [*spandst, "train", str(args.data), str(rows)]
    name = f"SpanDST, training step, {rows} rows"
    columns.append(Column(name, OURS, command, "", "tokens_per_step"))
  command = [*spandst, "track", str(args.data), str(args.dialogues)]
  columns.append(Column("SpanDST, tracking", OURS, command, "", "frames"))
  return columns


def flops_of_step(sizes: layout.Sizes, rows: int, inputs: int, targets: int) -> float:
  """Returns the operations of a training step: 3 x those of the products of a forward pass.

  Padding counts: it is computed. Softmax, norms and the optimizer do not.
  """
  params = {"encoder": 0, "decoder": 0, "cross": 0}
  for tensor in layout.tensors(sizes):
    if not tensor.t5x.endswith("kernel"):
      continue
    is_cross = "encoder_decoder_attention/key" in tensor.t5x
    is_cross |= "encoder_decoder_attention/value" in tensor.t5x
    stack = "cross" if is_cross else tensor.t5x.split("/")[0]
    params[stack] += int(np.prod(tensor.shape))
  products = inputs * (params["encoder"] + params["cross"]) + targets * params["decoder"]
  pairs = sizes.num_encoder_layers * inputs**2
  pairs += sizes.num_decoder_layers * (targets**2 + targets * inputs)
  attention = 2 * pairs * sizes.num_heads * sizes.head_dim  # scores, and weights times values
  return 3.0 * rows * 2 * (products + attention)


def main() -> None:
  """Starts the processes, measures, prints the table, writes the figures."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("data", type=pathlib.Path, help="the folder of prepare.py")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the figures, JSON")
  parser.add_argument("--work-dir", type=pathlib.Path, required=True, help="weights and logs; new")
  parser.add_argument("--peers", help="interpreter with torch and transformers")
  parser.add_argument("--sizes", nargs="*", default=["Small", "Base"], choices=SIZES)
  parser.add_argument("--train-rows", type=int, default=32, help="packed rows of 512 + 64 tokens")
  parser.add_argument("--answer-rows", type=int, default=256, help="prompts in a batch")
  parser.add_argument("--prompts", type=int, help="how many of them (default all)")
  parser.add_argument("--decode", type=int, default=16, help="tokens of an answer")
  parser.add_argument("--spandst-rows", type=int, nargs="*", default=[4, 64])
  parser.add_argument("--dialogues", type=int, default=256, help="that SpanDST tracks")
  parser.add_argument("--ready", type=float, default=150, help="seconds to start and compile in")
  parser.add_argument("--seconds", type=float, default=220, help="in all; at least one round")
  parser.add_argument("--steps", type=int, default=20, help="training steps of a measurement")
  args = parser.parse_args()
  begin = time.monotonic()
  args.work_dir.mkdir(parents=True)
  columns = columns_of(args, args.work_dir.resolve())

  # Several processes share the GPU's memory: each takes what it needs.
  env = _common.environment(
    XLA_PYTHON_CLIENT_PREALLOCATE="false", TORCHINDUCTOR_COMPILE_THREADS="4"
  )
  drivers, failures = start(columns, args.work_dir, env, begin + args.ready)
  measured = [column for column in columns if column.name in drivers]
  rates = {x.name: functools.partial(rate, drivers[x.name], x, args.steps) for x in measured}
  results: dict[str, list[float]] = {name: [] for name in rates}
  of_round = 0.0
  while rates and (not of_round or time.monotonic() + of_round < begin + args.seconds):
    round_begin = time.monotonic()
    for name, values in _common.interleave(rates, 1).items():
      results[name] += values
    of_round = time.monotonic() - round_begin
  figures = figures_of(measured, drivers, results)
  args.out.write_text(json.dumps({"columns": figures, "failed": failures}, indent=2) + "\n")
  print_table(figures, failures)
  for driver in drivers.values():
    driver.close()
  if failures:
    sys.exit(1)


def start(
  columns: list[Column], work: pathlib.Path, env: Mapping[str, str], deadline: float
) -> tuple[dict[str, Driver], dict[str, str]]:
  """Starts all processes; returns those that are ready in time, and why the others are not."""
  drivers: dict[str, Driver] = {}
  failures: dict[str, str] = {}
  pool = futures.ThreadPoolExecutor(len(columns))
  pending = {
    x.name: pool.submit(Driver, x.command, work / f"{_common.slug(x.name)}.log", env)
    for x in columns
  }
  for name, future in pending.items():
    try:
      drivers[name] = future.result(max(deadline - time.monotonic(), 0))
      print(f"ready  {name}: {drivers[name].about}", flush=True)
    except futures.TimeoutError:
      failures[name] = "not ready in time; it went on compiling beside the others"
    except SystemExit as e:  # the other columns are still worth measuring
      failures[name] = str(e)
    if name in failures:
      print(f"FAILED  {name}: {failures[name]}", flush=True)
  pool.shutdown(wait=False)
  return drivers, failures


def rate(driver: Driver, column: Column, steps: int) -> float:
  """Returns units (tokens, prompts, frames) per second."""
  number = steps if column.unit == "tokens_per_step" else 1
  return driver.steps_per_second(number) * driver.about[column.unit]


def figures_of(columns: list[Column], drivers, results) -> list[dict]:
  """Returns what was measured of each column, with the share of the peak of training steps."""
  figures = []
  devices = [x.about["device"] for x in drivers.values() if "device" in x.about]
  peak = next((f for name, f in PEAKS.items() for device in devices if name in device), None)
  answers = {(x.size, x.engine): x.answers for x in columns if x.answers}
  for column in columns:
    about, median = drivers[column.name].about, statistics.median(results[column.name])
    figure = {"work": column.work, "engine": column.engine, "per second": round(median, 1)}
    figure |= {"rounds": [round(x, 1) for x in results[column.name]], "about": about}
    if column.size in SIZES and column.unit == "tokens_per_step":
      lengths = about["lengths"]
      flops = flops_of_step(SIZES[column.size], about["rows"], *lengths)
      figure["TFLOP/s"] = round(flops * median / about["tokens_per_step"] / 1e12, 1)
      if peak:
        figure["share of the peak"] = round(figure["TFLOP/s"] * 1e12 / peak, 3)
    if column.engine == PYTORCH and (column.size, OURS) in answers and column.answers:
      pair = [json.loads(answers[column.size, engine].read_text()) for engine in (OURS, PYTORCH)]
      equal = sum(ours == theirs for ours, theirs in zip(*pair, strict=True))
      figure[EQUAL] = f"{equal} of {len(pair[0])}"
    figures.append(figure)
  return figures


def print_table(figures: list[dict], failures: dict[str, str]) -> None:
  """Prints the figures, with ratios to PyTorch."""
  rates = {(x["work"], x["engine"]): x["per second"] for x in figures}
  print(f"\n{'':34} {'engine':8} {'a second':>12} {'ratio':>6} {'TFLOP/s':>8} {'peak':>6}")
  for figure in figures:
    theirs = rates.get((figure["work"], PYTORCH))
    ratio = f"{figure['per second'] / theirs:6.2f}" if theirs else ""
    share = figure.get("share of the peak")
    print(
      f"{figure['work']:34} {figure['engine']:8} {figure['per second']:12,.1f} {ratio:>6} "
      f"{figure.get('TFLOP/s', ''):>8} {'' if share is None else f'{share:.1%}':>6} "
      f"{figure.get(EQUAL, '')}"
    )
  for name in failures:
    print(f"{name}: failed, see the JSON file")


if __name__ == "__main__":
  main()
