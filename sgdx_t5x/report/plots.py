"""The plots of a report: the paper's Figures 4, 5 and 6, kinds of error, scores by step.

Each function returns a matplotlib figure, or None if there is nothing to draw; numbers that a run
lacks are left out. Dots are scores in percent, the lines through them 95% intervals.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sgdx_t5x.corpus.variants import ORIGINAL, in_order
from sgdx_t5x.report import plot_numbers, plot_style
from sgdx_t5x.report.plot_numbers import MEAN, NAMES, ORIG, SENSITIVITY
from sgdx_t5x.report.plot_style import COLOURS, FAINT, INK, PAGE
from sgdx_t5x.scoring.columns import JGA, defined
from sgdx_t5x.scoring.rows import Row

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure
  from matplotlib.lines import Line2D

  from sgdx_t5x.report.runs import Run

_PAIR = {  # marks where the two are side by side
  ORIG: {"color": COLOURS[0], "marker": "o", "linestyle": "none"},
  MEAN: {"color": COLOURS[1], "marker": "s", "linestyle": "none"},
}
_SEEN = {
  "": {"color": COLOURS[0], "marker": "o"},  # not known
  "seen": {"color": COLOURS[0], "marker": "o"},
  "unseen": {"color": COLOURS[1], "marker": "D", "fillstyle": "none"},
}
_CURVES = {
  ORIG: {"linestyle": "-"},
  MEAN: {"linestyle": "--", "fillstyle": "none"},
  SENSITIVITY: {"linestyle": "-"},
}
_RINGS = {  # around the dots of a checkpoint
  ORIG: {"marker": "o", "linestyle": "none", "fillstyle": "none", "markersize": 9.0},
  MEAN: {"marker": "s", "linestyle": "none", "fillstyle": "none", "markersize": 8.0},
}
_MOST_CROSSES = 25  # services with intervals; more would hide the dots


# --- JGA -----------------------------------------------------------------------------------


@plot_style.style()
def jga_by_variant(runs: Sequence["Run"]) -> "Figure | None":
  """JGA with each schema variant, a series per run: the paper's Figure 4."""
  columns = defined(
    plot_numbers.jga_columns(runs).per_variant, [run.rows.groups["all"] for run in runs]
  )
  keys = [column.key for column in columns]
  groups = plot_numbers.groups_with(runs, keys)
  if not groups:
    return None
  figure, axes = plot_style.panels(len(groups), 3, 2.2, sharey=True)
  entries: dict[int, tuple[str, Line2D]] = {}
  for ax, group in zip(axes, groups, strict=True):
    for index, run in enumerate(runs):
      row = run.rows.groups[group]
      if any(map(row.has, keys)):
        # Side by side around the tick, or else the intervals would hide each other.
        shift = (index - (len(runs) - 1) / 2) * min(0.12, 0.6 / len(runs))
        numbers = [(place + shift, row, key) for place, key in enumerate(keys)]
        entries[index] = run.name, plot_style.dots(ax, numbers, **plot_style.look(index))
    # One line, since comparable runs have the same frames; more if the report was forced.
    for floor in dict.fromkeys(plot_numbers.floor_of(run, group) for run in runs):
      line = ax.axhline(floor, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
      entries[len(runs)] = "predict nothing", line
    ax.set_xticks(range(len(keys)), [_short(column.plain) for column in columns])
    ax.set(title=_title(runs, group), xlim=(-0.5, len(keys) - 0.5))
  axes[0].set(ylabel="JGA (%)", ylim=(0, None))
  # In the order of the runs, of which some are in the second or third panel only.
  plot_style.legend(figure, [entries[index] for index in sorted(entries)])
  return plot_style.finish(
    figure, f"JGA by schema variant, all services: {plot_numbers.runs_in_words(runs, keys)}."
  )


@plot_style.style()
def jga_by_augmentation(runs: Sequence["Run"]) -> "Figure | None":
  """JGA_orig and JGA_v1-5 of each run, single variants faint beside them: the paper's Figure 5."""
  runs = [run for run in runs if any(map(run.rows.groups["all"].has, _PAIR))]
  if not any(run.rows.groups["all"].has(MEAN) for run in runs):
    return None
  groups = plot_numbers.groups_with(runs, _PAIR)
  names = [plot_style.clean(run.name) for run in runs]
  figure, axes = plot_style.panels(len(groups), 3, 2.2, sharey=True)
  entries: dict[str, Line2D] = {}
  for ax, group in zip(axes, groups, strict=True):
    for x, run in enumerate(runs):
      row = run.rows.groups[group]
      for (key, marks), shift in zip(_PAIR.items(), (-0.2, 0.05), strict=True):
        entries[NAMES[key]] = plot_style.dots(ax, [(x + shift, row, key)], **marks)
      percents = [row.percent(column.key) for column in JGA.variants]
      faint = {**_PAIR[MEAN], "alpha": FAINT, "markersize": 2.5}
      (entries["v1 to v5"],) = ax.plot([x + 0.2] * len(percents), percents, **faint)
    ax.set(title=_title(runs, group), xlim=(-0.5, len(runs) - 0.5))
    ax.grid(visible=False, axis="x")  # a line would run through the dots of one run
    width = figure.get_figwidth() / len(groups) - 0.4
    below = plot_style.name_places(ax, names, width)
  axes[0].set_ylabel("JGA (%)")
  figure.set_figheight(figure.get_figheight() + below)  # long names must not squeeze the panels
  plot_style.legend(figure, [*entries.items()])
  return plot_style.finish(
    figure, f"JGA by run, all services: {plot_numbers.runs_in_words(runs, _PAIR)}."
  )


# --- services, errors, steps -----------------------------------------------------------------


@plot_style.style()
def sensitivity_by_service(runs: Sequence["Run"]) -> "Figure | None":
  """SS_JGA against JGA_v1-5, a dot per service, a panel per run: the paper's Figure 6.

  Dots of services unseen in training are open; without per-frame scores all dots look alike.
  """
  plotted = [(run, services) for run in runs if (services := plot_numbers.services_of(run))]
  if not plotted:
    return None
  height = 3.2 if len(plotted) < 3 else 2.4  # inches, since wider panels have room for names
  figure, axes = plot_style.panels(len(plotted), 3, height, page=True, sharex=True, sharey=True)
  entries: dict[str, Line2D] = {}
  for ax, (run, services) in zip(axes, plotted, strict=True):
    if len(services) <= _MOST_CROSSES:
      _crosses(ax, services.values())
    is_seen, kinds = run.seen, {True: "seen", False: "unseen", None: ""}
    rows_by_kind: dict[str, list[Row]] = {kind: [] for kind in _SEEN}
    for service, row in services.items():
      rows_by_kind[kinds[is_seen.get(service)]].append(row)
    for kind, rows in rows_by_kind.items():
      (dots,) = ax.plot(*_places(rows), linestyle="none", **_SEEN[kind])
      if kind and rows:
        entries[kind] = dots
    ax.set_title(plot_style.printable(run.name, PAGE / min(3, len(plotted)) - 0.5))
  figure.supxlabel("SS_JGA (%)")
  figure.supylabel("JGA_v1-5 (%)")
  plot_style.legend(figure, [(kind, entries[kind]) for kind in _SEEN if kind in entries])
  words = "; ".join(plot_numbers.extremes_in_words(run, services) for run, services in plotted)
  plot_style.finish(figure, f"SS_JGA and JGA_v1-5 by service: {words}.")
  for ax, (_, services) in zip(axes, plotted, strict=True):  # now that the layout is known
    plot_style.label_points(ax, list(services), list(zip(*_places(services.values()), strict=True)))
  return figure


@plot_style.style()
def error_kinds(
  counts: Mapping[str, Mapping[str, Mapping[str, int]]], num_frames: Mapping[str, int]
) -> "Figure | None":
  """Errors per 100 frames by kind and schema variant, a panel per run.

  Args:
    counts: run -> variant -> kind -> errors, each of a slot in a frame.
    num_frames: run -> number of frames per variant.
  """
  plotted: dict[str, Mapping[str, Mapping[str, int]]] = {}
  totals: Counter[str] = Counter()  # by kind, of all runs
  all_variants: dict[str, None] = {}  # a dict for its order
  for name, by_variant in counts.items():
    if num_frames.get(name) and any(by_variant.values()):
      plotted[name] = by_variant
      all_variants.update(dict.fromkeys(by_variant))
      for by_kind in by_variant.values():
        totals.update(by_kind)
  if not totals.total():
    return None
  variants = in_order(all_variants)
  figure, axes = plot_style.panels(len(plotted), 2, 2.2, page=True, sharex=True, sharey=True)
  words = []
  for ax, (name, by_variant) in zip(axes, plotted.items(), strict=True):
    counted, shares = plot_numbers.shares_of_kinds(by_variant)
    share_of_line: dict[Line2D, float] = {}
    for index, kind in enumerate(totals):  # a kind looks the same in all panels
      rates = []
      for variant in variants:
        # A gap where another run has a variant that this one lacks.
        errors = by_variant[variant].get(kind, 0) if variant in by_variant else math.nan
        rates.append(100 * errors / num_frames[name])
      share = shares.get(kind, 0)
      (line,) = ax.plot(
        rates, **plot_style.look(index), label=plot_style.printable(f"{kind} {share:.0%}", 1.1)
      )
      share_of_line[line] = share
    handles = sorted(share_of_line, key=share_of_line.__getitem__, reverse=True)
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "alignment": "left"}
    ax.legend(handles=handles, title=f"% of errors, {counted}", **beside)
    ax.set_xticks(range(len(variants)), [_short(variant) for variant in variants])
    ax.set_title(plot_style.printable(name, 2.8))
    phrase = ", ".join(str(line.get_label()) for line in handles).replace("\n", " ")
    words.append(f"{plot_style.clean(name)} {phrase} (% of errors, {counted})")
  axes[0].set_ylim(bottom=0)
  figure.supylabel("errors per 100 frames")
  return plot_style.finish(figure, f"Kinds of error: {'; '.join(words)}.")


@plot_style.style()
def by_step(runs: Sequence["Run"]) -> "Figure | None":
  """JGA_orig, JGA_v1-5 and, below, SS_JGA of all services by training step.

  In both panels, a ring marks a run's checkpoint with the best JGA_orig, a square that with the
  best JGA_v1-5.
  """
  from matplotlib.lines import Line2D

  curves, rows = [], []
  for index, run in enumerate(runs):
    if plot_numbers.num_points(run) > 1:
      curves.append((run, plot_style.look(index)))
      rows += [row for _, row in run.steps]
  if not curves:
    return None
  keys = [column.key for column in defined((JGA.original, JGA.mean, JGA.sensitivity), rows)]
  figure, axes = plot_style.panels(2 if SENSITIVITY in keys else 1, 1, 2.0, page=True, sharex=True)
  entries: list[tuple[str, Line2D]] = []
  for run, marks in curves:
    entries.append((run.name, Line2D([], [], **marks | {"linestyle": "none"})))
    for key in keys:
      ax = axes[key == SENSITIVITY]
      plot_style.dots(ax, [(step, row, key) for step, row in run.steps], **marks | _CURVES[key])
      for label, (step, row) in plot_numbers.best_checkpoints(run).items():
        if key in (label, SENSITIVITY):
          ax.plot([step], [row.percent(key)], **_RINGS[label], color=marks["color"])
  for key in keys:
    if key in _RINGS:  # SS has a panel of its own, with the rings of the other two
      entries.append((NAMES[key], Line2D([], [], color=INK, marker="o", **_CURVES[key])))
      entries.append((f"best {NAMES[key]}", Line2D([], [], color=INK, **_RINGS[key])))
  axes[0].set_ylabel("JGA (%)")
  axes[-1].set_xlabel("training step")
  axes[-1].locator_params(axis="x", integer=True)
  axes[-1].xaxis.set_major_formatter("{x:,.0f}")
  if SENSITIVITY in keys:
    axes[1].set_ylabel("SS_JGA (%)")
  plot_style.legend(figure, entries)
  words = "; ".join(plot_numbers.best_in_words(run) for run, _ in curves)
  return plot_style.finish(figure, f"Scores by training step, all services: {words}.")


# --- what is drawn -------------------------------------------------------------------------


def _places(rows: Collection[Row]) -> tuple[list[float], list[float]]:
  """Returns SS_JGA and JGA_v1-5 of each row, in percent, for the x and the y axis."""
  return [row.percent(SENSITIVITY) for row in rows], [row.percent(MEAN) for row in rows]


def _crosses(ax: "Axes", rows: Iterable[Row]) -> None:
  """Draws both intervals of each service, faintly."""
  faint = {"color": INK, "alpha": FAINT, "linewidth": 0.5, "zorder": 1.5}
  for row in rows:
    if ends := row.interval(SENSITIVITY):
      ax.hlines(row.percent(MEAN), *ends, **faint)
    if ends := row.interval(MEAN):
      ax.vlines(row.percent(SENSITIVITY), *ends, **faint)


def _short(variant: str) -> str:
  return "orig." if variant == ORIGINAL else variant


def _title(runs: Sequence["Run"], group: str) -> str:
  counts = dict.fromkeys(f"{run.rows.groups[group].num_frames:,}" for run in runs)
  return f"{group}, n = {' / '.join(counts)}"
