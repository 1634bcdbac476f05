"""Prints the tables of all commands: as text, Markdown, LaTeX, CSV or JSON."""

import argparse
import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from sgdx_t5x.data.corpus import PUBLISHED_DIALOGUES
from sgdx_t5x.tables import Cell, Number, Table, document, signature_lines

FORMATS = ("text", "md", "latex", "csv", "json")
_WIDTH = 80  # most tables fit; a narrower terminal would only break their lines
_NAME = 24  # names of rows are not folded below this


def add_format(parser: argparse.ArgumentParser) -> None:
  """Adds `--format`, as every command with tables has it."""
  parser.add_argument("--format", default="text", choices=FORMATS, help="output format")


def as_json(data: Any) -> str:
  """Returns data as JSON in lines, as `--format json` and `--json` write them."""
  return json.dumps(data, indent=2, allow_nan=False) + "\n"


def show(
  form: str,
  tables: Sequence[Table],
  data: Mapping[str, Any],
  *,
  marks: Sequence[str] = (),
  warnings: Sequence[str] = (),
  heading: Sequence[str] = (),
  notes: Sequence[str] = (),
  signatures: Mapping[str, str] | None = None,
  csv: str = "",
) -> None:
  """Prints tables and what belongs to them to stdout.

  Args:
    form: one of `FORMATS`.
    tables: in the order shown.
    data: what "json" prints instead: all of it, warnings and signatures too.
    marks, warnings, heading, notes, signatures: see `tables.document`.
    csv: what "csv" prints instead of the cells of `tables`.
  """
  if form == "json":
    print(as_json(data), end="")
  elif form == "text":
    alarms = [*marks, *(f"PARTIAL: {line}" for line in warnings)]
    lines = (*notes, *signature_lines(signatures or {}, warnings))
    _print_text(tables, alarms, heading, lines)
  elif form == "csv" and csv:
    print(csv, end="")
  else:
    about = {"marks": marks, "warnings": warnings, "heading": heading, "notes": notes}
    print(document(form, tables, **about, signatures=signatures), end="")


def _print_text(
  tables: Sequence[Table], alarms: Sequence[str], heading: Sequence[str], lines: Sequence[str]
) -> None:
  """Prints on 80 columns or more; plain text if the output is no terminal, or NO_COLOR is set.

  No number is cut: a table that needs more columns gets them.
  """
  from rich.console import Console

  console = Console(
    color_system=None if os.environ.get("NO_COLOR") else "auto",
    highlight=False,
    markup=False,
    emoji=False,
  )
  made = {id(table): _rich_table(table) for table in tables if table.rows}
  width, console.width = max(console.width, _WIDTH), 10_000
  console.width = max([width, *(console.measure(x).minimum for x in made.values())])
  for line in alarms:
    console.print(line, style="bold red", soft_wrap=True)
  for line in heading:
    console.print(line, soft_wrap=True)
  if heading:
    console.print()
  for table in tables:
    if table.rows:
      console.print(made[id(table)])
    else:
      console.print(table.title, style="bold", soft_wrap=True)
    console.print()
  for line in lines:
    console.print(line, soft_wrap=True)


def _rich_table(table: Table) -> Any:
  from rich.table import Table as RichTable

  text = RichTable(title=table.title, title_justify="left", title_style="bold", box=None)
  text.padding, text.min_width = (0, 1, 0, 0), len(table.title)  # titles are not folded
  for i, name in enumerate(table.header):
    # Texts may be folded; numbers never, nor a heading above them.
    numbers = any(isinstance(row[i], Number) for row in table.rows)
    side: Literal["left", "right"] = "left" if i < table.left else "right"
    least = 0 if i else min(_NAME, max(len(str(row[0])) for row in table.rows))
    text.add_column(name, justify=side, no_wrap=numbers, overflow="fold", min_width=least)
  for row in table.rows:
    text.add_row(*map(str, row))
  return text


def splits_table(
  columns: Sequence[str],
  rows: Mapping[str, Sequence[Cell]],
  partial: Collection[str],
  of_sgd: bool = True,
) -> Table:
  """Returns a table of splits, with their state if one is PARTIAL.

  Args:
    columns: what comes after the split's name.
    rows: split -> a cell per column.
    partial: splits that have fewer dialogues than there are.
    of_sgd: the dialogues are SGD's, of which it is known how many were published.
  """

  if not partial:
    return Table("splits", ("split", *columns), tuple((s, *row) for s, row in rows.items()))
  states = dict.fromkeys(partial, "PARTIAL")
  if of_sgd:
    states = {split: f"PARTIAL: {PUBLISHED_DIALOGUES[split]:,} published" for split in partial}
  cells = tuple((split, *row, states.get(split, "complete")) for split, row in rows.items())
  return Table("splits", ("split", *columns, "state"), cells)
