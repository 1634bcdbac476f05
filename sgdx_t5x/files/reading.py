"""Validated reading: what all readers of JSON share, and the error for a missing file."""

import codecs
import contextlib
import gzip
import json
import lzma
import math
import os
import pathlib
import re
import shlex
import zlib
from collections.abc import Iterator
from typing import IO, Any, TypeVar, cast

from sgdx_t5x.errors import SgdxError, nearest, quoted

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # first bytes
_UNREAD = {  # first bytes -> a format that is not read, and the command that unpacks it
  b"BZh": ("bzip2", "bzip2 -dk"),
  b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
  b"PK\x03\x04": ("zip", "unzip"),
}
_T = TypeVar("_T")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")  # of a path into decoded JSON


def not_found(path: pathlib.Path, expected: str, kind: str = "file") -> SgdxError:
  """Returns the error for a path that is no file, with the closest names in its folder.

  Args:
    path: the missing path.
    expected: what should be there.
    kind: "file", "folder", or "file or folder".
  """
  if os.path.isdir(path):
    files = _shown(path)
    return SgdxError(
      f"{path} is a folder",
      expected=expected,
      available=", ".join(files[:5]) + (", ..." if len(files) > 5 else ""),
      fix="pass the path of a file",
    )
  neighbours = _shown(path.parent) if os.path.isdir(path.parent) else []
  return SgdxError(
    f"no {kind} at {path}",
    expected=expected,
    available=nearest(path.name, neighbours),
    fix="check the path",
  )


def _shown(folder: pathlib.Path) -> list[str]:
  return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def read_input(path: str | pathlib.Path, expected: str) -> bytes:
  """Returns the content of a file that no output may overwrite.

  Args:
    path: the file.
    expected: what it should be, for messages.

  Raises:
    SgdxError: there is no such file.
  """
  path = pathlib.Path(path)
  if not os.path.isfile(path):  # which takes a name that is too long, too
    raise not_found(path, expected)
  with opened(path, expected) as file:
    return file.read()


@contextlib.contextmanager
def opened(path: pathlib.Path, expected: str) -> Iterator[IO[bytes]]:
  """Opens a file for reading, decompressed if it is packed by gzip or xz, or named so.

  Args:
    path: the file.
    expected: what it should be, for messages.

  Raises:
    SgdxError: it is packed in another format; or the end of a packed file is missing or damaged,
      which reading it shows.
  """
  with path.open("rb") as file:
    start = file.peek(len(_XZ))
    for first_bytes, (name, command) in _UNREAD.items():
      if start.startswith(first_bytes):
        raise SgdxError(
          f"{path}: compressed with {name}",
          expected=expected,
          available="files that are compressed with gzip or xz are read, too",
          fix=f"unpack it: {command} {shlex.quote(str(path))}",
        )
    try:
      if start.startswith(_XZ) or (path.suffix == ".xz" and not start.startswith(_GZIP)):
        yield cast(IO[bytes], lzma.LZMAFile(file))  # noqa: SIM115, `file` is closed
      elif start.startswith(_GZIP) or path.suffix == ".gz":
        yield cast(IO[bytes], gzip.GzipFile(fileobj=file))
      else:
        yield file
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as e:
      raise SgdxError(
        f"{path}: not a complete compressed file ({e})", expected=expected, fix="compress it again"
      ) from None


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


def decode_json(text: str | bytes, place: str, expected: str, fix: str = "") -> Any:
  """Decodes JSON.

  Args:
    text: str, or bytes in UTF-8. An integer of more than 64 bits becomes a float if that is finite.
    place: file and line, for errors.
    expected: what should be there.
    fix: what to do if it is malformed; a truncated file has a separate fix.

  Raises:
    SgdxError: it is not JSON, or not UTF-8.
  """
  import orjson

  try:
    return orjson.loads(text)
  except orjson.JSONDecodeError:
    pass  # json also reads NaN and lone surrogates, and its errors say more
  try:
    return json.loads(text)
  except UnicodeDecodeError as e:
    raise not_utf8(place, e, expected) from None
  except RecursionError:
    raise SgdxError(
      f"{place}: JSON nested too deeply", expected=expected, fix="write the file again"
    ) from None
  except json.JSONDecodeError as e:
    cut = e.pos >= len(e.doc.rstrip()) or e.msg.startswith("Unterminated")
    raise SgdxError(
      f"{place}: not valid JSON ({e})",
      expected=expected,
      fix="write the file again: it was probably cut short" if cut else fix or "correct the file",
    ) from None


def converted(data: Any, kind: type[_T], place: str, expected: str, fix: str) -> _T:
  """Returns decoded JSON as a dataclass or msgspec struct, whose types it must have.

  Args:
    data: decoded JSON.
    kind: the class.
    place, expected, fix: of the error, which also names the place within `data`.
  """
  import msgspec  # here, since it takes 25 ms and `sgdx --help` reads nothing

  try:
    return msgspec.convert(data, kind)
  except (msgspec.ValidationError, UnicodeEncodeError) as e:  # the latter for half a character
    raise SgdxError(
      f"{place}: {e}", expected=expected, available=available_keys(data, e), fix=fix
    ) from None


def available_keys(data: Any, error: Exception) -> str:
  """Returns the keys of an object that lacks one, for an error; "" for errors of other kinds.

  Args:
    data: what msgspec converted: decoded JSON, or structs with attributes.
    error: as it raised, with a path into `data`: "... - at `$.turns[2].frames[0]`".
  """
  text = str(error)
  if "missing required field" not in text:
    return ""
  part = data
  for name, number in _STEP.findall(text.rpartition("`$")[2]):
    try:
      if number:
        part = part[int(number)]
      else:
        part = part[name] if isinstance(part, dict) else getattr(part, name)
    except (LookupError, TypeError, AttributeError, ValueError):
      return ""
  return f"it has {', '.join(map(quoted, part))}" if isinstance(part, dict) and part else ""


def decode_list(
  text: str | bytes, kind: type[_T], name_key: str, origin: str, expected: str, fix: str
) -> list[_T]:
  """Decodes a JSON list of objects of one kind, as dialogues and services are stored.

  Args:
    text: see `decode_json`.
    kind: class of an item, see `converted`.
    name_key: key of an item's name, as in "service_name", for errors.
    origin: the file, for errors.
    expected, fix: of errors.

  Raises:
    SgdxError: it is not such a list; the message names file, item and the place within it.
  """
  import msgspec

  try:
    if isinstance(text, bytes):
      text.decode()  # msgspec does not look at the characters of what it skips
    return cast(list[_T], msgspec.json.decode(text, type=list[kind]))  # type: ignore[valid-type]
  except (msgspec.MsgspecError, RecursionError, ValueError):
    pass  # item by item, which is slower, reads lone surrogates, and says what is wrong
  items = checked_list(decode_json(text, origin, expected, fix), origin, expected, fix)
  return [converted_item(item, kind, name_key, origin, expected, fix) for item in items]


def checked_list(data: Any, origin: str, expected: str, fix: str) -> list[Any]:
  """Returns decoded JSON. Raises SgdxError if it is no list."""
  if not isinstance(data, list):
    problem = f"{origin}: the top-level JSON value is {json_type(data)}"
    raise SgdxError(problem, expected=expected, fix=fix)
  return data


def converted_item(
  item: Any, kind: type[_T], name_key: str, origin: str, expected: str, fix: str
) -> _T:
  """Returns a decoded item as `kind`, see `decode_list`."""
  name = item.get(name_key) if isinstance(item, dict) else None
  place = f"{origin}, {name_key.partition('_')[0]} {name if isinstance(name, str) else '?'}"
  return converted(item, kind, place, expected, fix)


def not_utf8(place: str, error: UnicodeDecodeError, expected: str) -> SgdxError:
  """Returns the error for bytes that are not UTF-8. Args: as for `decode_json`."""
  return SgdxError(
    f"{place}: not UTF-8 ({error.reason} at byte {error.start:,})",
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
      place = f"{origin}, line {number}"
      yield place, decode_json(line, place, expected, fix)
