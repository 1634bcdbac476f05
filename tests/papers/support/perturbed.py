"""Perturbed dialogues of the sample for tests, made in memory or written once per session."""

import collections
import functools
import json
import pathlib

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.split import Split, changed
from sgdx_t5x.papers.checkdst.write import write_perturbed

# Every kind, with every option.
WAYS = (
  ("ned", {}),
  ("ned", {"entities": "characters"}),
  ("ned", {"entities": "names"}),
  ("pi", {}),
  ("pi", {"provider": "templates"}),
  ("sdi", {}),
  ("vs", {}),
)
WAY_NAMES = ["-".join([kind, *map(str, options.values())]) for kind, options in WAYS]


@functools.cache
def sample_split(name: str = "test") -> Split:
  return Split(open_corpus("sample"), name)


@functools.cache
def _sample_text() -> str:
  return json.dumps(list(sample_split().dialogues()))


def sample_dialogues() -> list[dict]:
  """The decoded dialogues of the sample's test split; callers may change them."""
  return json.loads(_sample_text())


def perturbed_sample(kind: str, options: dict, seed: int = 0):
  """Returns perturber, perturbed dialogues, lines per dialogue, counts."""
  perturber = KINDS[kind](sample_split(), seed, **options)
  counts, dialogues, lines = collections.Counter(), sample_dialogues(), {}
  for data in dialogues:
    if found := changed(perturber, data, counts):
      lines[data["dialogue_id"]] = found
  return perturber, dialogues, lines, counts


def write_sample(folder: pathlib.Path, kind: str, seed: int = 0, split: str = "test", **options):
  """Writes the perturbed sample to a folder. Returns the folder."""
  source = sample_split(split)
  perturber = KINDS[kind](source, seed, **options)
  write_perturbed(perturber, source, seed, folder)
  return folder


def on_split(data: list[dict], schema_of: Split, tmp_path: pathlib.Path) -> Split:
  """Returns a split of these dialogues, with the schemas of another split's corpus."""
  for name in ("train", "test"):
    (tmp_path / name).mkdir(parents=True, exist_ok=True)
    text = json.dumps(schema_of.corpus.schema(name).to_json())
    (tmp_path / name / "schema.json").write_text(text)
  (tmp_path / "test/dialogues_001.json").write_text(json.dumps(data))
  return Split(open_corpus(tmp_path), "test")
