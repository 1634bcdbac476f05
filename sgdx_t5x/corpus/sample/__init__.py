"""The embedded corpus: a small counterpart of SGD-X, written entirely for this project.

`services/*.json` holds one service per file: its texts in nine variants (original, v1 to
v5 by distance, three back-translations with their pivot texts), and the words and
values from which the simulator makes dialogues. Nothing is stored twice: schemas
and dialogues are generated from these files when read, the same in every process.
"""

import functools
import hashlib
import importlib.resources
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import Dialogue, write_dialogues
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot, parse_schema
from sgdx_t5x.corpus.variants import ORIGINAL, PIVOTS, SGDX_VARIANTS, SPLITS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.simulator.backend import ServiceTable, table_slots
from sgdx_t5x.papers.simulator.generate import Simulation, simulate
from sgdx_t5x.papers.simulator.scenarios import parse_scenarios
from sgdx_t5x.papers.simulator.templates import read_words
from sgdx_t5x.papers.simulator.transitions import parse_transitions
from sgdx_t5x.papers.simulator.values import parse_pool

VERSION = "2"  # raise it when a dialogue of the sample changes
SEED = "sgdx-sample"
DIALOGUES = {"train": 4000, "dev": 100, "test": 160}
ROWS = {"train": 2000, "dev": 200, "test": 200}  # number of rows in each service's table
# Number of values of a slot that searches require, so that several rows share each.
SEARCHED_VALUES = {"train": 400, "dev": 20, "test": 20}
# Share of non-categorical values that occur in no train dialogue; SGD's own test has many, too.
HELD_OUT = {"train": 0.0, "dev": 0.3, "test": 0.3}
VARIANTS = (ORIGINAL, *SGDX_VARIANTS, *PIVOTS)


class SampleSource:
  """The sample as a corpus source: files in the official layout, generated when read."""

  origin = "sample"

  def names(self) -> list[str]:
    """All file names, sorted."""
    return sorted(_files())

  def read(self, name: str) -> bytes:
    """Generates one file."""
    return _files()[name]().encode()

  def checksums(self) -> Iterator[tuple[str, int]]:
    """Yields one checksum for all files, over the service files and the dev and test dialogues."""
    digest = hashlib.sha256(f"{VERSION} {SEED} {DIALOGUES}".encode())
    for data in authored_services():
      digest.update(json.dumps(data, sort_keys=True).encode())
    for split in ("dev", "test"):  # train has too many to generate each time
      digest.update(_dialogue_text(split).encode())
    yield "sample", int.from_bytes(digest.digest()[:4], "big")


@functools.cache
def authored_services() -> tuple[Mapping[str, Any], ...]:
  """The decoded service files: those of train, then those new in dev, then those new in test."""
  folder = importlib.resources.files(__package__) / "services"
  files = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
  services = [json.loads(f.read_text("utf-8")) for f in files]
  for data in services:
    if data["role"] not in SPLITS:
      raise SgdxError(
        f"sample service {data['service']}: role {data['role']!r}",
        expected="the split where the service first appears",
        available=", ".join(SPLITS),
        fix=f"correct it in sample/services/{data['service']}.json",
      )
  return tuple(sorted(services, key=lambda data: SPLITS.index(data["role"])))


def schema(split: str, variant: str = ORIGINAL) -> Schema:
  """Returns a split's schema: train's services, then the split's own unseen ones."""
  services = [
    _service(data, variant) for data in authored_services() if data["role"] in ("train", split)
  ]
  origin = f"sample {variant} {split}"
  return parse_schema([service.to_json() for service in services], origin)


def dialogues(split: str) -> Iterator[Dialogue]:
  """Yields a split's dialogues."""
  numbers, seed = range(DIALOGUES[split]), f"{SEED}/{VERSION}/{split}"
  return simulate(simulation(split), numbers=numbers, seed=seed)


@functools.cache
def simulation(split: str) -> Simulation:
  """What a split's dialogues are made from: services, tables, scenarios, words."""
  known = {d["service"]: d for d in authored_services() if d["role"] in ("train", split)}
  services = schema(split)
  authored = _authored("scenarios.json")
  authored["scenarios"] = [
    s for s in authored["scenarios"] if all(i.partition(".")[0] in known for i in s["intents"])
  ]
  authored["links"] = [
    link
    for link in authored["links"]
    if all(link[end].partition(".")[0] in known for end in ("from", "to"))
  ]
  problems: list[str] = []
  scenarios = parse_scenarios(authored, services, "sample scenarios", problems)
  words = read_words(_templates(known), services, known, "sample templates", problems)
  if problems:
    raise SgdxError(
      "; ".join(problems),
      expected="scenarios and words that fit the sample's services",
      fix="correct them in sample/",
    )
  tables = {name: _table(services[name], data, split) for name, data in known.items()}
  transitions = parse_transitions(_authored("transitions.json"), "sample transitions")
  return Simulation(services, tables, scenarios, words, transitions)


def _authored(name: str) -> Any:
  return json.loads((importlib.resources.files(__package__) / name).read_text("utf-8"))


@functools.cache
def _files() -> dict[str, Any]:
  """File name -> function that makes its text."""
  files = {}
  for split in SPLITS:
    files[f"{split}/dialogues_001.json"] = functools.partial(_dialogue_text, split)
    for variant in VARIANTS:
      folder = "" if variant == ORIGINAL else f"sgd_x/data/{variant}/"
      if variant in PIVOTS:
        folder = f"back_translations/{variant}/"
      files[f"{folder}{split}/schema.json"] = functools.partial(_schema_text, split, variant)
  return files


def _schema_text(split: str, variant: str) -> str:
  return json.dumps(schema(split, variant).to_json(), indent=2) + "\n"


@functools.cache  # train is 45 MB and takes seconds to generate
def _dialogue_text(split: str) -> str:
  return write_dialogues(dialogues(split))


def _text(data: Mapping[str, Any], variant: str) -> str:
  """The text of a variant; for a back-translation, the text translated back."""
  return data[variant][1] if variant in PIVOTS else data["versions"][VARIANTS.index(variant)]


def _service(data: Mapping[str, Any], variant: str) -> Service:
  slot_name = {s["name"]["versions"][0]: _text(s["name"], variant) for s in data["slots"]}
  slots = tuple(
    Slot(
      _text(s["name"], variant),
      _text(s["description"], variant),
      s["is_categorical"],
      tuple(s.get("possible_values", ())),
    )
    for s in data["slots"]
  )
  intents = tuple(
    Intent(
      _text(i["name"], variant),
      _text(i["description"], variant),
      i["is_transactional"],
      tuple(slot_name[s] for s in i["required_slots"]),
      {slot_name[s]: default for s, default in i["optional_slots"].items()},
      tuple(slot_name[s] for s in i["result_slots"]),
    )
    for i in data["intents"]
  )
  return Service(_service_name(data, variant), _text(data["description"], variant), slots, intents)


def _service_name(data: Mapping[str, Any], variant: str) -> str:
  """SGD-X appends the variant's digit; a back-translation translates the domain."""
  name = data["service"]
  if variant in PIVOTS:
    return f"{data['service_names'][variant]}_{name.rpartition('_')[2]}"
  return name if variant == ORIGINAL else name + variant.removeprefix("v")


def _templates(services: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
  """The authored words, in the format of a template file."""
  return {
    "services": {
      name: {
        "slots": {
          s["name"]["versions"][0]: {k: s[k] for k in ("noun", "tell", "ask", "say") if k in s}
          for s in data["slots"]
        },
        "intents": {
          i["name"]["versions"][0]: {k: i[k] for k in ("open", "do")} for i in data["intents"]
        },
      }
      for name, data in services.items()
    }
  }


def _table(service: Service, data: Mapping[str, Any], split: str) -> ServiceTable:
  """Draws a service's table; required search slots have few values, so that searches succeed."""
  rng = random.Random(f"{SEED}/{VERSION}/{split}/{service.name}")
  authored = dict(zip(service.slot_index, data["slots"], strict=True))
  searched = {s for i in service.intents if not i.is_transactional for s in i.required_slots}
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
  pool = parse_pool(spec, f"sample values {spec}")
  return [pool.draw(rng, rng.random() < HELD_OUT[split]) for _ in range(count)]
