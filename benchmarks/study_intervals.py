"""Confidence intervals of the second study over dialogues and training seeds (docs/results.md).

`sgdx score` and `sgdx diff` resample dialogues, so their intervals say what other test dialogues
would give, not what other seeds would. Here each bootstrap sample draws both: dialogues, shared by
all runs, as the runs answer the same ones, and, independently for each training condition, runs.
A condition with one run varies only with the dialogues: its interval is too narrow, and marked.

  python benchmarks/study_intervals.py        # reads the JGA per frame kept beside the study
"""

import gzip
import json
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "results/study_spandst/whole_epoch"
CONDITIONS = ("none", "backtrans", "paraphrase", "reworded", "corrupt", "oracle")
BASELINE = "none"
VARIANTS = ("original", "v1", "v2", "v3", "v4", "v5")
SAMPLES = 10_000


def read_run(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns what a run scores per dialogue.

  Returns:
    Sums over each dialogue's frames [dialogues] of JGA with the original schemas, of the mean JGA
    over v1 to v5 and of schema sensitivity are the columns of the first array [dialogues, 3]; its
    ids [dialogues] and numbers of frames [dialogues] follow.
  """
  with gzip.open(path, "rt") as file:
    next(file)  # the header
    rows = [json.loads(line) for line in file]
  jga = np.array([[row["scores"]["joint_goal_accuracy"][v] for v in VARIANTS] for row in rows])
  means = jga[:, 1:].mean(axis=1)
  deviations = jga[:, 1:].std(axis=1, ddof=1)
  # A frame that every variant gets wrong counts as insensitive: docs/metrics/schema-sensitivity.md.
  sensitivity = np.divide(deviations, means, out=np.zeros_like(means), where=means > 0)
  ids, dialogue = np.unique([row["dialogue_id"] for row in rows], return_inverse=True)
  sums = np.zeros((len(ids), 3))
  np.add.at(sums, dialogue, np.stack([jga[:, 0], means, sensitivity], axis=1))
  return sums, ids, np.bincount(dialogue)


def main() -> None:
  """Prints each condition's scores, and its differences to the baseline."""
  sums_by_condition = {}
  for condition in CONDITIONS:
    runs = [read_run(path) for path in sorted(FOLDER.glob(f"{condition}-*.frames.jsonl.gz"))]
    for _, ids, frames in runs:
      if (ids != runs[0][1]).any() or (frames != runs[0][2]).any():
        raise SystemExit(f"the runs of {condition} have other frames")
    sums_by_condition[condition] = np.stack([sums for sums, _, _ in runs])
  frames = runs[0][2]
  rng = np.random.default_rng(0)
  samples = {condition: np.empty((SAMPLES, 3)) for condition in CONDITIONS}
  for i in range(SAMPLES):
    dialogues = rng.integers(len(frames), size=len(frames))
    weights = np.bincount(dialogues, minlength=len(frames))
    for condition, sums in sums_by_condition.items():
      drawn = rng.integers(len(sums), size=len(sums))
      samples[condition][i] = (weights @ sums[drawn].mean(axis=0)) / (weights @ frames)
  print("condition    runs  JGA_orig            JGA_v1-5            SS")
  for condition, sums in sums_by_condition.items():
    means = sums.mean(axis=0).sum(axis=0) / frames.sum()
    show(condition, len(sums), means, samples[condition])
  print(f"\ndifference to {BASELINE}")
  for condition, sums in sums_by_condition.items():
    if condition == BASELINE:
      continue
    differences = sums.mean(axis=0) - sums_by_condition[BASELINE].mean(axis=0)
    means = differences.sum(axis=0) / frames.sum()
    show(condition, len(sums), means, samples[condition] - samples[BASELINE])


def show(condition: str, runs: int, means: np.ndarray, samples: np.ndarray) -> None:
  """Prints a row in percent, with 95% intervals; `*`: one run, so its seed does not vary."""
  cells = []
  for mean, (low, high) in zip(means, np.percentile(samples, [2.5, 97.5], axis=0).T, strict=True):
    cells.append(f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]".ljust(19))
  print(f"{condition:12} {runs}{' ' if runs > 1 else '*'}   {' '.join(cells)}".rstrip())


if __name__ == "__main__":
  main()
