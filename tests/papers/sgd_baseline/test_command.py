"""`sgdx schema-embeddings`, with a tiny random BERT."""

import json
import shutil

import pytest
from commands import assert_four_parts, sgdx
from places import FIXTURES
from tiny_corpus import write_corpus

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.sgd_baseline import schema_table
from sgdx_t5x.papers.sgd_baseline.baseline_features import BaselineStyle, element_texts

PIECES = "[PAD] [UNK] [CLS] [SEP] like said v1 v2 v3 v4 v5 original amount kind to area intent _"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
  """A folder with a corpus, and a BERT whose vocabulary has some of its words."""
  folder = tmp_path_factory.mktemp("embeddings")
  write_corpus(folder / "corpus")
  shutil.copytree(FIXTURES / "hf_bert/bert", folder / "bert")
  (folder / "bert/vocab.txt").write_text("\n".join(PIECES.split()))
  (folder / "bert/tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
  return folder


def embed(place, *more, encoder="bert"):
  given = ("--encoder", place / encoder, "--corpus", place / "corpus", "--out", place / "x.npz")
  return sgdx("schema-embeddings", *given, *more)


def test_all_that_tasks_show_is_embedded(place, capsys):
  assert embed(place) == 0
  out = capsys.readouterr().out
  assert "width 24" in out
  assert f"export SGDX_SCHEMA_EMBEDDINGS={place}" in out
  table, corpus = schema_table.read_table(place / "x.npz"), open_corpus(place / "corpus")
  for split in corpus.splits:
    for variant in ("original", "v1", "v5"):
      for pair in element_texts(corpus.schema(split, variant), BaselineStyle()):
        assert table.row(pair) > 0
  assert len(set(table.texts)) == len(table.texts) == len(table.vectors)


def test_some_variants_and_descriptions_alone(place, capsys):
  assert embed(place, "--variant", "v2", "--descriptions-only") == 0
  assert "BaselineStyle(names=False)" in capsys.readouterr().out
  found = schema_table.read_table(place / "x.npz")
  corpus, style = open_corpus(place / "corpus"), BaselineStyle(names=False)
  expected = {
    pair for split in corpus.splits for pair in element_texts(corpus.schema(split, "v2"), style)
  }
  assert set(found.texts) == expected


def test_what_cannot_be_embedded(place, capsys):
  (place / "x.npz").unlink(missing_ok=True)
  assert embed(place, encoder="nothing") == 1
  assert_four_parts(capsys.readouterr().err, "nothing")
  assert embed(place, "--variant", "v9") == 1
  assert_four_parts(capsys.readouterr().err, "v9", "v5")
  assert not (place / "x.npz").exists()
