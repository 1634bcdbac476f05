"""The plots of a check: JGA on changed frames before and after, and scores over all frames."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sgdx_t5x.report.plot_style import (
  clean,
  dots,
  finish,
  legend,
  look,
  name_places,
  panels,
  style,
)
from sgdx_t5x.scoring.rows import GROUPS, Row, Rows

if TYPE_CHECKING:
  from matplotlib.figure import Figure
  from matplotlib.lines import Line2D

_CHANGED = {"before": "before", "perturbed": "perturbed", "cjga": "both (cJGA)"}
_ALONE = {
  "jga": "JGA",
  "coref_jga": "coreference JGA",
  "slot_f1": "slot F1",
  "factuality": "factuality",
}


@style()
def before_and_after(rows: Mapping[str, Rows]) -> "Figure | None":
  """JGA (share of right frames) of the frames that each set changed, before and after.

  Args:
    rows: label -> numbers of a set, for sets that are compared with the original.
  """
  groups = [g for g in GROUPS if any(each.groups[g].has("before") for each in rows.values())]
  panel_rows = {group: {k: each.groups[group] for k, each in rows.items()} for group in groups}
  figure = _by_set(panel_rows, _CHANGED, "frames right (%)")
  if figure is not None:
    words = (_words(label, each.groups["all"], _CHANGED) for label, each in rows.items())
    finish(figure, f"Frames that a set changed, all services: {'; '.join(words)}.")
  return figure


@style()
def alone(rows: Mapping[str, Rows]) -> "Figure | None":
  """JGA, coreference, slots and factuality of each set, over all its frames."""
  everything = {label: each.groups["all"] for label, each in rows.items()}
  keys = {key: name for key, name in _ALONE.items() if any(x.has(key) for x in everything.values())}
  figure = _by_set({"all": everything} if keys else {}, keys, "%")
  if figure is not None:
    words = (_words(label, row, keys) for label, row in everything.items())
    finish(figure, f"All frames of each set, all services: {'; '.join(words)}.")
  return figure


def _by_set(
  panel_rows: Mapping[str, Mapping[str, Row]], keys: Mapping[str, str], unit: str
) -> "Figure | None":
  """Draws a panel per group of services, an x position per set, a series per number."""
  if not panel_rows:
    return None
  figure, axes = panels(len(panel_rows), 3, 2.2, page=True, sharey=True)
  entries: dict[str, Line2D] = {}
  below = 0.0
  for ax, (group, rows) in zip(axes, panel_rows.items(), strict=True):
    for index, (key, name) in enumerate(keys.items()):
      places = [place + (index - (len(keys) - 1) / 2) * 0.15 for place in range(len(rows))]
      marks = look(index) | {"linestyle": "none"}
      entries[name] = dots(ax, places, [(row, key) for row in rows.values()], **marks)
    ax.set(title=f"{group} services", xlim=(-0.5, len(rows) - 0.5), ylim=(-2, 102))
    ax.grid(visible=False, axis="x")
    width = figure.get_figwidth() / len(panel_rows) - 0.4
    below = max(below, name_places(ax, [clean(label) for label in rows], width))
  axes[0].set_ylabel(unit)
  figure.set_figheight(figure.get_figheight() + below)
  legend(figure, [*entries.items()])
  return figure


def _words(label: str, row: Row, keys: Mapping[str, str]) -> str:
  numbers = (f"{name} {row.percent(key):.1f}%" for key, name in keys.items() if row.has(key))
  return f"{clean(label)} {', '.join(numbers)}"


def caption(rows: Mapping[str, Rows], counted: str = "") -> str:
  """Returns n of each set and the kind of intervals.

  Args:
    rows: label -> numbers of a set.
    counted: key of the count to use as n; defaults to the number of frames.
  """
  everything = {label: each.groups["all"] for label, each in rows.items()}
  sizes = (
    f"{label} {int((row.values[counted] if counted else row.num_frames) or 0):,}"
    for label, row in everything.items()
  )
  has_intervals = any(row.intervals for row in everything.values())
  intervals = " 95% intervals: bootstrap over dialogues." if has_intervals else ""
  return f"Frames: {', '.join(sizes) or 'none'}.{intervals}"
