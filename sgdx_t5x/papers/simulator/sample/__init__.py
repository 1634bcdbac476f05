"""Makes the dialogues of the sample corpus, which the core ships as files.

  python -m sgdx_t5x.papers.simulator.sample  # writes them anew, the same bytes

Services, words and values are the core's (`sgdx_t5x/corpus/sample/services/`); scenarios and
transitions are beside this file. If a dialogue changes, raise `VERSION` of the core's sample.
"""

import functools
import importlib.resources
import json
import lzma
import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sgdx_t5x.corpus import sample
from sgdx_t5x.corpus.dialogue import Dialogue, write_dialogues
from sgdx_t5x.corpus.sample import DIALOGUE_FILE, DIALOGUES, SEED, VERSION
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.papers.simulator.backend import ServiceTable, table_slots
from sgdx_t5x.papers.simulator.generate import Simulation, simulate
from sgdx_t5x.papers.simulator.scenarios import ScenarioFile, parse_scenarios
from sgdx_t5x.papers.simulator.templates import Templates, read_words
from sgdx_t5x.papers.simulator.transitions import parse_transitions
from sgdx_t5x.papers.simulator.values import parse_pool

ROWS = {"train": 2000, "dev": 200, "test": 200}  # number of rows in each service's table
# Number of values of a slot that searches require, so that several rows share each.
SEARCHED_VALUES = {"train": 400, "dev": 20, "test": 20}
# Share of non-categorical values that occur in no train dialogue; SGD's own test has many, too.
HELD_OUT = {"train": 0.0, "dev": 0.3, "test": 0.3}
PRESET = 9 | lzma.PRESET_EXTREME  # a third smaller than the default; made once, read often


def dialogues(split: str) -> Iterator[Dialogue]:
  """Yields a split's dialogues, as they were made."""
  numbers, seed = range(DIALOGUES[split]), f"{SEED}/{VERSION}/{split}"
  return simulate(simulation(split), numbers=numbers, seed=seed)


@functools.cache
def simulation(split: str) -> Simulation:
  """What a split's dialogues are made from: services, tables, scenarios, words."""
  roles = ("train", split)
  services_data = {d["service"]: d for d in sample.authored_services() if d["role"] in roles}

  def is_in_split(place: str) -> bool:  # "SERVICE.INTENT" or "SERVICE.SLOT"
    return place.partition(".")[0] in services_data

  services = sample.schema(split)
  authored = _authored("scenarios.json")
  authored["scenarios"] = [s for s in authored["scenarios"] if all(map(is_in_split, s["intents"]))]
  links = (link for link in authored["links"] if is_in_split(link["from"]))
  authored["links"] = [link for link in links if is_in_split(link["to"])]
  scenarios = parse_scenarios(msgspec.convert(authored, ScenarioFile), services, "scenarios.json")
  words = read_words(_templates(services_data), services, services_data, "the sample's services")
  tables = {name: _table(services[name], data, split) for name, data in services_data.items()}
  transitions = parse_transitions(_authored("transitions.json"))
  return Simulation(services, tables, scenarios, words, transitions)


def _authored(name: str) -> Any:
  return json.loads((importlib.resources.files(__package__) / name).read_text("utf-8"))


def _templates(services: Mapping[str, Mapping[str, Any]]) -> Templates:
  """The authored words, in the format of a template file."""
  words: dict[str, dict[str, dict[str, Any]]] = {}
  for service, data in services.items():
    slots, intents = {}, {}
    for slot in data["slots"]:
      authored = {key: slot[key] for key in ("noun", "tell", "ask", "say") if key in slot}
      slots[slot["name"]["versions"][0]] = authored
    for intent in data["intents"]:
      authored = {"open": intent["open"], "do": intent["do"]}
      intents[intent["name"]["versions"][0]] = authored
    words[service] = {"slots": slots, "intents": intents}
  return msgspec.convert({"services": words}, Templates)


def _table(service: Service, data: Mapping[str, Any], split: str) -> ServiceTable:
  """Draws a service's table; required search slots have few values, so that searches succeed."""
  rng = random.Random(f"{SEED}/{VERSION}/{split}/{service.name}")
  authored = dict(zip(service.slot_index, data["slots"], strict=True))
  searches = (intent for intent in service.intents if not intent.is_transactional)
  searched = set().union(*(search.required_slots for search in searches))
  columns = table_slots(service)
  cells = []
  for name in columns:
    count = SEARCHED_VALUES[split] if name in searched else ROWS[split]
    slot = service.slots[service.slot_index[name]]
    if slot.is_categorical:
      values = slot.possible_values
    else:
      spec = authored[name]["values"]
      is_city = name in searched and spec.get("kind") == "city"
      values = _cities(split) if is_city else _draw(spec, rng, split, count)
    cells.append([rng.choice(values) for _ in range(ROWS[split])])
  is_open = frozenset(name for name in columns if authored[name].get("open"))
  return ServiceTable(columns, is_open, tuple(zip(*cells, strict=True)))


@functools.cache
def _cities(split: str) -> list[str]:
  """The cities of a split, shared by its services, so that links between them work."""
  rng = random.Random(f"{SEED}/{VERSION}/{split}/cities")
  return _draw({"kind": "city"}, rng, split, SEARCHED_VALUES[split])


def _draw(spec: Mapping[str, Any], rng: random.Random, split: str, count: int) -> list[str]:
  pool = parse_pool(spec)
  return [pool.draw(rng, rng.random() < HELD_OUT[split]) for _ in range(count)]


def write_files() -> None:
  """Writes the dialogues of all splits into the core's folder; needs a checkout."""
  folder = importlib.resources.files(sample)
  for split in DIALOGUES:
    data = write_dialogues(dialogues(split)).encode()
    with importlib.resources.as_file(folder / DIALOGUE_FILE.format(split=split)) as path:
      path.write_bytes(lzma.compress(data, preset=PRESET))
