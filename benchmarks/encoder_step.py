"""Times the training step of the span tracker on an encoder of MiniLM's sizes.

  python benchmarks/encoder_step.py --peers PYTHON

Random weights and frames as long as SGD's; embeddings frozen, dropout .1, batches of about 48
frames. Ours are packed in rows of 512 or 384 tokens; PyTorch's are batched by length and padded to
multiples of 64. Tokens/s exclude padding. Target: products of bfloat16 at least PyTorch's.
`--peers` is an interpreter with torch and transformers.
"""

from __future__ import annotations

import functools
import sys

import _common
from train_step import Driver, script

OURS, SHORTER, BFLOAT16 = "ours", "ours, rows of 384", "ours, products of bfloat16"
SMALL_PAGES = "ours, memory in pages of 4 kB"
TORCH = {f"PyTorch, {dtype}": dtype for dtype in ("bfloat16", "float32")}
# Operand dtype of products, rows, tokens per row; the longest frame has 384.
OF_OURS = {
  OURS: ("float32", 16, 512),
  SHORTER: ("float32", 21, 384),
  BFLOAT16: ("bfloat16", 16, 512),
  SMALL_PAGES: ("float32", 16, 512),
}
FRAMES = 48


def main() -> None:
  """Starts the drivers, measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--peers", metavar="PYTHON", help="with torch and transformers")
  parser.add_argument("--steps", type=int, default=4, help="steps per measurement (default 4)")
  args = parser.parse_args()
  work = (args.work_dir / "encoder_step").resolve()
  commands = {
    name: [sys.executable, script("_encoder_driver.py"), operands, str(rows), str(length)]
    for name, (operands, rows, length) in OF_OURS.items()
  }
  for name, dtype in TORCH.items() if args.peers else ():
    commands[name] = [args.peers, script("_torch_encoder_step.py"), dtype, str(FRAMES)]
  drivers = {}
  try:
    for name, command in commands.items():
      env = _common.environment(**({"GLIBC_TUNABLES": ""} if name == SMALL_PAGES else {}))
      drivers[name] = Driver(command, work / f"{_common.slug(name)}.log", env)
      print(f"ready  {name}: {drivers[name].about}", flush=True)

    def tokens_per_second(name: str) -> float:
      driver = drivers[name]
      return driver.steps_per_second(args.steps) * driver.about["tokens_per_step"]

    columns = {name: functools.partial(tokens_per_second, name) for name in drivers}
    results = _common.interleave(columns, args.repeats)
  finally:
    for driver in drivers.values():
      driver.close()
  _common.print_table(results, "tokens/s", "PyTorch, bfloat16" if args.peers else OURS, 0)


if __name__ == "__main__":
  main()
