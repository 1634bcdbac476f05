"""Statistics that are ratios of counts, and their 95% intervals.

A count has a number per frame; a statistic is a weighted sum of some counts over all frames,
divided by a weighted sum of others. Shares of frames, of slots and of values are all of this kind,
and so are F1 and a relative difference. A bootstrap sample of dialogues needs per-dialogue sums,
once for all statistics.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sgdx_t5x.metrics.bootstrap import BootstrapSamples, interval, per_dialogue


@dataclasses.dataclass(frozen=True)
class Ratio:
  """A statistic.

  Attributes:
    numerator: count -> weight, of the numerator.
    denominator: count -> weight, of the denominator; the statistic is nan where it is 0.
  """

  numerator: Mapping[str, float]
  denominator: Mapping[str, float]


def share(numerator: str, denominator: str) -> Ratio:
  """Returns the ratio of two counts."""
  return Ratio({numerator: 1}, {denominator: 1})


@dataclasses.dataclass(frozen=True)
class Counts:
  """Counts per frame.

  Attributes:
    names: names of the N counts.
    values: [N, F] float, at least 0; no nan.
    dialogue_ids: [F] str, the bootstrap's resampling unit.
  """

  names: tuple[str, ...]
  values: np.ndarray
  dialogue_ids: np.ndarray

  def take(self, frames: np.ndarray) -> "Counts":
    """Selects frames by a mask [F] bool, or by positions."""
    return Counts(self.names, self.values[:, frames], self.dialogue_ids[frames])

  def sums(self) -> dict[str, float]:
    """Returns count -> its sum over the frames."""
    return dict(zip(self.names, self.values.sum(axis=1).tolist(), strict=True))


def ratios(statistics: Mapping[str, Ratio], counts: Counts) -> dict[str, float]:
  """Returns the statistics; nan where undefined."""
  quotients = _divide(*_weights(statistics, counts.names), counts.values.sum(axis=1)[None])
  return dict(zip(statistics, quotients[0].tolist(), strict=True))


def ratio_samples(
  statistics: Mapping[str, Ratio], counts: Counts, samples: BootstrapSamples
) -> dict[str, np.ndarray]:
  """Returns each statistic in each bootstrap sample: [R] float.

  Args:
    statistics: name -> ratio.
    counts: counts of frames whose dialogues are all in `samples`.
    samples: bootstrap samples of dialogues.

  Returns:
    nan where the denominator is 0 in a sample, and everywhere if it is nonzero in fewer than two
    dialogues: samples of one dialogue are all the same.
  """
  present, position = np.unique(samples.positions(counts.dialogue_ids), return_inverse=True)
  of_dialogues = per_dialogue(counts.values, position, len(present))
  sums = samples.weights[:, present] @ of_dialogues.T
  numerators, denominators = _weights(statistics, counts.names)
  quotients = _divide(numerators, denominators, sums)
  few = ((of_dialogues.T @ denominators.T) > 0).sum(axis=0) < 2
  quotients[:, few] = np.nan
  return dict(zip(statistics, quotients.T, strict=True))


def frames_with(statistics: Mapping[str, Ratio], counts: Counts) -> dict[str, np.ndarray]:
  """Returns statistic -> [U] bool, the frames that add to its denominator."""
  denominators = _weights(statistics, counts.names)[1]
  return dict(zip(statistics, denominators @ counts.values > 0, strict=True))


def ratio_intervals(
  statistics: Mapping[str, Ratio], counts: Counts, samples: BootstrapSamples
) -> dict[str, tuple[float, float]]:
  """Returns the 95% interval of each statistic. Args, nan: see `ratio_samples`."""
  return {key: interval(x) for key, x in ratio_samples(statistics, counts, samples).items()}


def _weights(
  statistics: Mapping[str, Ratio], names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the weights of numerators and denominators: two [S, N]."""
  numerators = [ratio.numerator for ratio in statistics.values()]
  denominators = [ratio.denominator for ratio in statistics.values()]
  return _matrix(numerators, names), _matrix(denominators, names)


def _matrix(rows: Sequence[Mapping[str, float]], names: tuple[str, ...]) -> np.ndarray:
  return np.array([[row.get(name, 0.0) for name in names] for row in rows])


def _divide(numerators: np.ndarray, denominators: np.ndarray, sums: np.ndarray) -> np.ndarray:
  """[S, N], [S, N], [R, N] -> [R, S]."""
  wholes = sums @ denominators.T
  return np.divide(sums @ numerators.T, wholes, out=np.full(wholes.shape, np.nan), where=wholes > 0)
