"""The tables that `sgdx` prints, of all commands: as text, Markdown, LaTeX, CSV or JSON."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.report.tables import Number, Table, csv_lines, latex, markdown

FORMATS = ("text", "md", "latex", "csv", "json")
_WIDTH = 80  # most tables fit; a narrower terminal would only break their lines
_NAME = 24  # names of rows are not folded below this


def add_format(parser: argparse.ArgumentParser) -> None:
  """Adds `--format`, as every command with tables has it."""
  parser.add_argument("--format", default="text", choices=FORMATS, help="what to print")


def as_json(data: Any) -> str:
  """Returns data as JSON in lines, as `--format json` and `--json` write them."""
  return json.dumps(data, indent=2, allow_nan=False) + "\n"


def show(
  form: str,
  tables: Sequence[Table],
  data: Mapping[str, Any],
  *,
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
    warnings: what makes the tables PARTIAL, a line each.
    heading: lines before the tables.
    notes: lines after the tables.
    signatures: what a signature is of, "" if there is but one -> signature; shown last.
    csv: what "csv" prints instead of the cells of `tables`.
  """
  signed = {f"signature {key}".rstrip(): text for key, text in (signatures or {}).items()}
  state = "PARTIAL " if warnings else ""
  lines = [f"{state}{name}: {text}" for name, text in signed.items()]
  if form == "text":
    _print_text(tables, warnings, heading, (*notes, *lines))
  elif form == "md":
    lines = [*notes, *(f"`{line}`" for line in lines)]
    parts = [*(f"**PARTIAL**: {x}\n" for x in warnings), *(f"{x}\n" for x in heading)]
    print("\n".join([*parts, *map(markdown, tables), "\n\n".join(lines)]))
  elif form == "latex":
    state = f"PARTIAL: {'; '.join(warnings)}. " if warnings else ""
    lines = [*heading, *notes, *(f"{state}{name}: {text}" for name, text in signed.items())]
    print("\n".join(latex(table, state) for table in tables), end="")
    print("\n".join("% " + " ".join(line.splitlines()) for line in lines))
  elif form == "csv":
    rows = [*(("PARTIAL", line) for line in warnings), *signed.items()]
    about = [Table("about", ("", "text"), tuple(rows))] if rows else []
    print(csv or csv_lines([*about, *tables]), end="")
  else:
    print(as_json(data), end="")


def _print_text(
  tables: Sequence[Table], warnings: Sequence[str], heading: Sequence[str], lines: Sequence[str]
) -> None:
  """Prints on 80 columns or more; plain text if the output is no terminal, or NO_COLOR is set.

  No number is cut: a table that needs more columns gets them.
  """
  from rich.console import Console

  colors = None if os.environ.get("NO_COLOR") else "auto"
  console = Console(color_system=colors, highlight=False, markup=False, emoji=False)
  made = {id(table): _rich_table(table) for table in tables if table.rows}
  width, console.width = max(console.width, _WIDTH), 10_000
  console.width = max([width, *(console.measure(x).minimum for x in made.values())])
  for line in warnings:
    console.print(f"PARTIAL: {line}", style="bold red", soft_wrap=True)
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
    side = "left" if i < table.left else "right"
    least = 0 if i else min(_NAME, max(len(str(row[0])) for row in table.rows))
    text.add_column(name, justify=side, no_wrap=numbers, overflow="fold", min_width=least)
  for row in table.rows:
    text.add_row(*map(str, row))
  return text
