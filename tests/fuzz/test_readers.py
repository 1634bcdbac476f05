"""Every reader of files returns or raises an SgdxError in four parts, whatever is in the file.

10,000 damaged inputs for each reader, the same every time; SGDX_FUZZ_SEED=1 makes others, and a
failure prints how to repeat it alone. What a reader accepts, its users must be able to work with:
dialogues are scored and counted, a simulation makes a dialogue, scores are compared.
"""

import dataclasses
import gzip
import importlib.resources
import io
import itertools
import json
import os
import pathlib
import tempfile
import zipfile

import boats
import pytest
import tiny_corpus as tiny
from fuzzing import Document, Table, damaged, run

from sgdx_t5x import metrics, scoring
from sgdx_t5x.augment import compose
from sgdx_t5x.augment.backtranslate import back_translate
from sgdx_t5x.augment.providers.texts import TextProvider
from sgdx_t5x.augment.translation_table import TABLE_FORMAT, open_table
from sgdx_t5x.augment.wording import wording
from sgdx_t5x.corpora import open_corpus
from sgdx_t5x.data import statistics
from sgdx_t5x.data.annotation import validate_annotation
from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.dialogue import check_dialogue, write_dialogues
from sgdx_t5x.data.schema import check_aligned, load_schema, parse_schema
from sgdx_t5x.data.variants import convert_dialogue, renamings
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import decode_json
from sgdx_t5x.metrics import gold_frames
from sgdx_t5x.report import steps
from sgdx_t5x.report.runs import read_run
from sgdx_t5x.scoring import compare, score_files
from sgdx_t5x.scoring.predictions import read_all_variants, read_predictions
from sgdx_t5x.scoring.predictions.files import Selection
from sgdx_t5x.simulator.backend import read_table
from sgdx_t5x.simulator.generate import simulate
from sgdx_t5x.simulator.load import load_simulation
from sgdx_t5x.simulator.scenarios import parse_scenarios
from sgdx_t5x.simulator.starting_point import starting_point
from sgdx_t5x.simulator.templates import read_words
from sgdx_t5x.simulator.transitions import parse_transitions

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
  """The current folder, which stays empty."""
  folder = tmp_path / "current"
  folder.mkdir()
  monkeypatch.chdir(folder)
  yield
  assert not list(folder.iterdir())


@pytest.fixture
def folder():
  """A folder in memory where there is one: files are written and removed thousands of times."""
  memory = pathlib.Path("/dev/shm")
  where = memory if os.access(memory, os.W_OK) else None
  with tempfile.TemporaryDirectory(prefix="sgdx_fuzz_", dir=where) as made:
    yield pathlib.Path(made)


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


# --- corpora -------------------------------------------------------------------------------


def test_schemas():
  original = parse_schema(boats.SCHEMA, "original")
  number = itertools.count()

  def read(data):
    schema = load_schema(data, "schema.json")
    if next(number) % 40 == 0:  # 10 ms
      "".join(starting_point(schema).values()).encode()
    check_aligned(original, schema)
    wording(original, schema)
    renamings(schema, original)

  run("schemas", Document(boats.SCHEMA), read)


@pytest.fixture
def dialogue():
  """A short dialogue with a search, a transaction and results."""
  made = list(simulate(boats.simulation((boats.FIND, boats.RENT)), numbers=range(40), seed="s"))
  return min(made, key=lambda d: len(d.turns)).to_json()


@pytest.fixture
def boats_in_memory():
  content = json.dumps(boats.SCHEMA)
  return Corpus(Memory({"train/schema.json": content, "train/dialogues_001.json": ""}))


def test_dialogues(dialogue, boats_in_memory):
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

  run("dialogues", Document([dialogue]), read)


def test_annotation(dialogue, boats_in_memory):
  schema = boats_in_memory.schema("train")

  def read(data):
    boats_in_memory.source.files["train/dialogues_001.json"] = data
    list(boats_in_memory.dialogues("train", validate_annotation(schema, {})))

  run("annotation", Document([dialogue]), read)


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
  """A split of one dialogue with one variant: reading it is quick."""
  for variant, base in (("original", "train"), ("v1", "sgd_x/data/v1/train")):
    tiny.write_json(folder / base / "schema.json", tiny.schema(["Shops_1"], variant))
  states = [{"Shops_1": {"item": ["pen"]}}]
  tiny.write_json(folder / "train/dialogues_001.json", [tiny.dialogue("1_00000", states)])
  return folder


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
      # Mostly where members are listed, at the end, and in their first header.
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
  """Not only the files: also what else can have their names."""
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


# --- predictions ---------------------------------------------------------------------------


@pytest.fixture
def selection(tmp_path):
  corpus = open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  return Selection(corpus, "test", gold_frames(corpus.dialogues("test")))


def score(found, selection):
  states = {key: frame.slot_values for key, frame in found.frames.items()}
  metrics.score_frames(selection.gold, found.frames, selection.schema, ["Banks_1"])
  for frame in selection.gold:
    if frame.frame_id in states:
      service = selection.schema[frame.service]
      metrics.slot_failures(service, frame.slot_values, {"v3": states[frame.frame_id]})


def test_dialogue_predictions(folder, selection):
  path = folder / "dialogues_all.json"
  path.touch()
  some = dataclasses.replace(selection, allow_missing=True)
  data = [tiny.dialogue(name, turns, "v3") for name, turns in tiny.GOLD.items()]
  data[0]["turns"][2]["frames"][0]["slots"] = [{"slot": "amount", "start": 0, "exclusive_end": 4}]

  def read(data):
    path.write_bytes(data)
    score(read_predictions(path, "v3", selection if data[-2:] == b"]\n" else some), selection)

  run("dialogue_predictions", Document(data), read, folder)


def test_prediction_rows(folder, selection):
  path = folder / "p.jsonl"
  path.touch()
  some = dataclasses.replace(selection, allow_missing=True)
  infer = tiny.example_rows(tiny.GOLD, "v1")
  logger = [
    {"input": row["inputs"], "output": row["prediction"], "prediction": row["prediction"]}
    for row in tiny.example_rows(tiny.GOLD, "original")
  ]
  key = "example_id_pretokenized"
  plain = [{"id": r["inputs"][key], "prediction": r["prediction"]} for r in infer]
  rows = (Document(infer, True), Document(logger, True), Document(plain, True))

  def read(data):
    path.write_bytes(data)
    for found in read_all_variants(path, selection if len(data) % 2 else some).values():
      score(found, selection)

  run("prediction_rows", lambda rng: rng.choice(rows)(rng), read, folder)


# --- scores --------------------------------------------------------------------------------


@pytest.fixture
def scores(tmp_path, folder, selection):
  """A report and scores per frame, written by the scorer. Returns their paths."""
  nothing = {name: [{s: {} for s in t} for t in turns] for name, turns in tiny.GOLD.items()}
  rows = [row for v in ("original", "v1") for row in tiny.example_rows(nothing, v)]
  predictions = tiny.write_rows(tmp_path / "all.jsonl", rows)
  scored = scoring.score_predictions(
    selection.corpus, "test", {"all": predictions}, bootstrap_samples=100
  )
  paths = folder / "a.json", folder / "a.jsonl"
  score_files.save(scoring.score_report(scored), scored.table(paths[1]), *paths)
  return paths


def test_score_reports(folder, scores):
  path, zipped = scores[0], folder / "a.json.gz"
  data = json.loads(path.read_text())
  data["metrics"] = dict(list(data["metrics"].items())[:2])
  make = Document(data)
  zipped.touch()
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    if next(count) % 8:
      run = read_run("a", path)
    else:
      packed = gzip.compress(data, 1)
      zipped.write_bytes(packed if data[-2:] == b"}\n" else packed[: len(packed) // 2])
      run = read_run("a", zipped)
    assert run.signature is not None
    assert run.variants
    for rows in (run.rows, run.floor):
      for _, _, row in rows.items():
        for key in row.values:
          assert row.cell_with_interval(key) is not None

  run("score_reports", make, read, folder)


def test_frame_scores(folder, scores):
  path = scores[1]
  other = score_files.read_frames(path)
  make = Document([json.loads(line) for line in path.read_text().splitlines()], lines=True)
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    compared = compare.compare(score_files.read_frames(path), other, allow_missing=True)
    list(compare.flips(compared))
    if next(count) % 50 == 0:
      compare.comparison_report(compared, 100)

  run("frame_scores", make, read, folder)


def test_scores_while_training(folder):
  rows = [{"step": s, "jga": 0.5, "jga_orig": 0.25, "num_frames": 9} for s in (0, 100, 200)]
  path = folder / "t5dst_sgd-metrics.jsonl"
  path.touch()

  def read(data):
    path.write_bytes(data)
    steps.rows(folder)

  run("scores_while_training", Document(rows, lines=True), read, folder)


# --- augmentation --------------------------------------------------------------------------


def test_paraphrases(folder):
  schema = parse_schema(boats.SCHEMA, "boats")
  path = folder / "texts.jsonl"
  path.touch()
  rows = [
    {"element": e.key, "paraphrases": [f"{text} one", f"other {text}"]}
    for e, text in wording(schema).items()
  ][:12]

  def read(data):
    path.write_bytes(data)
    found = compose.read_paraphrases(path, [schema])
    made = compose.compose(schema, found, 2, fill=True, lemmas=lambda text: frozenset(text.split()))
    json.dumps([p.to_json() for p in made.placements], ensure_ascii=False).encode()

  run("paraphrases", Document(rows, lines=True), read, folder)


@pytest.fixture
def trams():
  return parse_schema(boats.SCHEMA[1:], "trams")


def test_translation_tables(folder, trams):
  path = folder / "texts.jsonl"
  path.touch()
  header = {"format": TABLE_FORMAT, "pivot": "zh", "provider": "me", "date": "2026-11-21"}
  rows = [
    {"element": e.key, "pivot_text": "車", "text": f"{text} back"}
    for e, text in wording(trams).items()
  ]

  def read(data):
    path.write_bytes(data)
    table = open_table([str(path)])
    table.check(["zh"])
    table.plan(list(wording(trams).items()), "zh")
    back_translate(trams, table, "zh")

  run("translation_tables", Document([header, *rows], lines=True), read, folder)


class _Echo:
  """A translator that gives texts back."""

  name, is_paid, batch_texts, batch_characters = "echo", False, 9, 900

  def check(self, pivots):
    pass

  def settings(self, source, target):
    return {}

  def label(self, pivot):
    return "echo"

  def translate(self, texts, source, target):
    return list(texts)


def test_translation_caches(folder, trams):
  items = list(wording(trams).items())
  provider = TextProvider(_Echo(), folder, lambda line: None)
  provider.back_translate(items, "zh", lambda *_: None)
  path = min(folder.glob("*-en-zh-*"))
  whole = {p: p.read_bytes() for p in folder.iterdir()}
  make = Document([json.loads(line) for line in path.read_text().splitlines()], lines=True)

  def read(data):
    for name, content in whole.items():
      name.write_bytes(data if name == path else content)
    provider.plan(items, "zh")
    provider.back_translate(items, "zh", lambda *_: None)

  run("translation_caches", make, read, folder)


# --- simulation ----------------------------------------------------------------------------


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
  """A part of the default ones."""
  path = importlib.resources.files("sgdx_t5x.simulator") / "transitions.json"
  return {part: dict(list(t.items())[:3]) for part, t in json.loads(path.read_text()).items()}


def fuzz_simulation(folder, name, make, read_one):
  """Reads one file by itself, and one in 40 together with the others, to simulate dialogues."""
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
