"""Schema sensitivity (SS): the variability of a metric when only the wording of the schema changes.

SGD-X paper (Lee et al. 2022), section 3.4: for frame t and K variants, the coefficient of
variation is CoV_t = s_t / mean_t, where s_t is the sample standard deviation (K-1); SS is the mean
of CoV_t over frames. The paper's "turn" is the official scorer's frame; otherwise JGA would not be
the official one. The K variants do not include the original schema.

The paper does not define CoV for frames that every variant gets wrong (0/0). "zero" counts them as
0, since their scores do not vary and the paper divides by |T|; "exclude" drops them (robust-dst,
Coca et al. 2023). SS(zero) = SS(exclude) * (1 - zero_mean_share).
"""

from collections.abc import Iterable, Mapping

import numpy as np

from sgdx_t5x.arguments import check_choice
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS, reworded_variants
from sgdx_t5x.metrics.consistency import frame_consistency
from sgdx_t5x.metrics.extremes import extremes
from sgdx_t5x.metrics.means import mean, whole_frames
from sgdx_t5x.metrics.retention import frame_gained, frame_retained

ZERO_MEAN_RULES = ("zero", "exclude")
_NAN = float("nan")


def frame_cov(scores: np.ndarray) -> np.ndarray:
  """Returns CoV per frame: [K, F] -> [F], from 0 to sqrt(K).

  nan where all variants score 0, where a variant has no score (nan), and everywhere if K < 2.
  """
  num_variants = len(scores)
  if num_variants < 2:  # no sample standard deviation
    return np.full(scores.shape[1], _NAN)
  means = scores.mean(axis=0)
  # np.std subtracts the mean first, so equal scores give exactly 0 or a few 1e-17.
  deviations = scores.std(axis=0, ddof=1)
  return np.divide(deviations, means, out=np.full_like(means, _NAN), where=means > 0)


def frame_sensitivity(scores: np.ndarray, zero_mean: str = "zero") -> np.ndarray:
  """Returns the contribution of each frame to SS: [K, F] -> [F]. Args: see `schema_sensitivity`.

  Returns:
    CoV, see `frame_cov`; 0 instead of nan where all variants score 0, under the rule "zero".

  Raises:
    SgdxError: unknown rule.
  """
  check_choice(zero_mean, "zero_mean", ZERO_MEAN_RULES)
  cov = frame_cov(scores)
  if zero_mean == "exclude" or len(scores) < 2:
    return cov
  # CoV is nan for two reasons: only 0/0 becomes 0, a missing score does not.
  return np.where(np.isnan(cov) & ~np.isnan(scores).any(axis=0), 0.0, cov)


def schema_sensitivity(scores: np.ndarray, zero_mean: str = "zero") -> float:
  """Returns SS, a fraction (the paper prints 100 times that); lower is more robust.

  Args:
    scores: [K, F] float, at least 0: a metric per variant and frame, frames aligned.
      Frames with nan in a variant are left out.
    zero_mean: how frames that every variant gets wrong count: "zero" or "exclude".

  Returns:
    SS, or nan if K < 2 or no frame is left.

  Raises:
    SgdxError: unknown rule.
  """
  return mean(frame_sensitivity(scores, zero_mean))


def zero_mean_share(scores: np.ndarray) -> float:
  """Returns the share of frames that every variant gets wrong: [K, F] -> 0 to 1, or nan."""
  return mean(_all_wrong(scores)) if len(scores) else _NAN


def mean_over_variants(scores: np.ndarray) -> float:
  """Returns JGA_v1-5 for JGA: the mean over frames and variants of [K, F]; nan if none."""
  return mean(whole_frames(scores).ravel())


def relative_difference(original: float, variants: float) -> float:
  """Returns Diff_rel = (variants - original) / original, a fraction; nan if original is 0."""
  return (variants - original) / original if original > 0 else _NAN


def frame_statistics(
  values: Mapping[str, np.ndarray], zero_mean: str = "zero", name: str = "jga"
) -> dict[str, np.ndarray]:
  """Returns the per-frame statistics whose means `summarise` and the bootstrap compute.

  Args: see `summarise`.

  Returns:
    The keys of `summarise` without diff_rel, worst and spread, which combine several means ->
    [F] float, or [K, F] where a frame has a value per variant. A missing variant is nan in all
    frames, and so is what depends on it; a frame that is nan in one given variant is nan in all.
  """
  unknown = np.isnan(sum(values.values(), np.zeros(len(next(iter(values.values()), ())))))
  variants = {}  # without a score, not with a score of 0, where a variant is missing
  for variant in (ORIGINAL, *reworded_variants(values), *values):
    variants[variant] = np.where(unknown, np.nan, values.get(variant, np.nan))
  original = variants.pop(ORIGINAL)
  scores = np.stack([variants[variant] for variant in reworded_variants(values)])
  statistics = {f"{name}_orig": original}
  for variant, row in variants.items():
    statistics[f"{name}_{variant}"] = row
  statistics[mean_key(name, values)] = np.where(np.isnan(scores).any(axis=0), np.nan, scores)
  statistics[f"ss_{name}"] = frame_sensitivity(scores, zero_mean)
  statistics[f"ss_{name}_exclude"] = frame_sensitivity(scores, "exclude")
  statistics["zero_mean_share"] = _all_wrong(scores)
  if name == "jga":
    for variant, row in variants.items():
      statistics[f"cjga_{variant}"] = frame_consistency(np.stack([original, row]))
    statistics["cjga_all"] = frame_consistency(scores)
  retained = frame_retained(original, scores)
  return statistics | {
    "retained": retained,
    "lost": 1 - retained,
    "gained": frame_gained(original, scores),
  }


def mean_key(name: str, variants: Iterable[str]) -> str:
  """Returns the key of the mean over the reworded schemas: "jga_v1_5", or "jga_reworded"."""
  is_sgdx = reworded_variants(variants) == SGDX_VARIANTS
  return f"{name}_v1_5" if is_sgdx else f"{name}_reworded"


def summarise(
  values: Mapping[str, np.ndarray], zero_mean: str = "zero", name: str = "jga"
) -> dict[str, float]:
  """Returns one row of the paper's Table 2, as fractions.

  Args:
    values: variant -> [F] float, a metric of the same frames in the same order.
    zero_mean: the rule of `ss_jga`, see `schema_sensitivity`.
    name: name of the metric; the paper's definitions apply to any metric of a frame.

  Frames without a score (nan) in any given variant are excluded from all numbers: means over
  different frames would differ for reasons other than the variant.

  Returns:
    jga_orig, jga_v1 ... jga_v5, jga_v1_5, diff_rel, ss_jga, ss_jga_exclude, zero_mean_share with
    `name` instead of "jga"; for JGA also cjga_v1 ... cjga_v5 (correct under the original schema and
    that variant) and cjga_all (under v1 to v5); retained, lost, gained (see `retention`), worst and
    spread (see `extremes`). nan where undefined: statistics over v1 to v5 need all five, because a
    mean over fewer would be mistaken for the paper's; diff_rel, retained, lost and gained need the
    original too. Other variants have jga_NAME and cjga_NAME; if none of v1 to v5 is given, the
    statistics are over the others, and the key of their mean is jga_reworded.
  """
  row, key_of_mean = {}, mean_key(name, values)
  for key, statistic in frame_statistics(values, zero_mean, name).items():
    row[key] = mean(statistic.ravel())
    if key == key_of_mean:
      # Next to the mean, as in the paper's table.
      row["diff_rel"] = relative_difference(row[f"{name}_orig"], row[key])
  means = [row[f"{name}_{variant}"] for variant in reworded_variants(values)]
  lowest, spread = extremes(np.array(means))
  return row | {"worst": float(lowest), "spread": float(spread)}


def _all_wrong(scores: np.ndarray) -> np.ndarray:
  """Returns 1.0 per frame that every variant gets wrong, else 0.0, nan where one has no score."""
  return np.where(np.isnan(scores).any(axis=0), np.nan, (scores == 0).all(axis=0))
