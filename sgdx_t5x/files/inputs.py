"""Tracks the files that a command reads, so that none of its outputs overwrites them.

Files are compared by device and inode, so links and other spellings of a path count. Reading a
folder protects the folder and the files read in it, but not new names beside them.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator

from sgdx_t5x.errors import UsageError

_Path = str | os.PathLike[str]
_inputs: dict[tuple[int, int], str] | None = None  # device and inode -> path; None: no command


@contextlib.contextmanager
def protected() -> Iterator[None]:
  """Protects what is read in the block. Outside, as in a notebook, nothing is protected."""
  global _inputs
  before, _inputs = _inputs, {}
  try:
    yield
  finally:
    _inputs = before


def protect(paths: Iterable[_Path]) -> None:
  """Protects files and folders until the command ends; missing paths are ignored."""
  if _inputs is None:
    return
  for path in paths:
    with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the path
      found = os.stat(path)
      _inputs.setdefault((found.st_dev, found.st_ino), os.fspath(path))


def check_not_input(path: _Path, option: str) -> None:
  """Refuses an output file that is an input.

  Args:
    path: the output; need not exist.
    option: the option that named it, for messages.

  Raises:
    UsageError: it is an input, or a link to one.
  """
  with contextlib.suppress(OSError, ValueError):
    found = os.stat(path)
    if name := (_inputs or {}).get((found.st_dev, found.st_ino)):
      also = "" if os.path.abspath(name) == os.path.abspath(path) else f": it is {name}"
      raise UsageError(
        f"{option} {os.fspath(path)!r} is also an input{also}",
        expected="an output file that is not also an input",
        fix="name another file",
      )


def check_no_input_in(folder: _Path, option: str) -> None:
  """Refuses to replace a folder that is an input or holds one.

  Args:
    folder: the folder; need not exist.
    option: the option that named it, for messages.

  Raises:
    UsageError: an input would be lost.
  """
  if not _inputs:
    return
  for parent, folders, files in os.walk(folder):
    for path in (parent, *(os.path.join(parent, name) for name in (*folders, *files))):
      found = os.lstat(path)
      if name := _inputs.get((found.st_dev, found.st_ino)):
        raise UsageError(
          f"{option} {os.fspath(folder)} contains {name}, which this command reads",
          expected="a folder that contains no inputs: its content is replaced",
          fix="name another folder",
        )
