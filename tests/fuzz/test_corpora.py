"""Every reader of files returns or raises an SgdxError in four parts, whatever is in the file.

10,000 damaged inputs for each reader, the same every time; SGDX_FUZZ_SEED=1 makes others, and a
failure prints how to repeat it alone. What a reader accepts, its users must be able to work with:
dialogues are scored and counted, scores are compared.
"""

import io
import json
import os
import zipfile

import boat_schema
import pytest
import tiny_corpus as tiny
from fuzzing import Document, damaged, run

from sgdx_t5x import metrics
from sgdx_t5x.corpus import statistics
from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.conversion import convert_dialogue, renamings
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import check_dialogue, read_dialogues, write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import check_aligned, load_schema, parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import gold_frames
from sgdx_t5x.variants.wording import wording

pytestmark = pytest.mark.long


class Memory:
  """A corpus in memory: file name -> content. See `data.sources.Source`."""

  origin = "memory"

  def __init__(self, files):
    self.files = files

  def names(self):
    return sorted(self.files)

  def read(self, name):
    return self.files[name]

  def checksums(self):
    return iter(())


def test_schemas():
  original = parse_schema(boat_schema.SCHEMA, "original")

  def read(data):
    schema = load_schema(data, "schema.json")
    check_aligned(original, schema)
    wording(original, schema)
    renamings(schema, original)

  run("schemas", Document(boat_schema.SCHEMA), read)


@pytest.fixture
def boats_in_memory():
  content = json.dumps(boat_schema.SCHEMA)
  return Corpus(Memory({"train/schema.json": content, "train/dialogues_001.json": ""}))


def test_dialogues(boats_in_memory):
  schema = boats_in_memory.schema("train")
  names = renamings(schema, schema)

  def read(data):
    boats_in_memory.source.files["train/dialogues_001.json"] = data
    found = list(boats_in_memory.dialogues("train", check_dialogue))
    gold = gold_frames(found)
    said = {g.frame_id: metrics.PredictedFrame(g.slot_values) for g in gold}
    metrics.score_frames(gold, said, schema, [])
    statistics.summarise(statistics.count(found), schema, schema, set())
    write_dialogues(convert_dialogue(d, names) for d in found)

  run("dialogues", Document([boat_schema.dialogue()]), read)


def test_dialogues_read_in_c_are_those_read_in_python(monkeypatch):
  """Read item by item, which says what is wrong, they are the same."""

  def refuse(*args, **kwargs):
    raise ValueError

  def outcome(data):
    try:
      # As JSON: nan is not equal to itself.
      return json.dumps([dialogue.to_json() for dialogue in read_dialogues(data, "file")]), None
    except SgdxError as e:
      return e.text, e

  def read(data):
    fast, error = outcome(data)
    with monkeypatch.context() as patch:
      patch.setattr("msgspec.json.decode", refuse)
      assert fast == outcome(data)[0]
    if error:
      raise error

  run("dialogues_twice", Document([boat_schema.dialogue()]), read)


def test_annotation(boats_in_memory):
  schema = boats_in_memory.schema("train")

  def read(data):
    boats_in_memory.source.files["train/dialogues_001.json"] = data
    list(boats_in_memory.dialogues("train", validate_annotation(schema, {})))

  run("annotation", Document([boat_schema.dialogue()]), read)


def read_corpus(path):
  corpus = open_corpus(path)
  corpus.checksum()
  assert corpus.name is not None
  for split in corpus.splits:
    for variant in corpus.variants:
      if corpus.has_schema(split, variant):
        corpus.schema(split, variant)
    list(corpus.dialogues(split))


def small_corpus(folder):
  """Writes a split of one dialogue with one variant: reading it is quick."""
  for variant, base in (("original", "train"), ("v1", "sgd_x/data/v1/train")):
    tiny.write_json(folder / base / "schema.json", tiny.schema(["Shops_1"], variant))
  states = [{"Shops_1": {"item": ["pen"]}}]
  tiny.write_json(folder / "train/dialogues_001.json", [tiny.dialogue("1_00000", states)])
  return folder


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")  # two members with one name
def test_archives(tmp_path, folder):
  root = small_corpus(tmp_path / "corpus")
  files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.json")}
  path = folder / "corpus.zip"
  path.touch()
  names = ("../x.json", "/x.json", "..\\x.json", "train/schema.json", "a/b/dev/schema.json",
           "train/dialogues_.json", "x" * 300 + ".json", "é\udc80.json",
           "dev/schema.json/")  # fmt: skip

  def make(rng):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", rng.choice((0, 8, 8, 12))) as archive:
      for name, data in files.items():
        what = rng.random()
        if what < 0.02:
          name = rng.choice(names)
        if what < 0.05:
          data = damaged(rng, data)
        if what < 0.97:
          archive.writestr(name.encode("utf-8", "replace").decode(), data)
    data = bytearray(content.getvalue())
    for _ in range(rng.choice((0, 1, 2, 8)) if rng.random() < 0.8 else 0):
      # Mostly in the list of members, at the end, and in the first member's header.
      at = rng.choice(
        (rng.randrange(60), len(data) - 1 - rng.randrange(600), rng.randrange(len(data)))
      )
      data[at] = rng.choice((0, 1, 255, rng.randrange(256), data[at] ^ 1))
    return bytes(damaged(rng, bytes(data)) if rng.random() < 0.1 else data)

  def read(data):
    path.write_bytes(data)
    read_corpus(path)

  run("archives", make, read, folder)


def test_folders(tmp_path, folder):
  """Damages files, and puts folders, links and pipes in their place."""
  root = small_corpus(folder / "corpus")
  present = sorted(p.relative_to(root).as_posix() for p in root.rglob("*"))
  contents = {name: (root / name).read_bytes() for name in present if (root / name).is_file()}
  added = ("train/dialogues_x.json", "train/schema.json.json", "dev/schema.json",
           "dialogues_1.json", "train/dialogues_\udc80.json", "x\ny/train/schema.json",
           "test/dialogues_000.json")  # fmt: skip

  def make(rng):
    name = rng.choice((*contents, *contents, *added, "train", "test", "sgd_x"))
    what = rng.choice(("folder", "link", "loop", "gone", "pipe", *["content"] * 8))
    data = damaged(rng, rng.choice(list(contents.values())))
    return name, what, data

  def read(case):
    name, what, data = case
    path, kept = root / name, None
    if path.exists():
      kept = folder / "kept"
      path.rename(kept)
    above = next(p for p in path.parents if p.exists())
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
      if what == "folder":
        path.mkdir()
      elif what in ("link", "loop"):
        path.symlink_to("nothing" if what == "link" else path.name)
      elif what == "pipe":
        os.mkfifo(path)
      elif what == "content":
        path.write_bytes(data)
      read_corpus(root)
    finally:
      if path.is_dir():
        path.rmdir()
      elif what != "gone":
        path.unlink()
      for parent in path.parents:
        if parent == above:
          break
        parent.rmdir()
      if kept:
        kept.rename(path)

  run("folders", make, read, folder)
