"""Times the SeqIO tasks of prompt formats and of SpanDST: examples and frames/s of one core.

  SGDX_VOCAB=sentencepiece.model SGDX_ENCODER=minilm python benchmarks/formats.py --archive sgd.zip

Tasks of SGD's test split with the original schemas, not shuffled, tokenised with T5's vocabulary
(SpanDST: with that of SGDX_ENCODER; left out without one), at each format's own lengths, in batches
of 64 rows as a model gets them (one by one, SeqIO's examples take Python 150 to 300 microseconds
each, whatever is in them); the first batches are not timed. A measurement is nearly a pass of the
split (26,802 frames): the first 10,000 have most of its words, each of which is tokenised once. For
comparison, reading the records only, which any task must do. SDT's demonstrations are made from the
archive once.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Iterator

import _common

EXAMPLES_OF_A_FRAME = {"t5dst": 5.71, "d3st": 1.0, "sdt": 1.0, "spandst": 1.0}  # docs/formats.md
LENGTHS = {
  "t5dst": {"inputs": 512, "targets": 64},
  "d3st": {"inputs": 1024, "targets": 128},
  "sdt": {"inputs": 1024, "targets": 160},
}
RECORDS, SPANDST = "records", "spandst"
ROWS, WARM_UP = 64, 8


def batches(name: str) -> Iterator[dict]:
  """Yields batches of a task's examples, or of the records."""
  import seqio

  from sgdx_t5x.spandst.features import SpanFeatureConverter
  from t5x import utils

  if name == RECORDS:
    source = seqio.get_mixture_or_task("t5dst_sgd").source
    return source.batches(source.get_dataset("test", shuffle=False)).repeat().as_numpy_iterator()
  cfg = utils.DatasetConfig(f"{name}_sgd", LENGTHS[name], "test", ROWS, shuffle=False, seed=0)
  converter = SpanFeatureConverter if name == SPANDST else seqio.EncDecFeatureConverter
  return utils.get_dataset(cfg, 0, 1, converter).as_numpy_iterator()


def main() -> None:
  """Measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--archive", required=True, help="the official SGD archive")
  parser.add_argument("--examples", type=int, default=25_000, help="per measurement (25,000)")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  demos = args.work_dir / "demos.jsonl"
  if not demos.exists():
    command = _common.sgdx("data", "demos", "make", "--corpus", args.archive, "--out", str(demos))
    command += ["--split", "train", "dev", "test"]
    _common.run(command, args.work_dir / "demos.log", _common.environment())
  os.environ["SGDX_DEMOS"] = str(demos.resolve())
  os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
  import seqio

  import sgdx_t5x.tasks  # noqa: F401 - registers them
  from sgdx_t5x.spandst import span_features
  from t5x._script.cli import freeze_imports

  freeze_imports()  # as `t5x.train` does
  seqio.set_tfds_data_dir_override(str(data))
  if "SGDX_ENCODER" in os.environ:
    LENGTHS[SPANDST] = span_features.LENGTHS

  def measure(name: str) -> float:
    stream = batches(name)
    for _ in itertools.islice(stream, WARM_UP):
      pass
    started = time.perf_counter()
    count = 0
    while count < args.examples:
      batch = next(stream)
      count += len(batch["frame_id" if name == RECORDS else "encoder_input_tokens"])
    return count / (time.perf_counter() - started)

  columns = {name: functools.partial(measure, name) for name in (RECORDS, *LENGTHS)}
  results = _common.interleave(columns, args.repeats)
  _common.print_table(results, "examples/s of one core", RECORDS, digits=0)
  frames = {name: [rate / EXAMPLES_OF_A_FRAME[name] for rate in results[name]] for name in LENGTHS}
  _common.print_table(frames, "frames/s of one core", "t5dst", digits=0)


if __name__ == "__main__":
  main()
