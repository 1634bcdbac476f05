"""Reading of compressed files: how large they may become."""

import gzip

import pytest

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import reading
from sgdx_t5x.files.reading import read_input


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])  # gzip is also told by its first bytes
def test_a_compressed_file_is_read_up_to_a_size(name, tmp_path, monkeypatch):
  monkeypatch.setattr(reading, "LARGEST_UNPACKED", 2**20)
  file = tmp_path / name
  file.write_bytes(gzip.compress(b"\0" * 2**20))
  assert read_input(file, "a file") == b"\0" * 2**20
  with reading.opened(file, "a file") as lines:
    assert lines.seek(2**19) == 2**19
    assert len(lines.readline()) == 2**19
  file.write_bytes(gzip.compress(b"\0" * 2**24))
  expected = rf"{name}: more than 1 MiB when unpacked\n(.*\n)*.*fix: .* gunzip "
  with pytest.raises(SgdxError, match=expected):
    read_input(file, "a file")
  with reading.opened(file, "a file") as lines, pytest.raises(SgdxError, match=expected):
    next(lines)  # one line without an end
  file.write_bytes(gzip.compress(b"a\n" * 2**10) * 2**10)  # members count together
  with reading.opened(file, "a file") as lines, pytest.raises(SgdxError, match=expected):
    list(lines)


def test_the_size_is_beyond_any_file_of_sgd():
  """The largest file of the official archive, dialogues of train, has 6 MB."""
  assert reading.LARGEST_UNPACKED >= 100 * 6e6
