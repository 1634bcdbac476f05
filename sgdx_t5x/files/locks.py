"""Locks of output folders, and temporary names that identify their owner.

A temporary name contains host and process id, so that leftovers of a killed process can be told
from what another is writing now.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import socket
import zlib
from collections.abc import Iterator

from sgdx_t5x.errors import SgdxError

_NAME = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})\.(?P<pid>[0-9]+)\.(?P<kind>tmp|old)")
_used: set[pathlib.Path] = set()  # temporary names in use by this process
_held: set[pathlib.Path] = set()  # locks held by this process


@functools.cache
def _host() -> str:
  """Eight hex digits that identify a PID namespace: a host, or a container on it."""
  processes = ""
  with contextlib.suppress(OSError):
    processes = os.readlink("/proc/self/ns/pid")
  return f"{zlib.crc32(f'{socket.gethostname()} {processes}'.encode()):08x}"


@contextlib.contextmanager
def temporary_name(path: pathlib.Path, kind: str = "tmp") -> Iterator[pathlib.Path]:
  """Yields a hidden path beside `path` for this process; what it holds is removed at the end.

  Args:
    path: the final path.
    kind: "tmp"; or "old" for what is being replaced, which is kept unless `path` exists.
  """
  name = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.{kind}")
  _used.add(name)
  try:
    yield name
  finally:
    if kind != "old" or path.exists():
      _remove(name)
    _used.discard(name)


def remove_leftovers(folder: pathlib.Path) -> None:
  """Removes what killed processes of this host left under temporary names in a folder.

  What was being replaced when the process was killed is renamed back.
  """
  try:
    found = [_NAME.fullmatch(name) for name in os.listdir(folder)]
  except OSError:
    return
  for match in filter(None, found):
    path, target = folder / match[0], folder / match["name"]
    if match["host"] != _host() or path in _used or _is_alive(int(match["pid"])):
      continue
    if match["kind"] == "old" and not target.exists():
      with contextlib.suppress(OSError):
        path.rename(target)
    else:
      _remove(path)


def _is_alive(pid: int) -> bool:
  """Whether another process has this id."""
  try:
    os.kill(pid, 0)
  except (ProcessLookupError, OverflowError):
    return False
  except PermissionError:
    pass
  return pid != os.getpid()


def _remove(path: pathlib.Path) -> None:
  with contextlib.suppress(OSError):
    if path.is_dir() and not path.is_symlink():
      shutil.rmtree(path, ignore_errors=True)
    else:
      path.unlink()


# --- locks ---------------------------------------------------------------------------------


@contextlib.contextmanager
def lock(path: str | pathlib.Path, option: str = "--out") -> Iterator[None]:
  """Keeps other processes from writing to a folder while the block runs.

  A file `.NAME.lock` beside the folder names host and process of the owner. The kernel's lock on it
  ends with its owner, however that ends. The same process can acquire the lock again within the
  block. Where locking is impossible (a folder that cannot be written, a file system without
  locks), the block runs without a lock.

  Args:
    path: the folder, which need not exist. Missing parents are created; those that are empty
      at the end are removed again.
    option: the option that named the folder, for messages.

  Raises:
    SgdxError: another process is writing there; the message names it.
  """
  import filelock  # here, since it takes 15 ms and most commands only read

  folder = pathlib.Path(path).resolve()
  file = folder.with_name(f".{folder.name}.lock") if folder.name else folder
  if "://" in str(path) or file in _held or file == folder:
    yield
    return
  created = [parent for parent in folder.parents if not parent.exists()]  # innermost first
  kernel_lock = filelock.FileLock(file, timeout=0)
  try:
    try:
      file.parent.mkdir(parents=True, exist_ok=True)
      kernel_lock.acquire()
      _held.add(file)
      file.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    except filelock.Timeout:
      owner = file.read_text(errors="replace").strip() if file.exists() else ""
      raise SgdxError(
        f"{option} {path} is being written by {owner or 'another process'}",
        expected="an output that no other process is writing",
        fix="wait until it has finished, or write elsewhere",
      ) from None
    except OSError:
      pass  # no lock; or, on a full disk, only no name of its owner
    yield
  finally:
    if kernel_lock.is_locked:
      _held.discard(file)
      with contextlib.suppress(OSError):
        file.unlink()  # before it is released: nobody else holds this file
      kernel_lock.release()
    for parent in created:
      with contextlib.suppress(OSError):
        parent.rmdir()
