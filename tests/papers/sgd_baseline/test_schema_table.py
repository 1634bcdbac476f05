"""Schema embedding tables: how vectors are computed, files, and what does not fit."""

import dataclasses

import numpy as np
import pytest
from places import FIXTURES

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgd_baseline import schema_table
from sgdx_t5x.spandst import states
from sgdx_t5x.spandst.encoder import BertConfig
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

BERT = FIXTURES / "hf_bert/bert"
TEXTS = (("a", "b c"), ("c", "a"), ("", "b"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
  file = tmp_path_factory.mktemp("bert") / "vocab.txt"
  file.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n")
  return WordPieceVocabulary(file, lower_case=True), *states.load(BERT)


@pytest.mark.long
def test_a_vector_is_the_first_hidden_state_of_two_texts(encoder):
  vocabulary, config, params = encoder
  found = schema_table.embed(TEXTS, vocabulary, config, params)
  for (first, second), vector in zip(TEXTS, found, strict=True):
    ids = vocabulary.encode_texts(first, second)
    sizes = [len(vocabulary.cut(text).ids) for text in (first, second)]
    types = np.repeat([0, 1], [sizes[0] + 2, sizes[1] + 1])
    hidden = states.Bert(config).apply({"params": params}, ids[None], types[None])
    np.testing.assert_allclose(vector, hidden[0, 0], atol=1e-5)
  assert np.abs(found[0] - found[1]).max() > 1e-3


def test_a_file_gives_the_table_back(tmp_path, encoder):
  vectors = schema_table.embed(TEXTS, *encoder)
  file = tmp_path / "table.npz"
  schema_table.write_table(schema_table.SchemaTable(TEXTS, vectors), file)
  found = schema_table.read_table(file)
  assert found.texts == TEXTS
  np.testing.assert_array_equal(found.vectors, vectors)
  assert [found.row(pair) for pair in TEXTS] == [1, 2, 3]
  with pytest.raises(SgdxError) as e:
    found.row(("a", "b"))
  assert str(file) in e.value.found
  assert "a | b c" in e.value.available
  assert "sgdx schema-embeddings" in e.value.fix
  wider = dataclasses.replace(encoder[1], emb_dim=64, num_heads=1)
  with pytest.raises(SgdxError) as e:
    schema_table.embedded(found, encoder[0], wider)
  assert f"width {vectors.shape[1]}" in e.value.found
  assert "width 64" in e.value.expected


@pytest.mark.parametrize("content", [b"", b"no zip", "array", "other", "uneven"])
def test_files_that_are_no_tables(content, tmp_path):
  file = tmp_path / "table.npz"
  if content == "array":
    with file.open("wb") as open_file:
      np.save(open_file, np.zeros(3))
  elif content == "other":
    np.savez(file, weights=np.zeros(3))
  elif content == "uneven":
    names = np.array(["a"])
    np.savez(file, first=names, second=names, vectors=np.zeros((2, 4), np.float32))
  else:
    file.write_bytes(content)
  with pytest.raises(SgdxError) as e:
    schema_table.read_table(file)
  assert str(file) in e.value.found
  with pytest.raises(SgdxError):
    schema_table.read_table(tmp_path / "missing.npz")


def test_texts_longer_than_the_positions(encoder):
  vocabulary, config, params = encoder
  config = dataclasses.replace(config, max_positions=6)
  with pytest.raises(SgdxError, match="texts of 7 tokens"):
    schema_table.embed([("a b", "a b")], vocabulary, config, params)


def test_vectors_of_a_random_encoder_tell_texts_apart(encoder):
  vocabulary = encoder[0]
  config = BertConfig(vocabulary.vocab_size, 16, 2, 1, 32, 64)
  table = schema_table.SchemaTable(TEXTS)
  table = schema_table.embedded(table, vocabulary, config)
  found = table.vectors
  np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
  np.testing.assert_allclose(found.std(axis=0), 1, atol=1e-4)
