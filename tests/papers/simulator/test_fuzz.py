"""Readers of the simulator's files: see tests/fuzz/test_corpora.py."""

import itertools

import boats
import pytest
from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
from fuzzing import Document, Table, run

from sgdx_t5x.corpus.schema import load_schema
from sgdx_t5x.papers.simulator.generate import simulate
from sgdx_t5x.papers.simulator.load import load_simulation
from sgdx_t5x.papers.simulator.starting_point import starting_point

pytestmark = pytest.mark.long


TEMPLATES = {
  "services": {
    "Boats_1": {
      "slots": {
        "town": {"noun": ["town"], "tell": ["in {value}"], "ask": ["Where?"]},
        "boat_type": {"say": {"rowing": "with oars", "sailing": ["with sails"]}},
      },
      "intents": {"FindBoat": {"open": ["I need a boat."], "do": ["find a boat"]}},
    }
  },
}


def scenarios():
  weighted = [{"intents": names, "weight": 2} for names in boats.SCENARIOS[:4]]
  return {"links": boats.LINKS, "scenarios": weighted}


def fuzz_simulation(folder, name, make):
  """Simulates dialogues with each file and the others as they should be."""
  boats.write_files(folder, boats.files())
  path = folder / name
  others = [folder / f"{n}.json" for n in ("scenarios", "templates")]

  def read(data):
    path.write_bytes(data)
    made = load_simulation(folder / "schema.json", folder / "tables", *others)
    list(simulate(made, numbers=range(1), seed="s"))

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
  fuzz_simulation(folder, "tables/Boats_1.csv", Table(boats.csv_text(boats.BOATS)))


def test_scenarios(folder):
  fuzz_simulation(folder, "scenarios.json", Document(scenarios()))


def test_templates(folder):
  fuzz_simulation(folder, "templates.json", Document(TEMPLATES))
