"""Makes expensive resources (records, corpora, models) once for all workers of a test session.

Each xdist worker makes its own session fixtures. What `made_once` makes is in a folder that all
workers of the session share; the first worker to ask for it makes it, the others wait.
"""

import fcntl
import os
import pathlib
import pickle
import shutil
from collections.abc import Callable
from typing import Any

import pytest


def session_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """The folder of this test session, the same in all of its workers."""
  base = tmp_path_factory.getbasetemp()
  return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(
  tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[pathlib.Path], Any]
) -> pathlib.Path:
  """Returns a folder that one worker has filled.

  Args:
    tmp_path_factory: pytest's fixture.
    name: name of the folder; use it with one `make` only.
    make: fills the new folder it is given. Tests must not change it afterwards.
  """
  shared = session_folder(tmp_path_factory)
  folder, made = shared / name, shared / f"{name}.made"
  with (shared / f"{name}.lock").open("w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)  # closing the file, or the end of the process, releases it
    if not made.exists():
      shutil.rmtree(folder, ignore_errors=True)  # left by a worker that failed
      folder.mkdir()
      make(folder)
      made.touch()
  return folder


def computed_once(
  tmp_path_factory: pytest.TempPathFactory, name: str, compute: Callable[[], Any]
) -> Any:
  """Returns what one worker has computed, which must be picklable."""

  def make(folder: pathlib.Path) -> None:
    (folder / "value.pickle").write_bytes(pickle.dumps(compute()))

  return pickle.loads((made_once(tmp_path_factory, name, make) / "value.pickle").read_bytes())
