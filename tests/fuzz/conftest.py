"""Folders for the reader fuzzers."""

import os
import pathlib
import tempfile

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
  """Changes to an empty folder, and checks that it stays empty."""
  folder = tmp_path / "current"
  folder.mkdir()
  monkeypatch.chdir(folder)
  yield
  assert not list(folder.iterdir())


@pytest.fixture
def folder():
  """A folder, in memory if possible: files are written and removed thousands of times."""
  memory = pathlib.Path("/dev/shm")
  where = memory if os.access(memory, os.W_OK) else None
  with tempfile.TemporaryDirectory(prefix="sgdx_fuzz_", dir=where) as made:
    yield pathlib.Path(made)
