"""The style of a report's plots, and their output as files and inline SVG.

Okabe-Ito colours, with a marker and line style per series, so that they can be told apart in grey
print and by colour-blind readers. Text is never mathtext: names may contain $ and _. matplotlib is
imported when the first plot is drawn; nothing here touches pyplot's state.
"""

import contextlib
import io
import itertools
import math
import pathlib
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from sgdx_t5x.errors import require

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure
  from matplotlib.lines import Line2D

  from sgdx_t5x.scoring.rows import Row

FILE_FORMATS = ("svg", "pdf", "png")
COLUMN, PAGE = 3.3, 6.9  # inches: widths in a paper of two columns
_SETTINGS = pathlib.Path(__file__).with_name("plots.mplstyle")
INK = "#19191b"  # text and axes only, no series, since `inline_svg` turns it into currentColor
FAINT = 0.35  # opacity of secondary elements
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_LINES = ("-", "--", "-.", ":")
_SMALL = 7.0  # points: labels of dots; legends and ticks too, by plots.mplstyle
_LETTER = 0.6 * _SMALL / 72  # inches, of DejaVu Sans, one of the widest
_LINE = 0.16  # inches, from one line of small text to the next
_NEAR = 3.0  # points, between the center of a dot and its name
_OBLIQUE = ((1, 1), (1, -1), (-1, 1), (-1, -1))  # right or left, above or below: off the intervals
_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_OFFSETS = (  # (points from the dot, direction), the best first
  *itertools.product((_NEAR,), (*_OBLIQUE, *_STRAIGHT)),
  *itertools.product((10.0, 18.0), _OBLIQUE),
)
_LINE_TO_NAME = {"arrowstyle": "-", "linewidth": 0.5, "color": INK, "alpha": 0.7, "shrinkA": 0}


@contextlib.contextmanager
def style() -> Iterator[None]:
  """Sets our style, ignoring user settings, for drawing and saving; also works as a decorator.

  Raises:
    SgdxError: matplotlib is not installed.
  """
  matplotlib = require("matplotlib", extra="report", why="plots")
  # What plots.mplstyle does not set is matplotlib's default.
  with matplotlib.rc_context(fname=_SETTINGS), warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # shown as a box
    yield


def save(figure: "Figure", folder: pathlib.Path, name: str) -> None:
  """Writes a plot as `name`.svg, .pdf and .png (200 dpi), reproducibly byte for byte.

  Raises:
    OSError: the files cannot be written.
  """
  text = describe(figure)
  metadata = {
    "svg": {"Date": None, "Description": text},
    "pdf": {"CreationDate": None, "Subject": text},
    "png": {"Description": text},
  }
  with style():
    for form in FILE_FORMATS:
      figure.savefig(pathlib.Path(folder) / f"{name}.{form}", dpi=200, metadata=metadata[form])


def stamp(figure: "Figure", text: str) -> None:
  """Writes a warning such as PARTIAL into a corner of a figure."""
  figure.text(0.995, 0.995, text, ha="right", va="top", size=7, weight="bold", color=INK)


def inline_svg(figure: "Figure") -> str:
  """Returns a plot for embedding in a page: as wide as there is room, in the colour of the text.

  Text and axes are in currentColor on a transparent background. Only ids that are referred to are
  kept, and are unique to the plot. Nothing is loaded from elsewhere.
  """
  import matplotlib

  out = io.BytesIO()
  # Ids of two plots on a page must differ, and be the same whenever the page is made.
  with style(), matplotlib.rc_context({"svg.hashsalt": describe(figure)}):
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
  root = ElementTree.fromstring(out.getvalue())
  for element in root.iter():
    element.tag = element.tag.rpartition("}")[2]
    for key, value in [*element.attrib.items()]:
      del element.attrib[key]
      # xlink:href is just href in SVG 2.
      element.attrib[key.rpartition("}")[2]] = value.replace(INK, "currentColor")
  used = set(re.findall(r"#([^)\"]+)", ElementTree.tostring(root, "unicode")))
  for element in root.iter():
    if element.get("id", "") not in used:
      element.attrib.pop("id", None)
    for child in [*element.findall("metadata"), *element.findall("style")]:
      element.remove(child)  # the style would apply to the whole page
  width = 1.5 * figure.get_figwidth()  # wider, its text would be out of proportion
  root.attrib = {
    "xmlns": "http://www.w3.org/2000/svg",
    "viewBox": root.attrib["viewBox"],
    "role": "img",
    "aria-label": describe(figure),
    "style": f"max-width: {width:.1f}in; stroke-linejoin: round; stroke-linecap: butt",
  }
  return ElementTree.tostring(root, "unicode")


def describe(figure: "Figure") -> str:
  """Returns a plot's main numbers in a sentence, as its text alternative."""
  return str(figure.get_label())


def panels(
  count: int, columns: int, height: float, page: bool = False, **shared: bool
) -> tuple["Figure", list["Axes"]]:
  """Makes a figure of `count` axes.

  Args:
    count: number of axes.
    columns: maximum number side by side.
    height: height of a row in inches.
    page: use the width of a page, not of a column, even for a single one.
    **shared: sharex, sharey, see matplotlib.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  columns = min(columns, count)
  rows = math.ceil(count / columns)
  width = PAGE if page or count > 1 else COLUMN
  figure = Figure(figsize=(width, height * rows), layout="constrained")
  FigureCanvasAgg(figure)
  axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
  for index in range(count, len(axes)):
    axes[index].remove()
    axes[index - columns].tick_params(labelbottom=True)  # now the last in its column
  return figure, axes[:count]


def finish(figure: "Figure", description: str) -> "Figure":
  """Lays out a figure, once for all its files, and sets its description."""
  figure.set_label(description)
  figure.draw_without_rendering()
  figure.set_layout_engine("none")
  return figure


def dots(ax: "Axes", numbers: Iterable[tuple[float, "Row", str]], **marks: Any) -> "Line2D":
  """Draws numbers with their intervals; returns the artist for a legend.

  Args:
    ax: to draw on.
    numbers: (place on the x axis, row, key in the row) of each.
    **marks: as for `Axes.plot`; the intervals have the same "color".
  """
  places, percents, bars = [], [], []
  for x, row, key in numbers:
    places.append(x)
    percents.append(row.percent(key))
    if ends := row.interval(key):
      bars.append((x, *ends))
  (line,) = ax.plot(places, percents, **marks)
  if bars:
    ax.vlines(*zip(*bars, strict=True), color=marks["color"], linewidth=0.9)
  return line


def look(index: int) -> dict[str, str]:
  """Returns colour, marker and line style of the series at `index`."""
  return {
    "color": COLOURS[index % len(COLOURS)],
    "marker": MARKERS[index % len(MARKERS)],
    "linestyle": _LINES[index % len(_LINES)],
  }


def clean(name: str) -> str:
  """Returns a name on one line, without characters that XML does not allow."""
  line = " ".join(name.split()) or "?"
  return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def printable(name: str, inches: float, lines: int = 3) -> str:
  """Returns a name broken into lines that fit; what does not fit is cut off."""
  letters = max(6, int(inches / _LETTER))
  return "\n".join(textwrap.wrap(clean(name), letters, max_lines=lines, placeholder="…"))


def name_places(axes: "Axes", names: Sequence[str], inches: float) -> float:
  """Labels the ticks 0, 1, ... of the x axis: horizontally if they fit, else vertically.

  Args:
    axes: the axes.
    names: [N].
    inches: width of the axes.

  Returns:
    Height of the labels beyond that of a single line, in inches.
  """
  room = inches / len(names)
  is_upright = max(map(len, " ".join(names).split())) * _LETTER > room  # a word is too long
  # Upright, as many lines fit as there is room from one tick to the next.
  width, most_lines = (1.5, max(1, int(room / _LINE))) if is_upright else (room, 3)
  labels = [printable(name, width, most_lines) for name in names]
  axes.set_xticks(range(len(names)), labels, rotation=90 if is_upright else 0)
  if is_upright:
    return max(map(len, "\n".join(labels).split("\n"))) * _LETTER
  return max(label.count("\n") for label in labels) * _LINE


def legend(figure: "Figure", entries: Sequence[tuple[str, Any]]) -> None:
  """Adds a legend of (name, artist) entries above all panels; the figure grows by its height."""
  if not entries:
    return
  width = figure.get_figwidth() - 0.2
  names = [printable(name, width - 0.5) for name, _ in entries]
  longest = max(map(len, "\n".join(names).split("\n")))
  rows = math.ceil(len(names) / max(1, int(width / (longest * _LETTER + 0.5))))
  columns = math.ceil(len(names) / rows)
  artists = [artist for _, artist in entries]
  above = figure.legend(artists, names, loc="outside upper left", ncols=columns)
  height = above.get_window_extent(figure.canvas.get_renderer()).height
  figure.set_figheight(figure.get_figheight() + height / figure.dpi)


def label_points(axes: "Axes", names: Sequence[str], xy: Sequence[tuple[float, float]]) -> None:
  """Labels the points of a scatter plot in order, skipping those without room for a label.

  A label is placed beside its point; if it would be as near to another point, it is placed farther
  away, with a line to its own.

  Args:
    axes: of a figure that has been laid out.
    names: [N].
    xy: [N] in data units.
  """
  from matplotlib.text import Text
  from matplotlib.transforms import Bbox

  renderer, unit = axes.figure.canvas.get_renderer(), axes.figure.dpi / 72  # pixels per point
  places = axes.transData.transform(xy)
  points = [Bbox([place, place]) for place in places]
  occupied: list[Bbox] = []
  for index, name in enumerate(map(clean, names)):
    neighbours = points[:index] + points[index + 1 :]
    for gap, (side, level) in _OFFSETS:
      is_far, nearest = gap > _NEAR, ((1 - side) / 2, (1 - level) / 2)  # the point of the name
      label = axes.annotate(
        name,
        xy[index],
        (side * gap, level * gap),
        textcoords="offset points",
        fontsize=_SMALL,
        ha=("center", "left", "right")[side],  # for 0, 1 and -1
        va=("center", "bottom", "top")[level],
        arrowprops={**_LINE_TO_NAME, "relpos": nearest} if is_far else None,
      )
      label.update_positions(renderer)
      box = Text.get_window_extent(label, renderer)  # an annotation's own would include the line
      boxes = [box]
      for part in range(1, 6) if is_far else ():  # the line, as small squares
        on_line = places[index] + unit * gap * part / 6 * np.array((side, level))
        boxes.append(Bbox([on_line, on_line]).padded(unit / 2))
      # A line says whose name it is; without one, other points must be farther off.
      clear = unit * (4 if is_far else 6)
      obstacles = [*occupied, *(point.padded(clear) for point in neighbours)]
      is_inside = axes.bbox.contains(*box.min) and axes.bbox.contains(*box.max)
      if is_inside and not any(part.count_overlaps(obstacles) for part in boxes):
        occupied += boxes
        break
      label.remove()
