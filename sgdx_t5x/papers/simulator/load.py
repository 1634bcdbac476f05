"""Reads the files of `sgdx simulate` into a Simulation; reports all problems up front."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, load_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.papers.simulator.backend import ServiceTable, read_table
from sgdx_t5x.papers.simulator.generate import Simulation
from sgdx_t5x.papers.simulator.scenarios import Scenario, intent_problems, parse_scenarios
from sgdx_t5x.papers.simulator.templates import read_words
from sgdx_t5x.papers.simulator.transitions import default_transitions, parse_transitions

_SHOWN = 30
_BROKEN = object()  # stands for files that could not be decoded


def load_simulation(
  schema: pathlib.Path,
  tables: pathlib.Path,
  scenarios: pathlib.Path,
  templates: pathlib.Path | None = None,
  transitions: pathlib.Path | None = None,
) -> Simulation:
  """Reads and checks everything; docs/papers/simulator.md describes the files.

  Args:
    schema: schema in SGD's format.
    tables: folder with a CSV file per service.
    scenarios: goals of users.
    templates: words; None derives them from names and descriptions.
    transitions: the automaton; None for the default.

  Raises:
    SgdxError: lists all problems in all files, except those that depend on an unreadable file.
  """
  services = load_schema(_read(schema), str(schema))
  problems = [
    f"{schema}: {service.name} has no intents, so users cannot request anything from it"
    for service in services
    if not service.intents
  ]
  if not len(services):
    problems.append(f"{schema}: no services")
  scenario_data = _decoded(scenarios, problems)
  parsed: Sequence[Scenario] = ()
  if scenario_data is not _BROKEN:
    parsed = parse_scenarios(scenario_data, services, str(scenarios), problems)
  names = dict.fromkeys(name for scenario in parsed for name in scenario.services)
  if not parsed:  # it is unknown which tables are needed, so all that exist are checked
    names = dict.fromkeys(s.name for s in services if (tables / f"{s.name}.csv").exists())
  if parsed and not tables.is_dir():
    problems.append(f"{tables}: no such folder")
    names = {}
  read = {n: read_table(tables / f"{n}.csv", services[n], problems) for n in names}
  valid = {name: table for name, table in read.items() if table is not None}
  problems += _never_satisfied(parsed, valid)
  template_data = {} if templates is None else _decoded(templates, problems)
  words = {}
  if template_data is not _BROKEN:
    words = read_words(template_data, services, names, str(templates), problems)
  automaton = default_transitions()
  if transitions is not None and (given := _decoded(transitions, problems)) is not _BROKEN:
    try:
      automaton = parse_transitions(given, str(transitions))
    except SgdxError as e:
      problems.append(e.found)
  if problems:
    raise _all_at_once(problems)
  return Simulation(services, valid, parsed, words, automaton)


def _read(path: pathlib.Path) -> bytes:
  try:
    return path.read_bytes()
  except OSError as e:
    raise SgdxError(
      f"{path}: {e.strerror}",
      expected="a readable file",
      fix="check the path; `sgdx simulate --init SCHEMA.json --out DIR` writes all but the schema",
    ) from None


def _decoded(path: pathlib.Path, problems: list[str]) -> Any:
  try:
    return decode_json(_read(path), str(path), "a complete JSON file")
  except SgdxError as e:
    problems.append(e.found)
    return _BROKEN


def _never_satisfied(
  scenarios: Sequence[Scenario], tables: Mapping[str, ServiceTable]
) -> Iterator[str]:
  """Yields unusable intents, defaults that no row has, and links without a common value."""
  found = {
    f"{step.service.name}.{step.intent.name}: {text}"
    for scenario in scenarios
    for step in scenario.steps
    for text in intent_problems(step.service, step.intent)
  }
  for step in (step for scenario in scenarios for step in scenario.steps):
    name, table = step.service.name, tables.get(step.service.name)
    if table is None:
      continue
    defaults = step.intent.optional_slots if step.intent.is_transactional else {}
    for slot, default in defaults.items():
      if default != DONTCARE and slot not in table.open and default not in _column(table, slot):
        found.add(
          f"{name}.{step.intent.name} can never succeed with its default: no row of "
          f"{name}.csv has {slot} {default!r}; add one, or make the column open ({slot}*)"
        )
    for link in step.links:
      (source, source_slot), (_, slot) = link.source, link.target
      if slot in table.open or source not in tables or source_slot not in tables[source].columns:
        continue
      if not _column(tables[source], source_slot) & _column(table, slot):
        found.add(
          f"link {source}.{source_slot} -> {name}.{slot} can never be used: the columns have no "
          f"common value; add some, or make {slot} open ({slot}*)"
        )
  yield from sorted(found)


def _column(table: ServiceTable, slot: str) -> frozenset[str]:
  i = table.columns.index(slot)
  return frozenset(row[i] for row in table.rows)


def _all_at_once(problems: Sequence[str]) -> SgdxError:
  shown = [f"  - {text}" for text in problems[:_SHOWN]]
  if len(problems) > _SHOWN:
    shown.append(f"  - ... and {len(problems) - _SHOWN:,} more")
  count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
  return SgdxError(
    "\n".join([f"{count} in the input files of the simulation", *shown]),
    expected="a schema, tables, scenarios and templates that match: see docs/papers/simulator.md",
    fix="correct the files; `sgdx simulate --init SCHEMA.json --out DIR` writes files that match a "
    "schema",
  )
