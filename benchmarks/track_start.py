"""Times `sgdx track` from its start to the first state of a typed line: packed, and by T5X.

  SGDX_ENCODER=minilm python benchmarks/track_start.py PACKED CHECKPOINT

PACKED is a folder of `sgdx weights pack`, CHECKPOINT the checkpoint of SpanDST that it was made
from. The schema is the library's of own_schemas. The target is 3 s for the packed tracker.
"""

from __future__ import annotations

import pathlib
import subprocess
import time

import _common

SCHEMA = _common.ROOT / "benchmarks/own_schemas/test/schema.json"
LINE = b"I want to borrow a book called Dune.\n"


def seconds(folder: pathlib.Path) -> float:
  """Tracks one line in a new process; the state comes right before its end."""
  command = _common.sgdx("track", str(folder), "--schema", str(SCHEMA), "--service", "Library_1")
  start = time.perf_counter()
  done = subprocess.run(
    command, input=LINE, capture_output=True, env=_common.environment(), check=False
  )
  if done.returncode:
    _common.fail(done.stderr.decode()[-500:], "see the usage above")
  return time.perf_counter() - start


def main() -> None:
  """Measures both in turn, prints the table."""
  parser = _common.make_parser(__doc__, repeats=5)
  parser.add_argument("packed", type=pathlib.Path)
  parser.add_argument("checkpoint", type=pathlib.Path)
  args = parser.parse_args()
  columns = {"packed": args.packed.resolve(), "checkpoint": args.checkpoint.resolve()}
  runs = {name: (lambda folder=folder: seconds(folder)) for name, folder in columns.items()}
  _common.print_table(
    _common.interleave(runs, args.repeats), "seconds to the first state", "checkpoint"
  )


if __name__ == "__main__":
  main()
