"""Compares two systems on the same frames: `sgdx diff` for notebooks and other programs.

import sgdx_t5x
compared = sgdx_t5x.compare("base.json", "ours.json")
compared.difference("jga_v5", "unseen").p
"""

import dataclasses
import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.arguments import NUMBER, PATH, check_bootstrap, check_choice, checked_arguments
from sgdx_t5x.corpus.variants import reworded_variants
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.metrics import BootstrapSamples, Difference, FrameScores
from sgdx_t5x.metrics.bootstrap import NUM_BOOTSTRAP_SAMPLES
from sgdx_t5x.scoring import comparison_tables
from sgdx_t5x.scoring.columns import short_name
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.scoring.score_files import read_frames
from sgdx_t5x.scoring.scores import Scores
from sgdx_t5x.scoring.summaries import group_masks
from sgdx_t5x.signature import Signature, differences
from sgdx_t5x.tables import document

FORMAT = "sgdx-diff/1"  # raise the number when a reader of the report must change
_ALIKE = "scores for the same frames"


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Two systems on the frames and variants that both have, in the same order.

  Attributes:
    tables: the two systems' scores, as read.
    metric: official key.
    scores: variant -> scores, for each system; the same variants.
    agreement: [F] float for each system; None unless both have JGA's, over the same variants.
    warnings: what makes the comparison PARTIAL, a line each.
    notes: what else a reader should know.
  """

  tables: tuple[FrameTable, FrameTable]
  metric: str
  scores: tuple[Mapping[str, FrameScores], Mapping[str, FrameScores]]
  agreement: tuple[np.ndarray, np.ndarray] | None
  warnings: tuple[str, ...]
  notes: tuple[str, ...]

  def __repr__(self) -> str:
    names = " and ".join(str(table.path) for table in self.tables)
    return f"<Comparison of {names}: {self.metric}, {len(self.frames):,} frames>"

  def difference(self, key: str, group: str = "all") -> Difference:
    """Returns a number's `a`, `b`, `difference`, its 95% interval (`low`, `high`) and `p`.

    As fractions, nan where there is nothing to compare.

    Args:
      key: of the number, as in the JSON of `sgdx diff`, such as "jga_v1_5".
      group: "all", "seen" or "unseen" services.

    Raises:
      SgdxError: another key or group.
    """
    rows = self.report["rows"]
    check_choice(group, "difference: group", tuple(rows))
    differences = rows[group]["differences"]
    check_choice(key, "difference: key", tuple(differences))
    return _from_json(differences[key])

  @functools.cached_property
  def report(self) -> dict[str, Any]:
    """What `comparison_report` returns."""
    return comparison_report(self)

  @property
  def signatures(self) -> tuple[str, str]:
    """Those of both systems' scores."""
    a, b = self.tables
    return a.signature, b.signature

  def format(self, style: str = "md") -> str:
    """Returns the tables of `sgdx diff`. Args: style, see `Scores`."""
    tables = comparison_tables.layout(self.report, split_intervals=style == "csv")
    texts = comparison_tables.texts(self.report)
    return document(style, tables, **texts, notes=comparison_tables.notes(self.report))

  def __str__(self) -> str:
    return self.format()

  @property
  def frames(self) -> FrameScores:
    """The scores of any variant, for their frames, dialogues and services."""
    return next(iter(self.scores[0].values()))

  def values(self, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Both systems' scores: two [F] float."""
    a, b = self.scores
    return a[variant].metrics[self.metric], b[variant].metrics[self.metric]

  def flipped(self, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Frames right in the first and wrong in the second, and the reverse: two [F] bool.

    Right is a score of 1.
    """
    a, b = self.values(variant)
    return (a >= 1) & (b < 1), (a < 1) & (b >= 1)


@checked_arguments(
  a=(FrameTable, Scores, *PATH), b=(FrameTable, Scores, *PATH), metric=str, allow_missing=bool
)
def compare(
  a: FrameTable | Scores | str | os.PathLike,
  b: FrameTable | Scores | str | os.PathLike,
  metric: str = metrics.JOINT_GOAL,
  allow_missing: bool = False,
) -> Comparison:
  """Aligns two systems to the same variants and frames.

  Args:
    a: scores of the first system, from `score` or `read_frames`, or an argument of the latter.
    b: scores of the second.
    metric: official key that both have.
    allow_missing: drop frames and scores that one system lacks, with a line in `warnings`.

  Raises:
    SgdxError: different corpora, splits or scoring rules; nothing in common; frames or scores
      that one system lacks, unless allowed.
  """
  tables = (_frames_of(a), _frames_of(b))
  _check_comparable(tables)
  variants, not_compared = _common_variants(tables, metric)
  positions, missing = _common_frames(tables, allow_missing)
  scores, unscored = _common_scores(tables, positions, variants, metric, allow_missing)
  warnings, notes = [], []
  for name, table in zip("AB", tables, strict=True):
    warnings += [f"{name}: {line}" for line in table.warnings]
    notes += [f"{name}: {line}" for line in table.notes]
  agreement = _agreement(tables, metric, next(iter(scores[0].values())))
  warnings += [*missing, *unscored]
  return Comparison(tables, metric, scores, agreement, tuple(warnings), (*notes, *not_compared))


def _frames_of(system: FrameTable | Scores | str | os.PathLike) -> FrameTable:
  if isinstance(system, FrameTable):
    return system
  return system.frames if isinstance(system, Scores) else read_frames(system)


@checked_arguments(comparison=Comparison, bootstrap_samples=NUMBER, seed=NUMBER)
def comparison_report(
  comparison: Comparison, bootstrap_samples: int = NUM_BOOTSTRAP_SAMPLES, seed: int = 0
) -> dict[str, Any]:
  """Returns what `sgdx diff --json` writes: fractions, or None if there is nothing to compare.

  Args:
    comparison: from `compare`.
    bootstrap_samples: of dialogues, 100 to 1,000,000.
    seed: of the bootstrap.
  """
  check_bootstrap(bootstrap_samples, seed)
  frames = comparison.frames
  samples = BootstrapSamples.draw(frames.dialogue_ids, bootstrap_samples, seed)
  masks = group_masks(frames.seen)
  a, b = ({"file": str(t.path), "signature": t.signature} for t in comparison.tables)
  return {
    "format": FORMAT,
    "a": a,
    "b": b,
    "metric": comparison.metric,
    "variants": list(comparison.scores[0]),
    "complete": not comparison.warnings,
    "warnings": list(comparison.warnings),
    "notes": list(comparison.notes),
    "resamples": bootstrap_samples,
    "seed": seed,
    "rows": {name: row(comparison, mask, samples) for name, mask in masks.items()},
  }


def row(comparison: Comparison, mask: np.ndarray, samples: BootstrapSamples) -> dict[str, Any]:
  """Returns a row of `comparison_report`.

  Args:
    comparison: from `compare`.
    mask: [F] bool, the frames to use.
    samples: bootstrap samples of the dialogues of all frames.
  """
  # B was scored by the same rules, or `compare` would have refused.
  rules = Signature.parse(comparison.tables[0].signature).fields
  across_turn = rules.get("jga", "").endswith("across-turn")
  dialogue_ids = comparison.frames.dialogue_ids
  scores_a, scores_b = comparison.scores
  values_a, units = metrics.values_by_variant(scores_a, comparison.metric, mask, across_turn)
  values_b, _ = metrics.values_by_variant(scores_b, comparison.metric, mask, across_turn)
  zero_mean = rules.get("zero_mean", "zero")
  differences = metrics.paired_differences(
    values_a, values_b, dialogue_ids[units], samples, zero_mean, short_name(comparison.metric)
  )
  if comparison.agreement:
    a, b = comparison.agreement
    differences["agreement"] = metrics.mean_difference(
      a[mask], b[mask], dialogue_ids[mask], samples
    )
  scored, counts = mask, {}
  for variant in comparison.scores[0]:
    # As many as `sgdx score` says: a frame without, say, a categorical slot has no score for these.
    scored = scored & ~np.isnan(sum(comparison.values(variant)))
    broken, fixed = comparison.flipped(variant)
    counts[variant] = {"broken": int(broken[mask].sum()), "fixed": int(fixed[mask].sum())}
  return {
    "num_frames": int(scored.sum()),
    "num_dialogues": len(np.unique(dialogue_ids[scored])),
    "differences": {key: _for_json(difference) for key, difference in differences.items()},
    "flips": counts,
  }


def flips(comparison: Comparison) -> Iterator[dict[str, Any]]:
  """Yields a row per flipped frame and variant, in the order of the first system's frames.

  Each is {"id", "service", "seen", "variant", "a": score, "b": score}; for several runs of each
  system, with the "run" after "id", from 0.
  """
  frames, variants = comparison.frames, list(comparison.scores[0])
  is_flipped = np.stack([np.logical_or(*comparison.flipped(v)) for v in variants], axis=1)
  # All variants of a frame, then the next frame.
  for frame, column in np.argwhere(is_flipped):
    a, b = comparison.values(variants[column])
    key, run = str(frames.frame_ids[frame]), {}
    if comparison.tables[0].runs > 1:  # pooled: "1_00000-002-Banks_2#0"
      key, _, number = key.rpartition("#")
      run = {"run": int(number)}
    yield {
      "id": key,
      **run,
      "service": str(frames.services[frame]),
      "seen": bool(frames.seen[frame]),
      "variant": variants[column],
      "a": float(a[frame]),
      "b": float(b[frame]),
    }


# --- what both have ------------------------------------------------------------------------


def _check_comparable(tables: tuple[FrameTable, FrameTable]) -> None:
  a, b = tables
  pairs = differences(Signature.parse(a.signature), Signature.parse(b.signature))
  if not pairs:
    return
  settings_a = ", ".join(f"{name}:{value}" for name, (value, _) in pairs.items())
  settings_b = ", ".join(f"{name}:{value}" for name, (_, value) in pairs.items())
  raise SgdxError(
    f"A and B were scored with different settings: {', '.join(pairs)}",
    expected="scores for the same corpus and split, computed with the same settings",
    available=f"A: {settings_a} | B: {settings_b}",
    fix=f"rescore one with the settings of the other: {a.path}, {b.path}",
  )


def _common_variants(
  tables: tuple[FrameTable, FrameTable], metric: str
) -> tuple[list[str], list[str]]:
  """Returns the variants for which both systems have the metric, and notes on the others."""
  a, b = _scored_variants(tables[0], metric), _scored_variants(tables[1], metric)
  shared = [variant for variant in a if variant in b]
  if not shared:
    raise SgdxError(
      f"{tables[0].path} and {tables[1].path} have no variant in common with {metric}",
      expected="predictions from both systems for at least one variant",
      available=f"A: {', '.join(a) or 'none'} | B: {', '.join(b) or 'none'}",
      fix="score the same variants for both systems",
    )
  notes = []
  for name, variants in (("A", a), ("B", b)):
    if unshared := [variant for variant in variants if variant not in shared]:
      notes.append(f"not compared, only in {name}: {', '.join(unshared)}")
  return shared, notes


def _scored_variants(table: FrameTable, metric: str) -> list[str]:
  """Returns the variants for which a system has the metric. Raises SgdxError without any."""
  if metric not in table.frames.metrics:
    raise SgdxError(
      f"{table.path}: no metric {metric!r}",
      expected="a metric in the per-frame scores",
      available=nearest(metric, table.metrics),
      fix="read the file with this metric"
      if metric in table.metrics
      else "use one of: " + ", ".join(table.metrics),
    )
  variants = []
  for variant, scores in table.scores.items():
    if not np.isnan(scores.metrics[metric]).all():
      variants.append(variant)
  if not variants:
    raise SgdxError(
      f"{table.path}: the predictions have no {metric}",
      expected="a metric of what was predicted",
      available=", ".join(name for name in table.metrics if name != metric),
      fix="choose another, or score predictions that have it",
    )
  return variants


def _common_frames(
  tables: tuple[FrameTable, FrameTable], allow_missing: bool
) -> tuple[list[np.ndarray], list[str]]:
  """Returns the positions of the shared frames in A and in B, and what makes them PARTIAL."""
  a, b = (dict.fromkeys(table.frame_ids.tolist()) for table in tables)  # sets, in order
  shared = [key for key in a if key in b]
  missing = []
  for name, ids, other_name in (("A", a, "B"), ("B", b, "A")):
    if num_missing := len(ids) - len(shared):
      missing.append(f"{num_missing:,} of {len(ids):,} frames of {name} are not in {other_name}")
  if missing and not (allow_missing and shared):
    compares = "; --allow-missing compares the shared frames" if shared else ""
    first_missing = next(key for key in (*a, *b) if key not in a or key not in b)
    raise SgdxError(
      f"{'; '.join(missing)}; the first is {first_missing}",
      expected=_ALIKE,
      available=f"{len(shared):,} frames in both",
      fix=f"score both on the same dialogues{compares}",
    )
  # In A's order, in both.
  return [table.frames.positions(shared) for table in tables], missing


def _common_scores(
  tables: tuple[FrameTable, FrameTable],
  positions: Sequence[np.ndarray],
  variants: Sequence[str],
  metric: str,
  allow_missing: bool,
) -> tuple[tuple[dict[str, FrameScores], dict[str, FrameScores]], list[str]]:
  """Returns each system's scores of the shared frames, and what makes them PARTIAL.

  A score that is nan in one system is nan in both, as if the frame were missing.
  """
  missing: list[str] = []
  aligned: tuple[dict[str, FrameScores], dict[str, FrameScores]] = ({}, {})
  for variant in variants:
    systems = [table.scores[variant].take(x) for table, x in zip(tables, positions, strict=True)]
    a, b = systems[0].metrics[metric], systems[1].metrics[metric]
    if unshared := int((np.isnan(a) != np.isnan(b)).sum()):
      missing.append(f"{unshared:,} frames of {variant} have {metric} in only one of A and B")
    unknown = np.isnan(a + b)
    for scores, system in zip(aligned, systems, strict=True):
      values = np.where(unknown, np.nan, system.metrics[metric])
      scores[variant] = dataclasses.replace(system, metrics={metric: values})
  if missing and not allow_missing:
    raise SgdxError(
      "; ".join(missing),
      expected=_ALIKE,
      fix="complete the predictions, or use --allow-missing to compare the shared frames",
    )
  return aligned, missing


def _agreement(
  tables: tuple[FrameTable, FrameTable], metric: str, frames: FrameScores
) -> tuple[np.ndarray, np.ndarray] | None:
  """Returns both systems' agreement on these frames, see `Comparison`."""
  a, b = tables[0].agreement, tables[1].agreement
  of_a, of_b = (set(reworded_variants(table.scores)) for table in tables)
  # Unlike other numbers, it cannot be computed again for the variants that both have.
  if metric != metrics.JOINT_GOAL or a is None or b is None or of_a != of_b:
    return None
  return frames.column(a), frames.column(b)


def _for_json(difference: Difference) -> dict[str, Any] | None:
  if math.isnan(difference.difference):
    return None
  has_interval = not math.isnan(difference.p)  # not if its frames are of one dialogue
  return {
    "a": difference.a,
    "b": difference.b,
    "difference": difference.difference,
    "ci95": [difference.low, difference.high] if has_interval else None,
    "p": difference.p if has_interval else None,
  }


def _from_json(numbers: Mapping[str, Any] | None) -> Difference:
  """The reverse of `_for_json`."""
  if numbers is None:
    return Difference(*[math.nan] * 6)
  low, high, p = (*numbers["ci95"], numbers["p"]) if numbers["ci95"] else [math.nan] * 3
  return Difference(numbers["a"], numbers["b"], numbers["difference"], low, high, p)
