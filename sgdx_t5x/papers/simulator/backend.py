"""Back ends of services: one table per service, queried through SQL.

A table holds a service's data: a row per thing, a column per slot. Columns are either
*matched* (a call finds the rows with the caller's value) or *open* (marked `*` in the
file's header): the service accepts any value and echoes it, and the cells are values that users
ask for. As in the SGD paper (section 3.1) a call must have every required slot.
"""

import csv
import dataclasses
import io
import pathlib
import random
import sqlite3
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.corpus.annotation_rules import MAX_RESULTS
from sgdx_t5x.corpus.schema import DONTCARE, Intent, Service

OPEN = "*"


@dataclasses.dataclass(frozen=True)
class ServiceTable:
  """Rows of canonical values; `columns` name slots, `open` those that match any value."""

  columns: tuple[str, ...]
  open: frozenset[str]
  rows: tuple[tuple[str, ...], ...]


def table_slots(service: Service) -> tuple[str, ...]:
  """The slots that a service's table must have: all that any intent takes or returns."""
  used = set()
  for intent in service.intents:
    used.update(intent.required_slots, intent.optional_slots, intent.result_slots)
  return tuple(slot.name for slot in service.slots if slot.name in used)


def read_table(path: pathlib.Path, service: Service, problems: list[str]) -> ServiceTable | None:
  """Reads `SERVICE.csv`. On errors, appends them to `problems` and returns None."""
  if not path.exists():
    problems.append(f"{path}: no such file; its first line must be {_header(service)}")
    return None
  try:
    reader = csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""), strict=True)
    lines = [(reader.line_num, row) for row in reader]
  except (UnicodeDecodeError, csv.Error) as e:
    problems.append(f"{path}: not a CSV file in UTF-8 ({e})")
    return None
  (_, header), *numbered = lines or [(1, [])]
  rows = {number: row for number, row in numbered if row}
  columns = tuple(name.strip().removesuffix(OPEN).strip() for name in header)
  is_open = frozenset(
    c for c, name in zip(columns, header, strict=True) if name.strip()[-1:] == OPEN
  )
  found = list(_table_problems(columns, rows, service))
  problems.extend(f"{path}: {text}" for text in found)
  return (
    None
    if found
    else ServiceTable(columns, is_open, tuple(tuple(v.strip() for v in r) for r in rows.values()))
  )


def _header(service: Service) -> str:
  return ",".join(table_slots(service))


def _table_problems(
  columns: Sequence[str], rows: Mapping[int, Sequence[str]], service: Service
) -> Iterator[str]:
  for name in table_slots(service):
    if name not in columns:
      yield f"no column {name!r}, which an intent of {service.name} takes or returns"
  for name in columns:
    if name not in service.slot_index:
      yield f"column {name!r} is not a slot of {service.name}"
  if len(set(columns)) < len(columns):
    yield "two columns have the same name"
  if not set(columns) & set(service.slot_index):
    return  # wrong separator or no header: every row would be reported
  if not rows:
    yield f"no rows: no intent of {service.name} can ever succeed"
  for number, row in rows.items():
    if len(row) != len(columns):
      yield f"line {number}: {len(row)} cells for {len(columns)} columns"
      continue
    for name, value in zip(columns, row, strict=True):
      if name in service.slot_index and (text := _cell_problem(service, name, value.strip())):
        yield f"line {number}: {text}"


def _cell_problem(service: Service, name: str, value: str) -> str:
  slot = service.slots[service.slot_index[name]]
  if not value or value == DONTCARE:
    return (
      f"no value of {name!r}" if not value else f"{name!r} is {value!r}, which only users may say"
    )
  if slot.is_categorical and value not in slot.possible_values:
    return f"{name!r} is {value!r}, not one of {', '.join(slot.possible_values)}"
  return ""


class Backend:
  """A service with its table in an in-memory SQLite database.

  Attributes:
    service: the service.
    open: its open slots.
  """

  def __init__(self, service: Service, table: ServiceTable):
    """Args: the service; its table, already checked."""
    self.service, self.open = service, table.open
    self._columns = table.columns
    self._sql = {c: f"c{i}" for i, c in enumerate(table.columns)}  # slots may have any name
    self.cells = {c: [row[i] for row in table.rows] for i, c in enumerate(table.columns)}
    self._size = len(table.rows)
    self._db = sqlite3.connect(":memory:", isolation_level=None)
    weakref.finalize(self, self._db.close)  # else Python 3.13 warns
    self._fill(table)

  def _fill(self, table: ServiceTable) -> None:
    names = ", ".join(f"{c} TEXT" for c in self._sql.values())
    marks = ", ".join("?" * len(table.columns))
    self._db.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {names})")
    rows = ((i, *row) for i, row in enumerate(table.rows))
    self._db.execute("BEGIN")
    self._db.executemany(f"INSERT INTO t VALUES (?, {marks})", rows)
    self._db.execute("COMMIT")
    for number, intent in enumerate(self.service.intents):
      if slots := [s for s in intent.required_slots if s not in self.open]:
        columns = ", ".join(self._sql[s] for s in slots)
        self._db.execute(f"CREATE INDEX i{number} ON t ({columns})")

  def call(
    self, intent: Intent, parameters: Mapping[str, str], about: Mapping[str, str] | None = None
  ) -> list[dict[str, str]]:
    """Returns up to MAX_RESULTS results, deterministically.

    Args:
      intent: an intent of the service.
      parameters: slot -> canonical value; `dontcare` matches anything.
      about: the result of an earlier call that this one refers to, if any; its row is preferred.

    Raises:
      ValueError: a required slot is missing.
    """
    if missing := [s for s in intent.required_slots if s not in parameters]:
      raise ValueError(f"{self.service.name}.{intent.name} called without {missing}")
    given = {s: v for s, v in parameters.items() if v != DONTCARE}
    echoed = {s: v for s, v in given.items() if s in self.open}
    found = []
    for row in (self.matching({**about, **given}) if about else ()) or self.matching(given):
      values = dict(zip(self._columns, row, strict=True))
      values.update(echoed)
      found.append({s: values[s] for s in intent.result_slots})
    return found

  def matching(self, values: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Returns up to MAX_RESULTS rows with these values in their matched columns."""
    conditions = [(slot, v) for slot, v in values.items() if slot not in self.open]
    columns = ", ".join(self._sql.values())
    where = " AND ".join([f"{self._sql[slot]} = ?" for slot, _ in conditions] or ["1"])
    matched = [value for _, value in conditions]
    # So that calls with many matches do not all get the first rows, each has its own start.
    start = zlib.crc32(repr(sorted(values.items())).encode()) % self._size
    query = f"SELECT {columns} FROM t WHERE {where} AND id {{}} ? ORDER BY id LIMIT ?"
    rows = self._db.execute(query.format(">="), (*matched, start, MAX_RESULTS)).fetchall()
    if len(rows) < MAX_RESULTS:
      rows += self._db.execute(
        query.format("<"), (*matched, start, MAX_RESULTS - len(rows))
      ).fetchall()
    return rows

  def row(self, rng: random.Random, fixed: Mapping[str, str]) -> dict[str, str] | None:
    """Draws a row with the values of `fixed` in its matched columns; None if there is none."""
    wanted = {s: v for s, v in fixed.items() if s not in self.open}
    if not wanted:
      i = int(rng.random() * self._size)
      return {c: cells[i] for c, cells in self.cells.items()}
    rows = self.matching(wanted)
    return dict(zip(self._columns, rng.choice(rows), strict=True)) if rows else None
