"""Times the SeqIO tasks of the prompt formats: examples and frames per second of one core.

  SGDX_VOCAB=sentencepiece.model python benchmarks/formats.py --archive sgd.zip

Tasks of SGD's test split with the original schemas, not shuffled, tokenised with T5's vocabulary,
at each format's own lengths, as arrays; the first examples are not timed. Beside them, what any
task costs: the records alone. SDT's demonstrations are made from the archive once.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Iterable

import _common

EXAMPLES_OF_A_FRAME = {"t5dst": 5.71, "d3st": 1.0, "sdt": 1.0}  # docs/formats.md
LENGTHS = {
  "t5dst": {"inputs": 512, "targets": 64},
  "d3st": {"inputs": 1024, "targets": 128},
  "sdt": {"inputs": 1024, "targets": 160},
}
RECORDS = "records"
WARM_UP = 500


def examples(name: str, data: str) -> Iterable[dict]:
  """Returns what a format's task gives, or the records."""
  import seqio
  import tensorflow_datasets as tfds

  import sgdx_t5x.records.builder
  import sgdx_t5x.tasks  # noqa: F401 - registers them

  if name == RECORDS:
    return tfds.load("sgd/full", data_dir=data, split="test").as_numpy_iterator()
  seqio.set_tfds_data_dir_override(data)
  task = seqio.get_mixture_or_task(f"{name}_sgd")
  ds = task.get_dataset(LENGTHS[name], "test", shuffle=False, num_epochs=1)
  return ds.as_numpy_iterator()


def main() -> None:
  """Measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--archive", required=True, help="the official SGD archive")
  parser.add_argument("--examples", type=int, default=10_000, help="per measurement (10,000)")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  demos = args.work_dir / "demos.jsonl"
  if not demos.exists():
    command = _common.sgdx("demos", "make", "--corpus", args.archive, "--out", str(demos))
    command += ["--split", "train", "dev", "test", "--per-service", "1"]
    _common.run(command, args.work_dir / "demos.log", _common.environment())
  os.environ["SGDX_DEMOS"] = str(demos.resolve())
  os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

  def measure(name: str) -> float:
    stream = iter(examples(name, str(data)))
    for _ in itertools.islice(stream, WARM_UP):
      pass
    started = time.perf_counter()
    count = sum(1 for _ in itertools.islice(stream, args.examples))
    return count / (time.perf_counter() - started)

  columns = {name: functools.partial(measure, name) for name in (RECORDS, *LENGTHS)}
  results = _common.interleave(columns, args.repeats)
  _common.print_table(results, "examples/s of one core", RECORDS, digits=0)
  frames = {name: [rate / EXAMPLES_OF_A_FRAME[name] for rate in results[name]] for name in LENGTHS}
  _common.print_table(frames, "frames/s of one core", "t5dst", digits=0)


if __name__ == "__main__":
  main()
