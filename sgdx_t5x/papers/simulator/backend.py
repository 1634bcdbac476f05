"""Back ends of services: one table per service.

A table holds a service's data: a row per thing, a column per slot. Columns are either
*matched* (a call finds the rows with the caller's value) or *open* (marked `*` in the
file's header): the service accepts any value and echoes it, and the cells are values that users
ask for. As in the SGD paper (section 3.1) a call must have every required slot.
"""

import csv
import dataclasses
import io
import itertools
import pathlib
import random
import zlib
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.annotation_rules import MAX_RESULTS
from sgdx_t5x.corpus.schema import DONTCARE, Intent, Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import read_input

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


def read_table(path: pathlib.Path, service: Service) -> ServiceTable:
  """Reads `SERVICE.csv`. Raises SgdxError if it is not a table of the service."""
  needed = table_slots(service)
  try:
    text = read_input(path, f"a table of {service.name}").decode("utf-8-sig")
    lines = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
  except (UnicodeDecodeError, csv.Error) as e:
    raise _malformed(path, str(e), needed) from None
  header, *rows = [[cell.strip() for cell in row] for row in lines or [[]]]
  columns = tuple(name.removesuffix(OPEN).strip() for name in header)
  # No column twice, none that is not a slot, and none missing.
  if sorted(columns) != sorted({*columns, *needed} & service.slot_index.keys()) or not rows:
    raise _malformed(path, f"{len(rows)} rows with the columns {', '.join(columns)}", needed)
  for row in rows:
    location = f"the row {','.join(row)}"
    if len(row) != len(columns):
      raise _malformed(path, f"{location}: {len(row)} cells for {len(columns)} columns", needed)
    for name, value in zip(columns, row, strict=True):
      possible = service.slots[service.slot_index[name]].possible_values
      is_categorical = service.slots[service.slot_index[name]].is_categorical
      if value in ("", DONTCARE) or (is_categorical and value not in possible):
        raise _malformed(path, f"{location}: the value {value!r} of {name}", needed)
  is_open = frozenset(c for c, name in zip(columns, header, strict=True) if name.endswith(OPEN))
  return ServiceTable(columns, is_open, tuple(map(tuple, rows)))


def _malformed(path: pathlib.Path, problem: str, columns: Sequence[str]) -> SgdxError:
  return SgdxError(
    f"{path}: {problem}",
    expected=f"a CSV file in UTF-8 with the columns {','.join(columns)}, in which each cell has a "
    "value of its slot, and not dontcare, which only users may say",
    fix="correct the file; `sgdx simulate --init SCHEMA.json --out DIR` writes one",
  )


class Backend:
  """A service with its table.

  Attributes:
    service: the service.
    open: its open slots.
    cells: slot -> the values of its column.
  """

  def __init__(self, service: Service, table: ServiceTable):
    """Args: the service; its table, already checked."""
    self.service, self.open = service, table.open
    self._columns, self._rows = table.columns, table.rows
    self.cells = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))

  def call(
    self,
    intent: Intent,
    parameters: Mapping[str, str],
    earlier: Mapping[str, str] | None = None,
  ) -> list[dict[str, str]]:
    """Returns up to MAX_RESULTS results, deterministically.

    Args:
      intent: an intent of the service.
      parameters: slot -> canonical value; `dontcare` matches anything.
      earlier: a result that this call refers to, if any; its row is preferred.

    Raises:
      ValueError: a required slot is missing.
    """
    if missing := [s for s in intent.required_slots if s not in parameters]:
      raise ValueError(f"{self.service.name}.{intent.name} called without {missing}")
    constraints = {s: v for s, v in parameters.items() if v != DONTCARE}
    echoed = {s: v for s, v in constraints.items() if s in self.open}
    results = []
    rows = self.matching({**earlier, **constraints}) if earlier else []
    for row in rows or self.matching(constraints):
      values = dict(zip(self._columns, row, strict=True))
      values.update(echoed)
      results.append({s: values[s] for s in intent.result_slots})
    return results

  def matching(self, values: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Returns up to MAX_RESULTS rows with these values in their matched columns."""
    conditions = [
      (self._columns.index(slot), value) for slot, value in values.items() if slot not in self.open
    ]
    # So that calls with many matches do not all get the first rows, each has its own start.
    start = zlib.crc32(repr(sorted(values.items())).encode()) % len(self._rows)
    rows = itertools.chain(self._rows[start:], self._rows[:start])
    matches = (row for row in rows if all(row[i] == value for i, value in conditions))
    return list(itertools.islice(matches, MAX_RESULTS))

  def any_row(self, rng: random.Random) -> dict[str, str]:
    """Draws a row."""
    i = int(rng.random() * len(self._rows))
    return {column: cells[i] for column, cells in self.cells.items()}

  def row(self, rng: random.Random, fixed: Mapping[str, str]) -> dict[str, str] | None:
    """Draws a row with the values of `fixed` in its matched columns; None if there is none."""
    matched = {s: v for s, v in fixed.items() if s not in self.open}
    if not matched:
      return self.any_row(rng)
    rows = self.matching(matched)
    return dict(zip(self._columns, rng.choice(rows), strict=True)) if rows else None
