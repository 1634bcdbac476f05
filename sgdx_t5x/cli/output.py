"""Prints the tables of all commands: as text, Markdown, LaTeX, CSV or JSON."""

import argparse
import dataclasses
import json
import operator
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from sgdx_t5x.cli.terminal import exact, exact_stdout
from sgdx_t5x.errors import escaped
from sgdx_t5x.tables import Number, Table, document, signature_lines

FORMATS = ("text", "md", "latex", "csv", "json")
_WIDTH = 80  # minimum width in a pipe or file; most tables fit
_NAME = 24  # row names are not folded below this width, if there is room
_SHORTEST_NAME = 10
# Commands, paths and signatures are not folded.
_TO_COPY = ("next:", "records:", "report:", "written:", "signature", "PARTIAL signature")


def add_format(parser: argparse.ArgumentParser) -> None:
  """Adds the `--format` of all commands that print tables."""
  parser.add_argument("--format", default="text", choices=FORMATS, help="output format")


def as_json(data: Any) -> str:
  """Returns data as indented JSON, as `--format json` and `--json` write them."""
  return json.dumps(data, indent=2, allow_nan=False) + "\n"


def say_written(*paths: str | None) -> None:
  """Prints "written: PATH" to stderr for each path that was given."""
  for path in paths:
    if path:
      print(f"written: {path}", file=sys.stderr)


def folded_command(words: Sequence[str], prefix: str = "next: ") -> str:
  """Returns a command that can be pasted; one that is too wide is folded with backslashes.

  Args:
    words: of the command, without quotes for a shell; further lines begin with an option.
    prefix: text before the command.
  """
  options: list[str] = []
  for word in map(_quoted, words):
    if options and not word.startswith("--"):
      options[-1] += f" {word}"
    else:
      options.append(word)
  if len(line := prefix + " ".join(options)) <= _WIDTH:
    return line
  lines = [prefix + options[0]]
  for option in options[1:]:
    if len(f"{lines[-1]} {option} \\") <= _WIDTH:
      lines[-1] += f" {option}"
    else:
      lines.append(f"    {option}")
  return " \\\n".join(lines)


def _quoted(word: str) -> str:
  """Returns a word quoted for a shell; double quotes around single ones, as in the README."""
  name, sign, value = word.partition("=")
  if value.startswith("'") and not re.search(r'["$`\\]', value):
    return f'{name}="{value}"'
  # Of NAME=VALUE, the value alone: a shell takes no quoted name for a variable's.
  return shlex.quote(name) + sign + (shlex.quote(value) if value else "")


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
) -> None:
  """Prints tables and what belongs to them to stdout.

  Args:
    form: one of `FORMATS`.
    tables: in the order shown.
    data: what "json" prints instead: all of it, warnings and signatures too.
    marks, warnings, heading, notes, signatures: see `tables.document`.
  """
  if form == "json":
    print(as_json(data), end="", file=exact_stdout())
  elif form == "text":
    alarms = [*marks, *(f"PARTIAL: {line}" for line in warnings)]
    lines = (*notes, *signature_lines(signatures or {}, warnings))
    _print_text(tables, alarms, heading, lines)
  else:
    texts = {"marks": marks, "warnings": warnings, "heading": heading, "notes": notes}
    text = document(form, tables, **texts, signatures=signatures)
    print(text, end="", file=exact_stdout())


def _print_text(
  tables: Sequence[Table], alarms: Sequence[str], heading: Sequence[str], lines: Sequence[str]
) -> None:
  """Prints to the terminal's width, or to 80 columns or more if the output is not a terminal.

  No number is truncated: a table that is too wide gets more columns in a pipe or file, and is split
  on a terminal. Without a terminal, and if NO_COLOR is set, the text is plain.
  """
  from rich.console import Console

  class PipeConsole(Console):
    def on_broken_pipe(self) -> None:  # rich exits with 1
      raise BrokenPipeError

  console = PipeConsole(
    file=exact(sys.stdout),
    color_system=None if os.environ.get("NO_COLOR") else "auto",
    highlight=False,
    markup=False,
    emoji=False,
  )
  on_terminal = sys.stdout.isatty()  # for rich, FORCE_COLOR makes one of a pipe
  width = console.width if on_terminal else max(console.width, _WIDTH)
  limit = width if on_terminal else None
  console.width = 10_000  # to measure; each table is printed in a width of its own

  def measure(rich_table: Any) -> int:
    return console.measure(rich_table).minimum

  for line in alarms:
    _print_lines(console, line, limit, "bold red")
  for line in heading:
    _print_lines(console, line, limit)
  if heading:
    console.print()
  for table in tables:
    parts = _rich_tables(table, limit, measure) if table.rows else []
    for part in parts:
      console.print(part, width=limit or max(width, measure(part)))
    if not parts:  # a title alone says that there is nothing of the kind
      _print_lines(console, table.title, limit, "bold")
    console.print()
  for line in lines:
    _print_lines(console, line, limit)


def _print_lines(console: Any, line: str, limit: int | None, style: str | None = None) -> None:
  """Prints a line, folded between words if longer than `limit`, unless it is to be copied."""
  line = escaped(line, kept="\n")
  folded = [line]
  if limit is not None and not line.startswith(_TO_COPY):
    folded = textwrap.wrap(line, limit, break_long_words=False, break_on_hyphens=False) or [""]
  for text in folded:
    console.print(text, style=style, soft_wrap=True)


def _rich_tables(table: Table, limit: int | None, measure: Callable[[Any], int]) -> list[Any]:
  """Returns the table as rich tables, split if `measure` says it is wider than `limit` columns."""
  whole_table = _rich_table(table, _NAME)
  if limit is None or (surplus := measure(whole_table) - limit) <= 0:
    return [whole_table]
  # First narrower names, then fewer columns: a table in one piece is easier to read.
  longest = min(_NAME, max(len(str(row[0])) for row in table.rows))
  short = max(_SHORTEST_NAME, longest - surplus)
  whole_table = _rich_table(table, short)
  if measure(whole_table) <= limit:
    return [whole_table]
  for last in range(len(table.header) - 1, 1, -1):
    beginning = _rich_table(_columns_of(table, range(last)), short)
    if measure(beginning) <= limit or last == 2:
      remainder = _columns_of(table, (0, *range(last, len(table.header))))
      return [beginning, *_rich_tables(dataclasses.replace(remainder, title=""), limit, measure)]
  return [whole_table]


def _columns_of(table: Table, columns: Sequence[int]) -> Table:
  """Returns a table with only the given columns, two or more."""
  of_columns = operator.itemgetter(*columns)
  num_left = sum(column < table.left for column in columns)
  rows = tuple(map(of_columns, table.rows))
  return Table(table.title, of_columns(table.header), rows, num_left)


def _rich_table(table: Table, shortest: int) -> Any:
  """Returns a rich table, escaped. Args: shortest, the width below which row names are whole."""
  from rich.table import Table as RichTable

  title = escaped(table.title)
  text = RichTable(title=title or None, title_justify="left", title_style="bold", box=None)
  text.padding, text.min_width = (0, 1, 0, 0), len(title)  # titles are not folded
  for i, (name, *cells) in enumerate(zip(table.header, *table.rows, strict=True)):
    # Text may be folded; numbers and the headings above them may not.
    has_numbers = any(isinstance(cell, Number) for cell in cells)
    side: Literal["left", "right"] = "left" if i < table.left else "right"
    min_width = 0 if i else min(shortest, max(len(str(cell)) for cell in cells))
    text.add_column(
      escaped(name), justify=side, no_wrap=has_numbers, overflow="fold", min_width=min_width
    )
  for row in table.rows:
    text.add_row(*(escaped(str(cell)) for cell in row))
  return text
