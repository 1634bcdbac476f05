"""A file of another kind that is given as a corpus."""

import os

import pytest
import tiny_corpus

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError


def refused(path):
  with pytest.raises(SgdxError) as error:
    open_corpus(path)
  assert "download it again" not in error.value.text
  return error.value


@pytest.mark.parametrize("content", [b"", b"[]", bytes(range(256))])
def test_another_file_is_refused(content, tmp_path):
  (tmp_path / "file").write_bytes(content)
  assert refused(tmp_path / "file").found.endswith("is neither a zip archive nor a folder")


def test_a_file_of_a_corpus_leads_to_the_corpus(tmp_path):
  root = tiny_corpus.write_corpus(tmp_path / "mine")
  for name in ("test/dialogues_001.json", "test/schema.json", "sgd_x/data/v1/test/schema.json"):
    assert refused(root / name).fix == f"pass the folder of the whole corpus: {root}"
  with pytest.raises(SgdxError, match="pass the one above it"):
    open_corpus(root / "test")


def test_a_pipe_is_not_read(tmp_path):
  os.mkfifo(tmp_path / "pipe")  # reading it would wait for a writer
  assert "neither a zip archive" in refused(tmp_path / "pipe").found
