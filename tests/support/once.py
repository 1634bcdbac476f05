"""Makes what is costly once for all workers of a test session: records, corpora, models.

A session's fixture is made by each xdist worker for itself. What `made_once` makes lies in a
folder that all workers of the session share; the first that asks makes it, the others wait.
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
    name: of the folder; one name stands for one `make`.
    make: fills the folder it is given, which is new. Tests must not change it afterwards.
  """
  shared = session_folder(tmp_path_factory)
  folder, made = shared / name, shared / f"{name}.made"
  with (shared / f"{name}.lock").open("w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)  # closing the file, or the end of the process, releases it
    if not made.exists():
      shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
      folder.mkdir()
      make(folder)
      made.touch()
  return folder


def computed_once(
  tmp_path_factory: pytest.TempPathFactory, name: str, compute: Callable[[], Any]
) -> Any:
  """Returns what one worker has computed; it must be possible to pickle it."""

  def make(folder: pathlib.Path) -> None:
    (folder / "value.pickle").write_bytes(pickle.dumps(compute()))

  return pickle.loads((made_once(tmp_path_factory, name, make) / "value.pickle").read_bytes())
