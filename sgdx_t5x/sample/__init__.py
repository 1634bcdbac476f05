"""The embedded corpus: a small mirror of SGD-X, every word of it written here.

`services/*.json` holds one service per file: its texts in nine wordings (original, five
variants by distance, three back-translations with their pivot texts), and the words and
values from which the simulator makes dialogues. Nothing is stored twice: schemas
and dialogues are made from these files when they are read, the same in every process.
"""

import functools
import hashlib
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus import PIVOTS, SPLITS
from sgdx_t5x.dialogue import write_dialogues
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.schema import Intent, Schema, Service, Slot, parse_schema
from sgdx_t5x.simulator.generate import Simulation, simulate
from sgdx_t5x.simulator.surface import SlotWords, Words
from sgdx_t5x.simulator.values import parse_pool
from sgdx_t5x.variants import ORIGINAL, SGDX_VARIANTS

VERSION = "1"  # raise it when a dialogue of the sample changes
SEED = "sgdx-sample"
DIALOGUES_PER_SERVICE = {"train": 600, "dev": 12, "test": 16}
# Share of free values that no train dialogue holds; SGD's own test has many such too.
HELD_OUT = {"train": 0.0, "dev": 0.3, "test": 0.3}
VERSIONS = (ORIGINAL, *SGDX_VARIANTS, *PIVOTS)


class SampleSource:
  """The sample as a corpus source: files of the official layout, made when read."""

  origin = "sample"

  def names(self) -> list[str]:
    """All file names, sorted."""
    return sorted(_files())

  def read(self, name: str) -> bytes:
    """Makes one file."""
    return _files()[name]().encode()

  def checksums(self) -> Iterator[tuple[str, int]]:
    """Stands for all files: the service files, and dialogues that show what is made of them."""
    digest = hashlib.sha256(f"{VERSION} {SEED} {DIALOGUES_PER_SERVICE} {HELD_OUT}".encode())
    for data in authored_services():
      digest.update(json.dumps(data, sort_keys=True).encode())
    for split in ("dev", "test"):  # train has too many to make each time
      digest.update(_dialogue_text(split).encode())
    yield "sample", int.from_bytes(digest.digest()[:4], "big")


@functools.cache
def authored_services() -> tuple[Mapping[str, Any], ...]:
  """The decoded service files: first those of train, then dev's, then test's own."""
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


def schema(split: str, version: str = ORIGINAL) -> Schema:
  """Returns a split's schema: train's services, then the split's own unseen ones."""
  services = [
    _service(data, version) for data in authored_services() if data["role"] in ("train", split)
  ]
  origin = f"sample {version} {split}"
  return parse_schema([service.to_json() for service in services], origin)


def dialogues(split: str):
  """Yields a split's dialogues, the same number for every service."""
  simulations = [
    _simulation(data) for data in authored_services() if data["role"] in ("train", split)
  ]
  return simulate(
    simulations,
    num_dialogues=DIALOGUES_PER_SERVICE[split] * len(simulations),
    seed=f"{SEED}/{VERSION}/{split}",
    held_out=HELD_OUT[split],
  )


@functools.cache
def _files() -> dict[str, Any]:
  """File name -> function that makes its text."""
  files = {}
  for split in SPLITS:
    files[f"{split}/dialogues_001.json"] = functools.partial(_dialogue_text, split)
    for version in VERSIONS:
      folder = "" if version == ORIGINAL else f"sgd_x/data/{version}/"
      if version in PIVOTS:
        folder = f"back_translations/{version}/"
      files[f"{folder}{split}/schema.json"] = functools.partial(_schema_text, split, version)
  return files


def _schema_text(split: str, version: str) -> str:
  return json.dumps(schema(split, version).to_json(), indent=2) + "\n"


def _dialogue_text(split: str) -> str:
  return write_dialogues(dialogues(split))


def _text(data: Mapping[str, Any], version: str) -> str:
  """One wording; of a back-translation, what came out of the pivot."""
  return data[version][1] if version in PIVOTS else data["versions"][VERSIONS.index(version)]


def _service(data: Mapping[str, Any], version: str) -> Service:
  slot_name = {s["name"]["versions"][0]: _text(s["name"], version) for s in data["slots"]}
  slots = tuple(
    Slot(
      _text(s["name"], version),
      _text(s["description"], version),
      s["is_categorical"],
      tuple(s.get("possible_values", ())),
    )
    for s in data["slots"]
  )
  intents = tuple(
    Intent(
      _text(i["name"], version),
      _text(i["description"], version),
      i["is_transactional"],
      tuple(slot_name[s] for s in i["required_slots"]),
      {slot_name[s]: default for s, default in i["optional_slots"].items()},
      tuple(slot_name[s] for s in i["result_slots"]),
    )
    for i in data["intents"]
  )
  return Service(_service_name(data, version), _text(data["description"], version), slots, intents)


def _service_name(data: Mapping[str, Any], version: str) -> str:
  """SGD-X appends the variant's digit; a back-translation words the domain anew."""
  name = data["service"]
  if version in PIVOTS:
    return f"{data['service_names'][version]}_{name.rpartition('_')[2]}"
  return name if version == ORIGINAL else name + version.removeprefix("v")


def _simulation(data: Mapping[str, Any]) -> Simulation:
  service = _service(data, ORIGINAL)
  pools, words = {}, {}
  for slot, s in zip(service.slots, data["slots"], strict=True):
    if not slot.is_categorical:
      pools[slot.name] = parse_pool(s["values"], f"sample {service.name}.{slot.name}")
    words[slot.name] = SlotWords(
      tuple(s["noun"]), tuple(s["tell"]), tuple(s["ask"]), s.get("say", {})
    )
  open_words = {i["name"]["versions"][0]: tuple(i["open"]) for i in data["intents"]}
  return Simulation(service, pools, Words(words, open_words))
