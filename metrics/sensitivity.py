"""Schema sensitivity (SS): the variability of a metric when only the wording of the schema changes.

SGD-X paper (Lee et al. 2022), section 3.4: for frame t and K variants, the coefficient of
variation is CoV_t = s_t / mean_t, where s_t is the sample standard deviation (K-1); SS is the mean
of CoV_t over frames. The paper's "turn" is the official scorer's frame; otherwise JGA would not be
the official one. The K variants do not include the original schema.

The paper does not define CoV for frames that every variant gets wrong (0/0). "zero" counts them as
0, since their scores do not vary and the paper divides by |T|; "exclude" drops them (robust-dst,
Coca et al. 2023). SS(zero) = SS(exclude) * (1 - zero_mean_share).
"""

from collections.abc import Mapping

import numpy as np

from sgdx_t5x.data.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.aggregate import compared, mean, whole_frames
from sgdx_t5x.metrics.consistency import consistent_jga

ZERO_MEAN_RULES = ("zero", "exclude")
_NAN = float("nan")


def frame_cov(scores: np.ndarray) -> np.ndarray:
  """Returns CoV per frame: [K, F] -> [F], from 0 to sqrt(K).

  nan where all variants score 0, where a variant has no score (nan), and everywhere if K < 2.
  """
  num_variants = len(scores)
  if num_variants < 2:
    return np.full(scores.shape[1], _NAN)
  means = scores.mean(axis=0)
  # np.std subtracts the mean first, so equal scores give exactly 0 or a few 1e-17.
  deviations = scores.std(axis=0, ddof=1)
  return np.divide(deviations, means, out=np.full_like(means, _NAN), where=means > 0)


def schema_sensitivity(scores: np.ndarray, zero_mean: str = "zero") -> float:
  """Returns SS, a fraction (the paper prints 100 times that); lower is more robust.

  Args:
    scores: [K, F] float, at least 0: a metric per variant and frame, frames aligned.
      Frames with nan in a variant are left out.
    zero_mean: what a frame counts that every variant gets wrong: "zero" or "exclude".

  Returns:
    SS, or nan if K < 2 or no frame is left.

  Raises:
    SgdxError: unknown rule.
  """
  if zero_mean not in ZERO_MEAN_RULES:
    raise SgdxError(
      f"zero-mean rule {zero_mean!r}",
      expected="what a frame counts that every variant gets wrong",
      available=", ".join(ZERO_MEAN_RULES),
      fix="name one of them; zero is the default",
    )
  scores = whole_frames(scores)
  if len(scores) < 2:
    return _NAN
  cov = frame_cov(scores)
  return mean(np.nan_to_num(cov, nan=0.0) if zero_mean == "zero" else cov)


def zero_mean_share(scores: np.ndarray) -> float:
  """Returns the share of frames that every variant gets wrong: [K, F] -> 0 to 1, or nan."""
  scores = whole_frames(scores)
  return mean((scores == 0).all(axis=0).astype(float)) if len(scores) else _NAN


def mean_over_variants(scores: np.ndarray) -> float:
  """Returns JGA_v1-5 for JGA: the mean over frames and variants of [K, F]; nan if none."""
  return mean(whole_frames(scores).ravel())


def relative_difference(original: float, variants: float) -> float:
  """Returns Diff_rel = (variants - original) / original, a fraction; nan if original is 0."""
  return (variants - original) / original if original > 0 else _NAN


def summarise(
  values: Mapping[str, np.ndarray], zero_mean: str = "zero", name: str = "jga"
) -> dict[str, float]:
  """Returns one row of the paper's Table 2, as fractions.

  Args:
    values: variant -> [F] float, a metric of the same frames in the same order; any subset of the
      original and v1 to v5.
    zero_mean: the rule of `ss_jga`, see `schema_sensitivity`.
    name: name of the metric; the paper's definitions apply to any metric of a frame.

  Frames without a score (nan) in any given variant are excluded from all numbers: means over
  different frames would differ for reasons other than the variant.

  Returns:
    jga_orig, jga_v1 ... jga_v5, jga_v1_5, diff_rel, ss_jga, ss_jga_exclude, zero_mean_share with
    `name` instead of "jga"; for JGA also cjga_v1 ... cjga_v5 (correct under the original schema and
    that variant) and cjga_all (under v1 to v5). nan where undefined: statistics over v1 to v5 need
    all five, because a mean over fewer would be mistaken for the paper's.
  """
  values, row = compared(values), {}
  original = values.get(ORIGINAL)
  row[f"{name}_orig"] = _NAN if original is None else mean(original)
  for variant in SGDX_VARIANTS:
    row[f"{name}_{variant}"] = mean(values[variant]) if variant in values else _NAN
  complete = all(variant in values for variant in SGDX_VARIANTS)
  scores = np.stack([values[v] for v in SGDX_VARIANTS]) if complete else np.empty((0, 0))
  row[f"{name}_v1_5"] = mean_over_variants(scores)
  row["diff_rel"] = relative_difference(row[f"{name}_orig"], row[f"{name}_v1_5"])
  row[f"ss_{name}"] = schema_sensitivity(scores, zero_mean)
  row[f"ss_{name}_exclude"] = schema_sensitivity(scores, "exclude")
  row["zero_mean_share"] = zero_mean_share(scores)
  if name == "jga":
    for variant in SGDX_VARIANTS:
      both = original is not None and variant in values
      pair = np.stack([original, values[variant]]) if both else np.empty((0, 0))
      row[f"cjga_{variant}"] = consistent_jga(pair)
    row["cjga_all"] = consistent_jga(scores)
  return row
