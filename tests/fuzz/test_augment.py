"""The reader of paraphrases: see test_corpora.py."""

import json

import boat_schema
import pytest
from fuzzing import Document, run

from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.variants import compose
from sgdx_t5x.variants.wording import wording

pytestmark = pytest.mark.long


def test_paraphrases(folder):
  schema = parse_schema(boat_schema.SCHEMA, "boats")
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
