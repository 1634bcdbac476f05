"""Validated reading: what all readers of JSON share, and the error for a missing file."""

import codecs
import contextlib
import gzip
import io
import json
import math
import pathlib
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any, TypeVar, cast

import msgspec
import orjson

from sgdx_t5x.errors import SgdxError, nearest

# Bytes that a compressed file, or a file in an archive, may become. SGD's largest has 6 million.
LARGEST_UNPACKED = 2**30
_GZIP = b"\x1f\x8b"
_T = TypeVar("_T")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def not_found(path: pathlib.Path, expected: str, what: str = "file") -> SgdxError:
  """Returns the error for a path that is no file, with the closest names in its folder.

  Args:
    path: the missing path.
    expected: what should be there.
    what: "file", "folder", or "file or folder".
  """
  if path.is_dir():
    files = _shown(path)
    return SgdxError(
      f"{path} is a folder",
      expected=expected,
      available=", ".join(files[:5]) + (", ..." if len(files) > 5 else ""),
      fix="pass the path of a file",
    )
  beside = _shown(path.parent) if path.parent.is_dir() else []
  return SgdxError(
    f"no {what} at {path}",
    expected=expected,
    available=nearest(path.name, beside),
    fix="check the path",
  )


def _shown(folder: pathlib.Path) -> list[str]:
  return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def read_input(path: str | pathlib.Path, what: str) -> bytes:
  """Returns the content of a file that no output may overwrite.

  Args:
    path: the file.
    what: what it should be, for messages.

  Raises:
    SgdxError: there is no such file.
  """
  path = pathlib.Path(path)
  if not path.is_file():
    raise not_found(path, what)
  with opened(path, what) as file:
    return file.read()


@contextlib.contextmanager
def opened(path: pathlib.Path, what: str) -> Iterator[IO[bytes]]:
  """Opens a file for reading, decompressed if it is gzipped or named so.

  Args:
    path: the file.
    what: what it should be, for messages.

  Raises:
    SgdxError: the end of a gzipped file is missing or damaged, or it becomes larger than
      `LARGEST_UNPACKED`, which reading it shows.
  """
  with path.open("rb") as file:
    if path.suffix != ".gz" and not file.peek(2).startswith(_GZIP):
      yield file
      return
    try:
      unpacked = _Bounded(gzip.GzipFile(fileobj=file), path, what)
      yield cast(IO[bytes], io.BufferedReader(unpacked, 2**16))
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
      raise SgdxError(
        f"{path}: not a complete gzip file ({e})",
        expected=what,
        fix="compress it again, or pass the uncompressed file",
      ) from None


def check_unpacked(size: int, where: str, expected: str, fix: str) -> None:
  """Raises SgdxError for more than `LARGEST_UNPACKED` bytes. Args: as for `decode_json`."""
  if size > LARGEST_UNPACKED:
    raise SgdxError(
      f"{where}: more than {LARGEST_UNPACKED / 2**20:,.0f} MiB when unpacked",
      expected=expected,
      fix=fix,
    )


class _Bounded(io.RawIOBase):
  """A decompressed file that ends with an error where it becomes too large."""

  def __init__(self, file: gzip.GzipFile, path: pathlib.Path, what: str):
    self._file, self._path, self._what = file, path, what
    self._fix = f"if you trust it, decompress it: gunzip {path}"

  def readable(self) -> bool:
    return True

  def seekable(self) -> bool:
    return True

  def seek(self, offset: int, whence: int = 0) -> int:
    return self._file.seek(offset, whence)

  def readinto(self, buffer: Any) -> int:
    size = self._file.readinto(buffer)
    check_unpacked(self._file.tell(), str(self._path), self._what, self._fix)
    return size


def json_type(value: Any) -> str:
  """Returns the type of a decoded JSON value, with an article: "an object", "a list", "null"."""
  if value is None or isinstance(value, bool):
    return "null" if value is None else "a boolean"
  types: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
  return types.get(type(value), "a number")


def is_text(value: Any) -> bool:
  """Whether decoded JSON is a string that UTF-8 can encode: escapes may be lone surrogates."""
  return isinstance(value, str) and not _HALF_CHARACTER.search(value)


def as_text(text: str) -> str:
  """Returns a string with "?" for each lone surrogate: UTF-8 can encode it, see `is_text`."""
  return text.encode("utf-8", "replace").decode()


def is_number(value: Any) -> bool:
  """Whether decoded JSON is a finite number that a float can hold; JSON integers are unbounded."""
  try:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)
  except OverflowError:
    return False


def decode_json(text: str | bytes, where: str, expected: str, fix: str = "") -> Any:
  """Decodes JSON.

  Args:
    text: str, or bytes in UTF-8. An integer of more than 64 bits becomes a float if that is finite.
    where: file and line, for errors.
    expected: what should be there.
    fix: what to do if it is malformed; a truncated file has a separate fix.

  Raises:
    SgdxError: it is not JSON, or not UTF-8.
  """
  try:
    return orjson.loads(text)
  except orjson.JSONDecodeError:
    pass  # json also reads NaN and lone surrogates, and its errors say more
  try:
    return json.loads(text)
  except UnicodeDecodeError as e:
    raise not_utf8(where, e, expected) from None
  except RecursionError:
    raise SgdxError(
      f"{where}: JSON nested too deeply", expected=expected, fix="write the file again"
    ) from None
  except json.JSONDecodeError as e:
    cut = e.pos >= len(e.doc.rstrip()) or e.msg.startswith("Unterminated")
    raise SgdxError(
      f"{where}: not valid JSON ({e})",
      expected=expected,
      fix="write the file again: it was probably cut short" if cut or not fix else fix,
    ) from None


def decode_as(decoder: msgspec.json.Decoder[_T], content: str | bytes) -> _T | None:
  """Decodes JSON whose types the decoder checks, several times as fast as Python could.

  Returns:
    None if it is not JSON, or not of the decoder's type. The caller then decodes it with
    `decode_json`, which also reads NaN and lone surrogates, and says where it is wrong.
  """
  try:
    if isinstance(content, bytes):
      content.decode()  # msgspec does not look at the characters of what it skips
    return decoder.decode(content)
  except (msgspec.MsgspecError, RecursionError, ValueError):
    return None


def not_utf8(where: str, error: UnicodeDecodeError, expected: str) -> SgdxError:
  """Returns the error for bytes that are not UTF-8. Args: as for `decode_json`."""
  return SgdxError(
    f"{where}: not UTF-8 ({error.reason} at byte {error.start:,})",
    expected=expected,
    fix="write the file again, in UTF-8",
  )


def decode_lines(
  content: bytes, origin: str, expected: str, fix: str = "", first: int = 1
) -> Iterator[tuple[str, Any]]:
  """Yields the location, for errors, and the decoded value of each non-empty line of JSON Lines.

  Args:
    content: the file's content, or the rest of it.
    origin: the file, for errors.
    expected, fix: see `decode_json`.
    first: number of the first line.

  Raises:
    SgdxError: a line is not JSON.
  """
  content = content.removeprefix(codecs.BOM_UTF8)  # as some editors write
  for number, line in enumerate(content.splitlines(), start=first):
    if line.strip():
      where = f"{origin}, line {number}"
      yield where, decode_json(line, where, expected, fix)
