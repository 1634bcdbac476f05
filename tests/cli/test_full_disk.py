"""A full disk, simulated by a file size limit: four-part errors, and nothing partial is left."""

import contextlib
import errno
import os
import pathlib
import resource
import sys
import threading
import time

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx
from places import FIXTURES

from sgdx_t5x.corpus import export
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.writing import atomic_folder, atomic_write
from sgdx_t5x.weights import t5x_checkpoint

HF = FIXTURES / "hf_t5/t5_1_0"


@contextlib.contextmanager
def largest_file(size: int):
  """Limits the files that this process writes to `size` bytes."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  # Python 3.11 would keep compiled modules cut off at the limit, and later fail to import them.
  compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    sys.dont_write_bytecode = compiles


@pytest.mark.parametrize("size", [30, 20_000])
def test_records(size, small_sample, tmp_path, capsys):
  command = ("data", "prepare", "--corpus", small_sample / "sample")
  with largest_file(size):
    assert sgdx(*command, "--data-dir", tmp_path / "data") == 1
  assert_four_parts(capsys.readouterr().err, f"--data-dir {tmp_path}/data: ", "File too large")
  assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_weights(tmp_path, capsys):
  given = tmp_path / "given"
  assert sgdx("weights", "import", "--hf", HF, "--out", given) == 0
  capsys.readouterr()
  for size in (10, 12_000):
    for command in (("import", "--hf", HF), ("export", "--checkpoint", given / "checkpoint_0")):
      with largest_file(size):
        assert sgdx("weights", *command, "--out", tmp_path / "new") == 1
      out, err = capsys.readouterr()
      assert_four_parts(err, f"sgdx: --out {tmp_path}/new", "File too large")
      assert "written" not in out
      assert list(tmp_path.iterdir()) == [given]


def test_a_folder_that_late_writers_make_again(tmp_path):
  """Seen once in CI: TensorStore, still writing, recreated the folder of a checkpoint."""
  folder = tmp_path / "new"

  def write_late():
    for _ in range(5):
      time.sleep(0.05)
      (folder / "state").mkdir(parents=True, exist_ok=True)

  writer = threading.Thread(target=write_late)
  writer.start()
  t5x_checkpoint._remove_for_good(folder)
  writer.join()
  assert not folder.exists()


@pytest.mark.parametrize(
  "command", [("prompts", "--variant", "v3"), ("data", "export", "--variant", "v3")]
)
def test_files_and_folders(command, tmp_path, capsys):
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  with largest_file(100):
    assert sgdx(*command, "--corpus", corpus, "--out", tmp_path / "new") == 1
  assert_four_parts(capsys.readouterr().err, "--out ", "File too large")
  assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
  assert not (tmp_path / "new").is_file()


def _write_file(path):
  with atomic_write(path, "--out"):
    yield


def _write_folder(path):
  with atomic_folder(path) as folder:
    folder.mkdir()
    yield


def _not_written(error, data_dir):
  from sgdx_t5x.records import prepare

  return prepare._not_written(error, data_dir)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("write", [_write_file, _write_folder])
def test_space_is_no_fix_where_writing_is_refused(write, number, tmp_path):
  """Regression: users were told to free space on "Operation not permitted" or create the folder."""
  for error in (number, errno.ENOSPC):
    writing = write(tmp_path / "out")
    next(writing)
    with pytest.raises(SgdxError) as e:
      writing.throw(OSError(error, os.strerror(error)))
    assert os.strerror(error) in e.value.found
    assert ("space" in e.value.fix) == (error == errno.ENOSPC)
    assert "create" not in e.value.fix


def test_records_where_writing_is_refused(tmp_path):
  import tensorflow as tf

  refused = tf.errors.PermissionDeniedError(None, None, "data/x; Operation not permitted")
  for error in (refused, OSError(errno.EROFS, "Read-only file system")):
    assert "space" not in _not_written(error, tmp_path).fix
  full = tf.errors.ResourceExhaustedError(None, None, "data/x; No space left on device")
  assert _not_written(full, tmp_path).fix == "free some space, or pass another --data-dir"


def test_exports_where_writing_is_refused(tmp_path, monkeypatch):
  def replace(self, target):
    raise PermissionError(errno.EPERM, "Operation not permitted")

  monkeypatch.setattr(pathlib.Path, "replace", replace)
  with pytest.raises(SgdxError, match="Operation not permitted") as e:
    export._write_file(tmp_path / "x/dialogues_001.json", "[]")
  assert "space" not in e.value.fix
  assert "complete" in e.value.fix
