"""The policy for output folders, and atomic writing of files and folders."""

import gzip
import json
import os
import pathlib
import tempfile

import pytest

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_found
from sgdx_t5x.files.writing import (
  atomic_folder,
  atomic_write,
  check_folder,
  check_regular,
  json_line,
  list_files,
)


def is_ours(path):
  return path.parts[0] in ("model", "config.json")


@pytest.fixture
def full(tmp_path):
  """A folder as a command wrote it."""
  (tmp_path / "full/model").mkdir(parents=True)
  (tmp_path / "full/model/weights").write_text("numbers")
  (tmp_path / "full/config.json").write_text("{}")
  return tmp_path / "full"


def test_a_new_folder_and_an_empty_one_may_be_written(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert check_folder("new/below") == tmp_path / "new/below"
  assert not (tmp_path / "new").exists()
  (tmp_path / "empty/below").mkdir(parents=True)  # folders alone are nothing to lose
  assert check_folder("empty") == tmp_path / "empty"


def test_nothing_is_replaced_unless_it_is_ours_and_wanted(full):
  assert check_folder(full, replace=True, ours=is_ours) == full
  with pytest.raises(SgdxError, match="pass --overwrite to replace it") as e:
    check_folder(full, replace=False, ours=is_ours)
  assert e.value.found == f"--out {full} already exists and is not empty"
  (full / "thesis.tex").write_text("years of work")
  for replace in (False, True):
    with pytest.raises(SgdxError, match=r"available: thesis\.tex\n.*move these files away"):
      check_folder(full, replace=replace, ours=is_ours)


def test_a_command_that_never_replaces_says_what_is_there(full):
  for number in range(7):
    (full / f"{number}").write_text("")
  with pytest.raises(SgdxError) as e:
    check_folder(full, "--to", expected="a new folder: variants must not mix")
  assert e.value.text == (
    f"--to {full} already exists and is not empty\n"
    "  expected:  a new folder: variants must not mix\n"
    "  available: 0, 1, 2, 3, 4, 5 and 3 more\n"
    "  fix:       name another folder, or move these files away"
  )


@pytest.mark.parametrize("below", ["", "/a/b"])
def test_a_file_is_no_folder(full, below):
  path = f"{full}/config.json{below}"
  with pytest.raises(SgdxError, match=r"config\.json is a file"):
    check_folder(path, replace=True, ours=is_ours)


def test_a_bucket_is_no_folder():
  with pytest.raises(SgdxError, match="a local folder") as e:
    check_folder("gs://bucket/x")
  assert e.value.found == "--out gs://bucket/x"


def test_links_are_listed_and_not_followed(full):
  (full / "link").symlink_to(full.parent)
  assert list_files(full) == ["config.json", "link", "model/weights"]


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(full):
  def write_half():
    with atomic_folder(full) as temporary:
      temporary.mkdir()
      (temporary / "half").write_text("")
      raise OSError(28, "No space left on device")

  with pytest.raises(SgdxError, match="No space left"):
    write_half()
  assert list_files(full.parent) == ["full/config.json", "full/model/weights"]
  with atomic_folder(check_folder(full, replace=True, ours=is_ours)) as temporary:
    temporary.mkdir()
    (temporary / "config.json").write_text("[]")
  assert list_files(full.parent) == ["full/config.json"]


def test_what_is_not_there_has_its_neighbours_named(full):
  error = not_found(full / "confg.json", "a configuration")
  assert error.found == f"no file at {full}/confg.json"
  assert error.available == "nearest: config.json"
  assert not_found(pathlib.Path("no/such"), "x", "file or folder").available == "nothing"
  error = not_found(full, "a configuration")
  assert error.found == f"{full} is a folder"
  assert "config.json" in error.available


def test_half_a_character_is_escaped_in_json_and_refused_in_text(tmp_path):
  """Regression: a UnicodeEncodeError; JSON's escapes can be half of a character."""
  half = {"text": "caf\u00e9 \ud83d"}
  line = json_line(half)
  assert json.loads(line.encode()) == half
  assert json_line({"text": "caf\u00e9"}) == '{"text": "caf\u00e9"}\n'
  with (
    pytest.raises(SgdxError, match="is an unpaired surrogate"),
    atomic_write(tmp_path / "x", "--out") as file,
  ):
    file.write(half["text"])
  assert list(tmp_path.iterdir()) == []


def test_a_file_named_gz_is_compressed_and_always_equal(tmp_path):
  for name in ("a.txt.gz", "b.txt.gz"):
    with atomic_write(tmp_path / name, "--out") as file:
      file.write("caf\u00e9\n")
  assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()).decode() == "caf\u00e9\n"
  assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_content_is_on_the_disk_before_it_has_its_name(name, tmp_path, monkeypatch):
  synced = []
  fsync = os.fsync

  def record(descriptor):
    fsync(descriptor)
    path = pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    synced.append((path, path.is_file() and path.read_bytes(), (tmp_path / name).exists()))

  monkeypatch.setattr(os, "fsync", record)
  with atomic_write(tmp_path / name, "--out") as file:
    file.write("content")
  (_, content, before), (folder, _, after) = synced
  assert content == (tmp_path / name).read_bytes()
  assert (folder, before, after) == (tmp_path, False, True)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_a_disk_in_memory_holds_regular_files():
  """Regression: everything below /dev was refused like a device."""
  with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    check_regular(f"{folder}/scores.json", "--json")
  with pytest.raises(SgdxError, match="not a regular file"):
    check_regular("/dev/stdout", "--json")
