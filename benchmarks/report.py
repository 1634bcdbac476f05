"""Times `sgdx report` on six sets of predictions for the real test files, original and v1 to v5.

  python benchmarks/report.py --archive dstc8-schema-guided-dialogue-master.zip

Whole processes, as a user starts them: once from the predictions, which are scored first, once from
their scores. The predictions are those of score.py: a quarter of the frames is wrong.
"""

from __future__ import annotations

import pathlib
import shutil
import statistics

import _common
from score import SPLIT, write_predictions

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS

TARGET_SECONDS = 20.0
TARGET_MB = 15.0


def main() -> None:
  """Makes predictions and scores once, measures, prints seconds and the page's size."""
  parser = _common.make_parser(__doc__, repeats=5)
  parser.add_argument(
    "--archive", type=pathlib.Path, required=True, help="the official SGD archive"
  )
  args = parser.parse_args()
  corpus, archive = open_corpus(args.archive), str(args.archive.resolve())
  work = (args.work_dir / "report").resolve()
  predictions = args.work_dir.resolve() / "score" / corpus.checksum()
  versions = (ORIGINAL, *SGDX_VARIANTS)
  sources = [f"{v}={write_predictions(corpus, v, predictions / v)}" for v in versions]
  shutil.rmtree(work, ignore_errors=True)
  work.mkdir(parents=True)
  scores = work / "scores.json"
  score = _common.sgdx("score", "--corpus", archive, "--split", SPLIT, "--predictions", *sources)
  kept = ["--json", str(scores), "--per-frame", str(work / "scores.frames.jsonl")]
  _common.run([*score, *kept], work / "score.log", _common.environment())
  out = work / "out"
  commands = {
    name: _common.sgdx(
      "report", str(run), "--corpus", archive, "--out", str(out / name.split()[-1])
    )
    for name, run in (("from scores", scores), ("from predictions", predictions))
  }
  results, _ = _common.time_processes(commands, work, args.repeats)
  size = max(page.stat().st_size for page in out.glob("*/report.html")) / 1e6
  print(f"report.html: {size:.1f} MB")
  missed = [name for name, x in results.items() if statistics.median(x) > TARGET_SECONDS]
  missed += ["size"] if size > TARGET_MB else []
  print(f"targets: {TARGET_SECONDS:g} s, {TARGET_MB:g} MB; missed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
  main()
