"""Atomic writing, and the policy for output folders."""

import contextlib
import errno
import gzip
import io
import json
import lzma
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.reading import is_text

_TEMPORARY = ".tmp"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ROOM_IN_WORDS = re.compile("no space left|quota exceeded|file too large", re.IGNORECASE)


def writing_fix(error: BaseException, alternative: str) -> str:
  """Returns the fix to suggest for a failed write: free space, or `alternative`.

  Args:
    error: an OSError, an exception raised from one, or a library's error that quotes one.
    alternative: the alternative, such as "name another folder".
  """
  cause: BaseException | None = error
  while cause is not None and not getattr(cause, "errno", None):
    cause = cause.__cause__ or cause.__context__
  if getattr(cause, "errno", None) in NO_ROOM or _NO_ROOM_IN_WORDS.search(str(error)):
    return f"free some space, or {alternative}"
  return alternative


def is_folder_name(name: str) -> bool:
  """Whether a name is that of a folder directly in another one: not "", "..", nor with a slash."""
  return name not in ("", "..") and pathlib.PurePath(name).name == name and "\0" not in name


def json_line(data: Any) -> str:
  """Returns a line of JSON Lines: as text, or escaped if UTF-8 cannot encode half a character."""
  line = json.dumps(data, ensure_ascii=False)
  return (line if is_text(line) else json.dumps(data)) + "\n"


@contextlib.contextmanager
def temporary_name(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a hidden path beside `path`; what it holds is removed at the end."""
  name = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
  _remove(name)  # of a killed process with the same number, as in containers
  try:
    yield name
  finally:
    _remove(name)


def _remove(path: pathlib.Path) -> None:
  if path.is_dir():
    shutil.rmtree(path, ignore_errors=True)
  else:
    with contextlib.suppress(OSError):
      path.unlink()


@contextlib.contextmanager
def _open_text(path: pathlib.Path, packing: str) -> Iterator[TextIO]:
  """Opens a file for UTF-8; compressed, its bytes depend on the text alone."""
  with contextlib.ExitStack() as files:
    file: Any = files.enter_context(path.open("wb"))
    if packing == ".gz":
      file = files.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    elif packing == ".xz":
      file = files.enter_context(lzma.LZMAFile(file, "wb"))
    yield files.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))


def _sync(path: pathlib.Path) -> None:
  """Waits until a file, or the names in a folder, are on the disk."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def check_regular(path: str | pathlib.Path, option: str) -> None:
  """Refuses what a file cannot replace: a folder, a device, a pipe, what stdout is redirected to.

  Args:
    path: the file; it need not exist.
    option: the option that named it, for messages.

  Raises:
    SgdxError: it is such a file.
  """
  folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
  is_stream = folder == "/dev" or folder.startswith("/proc/")  # /dev/shm holds regular files
  if is_stream or (os.path.exists(path) and not os.path.isfile(path)):
    raise SgdxError(
      f"{option} {path}: {'a folder' if os.path.isdir(path) else 'not a regular file'}",
      expected="a file in an existing, writable folder",
      fix="name another file",
    )


@contextlib.contextmanager
def atomic_write(path: str | pathlib.Path, option: str) -> Iterator[TextIO]:
  """Opens a text file under a temporary name in its folder; renames it once it is on the disk.

  Args:
    path: the file, replaced if it exists; one named *.gz or *.xz is compressed.
    option: the option that named the file, for messages.

  Raises:
    SgdxError: it cannot be written, or is not a regular file. No partial file is left then.
  """
  check_regular(path, option)
  path = pathlib.Path(path).resolve()
  try:
    with temporary_name(path) as temporary:
      with _open_text(temporary, path.suffix) as file:
        yield file
      _sync(temporary)  # otherwise a power cut could leave the new name with no content
      temporary.replace(path)
      with contextlib.suppress(OSError):  # not every file system can do this with folders
        _sync(path.parent)
  except UnicodeEncodeError as e:
    raise SgdxError(
      f"{option} {path}: {e.object[e.start : e.end]!r} is an unpaired surrogate",
      expected="texts that UTF-8 can encode",
      fix="correct this text in the input, where it may be an escape",
    ) from None
  except OSError as e:
    create = "create the folder, or " if e.errno == errno.ENOENT else ""
    raise SgdxError(
      f"{option} {path}: {e.strerror}",
      expected="a file in an existing, writable folder",
      fix=writing_fix(e, f"{create}name another file"),
    ) from None


def check_folder(
  path: str | pathlib.Path,
  option: str = "--out",
  *,
  replace: bool = False,
  ours: Callable[[pathlib.PurePath], bool] | None = None,
  expected: str = "a folder that is new or empty",
) -> pathlib.Path:
  """Refuses a folder that must not be written to: the policy of all commands.

  Typical use: `with atomic_folder(check_folder(out)) as folder: ...`.

  A folder that is new or empty may be written. One that holds files is replaced as a whole if the
  user allows it and all of its files are of kinds that the command writes (`cli.paths` refuses one
  that holds an input).

  Args:
    path: the folder.
    option: the option that named it, for messages.
    replace: whether files that are `ours` may be replaced.
    ours: whether the command writes such a file, given its path in the folder; None if the
      command never replaces anything.
    expected: what the folder may be, for messages.

  Returns:
    The absolute path.

  Raises:
    SgdxError: it is not local, is or lies below a file, or holds files that must not be lost.
  """
  if "://" in str(path):
    raise SgdxError(
      f"{option} {path}",
      expected="a local folder",
      fix="write to a local folder and copy it, e.g. with `gcloud storage cp -r`",
    )
  folder = pathlib.Path(path)
  # The folder or, if it is new, what it would be created in.
  present = next(p for p in (folder, *folder.absolute().parents) if p.exists())
  if not present.is_dir():
    below = "" if present == folder else f": {present}"
    raise SgdxError(
      f"{option} {path}{below} is a file", expected=expected, fix="name another folder"
    )
  names = list_files(folder)
  foreign = names if ours is None else [x for x in names if not ours(pathlib.PurePath(x))]
  if foreign or (names and not replace):
    listed = foreign or names
    alternative = "move these files away" if foreign else "pass --overwrite to replace it"
    raise SgdxError(
      f"{option} {path} already exists and is not empty",
      expected=expected,
      available=", ".join(listed[:6]) + (f" and {len(listed) - 6:,} more" if listed[6:] else ""),
      fix=f"name another folder, or {alternative}",
    )
  return folder.resolve()


def list_files(folder: pathlib.Path) -> list[str]:
  """Sorted relative paths of all files below a folder, without what a killed process left."""
  names = []
  for path in folder.rglob("*"):
    is_unfinished = path.name.startswith(".") and path.suffix == _TEMPORARY
    if not is_unfinished and (not path.is_dir() or path.is_symlink()):
      names.append(path.relative_to(folder).as_posix())
  return sorted(names)


@contextlib.contextmanager
def atomic_folder(folder: pathlib.Path, option: str = "--out") -> Iterator[pathlib.Path]:
  """Yields a path; the folder that the block creates there becomes `folder` if it succeeds.

  Args:
    folder: replaced if it exists; missing parents are created, and removed again after a failure.
    option: the option that named the folder, for messages.

  Raises:
    SgdxError: the folder cannot be written, or another process is writing there. No partial output
      is left then.
  """
  folder = folder.resolve()  # keeps a link, and gives "." a name
  try:
    with lock(folder, option), temporary_name(folder) as temporary:
      temporary.mkdir(parents=True)
      yield temporary / folder.name
      _replace(folder, temporary / folder.name)
  except OSError as e:
    raise SgdxError(
      f"{option} {folder}: {e.strerror or e}",
      expected="a folder that can be created and written to, on a disk with enough space",
      fix=writing_fix(e, "name another folder"),
    ) from e


def _replace(folder: pathlib.Path, replacement: pathlib.Path) -> None:
  """Renames `replacement` to `folder`; the old content is deleted once that has succeeded."""
  if not folder.exists():
    replacement.rename(folder)
    return
  with temporary_name(folder.with_name(f"{folder.name}.old")) as backup:
    folder.rename(backup)
    try:
      replacement.rename(folder)
    except BaseException:
      backup.rename(folder)
      raise
