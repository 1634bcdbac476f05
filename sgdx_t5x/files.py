"""Files that are read with care, and written whole or not at all."""

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any, TextIO

from sgdx_t5x.errors import SgdxError


@contextlib.contextmanager
def atomic_write(path: str | pathlib.Path, option: str) -> Iterator[TextIO]:
  """Opens a text file under a temporary name in its folder; renames it once it is written.

  Args:
    path: the file, replaced if it exists.
    option: which named the file, for messages.

  Raises:
    SgdxError: it cannot be written, or is not a regular file. Nothing is left of it then.
  """
  path = pathlib.Path(path).resolve()
  temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
  try:
    if path.exists() and not path.is_file():  # renaming would replace a device
      raise OSError(0, "not a regular file")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
      yield file
    temporary.replace(path)
  except OSError as e:
    raise SgdxError(
      f"{option} {path}: {e.strerror}",
      expected="a file in a folder that exists and can be written",
      fix="make the folder, or name another file",
    ) from None
  finally:
    with contextlib.suppress(OSError):  # of a folder that is not there
      temporary.unlink()


def check_empty(folder: str | pathlib.Path, why: str) -> None:
  """Refuses a folder, given with --out, that has something in it. Raises SgdxError saying `why`."""
  path = pathlib.Path(folder)
  if path.exists() and not (path.is_dir() and not any(path.iterdir())):
    raise SgdxError(
      f"--out {folder} is there already",
      expected=f"a folder that is new or empty: {why}",
      fix="remove it, or name another one",
    )


@contextlib.contextmanager
def atomic_folder(
  folder: pathlib.Path,
  option: str = "",
  expected: str = "a folder that can be made and written",
  fix: str = "name another one",
) -> Iterator[pathlib.Path]:
  """Yields a path; the folder that the block makes there becomes `folder` if it succeeds.

  Args:
    folder: replaced if it exists; those above it are made, and removed again after a failure.
    option: which named the folder, for messages.
    expected: what it should have been, for messages.
    fix: what to do, for messages.

  Raises:
    SgdxError: the folder cannot be written. Nothing is left of it then.
  """
  folder = folder.resolve()  # a link stays, and "." has a name
  temporary = _beside(folder, "tmp")
  made = [parent for parent in folder.parents if not parent.exists()]  # innermost first
  try:
    temporary.mkdir(parents=True)
    yield temporary / folder.name
    _replace(folder, temporary / folder.name)
    made = []
  except OSError as e:
    raise SgdxError(
      f"{option} {folder}: {e.strerror or e}".lstrip(), expected=expected, fix=fix
    ) from e
  finally:
    shutil.rmtree(temporary, ignore_errors=True)
    for parent in made:
      with contextlib.suppress(OSError):
        parent.rmdir()


def _replace(folder: pathlib.Path, new: pathlib.Path) -> None:
  """Renames `new` to `folder`, whose present content is lost only once that succeeded."""
  if not folder.exists():
    new.rename(folder)
    return
  old = _beside(folder, "old")
  folder.rename(old)
  try:
    new.rename(folder)
  except OSError:
    old.rename(folder)
    raise
  shutil.rmtree(old, ignore_errors=True)


def _beside(folder: pathlib.Path, ending: str) -> pathlib.Path:
  return folder.with_name(f".{folder.name}.{os.getpid()}.{ending}")


def decode_json(text: str | bytes, where: str, expected: str, fix: str = "") -> Any:
  """Decodes JSON.

  Args:
    text: str, or bytes in UTF-8.
    where: file and line, for errors.
    expected: what should be there.
    fix: what to do if it is broken in the middle; if it ends too early, that is said instead.

  Raises:
    SgdxError: it is not JSON, or not UTF-8.
  """
  try:
    return json.loads(text)
  except UnicodeDecodeError as e:
    raise SgdxError(
      f"{where}: not UTF-8 ({e.reason} at byte {e.start:,})",
      expected=expected,
      fix="write it again, in UTF-8",
    ) from None
  except RecursionError:
    raise SgdxError(
      f"{where}: JSON nested too deeply", expected=expected, fix="write it again"
    ) from None
  except json.JSONDecodeError as e:
    cut = e.pos >= len(e.doc.rstrip()) or e.msg.startswith("Unterminated")
    raise SgdxError(
      f"{where}: not valid JSON ({e})",
      expected=expected,
      fix="the file was probably cut short; write it again" if cut or not fix else fix,
    ) from None
