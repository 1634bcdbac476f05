"""Reading of compressed files."""

import bz2
import gzip
import lzma

import pytest
from commands import assert_four_parts

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import opened, read_input
from sgdx_t5x.files.writing import atomic_write


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz", "a.jsonl"])
def test_a_packed_file_is_told_by_its_first_bytes(name, pack, tmp_path):
  file = tmp_path / name
  file.write_bytes(pack(b"first\nsecond\n"))
  assert read_input(file, "a file") == b"first\nsecond\n"
  with opened(file, "a file") as lines:
    assert [*lines] == [b"first\n", b"second\n"]
  file.write_bytes(pack(b"first\nsecond\n" * 1000)[:-9])
  with pytest.raises(SgdxError, match=rf"{name}: not a complete compressed file"):
    read_input(file, "a file")


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
def test_a_name_that_promises_a_packed_file(name, tmp_path):
  (tmp_path / name).write_text("text")
  with pytest.raises(SgdxError, match="not a complete compressed file"):
    read_input(tmp_path / name, "a file")


def test_what_is_written_as_xz_is_read(tmp_path):
  with atomic_write(tmp_path / "a.jsonl.xz", "--out") as file:
    file.write("caf\u00e9\n")
  assert lzma.decompress((tmp_path / "a.jsonl.xz").read_bytes()).decode() == "caf\u00e9\n"
  assert read_input(tmp_path / "a.jsonl.xz", "a file").decode() == "caf\u00e9\n"


@pytest.mark.parametrize(
  ("content", "words"),
  [
    (bz2.compress(b"[]"), ("compressed with bzip2", "bzip2 -dk")),
    (b"\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00[]", ("compressed with zstd", "zstd -d")),
    (b"PK\x03\x04\x14\x00", ("compressed with zip", "unzip")),
  ],
)
def test_another_format_is_named_with_the_command_that_unpacks_it(content, words, tmp_path):
  """Regression: it was "not UTF-8"."""
  file = tmp_path / "my answers.jsonl"
  file.write_bytes(content)
  with pytest.raises(SgdxError) as e:
    read_input(file, "predictions")
  assert_four_parts(str(e.value), *words, f"'{file}'")
