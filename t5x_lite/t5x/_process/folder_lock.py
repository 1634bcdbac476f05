"""One run at a time in a folder: a lock file that names the run holding it.

The kernel's lock on the file ends with the process that holds it, however that ends. On a network
file system, other machines see it if the file system passes locks on, as NFS does. Object stores
(gs://) have no locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import time
from collections.abc import Iterator, Sequence

import filelock

from t5x._process import hosts
from t5x._process.log import log
from t5x.errors import T5XError


def check_folder_name(name: object, setting: str) -> None:
  """Raises T5XError unless `name` can name a folder, which need not exist."""
  if isinstance(name, (str, os.PathLike)) and os.fspath(name):
    return
  raise T5XError(
    f"{setting} does not name a folder.",
    found=repr(name),
    expected="a string: an existing folder, or a new one",
    fix=f"--gin.{setting}=\"'FOLDER'\"",
  )


@contextlib.contextmanager
def held(paths: Sequence[str], setting: str) -> Iterator[None]:
  """Holds locks inside the `with` block; the first of several processes does it for all.

  Args:
      paths: the lock files; their folders are created. Those in object stores are skipped.
      setting: the setting that names the folder, for example `MODEL_DIR`.

  Raises:
      T5XError: another run holds one of them (on all processes), or it cannot be written.
  """
  local = [pathlib.Path(path).absolute() for path in paths if "://" not in str(path)]
  with contextlib.ExitStack() as locks:
    with _alike():
      if hosts.is_first():
        for path in local:
          locks.enter_context(_locked(path, setting))
    yield


@contextlib.contextmanager
def _locked(path: pathlib.Path, setting: str) -> Iterator[None]:
  """Holds one lock file, which names this process while it does."""
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("a").close()
  except OSError as e:
    raise _cannot_write(path.parent, setting, e) from e
  kernel_lock = filelock.FileLock(path, timeout=0)
  try:
    kernel_lock.acquire()
  except filelock.Timeout:
    raise _in_use(path, setting) from None
  except OSError as e:
    log(f"no lock of {path.parent}: {e.strerror or e}; start no other run there")
  try:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    path.write_text(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
    yield
  finally:
    with contextlib.suppress(OSError):
      path.unlink()  # before it is released: nobody else holds this file
    kernel_lock.release()


@contextlib.contextmanager
def _alike() -> Iterator[None]:
  """Raises on every process the T5XError that the first one raises in the block."""
  error = None
  try:
    yield
  except T5XError as e:
    error = e
  if hosts.process_count() > 1:
    names = ("message", "found", "expected", "available", "fix")
    text = hosts.broadcast_text(json.dumps(error and {n: getattr(error, n) for n in names}))
    if error is None and json.loads(text):
      error = T5XError(**json.loads(text))
  if error is not None:
    raise error


def _cannot_write(folder: pathlib.Path, setting: str, error: OSError) -> T5XError:
  above = next(p for p in (folder, *folder.parents) if p.exists())
  is_file = not above.is_dir()
  return T5XError(
    f"{setting} is a file." if is_file and above == folder else f"{setting} cannot be written to.",
    found=f"{above} is a file" if is_file else f"{folder}: {error.strerror}",
    expected="a folder, or the name of a new one",
    fix=f"--gin.{setting}=\"'FOLDER'\"",
  )


def _in_use(path: pathlib.Path, setting: str) -> T5XError:
  """The error for a folder that another run holds, with what its lock file says."""
  owner = ""
  with contextlib.suppress(OSError):  # it may just have ended
    owner = path.read_text(errors="replace").strip()
  return T5XError(
    f"Another run is using {path.parent}.",
    found=f"{path.name}: {owner or 'another process'}",
    expected="one run at a time: two would overwrite each other's files",
    available="nothing was changed",
    fix=f"stop that run, wait until it ends, or set another --gin.{setting}.",
  )
