"""A file of another kind that is given as a corpus: the error says what it is."""

import gzip
import json
import os

import pytest
import tiny_corpus

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError

DIALOGUE = {"dialogue_id": "1_00000", "services": [], "turns": []}
SERVICE = {"service_name": "Banks_1", "description": "", "slots": [], "intents": []}
OPENAI = {"type": "function", "function": {"name": "add"}}


def refused(path):
  with pytest.raises(SgdxError) as error:
    open_corpus(path)
  assert "download it again" not in error.value.text
  return error.value


@pytest.mark.parametrize(
  ("content", "words"),
  [
    ([DIALOGUE], "dialogues (JSON)"),
    ([SERVICE], "a schema (JSON)"),
    ([OPENAI], "a list of tools (JSON)"),
    ({"tools": [{"name": "add", "inputSchema": {}}]}, "a list of tools (JSON)"),
    ([{"name": "add", "input_schema": {}}], "a list of tools (JSON)"),
    ({"format": "sgdx-score/1"}, "output of this package, sgdx-score/1"),
    ({"name": "x", "version": 1}, "an object with name, version (JSON)"),
    ([], "an empty list (JSON)"),
    ([1, 2], "a list (JSON)"),
  ],
)
def test_json_is_named_by_what_it_holds(content, words, tmp_path):
  path = tmp_path / "file.json"
  path.write_text(json.dumps(content))
  assert words in refused(path).found


@pytest.mark.parametrize(
  ("content", "words"),
  [
    (b"", "an empty file"),
    (b" \n", "an empty file"),
    (b"a,b\n1,2\n", "a text file"),
    (b"3\nthree\n", "a text file"),
    (b'[{"dialogue_id": "1_00', "text that begins like JSON"),
    (b"[" * 100_000, "text that begins like JSON"),
    (b'{"id": "a", "prediction": "b"}\n{"id": "c", "prediction": "d"}\n', "predictions or prompts"),
    (b"<!DOCTYPE html>\n<html></html>", "HTML"),
    (bytes(range(256)), "neither a zip archive nor text"),
    (gzip.compress(b"[]", mtime=0), "a gzip file"),
  ],
)
def test_other_files_are_named_by_their_kind(content, words, tmp_path):
  path = tmp_path / "file"
  path.write_bytes(content)
  assert words in refused(path).found


def test_a_file_of_a_corpus_leads_to_the_corpus(tmp_path):
  root = tiny_corpus.write_corpus(tmp_path / "mine")
  for name in ("test/dialogues_001.json", "test/schema.json", "sgd_x/data/v1/test/schema.json"):
    assert refused(root / name).fix == f"pass the folder of the whole corpus: {root}"
  with pytest.raises(SgdxError, match="pass the one above it"):
    open_corpus(root / "test")


def test_a_pipe_is_not_read(tmp_path):
  os.mkfifo(tmp_path / "pipe")  # reading it would wait for a writer
  assert "a pipe or device" in refused(tmp_path / "pipe").found
