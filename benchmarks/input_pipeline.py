"""Times reading: training batches of T5DST on SGD, from records to arrays, in one process.

  SGDX_VOCAB=sentencepiece.model python benchmarks/input_pipeline.py \
    --archive dstc8-schema-guided-dialogue-master.zip

Columns: `utils.get_dataset` unpacked and packed, and unpacked as T5X reads it: SeqIO's feature
converter on each example, then batches. 512 / 64 tokens, shuffled, rows of 64; the first batches,
which fill the shuffle buffer, are not timed.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator

import _common

TASKS = ("t5dst_sgd", "t5dst_backtrans")
LENGTHS = {"inputs": 512, "targets": 64}
ROWS, WARM_UP = 64, 5
CONVERTER = "with SeqIO's converter"


def batches(task: str, packed: bool, by_example: bool) -> Iterator[dict]:
  """Yields training batches as NumPy arrays."""
  import seqio

  import sgdx_t5x.tasks  # noqa: F401 - registers them
  from t5x import utils

  # A subclass uses its own code, which converts example by example.
  converter = type("Converter", (seqio.EncDecFeatureConverter,), {})
  cfg = utils.DatasetConfig(task, LENGTHS, "train", ROWS, shuffle=True, seed=0, pack=packed)
  ds = utils.get_dataset(cfg, 0, 1, converter if by_example else seqio.EncDecFeatureConverter)
  return ds.as_numpy_iterator()


def examples_in(batch: dict) -> int:
  """Counts the examples of a batch; a packed row has several."""
  ids = batch.get("decoder_segment_ids")
  return ROWS if ids is None else int(ids.max(axis=1).sum())


def main() -> None:
  """Makes the records, measures, prints a table for each task."""
  parser = _common.make_parser(__doc__, repeats=5)
  parser.add_argument("--archive", help="the official SGD archive; needed once per work dir")
  parser.add_argument("--batches", type=int, default=400, help="per measurement (default 400)")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  import seqio

  seqio.set_tfds_data_dir_override(str(data))
  for task in TASKS:
    streams = {
      "unpacked": batches(task, packed=False, by_example=False),
      f"unpacked {CONVERTER}": batches(task, packed=False, by_example=True),
      "packed": batches(task, packed=True, by_example=False),
    }

    def measure(stream: Iterator[dict], number: int) -> float:
      for _ in range(WARM_UP):
        next(stream)
      started = time.perf_counter()
      count = sum(examples_in(next(stream)) for _ in range(number))
      return count / (time.perf_counter() - started)

    columns = {n: functools.partial(measure, s, args.batches) for n, s in streams.items()}
    results = _common.interleave(columns, args.repeats)
    _common.print_table(results, f"examples/s of {task}", f"unpacked {CONVERTER}", digits=0)
    streams.clear()


if __name__ == "__main__":
  main()
