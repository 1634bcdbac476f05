"""The content of a report's plots, as numbers in percent and as sentences."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sgdx_t5x.corpus.variants import SGDX_VARIANTS, in_order
from sgdx_t5x.report.plot_style import clean
from sgdx_t5x.scoring.columns import JGA, Columns, columns
from sgdx_t5x.scoring.rows import GROUPS, Row

if TYPE_CHECKING:
  from sgdx_t5x.report.runs import Run

ORIG, MEAN, SENSITIVITY = JGA.original.key, JGA.mean.key, JGA.sensitivity.key
NAMES = {x.key: x.heading for x in (JGA.original, JGA.mean, JGA.sensitivity)}


def jga_columns(runs: Sequence["Run"]) -> Columns:
  """The numbers of JGA for the variants of all runs."""
  variants = dict.fromkeys(variant for run in runs for variant in run.variants)
  return columns("jga", tuple(in_order(variants)))


def groups_with(runs: Sequence["Run"], keys: Iterable[str]) -> list[str]:
  """The groups ("all", "seen", "unseen") that have frames and any of the numbers."""
  keys, groups = tuple(keys), set()
  for run in runs:
    for group, row in run.rows.groups.items():
      if row.num_frames and any(map(row.has, keys)):
        groups.add(group)
  return [group for group in GROUPS if group in groups]


def floor_of(run: "Run", group: str) -> float:
  """JGA of predicting nothing in percent, the same with every variant scored."""
  row = run.floor.groups[group]
  # Gold states do not depend on the wording, so that any variant will do.
  for column in jga_columns([run]).per_variant:
    if row.has(column.key):
      return row.percent(column.key)
  return math.nan


def services_of(run: "Run") -> dict[str, Row]:
  """The services that have SS_JGA and JGA_v1-5, the most sensitive first."""
  rows = []
  for service, row in run.rows.services.items():
    if row.has(MEAN) and row.has(SENSITIVITY):
      rows.append((service, row))
  return dict(sorted(rows, key=lambda item: -item[1].percent(SENSITIVITY)))


def shares_of_kinds(errors: Mapping[str, Mapping[str, int]]) -> tuple[str, dict[str, float]]:
  """Returns which variants' errors are counted, v1 to v5 if there are any, and each kind's share.

  Args:
    errors: variant -> kind of error -> number.
  """
  variants = [variant for variant in SGDX_VARIANTS if variant in errors] or list(errors)
  totals: Counter[str] = Counter()
  for variant in variants:
    totals.update(errors[variant])
  num_errors = totals.total() or 1  # without errors, every share is 0
  shares = {kind: number / num_errors for kind, number in totals.items()}
  return mean_of(variants), shares


def mean_of(variants: Sequence[str]) -> str:
  """The name of a mean over variants; "v1-5" only if all five are there."""
  return "v1-5" if set(variants) == set(SGDX_VARIANTS) else "+".join(variants)


def num_points(run: "Run") -> int:
  """How many checkpoints have a JGA."""
  return sum(row.has(ORIG) or row.has(MEAN) for _, row in run.steps)


def best_checkpoints(run: "Run") -> dict[str, tuple[int, Row]]:
  """The checkpoints with the best JGA_orig and the best JGA_v1-5; the earliest if tied."""
  best = {}
  for key in (ORIG, MEAN):
    if scored := [checkpoint for checkpoint in run.steps if checkpoint[1].has(key)]:
      best[key] = max(scored, key=lambda checkpoint: checkpoint[1].percent(key))
  return best


# --- sentences -----------------------------------------------------------------------------


def in_words(row: Row, keys: Iterable[str]) -> str:
  """The numbers of a row, with their names."""
  phrases = []
  for key in keys:
    if row.has(key):
      name = NAMES.get(key, key.removeprefix("jga_"))  # else a variant's
      phrases.append(f"{name} {row.percent(key):.1f}%")
  return ", ".join(phrases)


def runs_in_words(runs: Sequence["Run"], keys: Iterable[str]) -> str:
  """The numbers of each run that has any, over all services."""
  keys, phrases = tuple(keys), []
  for run in runs:
    if words := in_words(run.rows.groups["all"], keys):
      phrases.append(f"{clean(run.name)} {words}")
  return "; ".join(phrases)


def best_in_words(run: "Run") -> str:
  """The best checkpoints of a run."""
  phrases = []
  for key, (step, row) in best_checkpoints(run).items():
    numbers = in_words(row, (ORIG, MEAN, SENSITIVITY))
    phrases.append(f"best {NAMES[key]} at step {step:,} ({numbers})")
  return f"{clean(run.name)} {', '.join(phrases)}"


def extremes_in_words(run: "Run", services: dict[str, Row]) -> str:
  """The most and the least sensitive service; `services` is from `services_of`."""
  phrases = []
  for name in dict.fromkeys((next(iter(services)), next(reversed(services)))):  # or only one
    phrases.append(f"{clean(name)} ({in_words(services[name], (SENSITIVITY, MEAN))})")
  return f"{clean(run.name)} from {' to '.join(phrases)}"
