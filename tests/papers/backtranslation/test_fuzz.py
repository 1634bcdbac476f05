"""Readers of translations: see tests/fuzz/test_corpora.py."""

import json

import boat_schema
import pytest
from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
from fuzzing import Document, run

from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.papers.backtranslation.backtranslate import back_translate
from sgdx_t5x.papers.backtranslation.text_provider import TextProvider
from sgdx_t5x.papers.backtranslation.translations import TABLE_FORMAT, open_table
from sgdx_t5x.variants.wording import wording

pytestmark = pytest.mark.long


@pytest.fixture
def trams():
  return parse_schema(boat_schema.SCHEMA[1:], "trams")


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
    back_translate(trams, table, "zh")

  run("translation_tables", Document([header, *rows], lines=True), read, folder)


class _Echo:
  """A translator that returns texts unchanged."""

  name, batch_texts = "echo", 9

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
    provider.back_translate(items, "zh", lambda *_: None)

  run("translation_caches", make, read, folder)
