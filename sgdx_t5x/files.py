"""Validated reading, atomic writing, and the policy for output folders."""

import contextlib
import json
import math
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.inputs import check_no_input_in, check_not_input
from sgdx_t5x.locks import lock, remove_leftovers, temporary_name

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


@contextlib.contextmanager
def atomic_write(path: str | pathlib.Path, option: str) -> Iterator[TextIO]:
  """Opens a text file under a temporary name in its folder; renames it once it is written.

  Args:
    path: the file, replaced if it exists.
    option: the option that named the file, for messages.

  Raises:
    SgdxError: it cannot be written, is not a regular file, or is an input of this command.
      Nothing is left of it then.
  """
  path = pathlib.Path(path).resolve()
  check_not_input(path, option)
  remove_leftovers(path.parent)
  try:
    with temporary_name(path) as temporary:
      if path.exists() and not path.is_file():  # renaming would replace a device
        raise OSError(0, "not a regular file")
      with temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield file
      check_not_input(path, option)  # by now all inputs are known
      temporary.replace(path)
  except OSError as e:
    raise SgdxError(
      f"{option} {path}: {e.strerror}",
      expected="a file in a folder that exists and can be written",
      fix="create the folder, or name another file",
    ) from None


def check_folder(
  path: str | pathlib.Path,
  option: str = "--out",
  *,
  replace: bool = False,
  ours: Callable[[pathlib.PurePath], bool] | None = None,
  expected: str = "a folder that is new or empty",
) -> pathlib.Path:
  """Refuses a folder that must not be written to: the one policy of all commands.

  Usually together with the writing: `with atomic_folder(check_folder(out)) as folder: ...`.

  A folder that is new or empty may be written. One that holds files is replaced as a whole, if the
  user allows it, each of its files is of a kind that the command writes, and none is an input.
  What killed processes left beside it is removed first.

  Args:
    path: the folder.
    option: the option that named it, for messages.
    replace: whether files that are `ours` may be replaced.
    ours: tells by its path in the folder whether the command writes such a file; None if the
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
      expected="a folder on this machine",
      fix="write to a local folder and copy it, e.g. with `gcloud storage cp -r`",
    )
  folder = pathlib.Path(path)
  present = next(p for p in (folder, *folder.absolute().parents) if p.exists())
  if not present.is_dir():
    below = "" if present == folder else f": {present}"
    raise SgdxError(
      f"{option} {path}{below} is a file", expected=expected, fix="name another folder"
    )
  remove_leftovers(folder.resolve().parent)
  names = list_files(folder)
  foreign = names if ours is None else [x for x in names if not ours(pathlib.PurePath(x))]
  if foreign or (names and not replace):
    shown = foreign or names
    replaceable = not foreign
    raise SgdxError(
      f"{option} {path} already exists and is not empty",
      expected=expected,
      available=", ".join(shown[:6]) + (f" and {len(shown) - 6:,} more" if shown[6:] else ""),
      fix="name another folder"
      + (", or give --overwrite to replace it" if replaceable else ", or move these files away"),
    )
  if names:
    check_no_input_in(folder, option)
  return folder.resolve()


def list_files(folder: pathlib.Path) -> list[str]:
  """Everything below a folder that is not itself a folder, by its path in it, sorted."""
  paths = (path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
  return sorted(path.relative_to(folder).as_posix() for path in paths)


@contextlib.contextmanager
def atomic_folder(folder: pathlib.Path, option: str = "--out") -> Iterator[pathlib.Path]:
  """Yields a path; the folder that the block makes there becomes `folder` if it succeeds.

  Args:
    folder: replaced if it exists; missing folders above it are created, and removed again after a
      failure.
    option: the option that named the folder, for messages.

  Raises:
    SgdxError: the folder cannot be written, another process is writing there, or it holds inputs
      of this command. Nothing is left of it then.
  """
  folder = folder.resolve()  # a link stays, and "." has a name
  try:
    with lock(folder, option), temporary_name(folder) as temporary:
      temporary.mkdir(parents=True)
      yield temporary / folder.name
      _replace(folder, temporary / folder.name, option)
  except OSError as e:
    raise SgdxError(
      f"{option} {folder}: {e.strerror or e}",
      expected="a folder that can be created and written, on a disk with enough space",
      fix="free some space, or name another folder",
    ) from e


def _replace(folder: pathlib.Path, new: pathlib.Path, option: str) -> None:
  """Renames `new` to `folder`, whose present content is lost only once that succeeded."""
  if not folder.exists():
    new.rename(folder)
    return
  check_no_input_in(folder, option)  # by now all inputs are known
  with temporary_name(folder, "old") as old:
    try:
      folder.rename(old)
      new.rename(folder)
    except BaseException:
      if not folder.exists():
        old.rename(folder)
      raise


def not_found(path: pathlib.Path, expected: str, what: str = "file") -> SgdxError:
  """Returns the error for a path where nothing is, with the names beside it that come nearest.

  Args:
    path: where nothing is.
    expected: what should be there.
    what: "file", or "file or folder".
  """
  beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
  return SgdxError(
    f"no {what} at {path}",
    expected=expected,
    available=nearest(path.name, beside),
    fix="check the path",
  )


def json_type(value: Any) -> str:
  """Returns what a decoded JSON value is, with its article: "an object", "a list", "null"."""
  if value is None or isinstance(value, bool):
    return "null" if value is None else "a boolean"
  types: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
  return types.get(type(value), "a number")


def is_text(value: Any) -> bool:
  """Whether decoded JSON is a string that a file can hold: escapes may be half a character."""
  return isinstance(value, str) and not _HALF_CHARACTER.search(value)


def is_number(value: Any) -> bool:
  """Whether decoded JSON is a finite number that a float can hold; JSON's integers have no end."""
  try:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)
  except OverflowError:
    return False


def decode_json(text: str | bytes, where: str, expected: str, fix: str = "") -> Any:
  """Decodes JSON.

  Args:
    text: str, or bytes in UTF-8.
    where: file and line, for errors.
    expected: what should be there.
    fix: what to do if it is broken in the middle; a file that was cut short has a fix of its own.

  Raises:
    SgdxError: it is not JSON, or not UTF-8.
  """
  try:
    return json.loads(text)
  except UnicodeDecodeError as e:
    raise SgdxError(
      f"{where}: not UTF-8 ({e.reason} at byte {e.start:,})",
      expected=expected,
      fix="write the file again, in UTF-8",
    ) from None
  except RecursionError:
    raise SgdxError(
      f"{where}: JSON nested too deeply", expected=expected, fix="write the file again"
    ) from None
  except json.JSONDecodeError as e:
    cut = e.pos >= len(e.doc.rstrip()) or e.msg.startswith("Unterminated")
    raise SgdxError(
      f"{where}: not valid JSON ({e})",
      expected=expected,
      fix="the file was probably cut short; write it again" if cut or not fix else fix,
    ) from None
  except ValueError:  # the one left: Python reads no longer integers
    raise SgdxError(
      f"{where}: an integer of more than {sys.get_int_max_str_digits():,} digits",
      expected=expected,
      fix=fix or "write the file again",
    ) from None
