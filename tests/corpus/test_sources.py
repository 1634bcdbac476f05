"""Archives that are damaged on purpose: files too large, a size that lies, two of one name."""

import tracemalloc
import warnings
import zipfile

import pytest
import tiny_corpus

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import reading

NAME = "test/dialogues_001.json"


@pytest.fixture
def corpus(tmp_path):
  return tiny_corpus.write_corpus(tmp_path / "tiny")


def pack(corpus, place, **others):
  """Writes an archive of a corpus in which some files have other contents."""
  with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(corpus.rglob("*.json")):
      name = str(file.relative_to(corpus))
      archive.writestr(name, others.get(file.stem, file.read_bytes()))
  return place


def test_a_file_that_would_be_too_large_is_not_unpacked(corpus, tmp_path, monkeypatch):
  monkeypatch.setattr(reading, "LARGEST_UNPACKED", 2**20)
  place = pack(corpus, tmp_path / "bomb.zip", dialogues_001=bytes(2**24))
  with pytest.raises(SgdxError, match=rf"{NAME}: more than 1 MiB when unpacked\n(.*\n)*.*folder"):
    list(open_corpus(place).dialogues("test"))


def test_no_more_is_unpacked_than_the_archive_states(corpus, tmp_path):
  """The size of a member is written by whoever made the archive."""
  place = pack(corpus, tmp_path / "lie.zip", dialogues_001=bytes(2**25))
  stated = (2**25).to_bytes(4, "little")
  content = place.read_bytes()
  assert content.count(stated) == 2  # before the member, and in the list at the end
  place.write_bytes(content.replace(stated, (1000).to_bytes(4, "little")))
  found = open_corpus(place)
  tracemalloc.start()
  with pytest.raises(SgdxError, match="not a complete zip file"):
    list(found.dialogues("test"))
  assert tracemalloc.get_traced_memory()[1] < 2**20
  tracemalloc.stop()


@pytest.mark.parametrize("name", [NAME, "test/schema.json"])
def test_two_files_of_one_name_are_refused(name, corpus, tmp_path):
  """Which of them is read would depend on the program that reads it."""
  place = pack(corpus, tmp_path / "two.zip")
  with zipfile.ZipFile(place, "a") as archive, warnings.catch_warnings(action="ignore"):
    archive.writestr(name, "[]")
  with pytest.raises(SgdxError, match=rf"two\.zip: contains two files '{name}'"):
    open_corpus(place)
