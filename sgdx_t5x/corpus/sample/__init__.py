"""The embedded corpus: a small counterpart of SGD-X, written entirely for this project.

`services/*.json` holds one service per file: its texts in nine variants (original, v1 to
v5 by distance, three back-translations with their pivot texts), from which schemas are made when
read, and the words and values from which a simulator made the dialogues. Those are stored
compressed, byte for byte as it made them (README.md).
"""

import functools
import hashlib
import importlib.resources
import json
import lzma
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.corpus import schema_path
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.corpus.variants import ORIGINAL, PIVOTS, SGDX_VARIANTS, SPLITS

VERSION = "2"  # raise it when a dialogue of the sample changes
SEED = "sgdx-sample"
DIALOGUE_FILE = "dialogues_{split}.json.xz"  # in this folder
DIALOGUES = {"train": 4000, "dev": 100, "test": 160}
VARIANTS = (ORIGINAL, *SGDX_VARIANTS, *PIVOTS)


class SampleSource:
  """The sample as a corpus source: files in the official layout, decompressed or made when read."""

  origin = "sample"

  def names(self) -> list[str]:
    """All file names, sorted."""
    return sorted(_files())

  def read(self, name: str) -> bytes:
    """Returns one file."""
    return _files()[name]().encode()

  def checksums(self) -> Iterator[tuple[str, int]]:
    """Yields one checksum for all files, over the service files and the dev and test dialogues."""
    digest = hashlib.sha256(f"{VERSION} {SEED} {DIALOGUES}".encode())
    for data in authored_services():
      digest.update(json.dumps(data, sort_keys=True).encode())
    for split in ("dev", "test"):  # train is made by the same rules
      digest.update(_dialogue_text(split).encode())
    yield "sample", int.from_bytes(digest.digest()[:4], "big")


@functools.cache
def authored_services() -> tuple[Mapping[str, Any], ...]:
  """The decoded service files: those of train, then those new in dev, then those new in test."""
  folder = importlib.resources.files(__package__) / "services"
  files = sorted(folder.iterdir(), key=lambda file: file.name)
  services = [json.loads(file.read_text("utf-8")) for file in files]
  return tuple(sorted(services, key=lambda data: SPLITS.index(data["role"])))


def schema(split: str, variant: str = ORIGINAL) -> Schema:
  """Returns a split's schema: train's services, then the split's own unseen ones."""
  services = [_service(x, variant) for x in authored_services() if x["role"] in ("train", split)]
  return Schema(services, f"sample {variant} {split}")


@functools.cache
def _files() -> dict[str, Any]:
  """File name -> function that makes its text."""
  files = {}
  for split in SPLITS:
    files[f"{split}/dialogues_001.json"] = functools.partial(_dialogue_text, split)
    for variant in VARIANTS:
      path = schema_path(f"bt_{variant}" if variant in PIVOTS else variant, split)
      files[path] = functools.partial(_schema_text, split, variant)
  return files


def _schema_text(split: str, variant: str) -> str:
  return json.dumps(schema(split, variant).to_json(), indent=2) + "\n"


@functools.cache  # train is 45 MB
def _dialogue_text(split: str) -> str:
  file = importlib.resources.files(__package__) / DIALOGUE_FILE.format(split=split)
  return lzma.decompress(file.read_bytes()).decode()


def _text(data: Mapping[str, Any], variant: str) -> str:
  """The text of a variant; for a back-translation, the text translated back."""
  return data[variant][1] if variant in PIVOTS else data["versions"][VARIANTS.index(variant)]


def _service(data: Mapping[str, Any], variant: str) -> Service:
  slots, intents = [], []
  new_names = {}  # of slots, by their original names, which the intents of the file use
  for slot in data["slots"]:
    name, description = _text(slot["name"], variant), _text(slot["description"], variant)
    new_names[slot["name"]["versions"][0]] = name
    values = tuple(slot.get("possible_values", ()))
    slots.append(Slot(name, description, slot["is_categorical"], values))
  for intent in data["intents"]:
    intents.append(
      Intent(
        _text(intent["name"], variant),
        _text(intent["description"], variant),
        intent["is_transactional"],
        tuple(new_names[name] for name in intent["required_slots"]),
        {new_names[name]: default for name, default in intent["optional_slots"].items()},
        tuple(new_names[name] for name in intent["result_slots"]),
      )
    )
  description = _text(data["description"], variant)
  return Service(_service_name(data, variant), description, tuple(slots), tuple(intents))


def _service_name(data: Mapping[str, Any], variant: str) -> str:
  """SGD-X appends the variant's digit; a back-translation translates the domain."""
  name = data["service"]
  if variant in PIVOTS:
    return f"{data['service_names'][variant]}_{name.rpartition('_')[2]}"
  return name if variant == ORIGINAL else name + variant.removeprefix("v")
