"""Readers of perturbed sets, checks and CheckDST rows: see tests/fuzz/test_corpora.py."""

import itertools
import json

import pytest
from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
from fuzzing import Document, run
from perturbed import on_split, sample_dialogues, sample_split
from planted import write_planted

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst import metrics_checkdst
from sgdx_t5x.papers.checkdst.changes import recorded_changes
from sgdx_t5x.papers.checkdst.checks import check, check_report, checkdst_rows, files
from sgdx_t5x.papers.checkdst.checks.sets import open_sets
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.write import write_perturbed

pytestmark = pytest.mark.long
NAMES = tuple(KINDS)


def perturb(split, kind, folder):
  write_perturbed(KINDS[kind](split, 0), split, 0, folder / kind)
  return open_corpus(folder / kind)


@pytest.fixture
def split(tmp_path):
  """A few of the sample's dialogues, which swap utterances for `pi`."""
  source = sample_split()
  turns = [data for data in sample_dialogues() if data["services"] == ["Ferries_1"]]
  return on_split(turns[:4], source, tmp_path / "original")


def test_manifests(folder, split):
  for kind in NAMES:
    perturb(split, kind, folder)
  paths = [folder / kind / "test/perturbation.json" for kind in NAMES]
  makers = [Document(json.loads(path.read_text())) for path in paths]

  def make(rng):
    place = rng.randrange(len(makers))
    return place % len(NAMES), makers[place](rng)

  def read(case):
    place, content = case
    paths[place].write_bytes(content)
    corpus = open_corpus(folder / NAMES[place])
    if manifest := corpus.manifest("test"):
      manifest.text()
    for found in open_sets(split.corpus, "test", {"mine": corpus}).values():
      found.replaced({})
      assert isinstance(found.kind, str)

  run("manifests", make, read, folder)


def test_changes(folder, split):
  corpora = [perturb(split, kind, folder) for kind in NAMES]
  paths = [folder / kind / "test/changes.jsonl" for kind in NAMES]
  makers = [Document(list(map(json.loads, p.read_text().splitlines())), lines=True) for p in paths]

  def make(rng):
    place = rng.randrange(len(NAMES))
    return place, makers[place](rng)

  def read(case):
    place, content = case
    paths[place].write_bytes(content)
    recorded_changes(corpora[place], "test")

  run("changes", make, read, folder)


@pytest.fixture
def checked(tmp_path, folder, split):
  """Writes a check of a frozen tracker. Returns paths of the report and the counts per frame."""
  ned = perturb(split, "ned", tmp_path)
  sets = {"original": split.corpus, "ned": ned}
  predictions = {
    k: write_planted(tmp_path / f"p_{k}", "frozen", split.corpus, c) for k, c in sets.items()
  }
  found = check(
    split.corpus, "test", {"ned": ned}, predictions, failures=True, bootstrap_samples=100
  )
  paths = folder / "check.json", folder / "check.jsonl"
  files.save(check_report(found), found, *paths)
  return paths


def test_checks(folder, checked):
  path, _ = checked
  count = itertools.count()

  def read(data):
    path.write_bytes(data)
    if next(count) % 10:
      files.read_report(path)
    else:
      files.read_check(path)

  run("checks", Document(json.loads(path.read_text())), read, folder)


def test_checkdst_rows(folder):
  path, other, gold = folder / "rows.jsonl", folder / "other.jsonl", folder / "gold.json"
  rows = [
    {"dial_id": "a-0", "context": "the inn", "pred": "hotel name inn", "gold": "hotel name inn"},
    {"dial_id": "a-1", "context": "to the bay", "pred": None, "gold": "taxi destination bay"},
  ]
  other.write_text("".join(json.dumps(row) + "\n" for row in rows))
  gold.write_text(json.dumps({"a-0": {"need_coref": False}, "a-1": {"need_coref": True}}))
  needs = Document(json.loads(gold.read_text()))
  makers = (Document(rows, lines=True), needs)
  path.touch()

  def make(rng):
    place = rng.randrange(2)
    return place, makers[place](rng)

  def read(case):
    place, content = case
    (gold if place else path).write_bytes(content)
    (path if place else gold).write_bytes((other if place else needs_file).read_bytes())
    named = {"orig": checkdst_rows.read_rows(other), "NED": checkdst_rows.read_rows(path)}
    found = metrics_checkdst.results(named, checkdst_rows.read_gold(gold))
    checkdst_rows.layout(found, list(named))

  needs_file = folder / "needs.json"
  needs_file.write_bytes(gold.read_bytes())
  run("checkdst_rows", make, read, folder)
