"""What the plots of a report show, as numbers in percent and as sentences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.report.plot_style import clean
from sgdx_t5x.scoring.score_tables import GROUPS

if TYPE_CHECKING:
  from sgdx_t5x.report.runs import Run

ORIG, REWORDED, SENSITIVITY = "jga_orig", "jga_v1_5", "ss_jga"
VARIANTS = tuple(f"v{k}" for k in range(1, 6))
VERSIONS = {ORIG: "original", **{f"jga_{variant}": variant for variant in VARIANTS}}
NAMES = {**VERSIONS, ORIG: "JGA_orig", REWORDED: "JGA_v1-5", SENSITIVITY: "SS_JGA"}

Row = Mapping[str, Any]  # of report["sgdx"]


def row_of(run: "Run", group: str) -> Row:
  """The scores of all, seen or unseen services."""
  return run.report["sgdx"][group]


def has(row: Row, key: str) -> bool:
  """Whether a number could be computed."""
  return row.get(key) is not None


def percent(row: Row, key: str) -> float:
  """A number in percent; nan if there is none."""
  return 100 * row[key] if has(row, key) else math.nan


def interval(row: Row, key: str) -> tuple[float, float] | None:
  """The ends of its 95% interval in percent."""
  ends = row.get("ci95", {}).get(key)
  return (100 * ends[0], 100 * ends[1]) if ends and has(row, key) else None


def groups_with(runs: Sequence["Run"], keys: Iterable[str]) -> list[str]:
  """Those of all, seen and unseen services that have frames and one of the numbers."""
  keys = tuple(keys)

  def known(row: Row) -> bool:
    return bool(row["num_frames"]) and any(has(row, key) for key in keys)

  return [g for g in GROUPS if any(known(row_of(run, g)) for run in runs)]


def floor_of(run: "Run", group: str) -> float:
  """JGA of predicting nothing in percent, the same in every version that there is."""
  row = run.report["predict_nothing"][group]
  return next((percent(row, key) for key in VERSIONS if has(row, key)), math.nan)


def services_of(run: "Run") -> dict[str, Row]:
  """The services that have SS_JGA and JGA_v1-5, the most sensitive first."""
  rows = run.report["sgdx"]["services"]
  kept = [name for name in rows if has(rows[name], REWORDED) and has(rows[name], SENSITIVITY)]
  return {name: rows[name] for name in sorted(kept, key=lambda name: -rows[name][SENSITIVITY])}


def seen_services(run: "Run") -> dict[str, str]:
  """Service -> "seen" or "unseen"; empty without scores per frame."""
  if run.table is None:
    return {}
  scores = run.table.frames
  pairs = zip(scores.services.tolist(), scores.seen.tolist(), strict=True)
  return {service: "seen" if seen else "unseen" for service, seen in pairs}


def shares_of_kinds(run: Mapping[str, Mapping[str, int]]) -> tuple[str, dict[str, float]]:
  """What the kinds of failure are shares of (without variants, the original), kind -> share."""
  versions = [variant for variant in VARIANTS if variant in run] or list(run)
  totals: dict[str, int] = {}
  for version in versions:
    for kind, count in run[version].items():
      totals[kind] = totals.get(kind, 0) + count
  everything = sum(totals.values()) or 1
  return f"% of failures, {mean_of(versions)}", {
    kind: count / everything for kind, count in totals.items()
  }


def mean_of(versions: Sequence[str]) -> str:
  """What a mean over versions is called: "v1-5" is of all five only."""
  return "v1-5" if set(versions) == set(VARIANTS) else "+".join(versions)


def num_points(run: "Run") -> int:
  """How many checkpoints have a JGA."""
  return sum(has(row, ORIG) or has(row, REWORDED) for _, row in run.steps)


def best_checkpoints(run: "Run") -> dict[str, tuple[int, Row]]:
  """The checkpoint that is best by JGA_orig, and by JGA_v1-5; the first of equals."""
  found = {}
  for key in (ORIG, REWORDED):
    if known := [checkpoint for checkpoint in run.steps if has(checkpoint[1], key)]:
      found[key] = max(known, key=lambda checkpoint: checkpoint[1][key])
  return found


# --- sentences -----------------------------------------------------------------------------


def in_words(row: Row, keys: Iterable[str]) -> str:
  """The numbers of a row, with their names."""
  return ", ".join(f"{NAMES[key]} {percent(row, key):.1f}%" for key in keys if has(row, key))


def runs_in_words(runs: Sequence["Run"], keys: Iterable[str]) -> str:
  """The numbers of each run that has some, over all services."""
  keys = tuple(keys)
  said = [(clean(run.name), in_words(row_of(run, "all"), keys)) for run in runs]
  return "; ".join(f"{name} {numbers}" for name, numbers in said if numbers)


def best_in_words(run: "Run") -> str:
  """The best checkpoints of a run."""
  said = (
    f"best {NAMES[key]} at step {step:,} ({in_words(row, (ORIG, REWORDED, SENSITIVITY))})"
    for key, (step, row) in best_checkpoints(run).items()
  )
  return f"{clean(run.name)} {', '.join(said)}"


def extremes_in_words(run: "Run", services: dict[str, Row]) -> str:
  """The most and the least sensitive service. Args: services: of `services_of`."""
  ends = dict.fromkeys((next(iter(services)), next(reversed(services))))
  said = (f"{clean(s)} ({in_words(services[s], (SENSITIVITY, REWORDED))})" for s in ends)
  return f"{clean(run.name)} from {' to '.join(said)}"
