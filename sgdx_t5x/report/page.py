"""The page of a report: one HTML file that needs no other file and no network.

Names, values and dialogues come from untrusted files. They enter the page escaped by Jinja, or as
JSON that `page.js` shows as text; and the page's Content-Security-Policy allows no other script,
and loads nothing.
"""

import base64
import dataclasses
import hashlib
import importlib.resources
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from sgdx_t5x.files.reading import as_text
from sgdx_t5x.tables import Cell, Number, Table

_FILES = importlib.resources.files(__package__)
# Characters that can end a <script>, begin a comment in it, or end a line of JavaScript.
_IN_SCRIPT = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


@dataclasses.dataclass(frozen=True)
class Plot:
  """A plot.

  Attributes:
    name: stem of its files, plots/NAME.svg, .pdf and .png beside the page.
    title: what it shows.
    caption: plain text.
    svg: the element <svg> with a viewBox in points, role "img" and a label; the only text that is
      put into the page unescaped.
    figure: the matplotlib figure, of which `build` makes the files and the SVG.
  """

  name: str
  title: str
  caption: str
  svg: str = ""
  figure: Any = None


@dataclasses.dataclass(frozen=True)
class Section:
  """A part of the page: paragraphs, then tables, then plots.

  Attributes:
    id: for links.
    title: shown.
    lines: paragraphs.
    tables: in order.
    plots: in order.
    signed: whether the runs' signatures apply to these tables.
  """

  id: str
  title: str
  lines: tuple[str, ...]
  tables: tuple[Table, ...] = ()
  plots: tuple[Plot, ...] = ()
  signed: bool = True


@dataclasses.dataclass(frozen=True)
class Page:
  """What the page shows.

  Attributes:
    title: title of the page.
    warnings: lines that begin with PARTIAL or NOT COMPARABLE.
    sections: in order.
    signatures: (names of the runs, their signature).
    browser: data of the error browser, see `sgdx_t5x.report.browser`; None leaves it out.
    version: version of sgdx_t5x.
    mark: text above every table and plot, if not empty.
  """

  title: str
  warnings: tuple[str, ...]
  sections: tuple[Section, ...]
  signatures: tuple[tuple[str, str], ...]
  browser: Mapping[str, Any] | None
  version: str
  mark: str = ""


def render(page: Page) -> str:
  """Returns the page as HTML, for a file in UTF-8."""
  script = _read("page.js")
  digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
  environment = jinja2.Environment(
    autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
  )
  environment.tests["number"] = lambda cell: isinstance(cell, Number)
  environment.filters |= {
    "trusted": Markup,
    "alignments": _alignments,
    "breakable": _breakable,
    "drawing_size": _drawing_size,
  }
  html = environment.from_string(_read("page.html")).render(
    page=page,
    files=table_files(page.sections),
    style=Markup(_read("page.css")),
    script=Markup(script),
    script_hash=f"sha256-{digest}",
    data=Markup(script_json(page.browser)),
  )
  return as_text(html)  # JSON may hold lone surrogates


def slug(title: str) -> str:
  """Returns a name for the files of a table: "JGA, v1-5 (%)" becomes "jga-v1-5"."""
  title = re.sub(r" \([^()]*\)[^()]*$", "", title)  # the unit and what follows it
  plain = unicodedata.normalize("NFKC", title).lower()
  return re.sub(r"[\W_]+", "-", plain)[:60].strip("-") or "table"


def table_files(sections: Iterable[Section]) -> dict[str, str]:
  """Returns title -> name of its files for all tables: slugs, numbered if they repeat."""
  names: dict[str, str] = {}
  for section in sections:
    for table in section.tables:
      if table.title not in names:
        name = stem = slug(table.title)
        number = 1
        while name in names.values():
          number += 1
          name = f"{stem}-{number}"
        names[table.title] = name
  return names


def script_json(data: Any) -> str:
  """Returns JSON that is safe in a <script>, whatever strings it contains."""
  text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
  for character, escape in _IN_SCRIPT.items():
    text = text.replace(character, escape)
  return text


def _read(name: str) -> str:
  return _FILES.joinpath(name).read_text("utf-8")


def _breakable(text: str) -> Markup:
  """Allows line breaks between the fields of a signature."""
  return Markup("|<wbr>").join(text.split("|"))


def _alignments(table: Table) -> tuple[str, ...]:
  """Returns "number" (aligned right) or "text" for each column."""
  alignments = []
  for _, *cells in zip(table.header, *table.rows, strict=True):
    is_numeric = any(map(_is_numeric, cells))  # the others are "-" or empty
    alignments.append("number" if is_numeric else "text")
  return tuple(alignments)


def _is_numeric(cell: Cell) -> bool:
  return isinstance(cell, Number) or re.fullmatch(r"[-+]?\d[\d.,]*( \[.*\])?", cell) is not None


def _drawing_size(plot: Plot) -> str:
  """CSS of a plot's box, so that its text (7 points or more) is as large as that around it.

  On narrow pages the text shrinks down to a minimum, below which the box scrolls.
  """
  box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', plot.svg)
  points = float(box[1]) if box else 500.0
  return f"max-width: {points * 0.112:.1f}rem; min-width: {points * 0.075:.1f}rem"
