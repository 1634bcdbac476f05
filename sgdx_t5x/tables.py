"""Tables of numbers and texts, and how they are written: Markdown, LaTeX, CSV.

Every table that `sgdx` prints or a report contains is a `Table`. A numeric cell holds both its
value (a fraction, for CSV and for sorting) and the text that is shown (in percent).
"""

import csv
import dataclasses
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sgdx_t5x.arguments import check_choice

_MINUS = re.compile(r"-(?=\d)(?<!v1-)")  # minus sign of a number: not in "v1-5"
_UNIT = re.compile(r" \((%|points)\)(?=,|$)")  # left out in CSV, whose values are fractions
_TAG = re.compile(r"<(?=[a-zA-Z/!?])")  # Markdown would pass it on as HTML
_LATEX = str.maketrans(
  {character: f"\\{character}" for character in "&%_#${}"}
  | {character: f"${character}$" for character in "<>|"}  # different glyphs in TeX's own fonts
  | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


class Number(NamedTuple):
  """A numeric cell; `value` is None if it is missing.

  `ends` are the bounds of its confidence interval, if `text` shows one.
  """

  value: float | int | None
  text: str
  ends: tuple[float, float] | None = None

  def __str__(self) -> str:
    return self.text


Cell = str | Number
Row = tuple[Any, ...]  # of cells; type checkers take a mixed row for one of sequences


@dataclasses.dataclass(frozen=True)
class Table:
  """Cells in rows and columns.

  Attributes:
    title: what it shows, with the unit.
    header: names of the columns, the first often empty.
    rows: cells, as many in each row as in `header`.
    left: number of leading columns that are aligned left; the others are aligned right.
  """

  title: str
  header: tuple[str, ...]
  rows: tuple[Row, ...]
  left: int = 1


def percent(fraction: float | None) -> Number:
  """A fraction in the paper's style: 0.7264 is "72.6", None is "-"."""
  return _hundredfold(fraction, ".1f")


def points(difference: float | None) -> Number:
  """A difference of fractions in percentage points, with its sign: -0.086 is "-8.6"."""
  return _hundredfold(difference, "+.1f")


def _hundredfold(fraction: float | None, form: str) -> Number:
  if fraction is None:
    return Number(None, "-")
  text = format(100 * fraction, form)
  # A tiny number rounds to "-0.0" or "+0.0", which would look like a loss or a gain.
  return Number(fraction, "0.0" if text in ("+0.0", "-0.0") else text)


def interval_names(split: bool) -> tuple[str, ...]:
  """Headings of a 95% interval; `split`: of its ends, as in CSV."""
  return ("95% low", "95% high") if split else ("95% interval",)


def interval(ci95: Sequence[float] | None, split: bool) -> tuple[Cell, ...]:
  """Cells of an interval of differences, in percentage points; None is "-". See above."""
  low, high = map(points, ci95 or (None, None))
  if split:
    return low, high
  return ("-" if low.value is None else f"[{low}, {high}]",)


def p_value(p: float | None, bootstrap_samples: int = 0) -> Number:
  """A p-value: 0.0316 is "0.032", below 0.0005 "<.001", None is "-".

  Args:
    p: the value.
    bootstrap_samples: how many it is from, 0 if another test's. They end at 2 / (samples + 1):
      "<=.002" for 1,000.
  """
  if p is None:
    return Number(None, "-")
  if p < 0.0005:
    return Number(p, "<.001")
  if bootstrap_samples and math.isclose(p, 2 / (bootstrap_samples + 1)):
    return Number(p, f"<={p:.3f}".replace("0.", "."))
  return Number(p, f"{p:.3f}")


def count(number: int | None) -> Number:
  """A whole number: 42297 is "42,297", None is "-"."""
  return Number(number, "-" if number is None else f"{number:,}")


def markdown(table: Table) -> str:
  """Returns a table in Markdown, its title above it in bold."""

  def line(cells: Iterable[Cell]) -> str:
    return "| " + " | ".join(map(_markdown_cell, cells)) + " |"

  rule = ["---"] * table.left + ["---:"] * (len(table.header) - table.left)
  body = "\n".join(map(line, (table.header, rule, *table.rows)))
  return f"**{_plain(table.title)}**\n\n{body}\n"


def latex(table: Table, state: str = "") -> str:
  """Returns a table in LaTeX (booktabs). Args: state, which precedes the title in the caption."""

  def line(cells: Sequence[Cell]) -> str:
    text = " & ".join(map(_escape, map(str, cells)))
    # After the \\ of the previous line, these two would be read as its arguments.
    return ("{}" if text.startswith(("[", "*")) else "") + text + r" \\"

  columns = "l" * table.left + "r" * (len(table.header) - table.left)
  lines = (
    r"\begin{table}",
    rf"\caption{{{_escape(state + table.title)}}}",
    rf"\begin{{tabular}}{{{columns}}}",
    *(r"\toprule", line(table.header), r"\midrule"),
    *map(line, table.rows),
    *(r"\bottomrule", r"\end{tabular}", r"\end{table}"),
  )
  return "\n".join(lines) + "\n"


def csv_lines(tables: Iterable[Table]) -> str:
  """Returns tables as CSV, one line per cell: table, row, column, value.

  Numbers are written as values, not as shown: fractions where the table has percent. A missing
  number is empty, and an interval adds two lines.
  """
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  writer.writerow(("table", "row", "column", "value"))
  for table in tables:
    title = _UNIT.sub("", table.title)
    for label, *cells in table.rows:
      for column, cell in zip(table.header[1:], cells, strict=True):
        value = cell.value if isinstance(cell, Number) else cell
        place = title, str(label).strip(), column
        writer.writerow((*place, value))
        for name, end in zip(("low", "high"), getattr(cell, "ends", None) or (), strict=False):
          writer.writerow((*place[:2], f"{column}, ci95_{name}", end))
  return out.getvalue()


def document(
  form: str,
  tables: Sequence[Table],
  *,
  marks: Sequence[str] = (),
  warnings: Sequence[str] = (),
  heading: Sequence[str] = (),
  notes: Sequence[str] = (),
  signatures: Mapping[str, str] | None = None,
) -> str:
  """Returns tables with their warnings, notes and signatures as one text.

  Args:
    form: "md", "latex" or "csv".
    tables: in the order shown.
    marks: other caveats, "WORD: why"; before everything, and in the caption of each LaTeX table.
    warnings: why they are PARTIAL, one line each; shown like `marks`.
    heading: lines before the tables; not in CSV.
    notes: lines after the tables; not in CSV.
    signatures: what a signature covers, "" if there is only one -> signature; shown last.
  """
  check_choice(form, "format: style", ("md", "latex", "csv"))
  signatures = signatures or {}
  signed = {_signature_name(name): text for name, text in signatures.items()}
  marks = [*marks, *(f"PARTIAL: {line}" for line in warnings)]
  if form == "csv":
    rows: list[Row] = [tuple(mark.split(": ", 1)) for mark in marks]
    rows += signed.items()
    # CSV has no captions: what the numbers depend on is a table of its own, the first.
    about = [Table("about", ("", "text"), tuple(rows))] if rows else []
    return csv_lines([*about, *tables])
  if form == "md":
    bold = [re.sub(r"^(.*?): ", r"**\1**: ", mark, count=1) for mark in marks]
    blocks = [f"{line}\n" for line in (*bold, *heading)]
    blocks += map(markdown, tables)
    paragraphs = [*notes, *(f"`{line}`" for line in signature_lines(signatures, warnings))]
    return "\n".join([*blocks, "\n\n".join(paragraphs)]) + "\n"
  # LaTeX: a table may be copied into a paper alone, so each says in what state its numbers are.
  state = "".join(f"{mark}. " for mark in marks)
  lines = [*heading, *notes, *(f"{state}{name}: {text}" for name, text in signed.items())]
  comments = "\n".join("% " + " ".join(line.splitlines()) for line in lines)
  return "\n".join(latex(table, state) for table in tables) + comments + "\n"


def signature_lines(signatures: Mapping[str, str], warnings: Sequence[str] = ()) -> list[str]:
  """Returns "signature NAME: ..." lines, prefixed with PARTIAL if there are warnings.

  If some of the signatures say PARTIAL themselves, only those get it.
  """
  marked = {name for name, text in signatures.items() if "|PARTIAL" in text}
  partial = (marked or set(signatures)) if warnings else set()
  lines = []
  for name, text in signatures.items():
    state = "PARTIAL " if name in partial else ""
    lines.append(f"{state}{_signature_name(name)}: {text}")
  return lines


def _signature_name(name: str) -> str:
  return f"signature {name}".rstrip()


def _plain(text: str) -> str:
  return _TAG.sub(r"\<", text.replace("\n", " "))  # a row of a table is one line


def _markdown_cell(cell: Cell) -> str:
  return _plain(str(cell)).replace("|", "\\|")


def _escape(text: str) -> str:
  return _MINUS.sub("$-$", text.translate(_LATEX))
