"""Times the training step of T5 Small on real SGD examples, batch 16, lengths 512 / 256.

  SGDX_VOCAB=sentencepiece.model python benchmarks/train_step.py \
    --archive dstc8-schema-guided-dialogue-master.zip [--google PYTHON] [--peers PYTHON] \
    [--before DIR]

T5 1.0 Small (60 million parameters) from random weights, float32, the settings of gin/t5dst.gin.
One process per column stays alive; they take steps in turn, so that only one computes at a
time. Initialisation, compilation and reading data are not in the figures. Targets: steps/s of ours
at least those of Google's T5X; packed, at least twice the examples/s of unpacked. `--peers` is an
interpreter with torch and transformers: PyTorch's step on random tokens in batches of our lengths.
`--before` is another checkout of this project, for instance of the commit before a change.
"""

from __future__ import annotations

import functools
import json
import pathlib
import subprocess

import _common

PACKED, UNPACKED, BFLOAT16 = "ours, packed", "ours", "ours, products of bfloat16"
BEFORE = "before"
TORCH = {f"PyTorch, {dtype}": dtype for dtype in ("float32", "bfloat16")}
ROWS, INPUTS, TARGETS = 16, 512, 256
GIN_FILES = ("gin/t5dst.gin", "gin/models/t5_1_0_small.gin")
BINDINGS = (
  f"BATCH_SIZE = {ROWS}",
  f"TASK_FEATURE_LENGTHS = {{'inputs': {INPUTS}, 'targets': {TARGETS}}}",
  "network.T5Config.dtype = 'float32'",
  "INITIAL_CHECKPOINT_PATH = []",
  "MODEL_DIR = 'unused'",  # the driver writes nothing
)


class Driver:
  """A child process that takes training steps on request."""

  def __init__(self, command: list[str], log: pathlib.Path, env, folder=_common.ROOT):
    log.parent.mkdir(parents=True, exist_ok=True)
    self._log = log
    with log.open("w") as errors:
      self._child = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
      )
    self.about = json.loads(self._answer("READY"))

  def _answer(self, word: str) -> str:
    for line in self._child.stdout:
      if line.startswith(word + " "):
        return line[len(word) + 1 :]
    tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
    return _common.fail(f"the driver ended:\n{tail}", f"see {self._log}")

  def steps_per_second(self, steps: int) -> float:
    """Takes steps; returns their rate."""
    self._child.stdin.write(f"{steps}\n")
    self._child.stdin.flush()
    return steps / float(self._answer("SECONDS"))

  def close(self) -> None:
    """Ends the process."""
    self._child.stdin.close()
    self._child.wait()


def script(name: str) -> str:
  """The path of a driver."""
  return str(_common.ROOT / "benchmarks" / name)


def main() -> None:
  """Prepares records, starts the drivers, measures, prints the tables."""
  parser = _common.make_parser(__doc__, repeats=3, google=True)
  parser.add_argument("--archive", help="the official SGD archive; needed once per work dir")
  parser.add_argument("--peers", metavar="PYTHON", help="with torch and transformers")
  parser.add_argument("--before", type=pathlib.Path, metavar="DIR", help="another checkout of this")
  parser.add_argument("--only", nargs="+", metavar="COLUMN", help="each needs 2 to 6 GB of memory")
  parser.add_argument("--steps", type=int, default=1, help="steps per measurement (default 1)")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  work = (args.work_dir / "train_step").resolve()
  engines = _common.find_engines(args.google)
  settings = {
    UNPACKED: [],
    BFLOAT16: ["utils.cpu_matmul.operands = 'bfloat16'"],
    PACKED: ["train/utils.DatasetConfig.pack = True"],
  }
  if _common.GOOGLE in engines:
    settings[_common.GOOGLE] = []
  if args.before:
    settings[BEFORE] = []
  peers = TORCH if args.peers else {}
  if args.only:
    if unknown := set(args.only) - {*settings, *peers}:
      _common.fail(f"no column {sorted(unknown)}", f"columns: {', '.join([*settings, *peers])}")
    kept = {UNPACKED, *args.only}  # PyTorch uses the lengths of ours
    settings = {name: changes for name, changes in settings.items() if name in kept}
    peers = {name: dtype for name, dtype in peers.items() if name in kept}

  drivers = {}
  try:
    for name, changes in settings.items():
      cache = work / "cache" / (name if name in (_common.GOOGLE, BEFORE) else "ours")
      env = _common.environment(JAX_COMPILATION_CACHE_DIR=cache)
      folder = _common.ROOT
      if name == BEFORE:
        folder = args.before.resolve()
        env["PYTHONPATH"] = f"{folder}:{folder / 't5x_lite'}"
      bindings = [*BINDINGS, "train/utils.DatasetConfig.pack = False", *changes]
      python = engines.get(name, engines[_common.OURS])
      command = [*python, script("_step_driver.py"), str(data), *GIN_FILES, "--", *bindings]
      drivers[name] = Driver(command, work / f"{_common.slug(name)}.log", env, folder)
      print(f"ready  {name}: {drivers[name].about}", flush=True)
    for name, dtype in peers.items():
      lengths = json.dumps(drivers[UNPACKED].about["lengths"])
      command = [args.peers, script("_torch_step.py"), dtype, str(ROWS), lengths]
      log = work / f"{_common.slug(name)}.log"
      drivers[name] = Driver(command, log, _common.environment())
      print(f"ready  {name}: {drivers[name].about}", flush=True)
    columns = {
      name: functools.partial(driver.steps_per_second, args.steps)
      for name, driver in drivers.items()
    }
    results = _common.interleave(columns, args.repeats)
  finally:
    for driver in drivers.values():
      driver.close()

  steps = {name: rates for name, rates in results.items() if name != PACKED}
  reference = _common.GOOGLE if _common.GOOGLE in steps else UNPACKED
  _common.print_table(steps, "steps/s", reference, digits=4)
  examples = {
    name: [rate * drivers[name].about["examples_per_step"] for rate in results[name]]
    for name in (UNPACKED, PACKED)
    if name in results
  }
  _common.print_table(examples, "examples/s", UNPACKED, digits=3)


if __name__ == "__main__":
  main()
