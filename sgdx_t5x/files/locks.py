"""Locks of output folders: two processes never write to the same one."""

import contextlib
import os
import pathlib
import socket
from collections.abc import Iterator

from sgdx_t5x.errors import SgdxError

_held: set[pathlib.Path] = set()  # locks held by this process


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
      if not file.exists():  # tried in vain, as in /proc, which takes no files
        raise SgdxError(
          f"{option} {path}: {file} cannot be made",
          expected="an output beside which files can be written",
          fix="write elsewhere",
        ) from None
      owner = file.read_text(errors="replace").strip()
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
