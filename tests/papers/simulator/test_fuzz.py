"""Readers of the simulator's files: see tests/fuzz/test_corpora.py."""

import importlib.resources
import itertools
import json

import boats
import pytest
from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
from fuzzing import Document, Table, run

from sgdx_t5x.corpus.schema import load_schema, parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.papers.simulator.backend import read_table
from sgdx_t5x.papers.simulator.generate import simulate
from sgdx_t5x.papers.simulator.load import load_simulation
from sgdx_t5x.papers.simulator.scenarios import parse_scenarios
from sgdx_t5x.papers.simulator.starting_point import starting_point
from sgdx_t5x.papers.simulator.templates import read_words
from sgdx_t5x.papers.simulator.transitions import parse_transitions

pytestmark = pytest.mark.long


TEMPLATES = {
  "acts": {"user": {"INFORM": ["I want {value}."]}, "system": {"OFFER": ["How about {slots}?"]}},
  "services": {
    "Boats_1": {
      "slots": {
        "town": {"noun": ["town"], "tell": ["in {value}"], "ask": ["Where?"]},
        "boat_type": {"say": {"rowing": "with oars", "sailing": ["with sails"]}},
      },
      "intents": {"FindBoat": {"open": ["I need a boat."], "do": ["find a boat"]}},
      "acts": {"OFFER": ["There is {boat_name}."], "NOTIFY_SUCCESS": ["Done."]},
    }
  },
}


def scenarios():
  weighted = [{"intents": names, "weight": 2} for names in boats.SCENARIOS[:4]]
  return {"links": boats.LINKS, "scenarios": weighted}


def transitions():
  """Returns some of the default transitions."""
  path = importlib.resources.files("sgdx_t5x.papers.simulator") / "transitions.json"
  return {part: dict(list(t.items())[:3]) for part, t in json.loads(path.read_text()).items()}


def fuzz_simulation(folder, name, make, read_one):
  """Reads each file by itself, and one in 40 together with the others to simulate dialogues."""
  boats.write_files(folder, boats.files())
  path, schema = folder / name, parse_schema(boats.SCHEMA, "boats")
  others = [folder / f"{n}.json" for n in ("scenarios", "templates", "transitions")]
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    if next(count) % 40 == 0:
      made = load_simulation(folder / "schema.json", folder / "tables", *others)
      list(simulate(made, numbers=range(2), seed="s"))
    problems = []
    if path.suffix == ".csv":
      read_one(path, schema["Boats_1"], problems)
    else:
      read_one(decode_json(data, name, "JSON"), schema, problems)
    if problems:
      raise SgdxError("\n".join(problems), expected="none", fix="correct them")

  run(name.rpartition("/")[2].partition(".")[0], make, read, folder)


def test_starting_points():
  """A schema that is read gives files to start from; one in 40, since each takes 10 ms."""
  number = itertools.count()

  def read(data):
    schema = load_schema(data, "schema.json")
    if next(number) % 40 == 0:
      "".join(starting_point(schema).values()).encode()

  run("starting_points", Document(boats.SCHEMA), read)


def test_tables(folder):
  make = Table(boats.csv_text(boats.BOATS))
  fuzz_simulation(folder, "tables/Boats_1.csv", make, read_table)


def test_scenarios(folder):
  def read(data, schema, problems):
    parse_scenarios(data, schema, "scenarios.json", problems)

  fuzz_simulation(folder, "scenarios.json", Document(scenarios()), read)


def test_templates(folder):
  def read(data, schema, problems):
    read_words(data, schema, ["Boats_1"], "templates.json", problems)

  fuzz_simulation(folder, "templates.json", Document(TEMPLATES), read)


def test_transitions(folder):
  def read(data, schema, problems):
    parse_transitions(data, "transitions.json")

  fuzz_simulation(folder, "transitions.json", Document(transitions()), read)
