"""Confidence intervals of the second study over dialogues and training seeds (docs/results.md).

`sgdx score` and `sgdx diff` resample dialogues, so their intervals say what other test dialogues
would give, not what other seeds would. Here each bootstrap sample draws both: dialogues, shared by
all runs, as the runs answer the same ones, and, independently for each training condition, runs.
A condition with one run varies only with the dialogues: its interval is too narrow, and marked.

  python benchmarks/study_intervals.py        # reads the JGA per frame kept beside the study
"""

import argparse
import pathlib

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.metrics.sensitivity import frame_sensitivity
from sgdx_t5x.scoring.score_files import read_frames

FOLDER = pathlib.Path(__file__).parent / "results/study_spandst/whole_epoch"
CONDITIONS = ("none", "backtrans", "paraphrase", "reworded", "corrupt", "oracle")
BASELINE = "none"
JGA = "joint_goal_accuracy"
SAMPLES = 10_000


def read_run(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """Returns what a run scores per frame, and the frames' dialogues.

  Returns:
    JGA with the original schemas, mean JGA over v1 to v5, and schema sensitivity: [3, frames];
    ids of dialogues, [frames].
  """
  table = read_frames(path, [JGA])
  by_variant = {variant: scores.metrics[JGA] for variant, scores in table.scores.items()}
  reworded = np.stack([by_variant[variant] for variant in SGDX_VARIANTS])
  rows = by_variant[ORIGINAL], reworded.mean(axis=0), frame_sensitivity(reworded)
  return np.stack(rows), table.frames.dialogue_ids


def main() -> None:
  """Prints each condition's scores, and its differences to the baseline."""
  argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
  rng = np.random.default_rng(0)
  dialogues, means, samples, num_runs = None, {}, {}, {}
  for condition in CONDITIONS:
    runs = [read_run(path) for path in sorted(FOLDER.glob(f"{condition}-*.frames.jsonl.xz"))]
    if dialogues is None:
      dialogues = metrics.BootstrapSamples.draw(runs[0][1], SAMPLES)
    of_runs = np.stack([dialogues.means(values, ids) for values, ids in runs])
    drawn = rng.integers(len(runs), size=(len(runs), SAMPLES))
    samples[condition] = of_runs[drawn, np.arange(SAMPLES)].mean(axis=0)
    means[condition] = np.mean([values.mean(axis=1) for values, _ in runs], axis=0)
    num_runs[condition] = len(runs)
  print("condition    runs  JGA_orig            JGA_v1-5            SS")
  for condition in CONDITIONS:
    show(condition, num_runs[condition], means[condition], samples[condition])
  print(f"\ndifference to {BASELINE}")
  for condition in CONDITIONS:
    if condition != BASELINE:
      difference = means[condition] - means[BASELINE]
      show(condition, num_runs[condition], difference, samples[condition] - samples[BASELINE])


def show(condition: str, runs: int, means: np.ndarray, samples: np.ndarray) -> None:
  """Prints a row in percent, with 95% intervals; `*`: one run, so its seed does not vary."""
  cells = []
  for mean, column in zip(means, samples.T, strict=True):
    low, high = metrics.interval(column)
    cells.append(f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]".ljust(19))
  print(f"{condition:12} {runs}{' ' if runs > 1 else '*'}   {' '.join(cells)}".rstrip())


if __name__ == "__main__":
  main()
