"""Simulated trackers, whose robustness is known: does a metric of robustness find it?

  python tests/support/simulated_trackers.py

prints the tables of docs/metrics/why-schema-sensitivity-misleads.md.

A frame has one to five slots. With the original schema a tracker reads each slot right with
probability `accuracy`. With a reworded one it reads a slot that it knew with probability
`robustness`, which is what a good metric should find, and one that it did not know with probability
LUCK. A slot that it does not read is missing from the predicted state, so a frame is right if all
of its slots were read. Nothing else is simulated: no words, no model, no dialogue.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.metrics import summarise

MOST_SLOTS = 5
LUCK = 0.05
# The trackers that are ranked are all combinations of these: JGA_orig from about 19 to 85%, and the
# whole range of robustness, so that a more accurate tracker is neither more nor less robust.
ACCURACIES = np.linspace(0.5, 0.95, 10)
ROBUSTNESS = np.linspace(0, 1, 11)
HEADINGS = {  # of the tables, as in `sgdx score`
  "jga_orig": "JGA_orig",
  "jga_v1_5": "JGA_v1-5",
  "diff_rel": "Diff_rel",
  "ss_jga": "SS_JGA",
  "ss_jga_exclude": "SS, exclude",
  "cjga_all": "cJGA_all",
  "retained": "retained",
  "lost": "lost",
  "gained": "gained",
  "worst": "worst",
  "spread": "spread",
  "agreement": "agreement",
}

SHOWN = ("jga_orig", "jga_v1_5", "ss_jga", "retained", "agreement")


def simulate(
  accuracy: float, robustness: float, seed: int = 0, num_frames: int = 2000
) -> dict[str, float]:
  """Returns the numbers of `metrics.summarise`, and agreement, of a simulated tracker.

  Args:
    accuracy: probability that it reads a slot with the original schema.
    robustness: probability that it still reads such a slot when the schema is reworded.
    seed: seed of the random numbers.
    num_frames: number of frames in the simulated test set.
  """
  rng = np.random.default_rng(seed)
  shape = (num_frames, MOST_SLOTS)
  asked = np.arange(MOST_SLOTS) < rng.integers(1, MOST_SLOTS + 1, (num_frames, 1))
  known = asked & (rng.random(shape) < accuracy)
  read = {ORIGINAL: known}
  for variant in SGDX_VARIANTS:
    read[variant] = asked & (rng.random(shape) < np.where(known, robustness, LUCK))
  jga = {variant: (slots == asked).all(axis=1).astype(float) for variant, slots in read.items()}
  return {**summarise(jga), "agreement": _agreement([read[v] for v in SGDX_VARIANTS])}


def rank_correlations(seed: int = 0) -> dict[str, float]:
  """Maps keys of HEADINGS to rank correlations with the known robustness, over all trackers.

  1 is a metric that ranks them correctly, -1 one that ranks them in reverse.
  """
  pairs = list(itertools.product(ACCURACIES, ROBUSTNESS))
  seeds = np.random.default_rng(seed).integers(2**32, size=len(pairs)).tolist()
  found = [simulate(*pair, seed=own) for pair, own in zip(pairs, seeds, strict=True)]
  known = [robustness for _, robustness in pairs]
  return {key: rank_correlation(known, [row[key] for row in found]) for key in HEADINGS}


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
  """Returns Spearman's rank correlation, -1 to 1; equal numbers share a rank."""
  return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
  ordered = np.sort(values)
  return np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")


def _agreement(states: Sequence[np.ndarray]) -> float:
  """Mean share of pairs of variants that read the same slots: `metrics.frame_agreement`."""
  pairs = [(a, b) for i, a in enumerate(states) for b in states[i + 1 :]]
  return float(np.mean([(a == b).all(axis=1) for a, b in pairs]))


# --- the tables of the page ------------------------------------------------------------------


def tables() -> list[str]:
  """Returns the tables of the page in Markdown: percent, as in the tables of `sgdx score`."""
  more_robust = {f"{r:.1f}": simulate(0.9, r) for r in (1, 0.9, 0.7, 0.5, 0.3, 0.1, 0)}
  more_accurate = {f"{a:.2f}": simulate(a, 0.8) for a in (0.95, 0.8, 0.65, 0.5)}
  ranks = {HEADINGS[key]: [f"{x:+.2f}"] for key, x in rank_correlations().items()}
  return [
    _markdown(["robustness", *map(HEADINGS.get, SHOWN)], _cells(more_robust)),
    _markdown(["accuracy", *map(HEADINGS.get, SHOWN)], _cells(more_accurate)),
    _markdown(["", "rank correlation with the known robustness"], ranks),
  ]


def _cells(rows: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
  return {name: [f"{100 * row[key]:.1f}" for key in SHOWN] for name, row in rows.items()}


def _markdown(header: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
  rule = ["---", *["---:"] * (len(header) - 1)]
  lines = (header, rule, *((name, *cells) for name, cells in rows.items()))
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
  print("\n\n".join(tables()))
