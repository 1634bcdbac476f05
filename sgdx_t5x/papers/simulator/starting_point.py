"""Generates what a simulation needs from a schema alone: tables, scenarios, editable templates.

Only the schema of a service is known, so the kind of a slot's values is guessed from its name
(`default_words.slot_kind`), and rows are chosen so that searches find something: the columns that
a search needs have few values, and every combination of them occurs several times.
"""

import csv
import dataclasses
import functools
import io
import itertools
import json
import math
import pathlib
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.papers.simulator.backend import OPEN, ServiceTable, table_slots
from sgdx_t5x.papers.simulator.default_words import (
  callers_number,
  default_intent_words,
  default_slot_words,
  slot_kind,
  spoken_values,
)
from sgdx_t5x.papers.simulator.scenarios import check_intent, follow_up
from sgdx_t5x.papers.simulator.values import ValuePool, parse_pool

NUM_ROWS = 200
_ROWS_PER_SEARCH = 4  # rows that a search finds, if its slots' values allow it
_CHOICES = range(3, 13)  # numbers of values of a column that a search takes
_MANY = 100_000  # combinations, of which some are drawn instead
_ROWS_PER_NAME = 5  # rows per thing that another search finds by name: showings of a movie
_PLACES = frozenset({"city", "station", "address"})
_FILE_NAME = re.compile(r"[^\s\x00-\x1f/\\:*?\"<>|.][^\x00-\x1f/\\:*?\"<>|]*")


def write_starting_point(schema: Schema, folder: str | pathlib.Path, seed: int = 0) -> list[str]:
  """Writes the files that `sgdx simulate` reads, atomically.

  Args:
    schema: the services.
    folder: a new or empty folder.
    seed: random seed of the values.

  Returns:
    Names of the files: `tables/SERVICE.csv`, `scenarios.json` and `templates.json`.

  Raises:
    SgdxError: no services, or one that cannot be simulated; the folder is not empty, or cannot be
      written.
  """
  texts = starting_point(schema, seed)
  folder = check_folder(folder, expected="a folder that is new or empty: edited files are kept")
  with atomic_folder(folder) as temporary:
    for name, text in texts.items():
      (temporary / name).parent.mkdir(parents=True, exist_ok=True)
      (temporary / name).write_text(text, encoding="utf-8", newline="")
  return list(texts)


def starting_point(schema: Schema, seed: int = 0) -> dict[str, str]:
  """Returns the name of each file -> its text. Args: see `write_starting_point`."""
  _check(schema)
  files = {f"tables/{service.name}.csv": _csv_text(make_table(service, seed)) for service in schema}
  files["scenarios.json"] = _scenarios_text(schema)
  templates = {"services": {service.name: _templates(service) for service in schema}}
  files["templates.json"] = json.dumps(templates, indent=2, ensure_ascii=False) + "\n"
  return files


def make_table(service: Service, seed: int = 0) -> ServiceTable:
  """Makes a service's table of about NUM_ROWS rows. See `open_slots` for its open columns."""
  return _TableMaker(service, random.Random(f"{seed}/{service.name}")).table()


def open_slots(service: Service) -> frozenset[str]:
  """The slots for which a service presumably accepts any value.

  They are up to the caller, not the service: dates, times and counts that an intent takes; slots
  that only transactions take, or have a default for; slots that no intent returns; and, in services
  without searches, all slots that are taken.
  """
  searches = [intent for intent in service.intents if not intent.is_transactional]
  result_slots = set().union(*(search.result_slots for search in searches))
  returned = result_slots.union(*(intent.result_slots for intent in service.intents))
  is_open = set()
  for intent in service.intents:
    for name in (*intent.required_slots, *intent.optional_slots):
      slot = service.slots[service.slot_index[name]]
      default = intent.optional_slots.get(name, DONTCARE)
      if (
        not searches
        or name not in returned
        or slot_kind(slot) in ("date", "time", "count")
        or callers_number(slot)
        or (intent.is_transactional and (name not in result_slots or default != DONTCARE))
      ):
        is_open.add(name)
  return frozenset(is_open)


class _TableMaker:
  """Draws the rows of one service's table."""

  def __init__(self, service: Service, rng: random.Random):
    self._rng = rng
    self._slots: dict[str, Slot] = {}
    for name in table_slots(service):
      slot = service.slots[service.slot_index[name]]
      self._slots[name] = dataclasses.replace(slot, possible_values=spoken_values(slot))
    self._kinds = {name: slot_kind(slot) for name, slot in self._slots.items()}
    self._open = open_slots(service)
    self._searches = [intent for intent in service.intents if not intent.is_transactional]
    self._used: set[str] = set()  # values drawn by `_new`, which are not drawn again
    self._lists: dict[str, list[str]] = {}  # kind -> values shared by columns, such as cities
    self._keys = self._matched(search.required_slots for search in self._searches)
    self._names = [name for name in self._keys if self._is_found_elsewhere(name)]
    self._keys = [name for name in self._keys if name not in self._names]
    self._choices = self._choices_by_slot()

  def table(self) -> ServiceTable:
    combinations = self._combinations()
    rows = []
    num_groups = max(NUM_ROWS, 2 * len(combinations)) // (_ROWS_PER_NAME if self._names else 1)
    for group in range(num_groups):
      names = {name: self._new(name) for name in self._names}
      common = combinations[group % len(combinations)] | names
      has_defaults = group < 2 * len(combinations)  # so that a minimal search finds two rows
      rows += [self._row(common, has_defaults) for _ in range(_ROWS_PER_NAME if self._names else 1)]
    self._rng.shuffle(rows)
    return ServiceTable(tuple(self._slots), self._open, tuple(rows))

  def _matched(self, groups: Iterable[Iterable[str]]) -> list[str]:
    names = dict.fromkeys(itertools.chain.from_iterable(groups))
    return [name for name in names if name not in self._open]

  def _is_found_elsewhere(self, name: str) -> bool:
    """Whether one search takes a name that another one returns: showings of a movie."""
    return self._kinds[name] in ("title", "person", "address") and any(
      name in search.result_slots
      and name not in search.required_slots
      and name not in search.optional_slots
      for search in self._searches
    )

  def _choices_by_slot(self) -> dict[str, list[str]]:
    """Slot -> its few values, for the matched slots that searches take."""
    choices = {}
    for name in (*self._keys, *self._matched(s.optional_slots for s in self._searches)):
      if values := self._slots[name].possible_values:
        choices[name] = list(values)
      elif name not in self._names:
        choices[name] = self._shared(name, self._how_many(name))
    return choices

  def _how_many(self, name: str) -> int:
    """Number of values of a slot with which every search finds about _ROWS_PER_SEARCH rows."""
    fewest = _CHOICES[-1]
    for search in self._searches:
      if name not in search.required_slots:
        continue
      keys = [self._slots[n] for n in search.required_slots if n in self._keys]
      num_combinations = NUM_ROWS / _ROWS_PER_SEARCH
      for slot in keys:
        num_combinations /= len(slot.possible_values) or 1
      num_free = sum(not slot.possible_values for slot in keys)
      fewest = min(fewest, int(max(num_combinations, 1) ** (1 / num_free)))
    return max(fewest, _CHOICES[0])

  def _shared(self, name: str, number: int) -> list[str]:
    """Values of a column; places and styles are shared by the service's columns, others not."""
    kind = self._kinds[name]
    values = self._lists.setdefault(kind, []) if kind in (*_PLACES, "style") else []
    while len(values) < number:
      values.append(self._new(name))
    return values[:number]

  def _combinations(self) -> list[dict[str, str]]:
    """Combinations of values of required search slots, shuffled; places in one are distinct."""
    combinations = []
    choices = [self._choices[name] for name in self._keys]
    products: Iterable[tuple[str, ...]] = itertools.product(*choices)
    if math.prod(map(len, choices)) > _MANY:
      products = (tuple(map(self._rng.choice, choices)) for _ in range(4 * NUM_ROWS))
    for values in products:
      combination = dict(zip(self._keys, values, strict=True))
      places = [combination[name] for name in self._keys if self._kinds[name] in _PLACES]
      if len(set(places)) == len(places):
        combinations.append(combination)
    self._rng.shuffle(combinations)
    return combinations[: 2 * NUM_ROWS] or [{}]

  def _row(self, common: Mapping[str, str], has_defaults: bool) -> tuple[str, ...]:
    row = dict(common)
    for name in self._slots:
      if name not in row:
        row[name] = self._draw(name, row, has_defaults)
    dates = [name for name in self._slots if self._kinds[name] == "date"]
    for name, date in zip(dates, sorted(row[name] for name in dates), strict=True):
      row[name] = date  # check-in comes before check-out
    return tuple(row[name] for name in self._slots)

  def _draw(self, name: str, row: Mapping[str, str], has_defaults: bool) -> str:
    """Draws a value for a cell; places do not repeat in a row, if possible."""
    slot, kind = self._slots[name], self._kinds[name]
    default = self._default(name)
    if default and (has_defaults or self._rng.random() < 0.5):
      return default
    values = self._choices.get(name) or list(slot.possible_values)
    if kind == "city":
      values = values or self._shared(name, _CHOICES[-1])
    if kind in _PLACES:
      values = [value for value in values if value not in row.values()] or values
    if values:
      return self._rng.choice(values)
    if kind in ("title", "person", "address", "phone", "station"):
      return self._new(name)
    return _pool(kind).draw(self._rng)

  def _default(self, name: str) -> str:
    """The default that a search uses for a matched slot if the caller gives no value, or ""."""
    if name in self._open:
      return ""
    for search in self._searches:
      value = search.optional_slots.get(name, DONTCARE)
      if value != DONTCARE and value in (self._slots[name].possible_values or (value,)):
        return value
    return ""

  def _new(self, name: str) -> str:
    """Draws a value not used in the service before, unless 50 tries fail."""
    for _ in range(50):
      value = _pool(self._kinds[name]).draw(self._rng)
      if value not in self._used:
        break
    self._used.add(value)
    return value


@functools.cache
def _pool(kind: str) -> ValuePool:
  return parse_pool({"kind": kind})


# --- texts ---------------------------------------------------------------------------------


def _csv_text(table: ServiceTable) -> str:
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  writer.writerow(f"{name}{OPEN if name in table.open else ''}" for name in table.columns)
  writer.writerows(table.rows)
  return out.getvalue()


def _scenarios_text(schema: Schema) -> str:
  """Every intent alone; more often, every search with the transaction that takes its results."""
  scenarios: list[dict[str, Any]] = []
  for service in schema:
    names = {intent.name: f"{service.name}.{intent.name}" for intent in service.intents}
    scenarios += ({"intents": [name]} for name in names.values())
    for search in service.intents:
      if then := follow_up(service, search):
        scenarios.append({"intents": [names[search.name], names[then.name]], "weight": 4})
  lines = ",\n".join(f"    {json.dumps(scenario, ensure_ascii=False)}" for scenario in scenarios)
  return f'{{\n  "links": [],\n  "scenarios": [\n{lines}\n  ]\n}}\n'


def _templates(service: Service) -> dict[str, dict[str, Any]]:
  """The defaults of `templates.read_words`, written out to be edited."""
  return {
    "slots": {slot.name: default_slot_words(slot) for slot in service.slots},
    "intents": {intent.name: default_intent_words(intent) for intent in service.intents},
  }


# --- checks --------------------------------------------------------------------------------


def _check(schema: Schema) -> None:
  """Raises SgdxError if a table cannot be made for each service."""
  if not len(schema):
    raise _unusable(schema, "no services")
  for service in schema:
    for intent in service.intents:
      check_intent(service, intent, schema.origin)
    if not table_slots(service):
      raise _unusable(schema, f"service {service.name!r}: no intent takes or returns a slot")
    if not _FILE_NAME.fullmatch(service.name):
      raise _unusable(schema, f"service {service.name!r}: not a valid file name for its table")
    for slot in service.slots:
      if slot.name != slot.name.strip().removesuffix(OPEN).strip():
        raise _unusable(schema, f"{service.name}.{slot.name}: not the name of a column")
      if slot.is_categorical and not spoken_values(slot):
        raise _unusable(schema, f"{service.name}.{slot.name}: categorical, without possible_values")


def _unusable(schema: Schema, problem: str) -> SgdxError:
  return SgdxError(
    f"{schema.origin}: {problem}",
    expected="services whose intents take or return slots, and whose names can be file names",
    available=f"{len(schema)} services",
    fix="complete or correct the schema; docs/papers/simulator.md has a small example",
  )
