"""The numbers in a row of scores, and their names in tables and plots."""

import dataclasses
import functools
from collections.abc import Iterable

from sgdx_t5x.corpus.variants import ORIGINAL, reworded_variants
from sgdx_t5x.metrics.goals import JOINT_GOAL
from sgdx_t5x.metrics.sensitivity import mean_key
from sgdx_t5x.scoring.rows import Row


@dataclasses.dataclass(frozen=True)
class Column:
  """A number in a row.

  Attributes:
    key: key in `metrics.summarise`, JSON and CSV.
    heading: column heading in tables: "JGA_orig", "v1", "JGA_v1-5", "SS_JGA".
    plain: name where the title states the metric: "original", "v1", "v1-5", "SS".
    full: row label in tables with a number per row: "JGA_orig", "JGA_v1", "JGA_v1-5", "SS_JGA".
    variant: the variant it is computed for; "" if computed from several.
  """

  key: str
  heading: str
  plain: str
  full: str
  variant: str = ""


class Columns:
  """The numbers of `metrics.summarise` for one metric.

  Attributes:
    original: with the original schemas.
    variants: with v1 to v5, and with others.
    mean: over v1 to v5; here and below over the others, if none of these is given.
    diff_rel: relative change from the original to that mean.
    sensitivity: schema sensitivity, under the zero-mean rule of the scores.
    sensitivity_exclude: schema sensitivity under the rule "exclude".
    all_wrong: share of frames that v1 to v5 all get wrong.
    consistent: right with the original and with one of v1 to v5, a column each; JGA only.
    consistent_all: right with all of v1 to v5; JGA only.
    per_variant: the original, then the others.
    summary: how much the variants change, as in the paper's Table 2.
    robustness: of frames to the variants, relative to the original and among the variants:
      retained, lost, gained; worst, the lowest of v1 to v5; spread, the highest minus that; and
      agreement, pairs of v1 to v5 with equal predicted states, of JGA only.
    compared: those in comparisons of two systems.
    retained, worst, spread: three of these.
  """

  def __init__(self, name: str, variants: tuple[str, ...] = ()):
    """Args: name, of the metric in `metrics.summarise`; variants, those scored."""
    every = dict.fromkeys((*reworded_variants(variants), *variants))  # in this order, each once
    every.pop(ORIGINAL, None)
    # JGA has the paper's names; another metric's name is in the title of its table.
    prefix, suffix, short = ("JGA_", "_JGA", "JGA") if name == "jga" else ("", "", "mean")
    self.original = _column(f"{name}_orig", f"{prefix}orig", "original", f"{short}_orig", ORIGINAL)
    self.variants = tuple(_column(f"{name}_{v}", v, v, f"{short}_{v}", v) for v in every)
    key = mean_key(name, variants)
    mean = key.removeprefix(f"{name}_").replace("_", "-")  # "v1-5" or "reworded"
    self.mean = _column(key, f"{prefix}{mean}", mean, f"{short}_{mean}")
    self.diff_rel = _column("diff_rel", "Diff_rel")
    self.sensitivity = _column(f"ss_{name}", f"SS{suffix}", "SS")
    self.sensitivity_exclude = _column(f"ss_{name}_exclude", "SS, exclude")
    self.all_wrong = _column("zero_mean_share", "wrong in all")
    self.consistent = tuple(_column(f"cjga_{v}", f"cJGA_{v}") for v in every)
    self.consistent_all = _column("cjga_all", "cJGA_all")
    self.per_variant = (self.original, *self.variants)
    self.summary = (self.mean, self.diff_rel, self.sensitivity)
    robustness = ("retained", "lost", "gained", "worst", "spread", "agreement")
    self.robustness = tuple(map(_column, robustness))
    self.retained, _, _, self.worst, self.spread, _ = self.robustness
    self.compared = (*self.per_variant, *self.summary, self.consistent_all, *self.robustness)

  @property
  def is_sgdx(self) -> bool:
    """Whether means are over v1 to v5, not over other variants."""
    return self.mean.plain == "v1-5"


def _column(
  key: str, heading: str = "", plain: str = "", full: str = "", variant: str = ""
) -> Column:
  heading = heading or key
  return Column(key, heading, plain or heading, full or heading, variant)


columns = functools.cache(Columns)
JGA = columns("jga")


def short_name(metric: str) -> str:
  """Returns an official metric's name in `metrics.summarise`."""
  return "jga" if metric == JOINT_GOAL else metric


def defined(table_columns: Iterable[Column], rows: Iterable[Row]) -> list[Column]:
  """Returns the columns that any row has; scores of older versions lack newer metrics."""
  rows = list(rows)
  return [column for column in table_columns if any(row.has(column.key) for row in rows)]
