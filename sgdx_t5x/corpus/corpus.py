"""Corpus: the splits, schemas and variants of a directory, an archive or the sample.

The layout is that of the official archive: `{train,dev,test}/schema.json` and
`dialogues_*.json`, and `sgd_x/data/v1..v5/{split}/schema.json`. Back-translated schemas,
which the paper's authors did not release, are read from
`back_translations/{zh,ja,ko}/{split}/schema.json` and are called bt_zh, bt_ja, bt_ko.
"""

import dataclasses
import functools
import hashlib
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import overload

from sgdx_t5x.corpus.dialogue import Dialogue, check_dialogue, check_ids, read_dialogues
from sgdx_t5x.corpus.manifest import FORMAT, Manifest
from sgdx_t5x.corpus.schema import Schema, check_aligned, check_slot_names, load_schema
from sgdx_t5x.corpus.sources import DOWNLOAD_HINT, Source
from sgdx_t5x.corpus.variants import (
  ALL_VARIANTS,
  BACK_TRANSLATIONS,
  ORIGINAL,
  SPLITS,
  tagged,
  untagged,
)
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import converted, decode_json

# Dialogues per split of the published SGD (SGD paper, Table 1; test as released).
PUBLISHED_DIALOGUES = {"train": 16_142, "dev": 2_482, "test": 4_201}
_PUBLISHED_FILES = {"train": 127, "dev": 20, "test": 34}  # of dialogues
_PUBLISHED_SERVICES = {"train": 26, "dev": 17, "test": 21}
_KNOWN_BY = {"train": "RideSharing_2", "dev": "Hotels_4", "test": "Payment_1"}  # a service of each
# The splits of the sample. Its services are SGD's neither in number nor by name.
_SAMPLE_SERVICES, _SAMPLE_KNOWN_BY = {"train": 12, "dev": 14, "test": 16}, "Ferries_1"
Check = Callable[[Dialogue, Schema, str], None]  # of a dialogue, from a file; raises SgdxError
SIMULATION = "{split}/simulation.json"  # how a program made a split; SGD's have none
PERTURBATION = "{split}/perturbation.json"  # how a split's dialogues were perturbed


class Corpus:
  """A data set in the layout of the official archive.

  Attributes:
    origin: path it was opened from, or "sample".
    splits: splits present, of train, dev, test.
    variants: schema variants present, `original` first.
    manifest: function that returns how a split was perturbed; None if it was not.
  """

  def __init__(self, source: Source):
    """Args: source, where the files are."""
    self.source, self.origin = source, source.origin
    self._names = dict.fromkeys(source.names())  # sorted, and fast to look up
    self.splits = tuple(split for split in SPLITS if self.has_schema(split, ORIGINAL))
    variants = []  # a variant may lack some splits
    for variant in ALL_VARIANTS:
      if any(self.has_schema(split, variant) for split in self.splits):
        variants.append(variant)
    self.variants = tuple(variants)
    self._schemas: dict[tuple[str, str], Schema] = {}
    self.manifest = functools.cache(self._read_manifest)

  def __repr__(self) -> str:
    splits, variants = ", ".join(self.splits), ", ".join(self.variants)
    return f"<Corpus {self.origin}: {splits}; {variants}>"

  def __getitem__(self, split: str) -> "Split":
    """Returns the dialogues of a split: `corpus["test"]`. Raises SgdxError if there is none."""
    self._check_split(split)
    return Split(self, split)

  def __iter__(self) -> Iterator[str]:
    return iter(self.splits)

  @functools.cached_property
  def name(self) -> str:
    """Short name for tables and signatures: "sgd" if its services are SGD's, else the file's.

    Published figures, tasks and gin files belong to the names "sgd" and "sample": a file of that
    name with other services is called "own_sgd". A perturbed corpus has its kinds of perturbation
    appended: "sgd+ned".
    """
    manifests = [manifest for manifest in map(self.manifest, self.splits) if manifest]
    if manifests:
      return "+".join([manifests[0].of["corpus"], *dict.fromkeys(x.kind for x in manifests)])
    first_split, own_name = self.splits[0], ""
    if SIMULATION.format(split=first_split) not in self._names:
      services = self.schema(first_split).names
      if len(services) == _PUBLISHED_SERVICES[first_split] and _KNOWN_BY[first_split] in services:
        return "sgd"
      if len(services) == _SAMPLE_SERVICES[first_split] and _SAMPLE_KNOWN_BY in services:
        own_name = "sample"
    path = pathlib.Path(self.origin).resolve()
    name = path.stem if path.is_file() else path.name  # of a folder "ned.seed1", all of it
    # Fields of a signature end at "|", its line at "\n"; bytes that are not UTF-8 are surrogates.
    name = re.sub(r"[|\x00-\x1f\x7f-\x9f\ud800-\udfff]", "_", name)
    return f"own_{name}" if name in ("sgd", "sample") and name != own_name else name

  def perturbed(self, split: str) -> tuple[str, ...]:
    """Returns the kinds of perturbation of a split: one, or () for none."""
    manifest = self.manifest(split)
    return (manifest.kind,) if manifest else ()

  def check_kinds(self, split: str, variant: str) -> None:
    """Refuses "ned" or "ned+v3" of a split whose dialogues are not perturbed so."""
    kinds, own_kinds = untagged(variant)[0], self.perturbed(split)
    if kinds and kinds != own_kinds:
      raise SgdxError(
        f"variant {variant!r} of {self.origin}, whose {split} is not perturbed so",
        expected="a corpus with such dialogues, or a variant of the schemas",
        available=f"dialogues perturbed by {'+'.join(own_kinds)}"
        if own_kinds
        else "dialogues as they were",
        fix="pass the perturbed corpus as --corpus",
      )

  def name_in_ids(self, split: str, variant: str) -> str:
    """Returns a variant's name in ids: "ned+v3" for v3 of a split that is perturbed by ned.

    Args: variant, its name, alone or as in ids. Raises SgdxError: see `check_kinds`.
    """
    self.check_kinds(split, variant)
    return tagged(self.perturbed(split), untagged(variant)[1])

  def _read_manifest(self, split: str) -> Manifest | None:
    name = PERTURBATION.format(split=split)
    if name not in self._names:
      return None
    place, fix = f"{self.origin}: {name}", "perturb the original again"
    expected = f"a manifest of a perturbed corpus, format {FORMAT}"
    data = decode_json(self.source.read(name), place, expected, fix)
    return converted(data, Manifest, place, expected, fix)

  def schema(self, split: str, variant: str = ORIGINAL) -> Schema:
    """Returns a split's schema, checked to align with the original.

    Raises:
      SgdxError: unknown split or variant, a broken file, or a schema that does not align.
    """
    key = (split, variant)
    if key not in self._schemas:
      path = schema_path(variant, split)
      if path not in self._names:
        self._check_split(split)
        raise SgdxError(
          f"{self.origin}: no schema of variant {variant!r} for split {split!r}",
          expected=f"a file {path}",
          available=", ".join(self.variants),
          fix=f"choose one of them; SGD-X is part of the official archive: {DOWNLOAD_HINT}",
        )
      schema = load_schema(self.source.read(path), f"{self.origin}: {path}")
      if variant == ORIGINAL:  # in whose names ids are
        check_slot_names(schema)
      else:
        check_aligned(self.schema(split), schema)
      self._schemas[key] = schema
    return self._schemas[key]

  def has(self, name: str) -> bool:
    """Whether the corpus has a file of that name, relative to its root."""
    return name in self._names

  def has_schema(self, split: str, variant: str) -> bool:
    """Whether the corpus has a schema of that variant for that split."""
    return schema_path(variant, split) in self._names

  def dialogues(self, split: str, check: Check = check_dialogue) -> Iterator[Dialogue]:
    """Yields a split's dialogues (original names), each checked against its schema.

    Args:
      check: replaces the default one, which raises SgdxError, as do two dialogues or frames that
        would have the same id.
    """
    schema, ids = self.schema(split), set[str]()
    last_only = self.scores_last_turns(split)
    for name in self.dialogue_files(split):
      origin = f"{self.origin}: {name}"
      for dialogue in read_dialogues(self.source.read(name), origin):
        dialogue = dataclasses.replace(dialogue, last_only=True) if last_only else dialogue
        check(dialogue, schema, origin)
        if check is check_dialogue:  # another check has rules for ids of its own, or none
          check_ids(dialogue, ids, origin)
        ids.add(dialogue.dialogue_id)
        yield dialogue

  def scores_last_turns(self, split: str) -> bool:
    """Whether only each dialogue's last turn is scored, as of counterfactuals."""
    manifest = self.manifest(split)
    return manifest is not None and manifest.scores_last_turns

  def dialogue_files(self, split: str) -> list[str]:
    """Names of a split's dialogue files, in order."""
    self._check_split(split)
    start = f"{split}/dialogues_"
    return [n for n in self._names if n.startswith(start) and "/" not in n[len(start) :]]

  def file_counts(self) -> str:
    """Dialogue files per split, for errors: "train: 127 files, dev: 20 files"."""
    return ", ".join(f"{split}: {len(self.dialogue_files(split))} files" for split in self.splits)

  def is_complete(self, split: str, num_dialogues: int) -> bool:
    """Whether a split has as many dialogues as were published; True if never published."""
    if manifest := self.manifest(split):
      return manifest.complete and num_dialogues == manifest.counts["dialogues"]
    if len(self.schema(split)) != _PUBLISHED_SERVICES[split] or self.name != "sgd":
      return True
    return num_dialogues == PUBLISHED_DIALOGUES[split]

  def part(self, split: str, num_dialogues: int) -> str:
    """Returns "2,921 of the 4,201 published dialogues"; only of SGD it is known how many."""
    if self.name == "sgd":
      return f"{num_dialogues:,} of the {PUBLISHED_DIALOGUES[split]:,} published dialogues"
    return f"{num_dialogues:,} dialogues, which are not all"

  def expected_dialogues(self, split: str) -> int | None:
    """Number of a split's dialogues, for progress bars; None if unknown before reading them all."""
    if manifest := self.manifest(split):
      return int(manifest.counts["dialogues"])
    if self.name != "sgd" or len(self.dialogue_files(split)) != _PUBLISHED_FILES[split]:
      return None
    return PUBLISHED_DIALOGUES[split]

  def seen_services(self, split: str) -> frozenset[str]:
    """Services of a split that are also in train's schema, by their original names."""
    if "train" not in self.splits:
      raise SgdxError(
        f"{self.origin}: no train/schema.json",
        expected=f"train's schema, which determines the seen and unseen services of {split}",
        available=", ".join(self.splits),
        fix="copy the official train/schema.json there, or write [] into it if no service of yours "
        "is in the training data; train's dialogues are not needed",
      )
    return frozenset(self.schema(split).names).intersection(self.schema("train").names)

  def checksum(self) -> str:
    """16 hex digits over names and contents of schemas and dialogues; zip and folder agree."""
    return self._checksum

  @functools.cached_property
  def _checksum(self) -> str:  # cached: reads the whole corpus, or makes the sample
    digest = hashlib.sha256()
    for name, crc in sorted(self.source.checksums()):
      digest.update(f"{name} {crc:08x}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]

  def _check_split(self, split: str) -> None:
    if split not in self.splits:
      raise SgdxError(
        f"{self.origin}: no split {split!r}",
        expected="a split of this corpus",
        available=", ".join(self.splits),
        fix="choose one of them",
      )


class Split(Sequence[Dialogue]):
  """The dialogues of a split, in order; all are read and checked when the first is asked for."""

  def __init__(self, corpus: Corpus, name: str):
    """Args: corpus; name, one of its splits."""
    self.corpus, self.name = corpus, name

  def __repr__(self) -> str:
    return f"<Split {self.name} of {self.corpus.origin}>"

  def __len__(self) -> int:
    return len(self._dialogues)

  @overload
  def __getitem__(self, place: int | str) -> Dialogue: ...

  @overload
  def __getitem__(self, place: slice) -> tuple[Dialogue, ...]: ...

  def __getitem__(self, place: int | str | slice) -> Dialogue | tuple[Dialogue, ...]:
    """Returns a dialogue by its position or id, or several by a slice.

    Raises:
      IndexError: no such position.
      SgdxError: no such id.
    """
    if not isinstance(place, str):
      return self._dialogues[place]
    if place not in self._positions:
      raise SgdxError(
        f"{self.corpus.origin}: no dialogue {place!r} in {self.name}",
        expected="the id of a dialogue of this split",
        available=nearest(place, list(self._positions)[:1000]),
        fix="correct the id; ids repeat between splits",
      )
    return self._dialogues[self._positions[place]]

  @functools.cached_property
  def _dialogues(self) -> tuple[Dialogue, ...]:
    return tuple(self.corpus.dialogues(self.name))

  @functools.cached_property
  def _positions(self) -> dict[str, int]:
    return {dialogue.dialogue_id: i for i, dialogue in enumerate(self._dialogues)}


def schema_path(variant: str, split: str) -> str:
  """Returns the path of a variant's schema in the layout."""
  if variant == ORIGINAL:
    return f"{split}/schema.json"
  if variant in BACK_TRANSLATIONS:
    return f"back_translations/{variant.removeprefix('bt_')}/{split}/schema.json"
  return f"sgd_x/data/{variant}/{split}/schema.json"


@dataclasses.dataclass(frozen=True)
class SplitCounts:
  """The sizes of a split; a frame is a (dialogue, user turn, service)."""

  dialogues: int
  user_turns: int
  frames: int


def count(dialogues: Iterable[Dialogue]) -> SplitCounts:
  """Returns the sizes of what it reads: all dialogues of a split."""
  number = turns = frames = 0
  for dialogue in dialogues:
    number += 1
    turn_of_each_frame = [turn for turn, _ in dialogue.user_frames()]
    turns += len(set(turn_of_each_frame))
    frames += len(turn_of_each_frame)
  return SplitCounts(number, turns, frames)


def check_schemas(corpus: Corpus) -> Mapping[str, int]:
  """Reads every schema present and checks that it aligns. Returns service counts per variant."""
  services: dict[str, int] = dict.fromkeys(corpus.variants, 0)
  for variant in corpus.variants:
    for split in corpus.splits:
      if corpus.has_schema(split, variant):
        services[variant] += len(corpus.schema(split, variant))
  return services
