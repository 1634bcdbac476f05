"""Reads the files of `sgdx simulate` into a Simulation."""

import pathlib
from typing import TypeVar

import msgspec

from sgdx_t5x.corpus.schema import load_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import read_input
from sgdx_t5x.papers.simulator.backend import read_table
from sgdx_t5x.papers.simulator.generate import Simulation
from sgdx_t5x.papers.simulator.scenarios import ScenarioFile, check_intent, parse_scenarios
from sgdx_t5x.papers.simulator.templates import Templates, read_words
from sgdx_t5x.papers.simulator.transitions import parse_transitions

_T = TypeVar("_T")
_FIX = "correct the file; `sgdx simulate --init SCHEMA.json --out DIR` writes all but the schema"


def load_simulation(
  schema: pathlib.Path,
  tables: pathlib.Path,
  scenarios: pathlib.Path,
  templates: pathlib.Path | None = None,
) -> Simulation:
  """Reads and checks everything; docs/papers/simulator.md describes the files.

  Args:
    schema: schema in SGD's format.
    tables: folder with a CSV file per service.
    scenarios: goals of users.
    templates: words; None derives them from names and descriptions.

  Raises:
    SgdxError: there is no such file, it is malformed, or it does not match the schema.
  """
  services = load_schema(read_input(schema, "a schema in SGD's format"), str(schema))
  goals = parse_scenarios(_read(scenarios, ScenarioFile), services, str(scenarios))
  names: dict[str, None] = {}
  for scenario in goals:
    names |= dict.fromkeys(scenario.services)
    for step in scenario.steps:
      check_intent(step.service, step.intent, str(schema))
  custom_templates = _read(templates, Templates) if templates else Templates()
  return Simulation(
    services,
    {name: read_table(tables / f"{name}.csv", services[name]) for name in names},
    goals,
    read_words(custom_templates, services, names, str(templates)),
    parse_transitions({}),
  )


def _read(path: pathlib.Path, kind: type[_T]) -> _T:
  """Returns the content of a JSON file. Args: its place; its form, a msgspec struct."""
  expected = "a file as docs/papers/simulator.md describes it"
  try:
    return msgspec.json.decode(read_input(path, expected), type=kind)
  except (msgspec.MsgspecError, UnicodeError, RecursionError) as e:
    raise SgdxError(f"{path}: {e}", expected=expected, fix=_FIX) from None
