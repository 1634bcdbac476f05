"""Two processes, one folder: the second one is told which process the first one is."""

import os
import socket

import pytest
from locked import locked

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import atomic_folder


@pytest.fixture
def held(tmp_path):
  """A process that holds the lock of tmp_path/a/out until it is killed or its stdin is closed."""
  with locked(tmp_path / "a/out") as process:
    yield process


def test_the_owner_is_named(held, tmp_path):
  (tmp_path / "link").symlink_to("a")
  for take in (lock, lambda path: atomic_folder(path)):
    with pytest.raises(SgdxError) as e, take(tmp_path / "link/out"):
      pass
    owner = f"is being written by process {held.pid} on {socket.gethostname()}"
    assert owner in e.value.found
  with lock(tmp_path / "a/other"):
    pass
  held.communicate()
  assert list(tmp_path.iterdir()) == [tmp_path / "link"]


def test_the_lock_of_a_killed_process_is_taken_over(held, tmp_path):
  held.kill()
  held.wait()
  file = tmp_path / "a/.out.lock"
  assert f"process {held.pid}" in file.read_text()
  with lock(tmp_path / "a/out"), lock(tmp_path / "a/out"):  # one process, twice
    assert file.read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"
  assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that takes no files")
def test_a_lock_that_cannot_be_made_is_nobodys():
  with pytest.raises(SgdxError, match=r"/proc/\.x\.lock cannot be made"), lock("/proc/x"):
    pass


@pytest.mark.parametrize("path", ["/", "gs://bucket/x", "file/below"])
def test_where_nothing_can_be_locked_others_say_why(path, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "file").write_text("")
  with lock(path):
    pass
  assert list(tmp_path.iterdir()) == [tmp_path / "file"]
