"""The plots of a report: the paper's Figures 4, 5 and 6, kinds of failure, scores by step.

Each function returns a matplotlib figure, or None where there is nothing to draw; a number that a
run lacks is left out. Dots are scores in percent, the lines through them 95% intervals.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.report.plot_style import (
  COLOURS,
  FAINT,
  FILE_FORMATS,
  INK,
  PAGE,
  clean,
  describe,
  finish,
  inline_svg,
  label_points,
  legend,
  look,
  name_places,
  panels,
  printable,
  save,
  style,
)

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure
  from matplotlib.lines import Line2D

  from sgdx_t5x.report.runs import Run

__all__ = (
  "FILE_FORMATS",
  "by_step",
  "describe",
  "failure_kinds",
  "inline_svg",
  "jga_by_augmentation",
  "jga_by_variant",
  "save",
  "sensitivity_by_service",
)

_VARIANTS = tuple(f"v{k}" for k in range(1, 6))
_VERSIONS = {"jga_orig": "original", **{f"jga_{variant}": variant for variant in _VARIANTS}}
_NAMES = {**_VERSIONS, "jga_orig": "JGA_orig", "jga_v1_5": "JGA_v1-5", "ss_jga": "SS_JGA"}
_ORIG, _REWORDED, _SENSITIVITY = "jga_orig", "jga_v1_5", "ss_jga"
_PAIR = {  # where the two stand side by side
  _ORIG: {"color": COLOURS[0], "marker": "o", "linestyle": "none"},
  _REWORDED: {"color": COLOURS[1], "marker": "s", "linestyle": "none"},
}
_SEEN = {
  "": {"color": COLOURS[0], "marker": "o"},  # not known
  "seen": {"color": COLOURS[0], "marker": "o"},
  "unseen": {"color": COLOURS[1], "marker": "D", "fillstyle": "none"},
}
_CURVES = {
  _ORIG: {"linestyle": "-"},
  _REWORDED: {"linestyle": "--", "fillstyle": "none"},
  _SENSITIVITY: {"linestyle": "-"},
}
_RINGS = {  # around the dots of a checkpoint
  _ORIG: {"marker": "o", "linestyle": "none", "fillstyle": "none", "markersize": 9.0},
  _REWORDED: {"marker": "s", "linestyle": "none", "fillstyle": "none", "markersize": 8.0},
}
_MOST_CROSSES = 25  # services with intervals; more would hide the dots

Row = Mapping[str, Any]  # of report["sgdx"]
Cell = tuple[Row, str]  # and a key of it


# --- JGA -----------------------------------------------------------------------------------


@style()
def jga_by_variant(runs: Sequence["Run"]) -> "Figure | None":
  """JGA of each version of the schemas, a series per run: the paper's Figure 4."""
  keys = [key for key in _VERSIONS if any(_has(_row(run, "all"), key) for run in runs)]
  groups = _groups(runs, keys)
  if not groups:
    return None
  figure, axes = panels(len(groups), 3, 2.2, sharey=True)
  entries: dict[Any, tuple[str, Line2D]] = {}
  for ax, group in zip(axes, groups, strict=True):
    for index, run in enumerate(runs):
      cells = [(_row(run, group), key) for key in keys]
      if any(_has(*cell) for cell in cells):
        shift = (index - (len(runs) - 1) / 2) * min(0.12, 0.6 / len(runs))
        entries[run.name] = _dots(ax, [x + shift for x in range(len(keys))], cells, **look(index))
    ax.set_xticks(range(len(keys)), [_VERSIONS[key].replace("original", "orig.") for key in keys])
    ax.set(title=_title(runs, group), xlim=(-0.5, len(keys) - 0.5))
  for ax, group in zip(axes, groups, strict=True):
    for floor in dict.fromkeys(_floor(run, group) for run in runs):
      dashes = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 3))}
      entries["predict nothing"] = ax.axhline(floor, **dashes)
  axes[0].set(ylabel="JGA (%)", ylim=(0, None))
  legend(figure, entries)
  return finish(figure, f"JGA by version of the schemas, all services: {_said(runs, keys)}.")


@style()
def jga_by_augmentation(runs: Sequence["Run"]) -> "Figure | None":
  """JGA_orig and JGA_v1-5 of each run, its variants faint beside them: the paper's Figure 5."""
  runs = [run for run in runs if any(_has(_row(run, "all"), key) for key in _PAIR)]
  if not any(_has(_row(run, "all"), _REWORDED) for run in runs):
    return None
  groups = _groups(runs, _PAIR)
  figure, axes = panels(len(groups), 3, 2.2, sharey=True)
  entries: dict[str, Line2D] = {}
  for ax, group in zip(axes, groups, strict=True):
    for x, run in enumerate(runs):
      row = _row(run, group)
      for (key, marks), shift in zip(_PAIR.items(), (-0.2, 0.05), strict=True):
        entries[_NAMES[key]] = _dots(ax, [x + shift], [(row, key)], **marks)
      each = [_percent(row, f"jga_{variant}") for variant in _VARIANTS]
      faint = {**_PAIR[_REWORDED], "alpha": FAINT, "markersize": 2.5}
      (entries["v1 to v5"],) = ax.plot([x + 0.2] * 5, each, **faint)
    ax.set(title=_title(runs, group), xlim=(-0.5, len(runs) - 0.5))
    ax.grid(visible=False, axis="x")
    width = figure.get_figwidth() / len(groups) - 0.4
    below = name_places(ax, [clean(run.name) for run in runs], width)
  axes[0].set_ylabel("JGA (%)")
  figure.set_figheight(figure.get_figheight() + below)
  legend(figure, entries)
  return finish(figure, f"JGA by run, all services: {_said(runs, _PAIR)}.")


# --- services, failures, steps ---------------------------------------------------------------


@style()
def sensitivity_by_service(runs: Sequence["Run"]) -> "Figure | None":
  """SS_JGA against JGA_v1-5, a dot per service, a panel per run: the paper's Figure 6.

  Dots of services unseen in training are open; all are alike in a run without scores per frame.
  """
  found = [(run, services) for run in runs if (services := _services(run))]
  if not found:
    return None
  height = 3.2 if len(found) < 3 else 2.4
  figure, axes = panels(len(found), 3, height, page=True, sharex=True, sharey=True)
  entries: dict[str, Line2D] = {}
  for ax, (run, services) in zip(axes, found, strict=True):
    if len(services) <= _MOST_CROSSES:
      _crosses(ax, services.values())
    seen = _seen(run)
    for kind, marks in _SEEN.items():
      rows = [row for service, row in services.items() if seen.get(service, "") == kind]
      (dots,) = ax.plot(*_places(rows), linestyle="none", **marks)
      if kind and rows:
        entries[kind] = dots
    ax.set_title(printable(run.name, PAGE / min(3, len(found)) - 0.5))
  figure.supxlabel("SS_JGA (%)")
  figure.supylabel("JGA_v1-5 (%)")
  legend(figure, {kind: entries[kind] for kind in _SEEN if kind in entries})
  said = "; ".join(_extremes(run, services) for run, services in found)
  finish(figure, f"SS_JGA and JGA_v1-5 by service: {said}.")
  for ax, (_, services) in zip(axes, found, strict=True):  # the layout is known now
    label_points(ax, list(services), list(zip(*_places(services.values()), strict=True)))
  return figure


@style()
def failure_kinds(
  counts: Mapping[str, Mapping[str, Mapping[str, int]]], num_frames: Mapping[str, int]
) -> "Figure | None":
  """Failures per 100 frames by kind and version of the schemas, a panel per run.

  Args:
    counts: run -> version -> kind -> failures, each of a slot in a frame.
    num_frames: run -> frames that each version has.
  """
  found = {name: run for name, run in counts.items() if num_frames.get(name) and any(run.values())}
  if not any(sum(each.values()) for run in found.values() for each in run.values()):
    return None
  kinds = list(dict.fromkeys(k for run in found.values() for each in run.values() for k in each))
  versions = [v for v in _VERSIONS.values() if any(v in run for run in found.values())]
  figure, axes = panels(len(found), 2, 2.2, page=True, sharex=True, sharey=True)
  said = []
  for ax, (name, run) in zip(axes, found.items(), strict=True):
    of, shares = _shares(run)
    for index, kind in enumerate(kinds):
      failures = [run[v].get(kind, 0) if v in run else math.nan for v in versions]
      label = printable(f"{kind} {shares.get(kind, 0):.0%}", 1.1)
      ax.plot([100 * n / num_frames[name] for n in failures], **look(index), label=label)
    order = sorted(range(len(kinds)), key=lambda index: -shares.get(kinds[index], 0))
    handles = [ax.lines[index] for index in order]
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "alignment": "left"}
    ax.legend(handles=handles, title=of, **beside)
    ax.set_xticks(range(len(versions)), [v.replace("original", "orig.") for v in versions])
    ax.set_title(printable(name, 2.8))
    each = ", ".join(line.get_label().replace("\n", " ") for line in handles)
    said.append(f"{clean(name)} {each} ({of})")
  axes[0].set_ylim(bottom=0)
  figure.supylabel("failures per 100 frames")
  return finish(figure, f"Kinds of failure: {'; '.join(said)}.")


@style()
def by_step(runs: Sequence["Run"]) -> "Figure | None":
  """JGA_orig, JGA_v1-5 and, below, SS_JGA of all services by training step.

  A ring is around the checkpoint of a run with the best JGA_orig, a square around that with the
  best JGA_v1-5, in both panels.
  """
  from matplotlib.lines import Line2D

  found = [(run, look(index)) for index, run in enumerate(runs) if _num_points(run) > 1]
  if not found:
    return None
  keys = [key for key in _CURVES if any(_has(row, key) for run, _ in found for _, row in run.steps)]
  figure, axes = panels(2 if _SENSITIVITY in keys else 1, 1, 2.0, page=True, sharex=True)
  entries: dict[str, Line2D] = {}
  for run, marks in found:
    entries[run.name] = Line2D([], [], **marks | {"linestyle": "none"})
    steps = [step for step, _ in run.steps]
    for key in keys:
      ax = axes[key == _SENSITIVITY]
      _dots(ax, steps, [(row, key) for _, row in run.steps], **marks | _CURVES[key])
      for chosen, (step, row) in _best(run).items():
        if key in (chosen, _SENSITIVITY):
          ax.plot([step], [_percent(row, key)], **_RINGS[chosen], color=marks["color"])
  for key in keys[:-1] if _SENSITIVITY in keys else keys:
    entries[_NAMES[key]] = Line2D([], [], color=INK, marker="o", **_CURVES[key])
    entries[f"best {_NAMES[key]}"] = Line2D([], [], color=INK, **_RINGS[key])
  axes[0].set_ylabel("JGA (%)")
  axes[-1].set_xlabel("training step")
  axes[-1].xaxis.set_major_formatter("{x:,.0f}")
  if _SENSITIVITY in keys:
    axes[1].set_ylabel("SS_JGA (%)")
  legend(figure, entries)
  said = (f"{clean(run.name)} {_said_best(run)}" for run, _ in found)
  return finish(figure, f"Scores by training step, all services: {'; '.join(said)}.")


# --- numbers of a report -------------------------------------------------------------------


def _row(run: "Run", group: str) -> Row:
  return run.report["sgdx"][group]


def _has(row: Row, key: str) -> bool:
  return row.get(key) is not None


def _percent(row: Row, key: str) -> float:
  return 100 * row[key] if _has(row, key) else math.nan


def _interval(row: Row, key: str) -> tuple[float, float] | None:
  ends = row.get("ci95", {}).get(key)
  return (100 * ends[0], 100 * ends[1]) if ends and _has(row, key) else None


def _groups(runs: Sequence["Run"], keys: Iterable[str]) -> list[str]:
  """Those of all, seen and unseen services that have frames and one of the numbers."""
  keys = tuple(keys)
  return [
    group
    for group in ("all", "seen", "unseen")
    if any(
      row["num_frames"] and _has(row, k) for row in (_row(r, group) for r in runs) for k in keys
    )
  ]


def _floor(run: "Run", group: str) -> float:
  """JGA of predicting nothing, the same for each version that there is."""
  row = run.report["predict_nothing"][group]
  return next((_percent(row, key) for key in _VERSIONS if _has(row, key)), math.nan)


def _services(run: "Run") -> dict[str, Row]:
  """The services that have a place, the most sensitive first."""
  rows = run.report["sgdx"]["services"]
  kept = [s for s, row in rows.items() if _has(row, _REWORDED) and _has(row, _SENSITIVITY)]
  return {service: rows[service] for service in sorted(kept, key=lambda s: -rows[s][_SENSITIVITY])}


def _seen(run: "Run") -> dict[str, str]:
  """Service -> "seen" or "unseen"; empty without scores per frame."""
  if run.table is None:
    return {}
  scores = next(iter(run.table.scores.values()))
  pairs = zip(scores.services.tolist(), scores.seen.tolist(), strict=True)
  return {service: "seen" if seen else "unseen" for service, seen in set(pairs)}


def _shares(run: Mapping[str, Mapping[str, int]]) -> tuple[str, dict[str, float]]:
  """What the kinds are shares of, and kind -> share; without variants, of the original."""
  versions = [variant for variant in _VARIANTS if variant in run]
  of = f"% of failures, {'v1-5' if len(versions) == 5 else '+'.join(versions) or 'original'}"
  totals: dict[str, int] = {}
  for version in versions or run:
    for kind, count in run[version].items():
      totals[kind] = totals.get(kind, 0) + count
  everything = sum(totals.values()) or 1
  return of, {kind: count / everything for kind, count in totals.items()}


def _num_points(run: "Run") -> int:
  return sum(any(_has(row, key) for key in _PAIR) for _, row in run.steps)


def _best(run: "Run") -> dict[str, tuple[int, Row]]:
  """Key -> the checkpoint that is best by it."""
  found = {}
  for key in _PAIR:
    if known := [checkpoint for checkpoint in run.steps if _has(checkpoint[1], key)]:
      found[key] = max(known, key=lambda checkpoint: checkpoint[1][key])
  return found


# --- what is drawn -------------------------------------------------------------------------


def _dots(ax: "Axes", places: Sequence[float], cells: Sequence[Cell], **marks: Any) -> "Line2D":
  """Draws numbers with their intervals; returns the artist for a legend."""
  (line,) = ax.plot(places, [_percent(*cell) for cell in cells], **marks)
  known = [(x, *ends) for x, cell in zip(places, cells, strict=True) if (ends := _interval(*cell))]
  if known:
    ax.vlines(*zip(*known, strict=True), color=marks["color"], linewidth=0.9)
  return line


def _places(rows: Iterable[Row]) -> tuple[list[float], list[float]]:
  rows = list(rows)
  return [_percent(row, _SENSITIVITY) for row in rows], [_percent(row, _REWORDED) for row in rows]


def _crosses(ax: "Axes", rows: Iterable[Row]) -> None:
  """Draws both intervals of each service, faintly."""
  faint = {"color": INK, "alpha": FAINT, "linewidth": 0.5, "zorder": 1.5}
  for row in rows:
    if ends := _interval(row, _SENSITIVITY):
      ax.hlines(_percent(row, _REWORDED), *ends, **faint)
    if ends := _interval(row, _REWORDED):
      ax.vlines(_percent(row, _SENSITIVITY), *ends, **faint)


def _title(runs: Sequence["Run"], group: str) -> str:
  counts = dict.fromkeys(f"{_row(run, group)['num_frames']:,}" for run in runs)
  return f"{group}, n = {' / '.join(counts)}"


# --- what is said for those who do not see it ----------------------------------------------


def _said(runs: Sequence["Run"], keys: Iterable[str]) -> str:
  numbers = [(clean(run.name), _numbers(_row(run, "all"), keys)) for run in runs]
  return "; ".join(f"{name} {found}" for name, found in numbers if found)


def _numbers(row: Row, keys: Iterable[str]) -> str:
  return ", ".join(f"{_NAMES[key]} {_percent(row, key):.1f}%" for key in keys if _has(row, key))


def _said_best(run: "Run") -> str:
  return ", ".join(
    f"best {_NAMES[key]} at step {step:,} ({_numbers(row, _CURVES)})"
    for key, (step, row) in _best(run).items()
  )


def _extremes(run: "Run", services: Mapping[str, Row]) -> str:
  """The most and the least sensitive service."""
  ends = dict.fromkeys((next(iter(services)), next(reversed(services))))
  said = (f"{clean(s)} ({_numbers(services[s], (_SENSITIVITY, _REWORDED))})" for s in ends)
  return f"{clean(run.name)} from {' to '.join(said)}"
