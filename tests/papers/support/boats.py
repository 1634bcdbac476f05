"""Two small handwritten services with tables and a link, as input of a simulation in tests."""

import json
import pathlib
from typing import Any

import msgspec
from boat_schema import BOAT_SLOTS, SCHEMA

from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.papers.simulator.acts import TurnOutline
from sgdx_t5x.papers.simulator.backend import ServiceTable
from sgdx_t5x.papers.simulator.generate import Simulation
from sgdx_t5x.papers.simulator.scenarios import ScenarioFile, parse_scenarios
from sgdx_t5x.papers.simulator.templates import Templates, read_words
from sgdx_t5x.papers.simulator.transitions import parse_transitions

BOATS = ServiceTable(
  tuple(BOAT_SLOTS),
  frozenset({"rental_date", "guests"}),
  (
    ("Heron", "Elmport", "sailing", "True", "2019-03-05", "2", "$25"),
    ("Tern", "Elmport", "sailing", "False", "2019-03-12", "3", "$30"),
    ("Swan", "Elmport", "rowing", "False", "2019-04-05", "2", "$12"),
    ("Coot", "New York", "sailing", "True", "2019-03-02", "1", "$40"),
    ("New York Pizza", "New York", "rowing", "True", "2020-01-21", "3", "$9"),
  ),
)
TRAMS = ServiceTable(
  ("destination", "departure_time", "fare"),
  frozenset({"destination", "departure_time"}),
  (("Elmport", "09:15", "$3"), ("12 Hill Street", "18:30", "$4"), ("Oakham", "12:00", "$5")),
)
LINKS = [{"from": "Boats_1.town", "to": "Trams_1.destination", "say": ["there"]}]
FIND, RENT, TRAM = "Boats_1.FindBoat", "Boats_1.RentBoat", "Trams_1.BuyTicket"
SCENARIOS = [[FIND], [RENT], [FIND, RENT], [FIND, TRAM], [FIND, RENT, TRAM], [TRAM, FIND, RENT]]


def files(**changes: Any) -> dict[str, Any]:
  """Maps names of the files that `sgdx simulate` reads to contents, for `write_files`."""
  return {
    "schema.json": SCHEMA,
    "tables/Boats_1.csv": csv_text(BOATS),
    "tables/Trams_1.csv": csv_text(TRAMS),
    "scenarios.json": {"links": LINKS, "scenarios": [{"intents": s} for s in SCENARIOS]},
    "templates.json": {},
    **changes,
  }


def csv_text(table: ServiceTable) -> str:
  header = [f"{c}*" if c in table.open else c for c in table.columns]
  return "".join(f"{','.join(line)}\n" for line in (header, *table.rows))


def write_files(folder: pathlib.Path, content: dict[str, Any]) -> pathlib.Path:
  for name, data in content.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if data is not None:
      (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
  return folder


def simulation(
  *scenarios, transitions=None, boats=BOATS, trams=TRAMS, links=LINKS, schema=SCHEMA, words=None
) -> Simulation:
  """A simulation of these services; scenarios are lists of intents, by default SCENARIOS."""
  services = parse_schema(schema, "boats")
  wanted = {"links": links, "scenarios": [{"intents": list(s)} for s in scenarios or SCENARIOS]}
  found = parse_scenarios(msgspec.convert(wanted, ScenarioFile), services, "scenarios")
  templates = msgspec.convert(words or {}, Templates)
  said = read_words(templates, services, services.names, "templates")
  automaton = parse_transitions(transitions or {})
  return Simulation(services, {"Boats_1": boats, "Trams_1": trams}, found, said, automaton)


def lines(turns: list[TurnOutline]) -> list[str]:
  """An outline as text, a line per frame: acts and values sorted by name."""
  found = []
  for speaker, frames in turns:
    for frame in frames:
      acts = sorted(" ".join((a.act, a.slot, *a.values)).strip() for a in frame.acts)
      text = f"{speaker[0]} {frame.service} {frame.intent}".strip() + f": {', '.join(acts)}"
      if speaker == USER:
        text += f" | {_pairs(frame.values)}"
      if frame.call is not None:
        text += f" | {frame.call[0]}({_pairs(frame.call[1])}) {len(frame.results)}"
      found.append(text)
  return found


def _pairs(values) -> str:
  return ", ".join(f"{slot}={value}" for slot, value in sorted(values.items()))
