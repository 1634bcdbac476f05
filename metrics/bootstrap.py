"""Bootstrap confidence intervals and paired tests, by resampling dialogues.

The frames of a dialogue share its history, and a value missed once is also missed in later turns;
so whole dialogues are drawn, with replacement and as many as there are. Every number of
`summarise` is a mean over frames or computed from such means. A bootstrap sample weights each
dialogue by how often it was drawn, and its means need only per-dialogue sums: all samples of all
statistics are one matrix product.

Sources: Efron, "Bootstrap methods: another look at the jackknife" (1979), percentile interval;
Koehn, "Statistical significance tests for machine translation evaluation" (2004), paired test.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from sgdx_t5x.corpus.variants import ORIGINAL, reworded_variants
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.extremes import extremes
from sgdx_t5x.metrics.means import mean
from sgdx_t5x.metrics.sensitivity import frame_statistics, mean_key, summarise

NUM_BOOTSTRAP_SAMPLES = 1000
LEVEL = 0.95
# The order of summation can change the last bits of a mean, so differences are rounded to this many
# decimals.
_DECIMALS = 12


@dataclasses.dataclass(frozen=True)
class BootstrapSamples:
  """R samples of D dialogues. Draw once: rows that share samples can be compared.

  Attributes:
    dialogue_ids: [D] str, sorted, unique.
    weights: [R, D] float, how often each sample contains each dialogue.
  """

  dialogue_ids: np.ndarray
  weights: np.ndarray

  @classmethod
  def draw(
    cls, dialogue_ids: np.ndarray, bootstrap_samples: int = NUM_BOOTSTRAP_SAMPLES, seed: int = 0
  ) -> "BootstrapSamples":
    """Draws samples of the dialogues of some frames: [F] str, repeated and in any order.

    The samples depend only on the set of dialogues and on the seed.
    """
    ids = np.unique(dialogue_ids)
    rng = np.random.default_rng(seed)
    weights = np.empty((bootstrap_samples, len(ids)))
    # One sample at a time: all draws at once would take as much memory again.
    for row in weights:
      row[:] = np.bincount(rng.integers(len(ids), size=len(ids)), minlength=len(ids))
    return cls(ids, weights)

  def means(self, values: np.ndarray, dialogue_ids: np.ndarray) -> np.ndarray:
    """Returns the mean of each statistic in each sample: [N, U], [U] str -> [R, N].

    Args:
      values: N statistics of U frames (or turns); nan is ignored, per statistic.
      dialogue_ids: the dialogue of each of the U.

    Returns:
      nan where a sample contains no value, and everywhere for a statistic with values in fewer
      than two dialogues: samples of one dialogue are all the same.

    Raises:
      SgdxError: a dialogue is not in `self.dialogue_ids`.
    """
    positions = self.positions(dialogue_ids)
    has_value = ~np.isnan(values)
    if not has_value.any():  # perhaps no dialogue at all
      return np.full((len(self.weights), len(values)), np.nan)
    is_present = np.bincount(positions, minlength=len(self.dialogue_ids)) > 0
    present = np.flatnonzero(is_present)
    position = (np.cumsum(is_present) - 1)[positions]
    # [R, D] is large: avoid a copy if all dialogues are present.
    weights = self.weights if len(present) == self.weights.shape[1] else self.weights[:, present]
    sums = per_dialogue(np.where(has_value, values, 0.0), position, len(present))
    # Most statistics miss the same frames (mostly none): count each pattern once.
    patterns = {row.tobytes(): row for row in has_value}
    keys = list(patterns)
    pattern_of = [keys.index(row.tobytes()) for row in has_value]
    counts = per_dialogue(np.array([*patterns.values()], dtype=float), position, len(present))
    # One product for both, since reading the weights dominates the time.
    weighted = weights @ np.concatenate([sums, counts]).T
    totals = weighted[:, len(sums) :][:, pattern_of]
    # Every sample of a single dialogue has the same mean: its interval would be a point.
    enough = ((counts > 0).sum(axis=1) >= 2)[pattern_of]
    means = np.full(totals.shape, np.nan)
    return np.divide(weighted[:, : len(sums)], totals, out=means, where=(totals > 0) & enough)

  def positions(self, dialogue_ids: np.ndarray) -> np.ndarray:
    """Returns the index of each dialogue in `self.dialogue_ids`: [U] str -> [U] int.

    Raises:
      SgdxError: a dialogue is not among them.
    """
    if not len(self.dialogue_ids):
      return np.zeros(0, dtype=np.intp)
    positions = np.searchsorted(self.dialogue_ids, dialogue_ids)
    # An id after the last one has no position of its own; it is unknown, as the comparison shows.
    positions = np.minimum(positions, len(self.dialogue_ids) - 1)
    unknown = np.flatnonzero(self.dialogue_ids[positions] != dialogue_ids)
    if unknown.size:
      raise SgdxError(
        f"dialogue {dialogue_ids[unknown[0]]} is not among the resampled dialogues",
        expected=f"one of the {len(self.dialogue_ids):,} resampled dialogues",
        fix="draw the samples from the dialogues of all frames, then compute means over some",
      )
    return positions


@dataclasses.dataclass(frozen=True)
class Difference:
  """A statistic of two systems and its difference, as fractions; nan where undefined.

  Attributes:
    a: value of the first system.
    b: value of the second system.
    difference: b - a.
    low: lower end of the confidence interval of the difference.
    high: its upper end.
    p: two-sided p-value, see `paired_differences`.
  """

  a: float
  b: float
  difference: float
  low: float
  high: float
  p: float


def interval(samples: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
  """Returns the percentile interval of [R] samples, ignoring nan; (nan, nan) if all are nan."""
  samples = samples[~np.isnan(samples)]
  if not samples.size:
    return float("nan"), float("nan")
  low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
  return float(low), float(high)


def summary_samples(
  values: Mapping[str, np.ndarray],
  dialogue_ids: np.ndarray,
  samples: BootstrapSamples,
  zero_mean: str = "zero",
  name: str = "jga",
) -> dict[str, np.ndarray]:
  """Returns the numbers of `summarise` for each bootstrap sample: its keys -> [R] float.

  Args:
    values: variant -> [U] float, of the same frames (or turns) in the same order.
    dialogue_ids: [U] str, the dialogue of each.
    samples: samples of these dialogues or a superset; then, for a service with few dialogues, the
      number of them in a sample varies too.
    zero_mean, name: see `summarise`.
  """
  statistics = frame_statistics(values, zero_mean, name)
  # All variants have the same frames, so the mean over both is the mean of each frame's mean.
  per_frame = [x if x.ndim == 1 else x.mean(axis=0) for x in statistics.values()]
  means = samples.means(np.stack(per_frame), dialogue_ids)
  row = dict(zip(statistics, means.T, strict=True))
  original, variants = row[f"{name}_orig"], row[mean_key(name, values)]
  undefined = np.full(len(original), np.nan)
  row["diff_rel"] = np.divide(variants - original, original, out=undefined, where=original > 0)
  by_variant = np.stack([row[f"{name}_{variant}"] for variant in reworded_variants(values)])
  row["worst"], row["spread"] = extremes(by_variant)
  return row


def summary_intervals(
  values: Mapping[str, np.ndarray],
  dialogue_ids: np.ndarray,
  samples: BootstrapSamples,
  zero_mean: str = "zero",
  name: str = "jga",
) -> dict[str, tuple[float, float]]:
  """Returns the 95% interval of every number of `summarise`: its keys -> (low, high).

  Args: see `summary_samples`. (nan, nan) if undefined or based on one dialogue.
  """
  row = summary_samples(values, dialogue_ids, samples, zero_mean, name)
  return {key: interval(x) for key, x in row.items()}


def paired_differences(
  a: Mapping[str, np.ndarray],
  b: Mapping[str, np.ndarray],
  dialogue_ids: np.ndarray,
  samples: BootstrapSamples,
  zero_mean: str = "zero",
  name: str = "jga",
) -> dict[str, Difference]:
  """Compares two systems on the same frames, with the same bootstrap samples for both.

  With R samples of which n- have a difference <= 0 and n+ one >= 0,
  p = min(1, 2 (1 + min(n-, n+)) / (R + 1)): Koehn's one-sided share, doubled, and never 0. If
  p < 0.05, the 95% interval excludes 0; identical systems get p = 1. If the statistic is defined in
  D dialogues, p is at least 2 / 2^D, as in a sign test.

  Args:
    a: first system, variant -> [U] float.
    b: second system; variants that only one of the two has are ignored, and a score that is nan in
      one is excluded from both.
    dialogue_ids: [U] str, the dialogue of each.
    samples: see `summary_samples`.
    zero_mean, name: see `summarise`.

  Returns:
    The keys of `summarise` -> difference.
  """
  scores_a, scores_b = _scored_by_both(a, b, len(dialogue_ids))
  numbers_a = summarise(scores_a, zero_mean, name)
  numbers_b = summarise(scores_b, zero_mean, name)
  samples_a = summary_samples(scores_a, dialogue_ids, samples, zero_mean, name)
  samples_b = summary_samples(scores_b, dialogue_ids, samples, zero_mean, name)
  defined_a = _defined(frame_statistics(scores_a, zero_mean, name))
  defined_b = _defined(frame_statistics(scores_b, zero_mean, name))
  differences = {}
  for key in numbers_a:
    # diff_rel, worst and spread combine means, so they are defined where the mean is.
    frames_key = key if key in defined_a else mean_key(name, scores_a)
    lowest_p = least_p(dialogue_ids[defined_a[frames_key] | defined_b[frames_key]])
    differences[key] = difference_of(
      numbers_a[key], numbers_b[key], samples_a[key], samples_b[key], lowest_p
    )
  return differences


def _scored_by_both(
  a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], num_units: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """Returns the scores of the shared variants, nan where either has none; nan if none is shared."""
  scores_a, scores_b = {}, {}
  for variant in a:
    if variant in b:
      unknown = np.isnan(a[variant] + b[variant])
      scores_a[variant] = np.where(unknown, np.nan, a[variant])
      scores_b[variant] = np.where(unknown, np.nan, b[variant])
  no_scores = {ORIGINAL: np.full(num_units, np.nan)}
  return scores_a or no_scores, scores_b or no_scores


def _defined(statistics: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Returns key -> [U] bool, where a statistic of [U] or [K, U] is defined for any variant."""
  return {key: ~np.isnan(np.atleast_2d(x)).all(axis=0) for key, x in statistics.items()}


def mean_interval(
  values: np.ndarray, dialogue_ids: np.ndarray, samples: BootstrapSamples
) -> tuple[float, float]:
  """Returns the 95% interval of the mean of any per-frame statistic, such as agreement.

  Args:
    values: [F] float; nan is ignored.
    dialogue_ids: [F] str, the dialogue of each.
    samples: see `summary_samples`. (nan, nan) if undefined or based on one dialogue.
  """
  return interval(samples.means(values[None], dialogue_ids)[:, 0])


def mean_difference(
  a: np.ndarray, b: np.ndarray, dialogue_ids: np.ndarray, samples: BootstrapSamples
) -> Difference:
  """Compares two systems' means of any per-frame statistic, as `paired_differences` does.

  Args:
    a: [F] float, first system; frames that are nan in one system are excluded from both.
    b: [F] float, second system, on the same frames.
    dialogue_ids: [F] str, the dialogue of each.
    samples: see `summary_samples`.
  """
  unknown = np.isnan(a + b)
  values = np.where(unknown, np.nan, np.stack([a, b]))
  samples_a, samples_b = samples.means(values, dialogue_ids).T
  means = mean(values[0]), mean(values[1])
  return difference_of(*means, samples_a, samples_b, least_p(dialogue_ids[~unknown]))


def least_p(dialogue_ids: np.ndarray) -> float:
  """Returns the least p-value possible with these dialogues, see `paired_differences`."""
  return float(2.0 ** (1 - len(np.unique(dialogue_ids))))


def difference_of(
  a: float, b: float, samples_a: np.ndarray, samples_b: np.ndarray, lowest_p: float
) -> Difference:
  """Returns the difference of two statistics, see `paired_differences`.

  Args:
    a: statistic of the first system.
    b: statistic of the second system.
    samples_a: [R] float, the first system's statistic in each bootstrap sample.
    samples_b: [R] float, the second system's in the same samples.
    lowest_p: see `least_p`.
  """
  samples = np.round(samples_b - samples_a, _DECIMALS)
  samples = samples[~np.isnan(samples)]
  # Samples without a difference count on both sides, so that identical systems get p = 1.
  tail = min((samples <= 0).sum(), (samples >= 0).sum())
  p = float("nan")
  if samples.size:
    p = min(1.0, max(lowest_p, 2 * (1 + float(tail)) / (samples.size + 1)))
  return Difference(a, b, round(b - a, _DECIMALS), *interval(samples), p)


def per_dialogue(values: np.ndarray, position: np.ndarray, num_dialogues: int) -> np.ndarray:
  """Sums [N, U] over the frames of each dialogue, whose indices are [U] int: [N, P]."""
  return np.stack([np.bincount(position, row, num_dialogues) for row in values])
