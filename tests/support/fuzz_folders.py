"""Fixtures of the reader fuzzers; a module of fuzzers imports both."""

import os
import pathlib
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(name="empty_folder", autouse=True)
def current_folder_stays_empty(
  tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
  """Changes to an empty folder, and checks that it stays empty."""
  folder = tmp_path / "current"
  folder.mkdir()
  monkeypatch.chdir(folder)
  yield
  assert not list(folder.iterdir())


@pytest.fixture(name="folder")
def folder_in_memory() -> Iterator[pathlib.Path]:
  """A folder, in memory if possible: files are written and removed thousands of times."""
  memory = pathlib.Path("/dev/shm")
  where = memory if os.access(memory, os.W_OK) else None
  with tempfile.TemporaryDirectory(prefix="sgdx_fuzz_", dir=where) as made:
    yield pathlib.Path(made)
