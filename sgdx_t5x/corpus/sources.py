"""Where a corpus comes from: a zip archive or a folder, in the layout of the official archive."""

import os
import pathlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from sgdx_t5x.errors import SgdxError, nearest

# The files that a score depends on, by their place in the layout. Variants' dialogues, which the
# official converter puts beside their schemas, only repeat the original ones.
_PART = re.compile(
  r"(train|dev|test)/dialogues_[^/]*\.json"
  r"|(sgd_x/data/[^/]+/|back_translations/[^/]+/)?(train|dev|test)/schema\.json"
)
_UNPACKING = {"gz": "gunzip", "xz": "unxz", "bz2": "bunzip2", "zst": "unzstd"}  # ending -> command
_PACKED = re.compile(
  rf"(?:train|dev|test)/(?:dialogues_[^/]*|schema)\.json\.({'|'.join(_UNPACKING)})"
)
_SCHEMA = re.compile(r"((?:.*/)?)(?:train|dev|test)/schema\.json", re.DOTALL)

# What zipfile raises for broken archives; encrypted ones and unknown methods are RuntimeErrors.
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, zlib.error)
DOWNLOAD_HINT = "sgdx data prepare --download fetches the official archive"


def is_schema(name: str) -> bool:
  """Whether a file is a schema of the layout, and not of another corpus within the folder."""
  return name.endswith("/schema.json") and _PART.fullmatch(name) is not None


def is_archive(path: pathlib.Path) -> bool:
  """Whether a path is a zip archive, complete or cut short."""
  if not os.path.isfile(path):  # opening a pipe would block
    return False
  try:
    with path.open("rb") as file:
      return file.read(2) == b"PK" or zipfile.is_zipfile(file)  # the latter: after other bytes
  except OSError:
    return False


class Source(Protocol):
  """Where a corpus comes from: texts by their path in the official layout."""

  origin: str

  def names(self) -> list[str]:
    """All file names, relative to the corpus root, sorted."""

  def read(self, name: str) -> bytes:
    """The content of one file; also of JSON Lines files, which `names` leaves out."""

  def checksums(self) -> Iterator[tuple[str, int]]:
    """(name, CRC-32) of schemas and dialogues only, whatever else is there."""
    for name in self.names():
      if _PART.fullmatch(name):
        yield name, zlib.crc32(self.read(name))


def _find_root(names: list[str], origin: str) -> str:
  """The folder inside an archive that holds the splits, e.g. dstc8-...-master/."""
  roots = [match[1] for match in map(_SCHEMA.fullmatch, names) if match]
  roots.sort(key=len)
  if not roots:
    fix = f"pass the official archive; {DOWNLOAD_HINT}"
    if "schema.json" in names:
      fix = (
        "if this is the folder of one split, pass the one above it; if the schema is that of all "
        "splits, copy it into train/, dev/ and test/"
      )
    raise SgdxError(
      f"{origin}: contains no SPLIT/schema.json",
      expected="the layout of the official SGD archive",
      available=nearest("schema.json", names),
      fix=fix,
    )
  outer_roots: list[str] = []  # without the variants within a corpus
  for root in roots:
    if not root.startswith(tuple(outer_roots)):
      outer_roots.append(root)
  if len(outer_roots) > 1:
    raise SgdxError(
      f"{origin}: contains {len(outer_roots)} corpora",
      expected="one corpus: train/, dev/ and test/ in one folder",
      available=nearest("", outer_roots),
      fix="unpack it if it is an archive, and pass one of these folders",
    )
  return roots[0]


def _check_unpacked(names: Iterable[str], origin: str) -> None:
  """Refuses compressed dialogues and schemas: without them, the rest would look complete."""
  for name in sorted(names):
    if packed := _PACKED.fullmatch(name):
      raise SgdxError(
        f"{origin}: {name} is compressed",
        expected="JSON files; only predictions may be compressed",
        fix=f"decompress it: {_UNPACKING[packed[1]]} {name}",
      )


class ArchiveSource(Source):
  """The files of a zip archive; see `Source`."""

  def __init__(self, path: pathlib.Path):
    """Args: path of the archive. Raises SgdxError if it is not a complete zip file."""
    self.origin = str(path)
    try:
      self._zip = zipfile.ZipFile(path)
    except _BROKEN as e:
      raise self._broken(e) from None
    names = self._zip.namelist()
    root = _find_root([name for name in names if name.endswith((".json", ".jsonl"))], self.origin)
    _check_unpacked([name.removeprefix(root) for name in names], self.origin)
    infos = [info for info in self._zip.infolist() if info.filename.startswith(root)]
    self._members = {info.filename.removeprefix(root): info for info in infos}

  def names(self) -> list[str]:
    """All file names, relative to the corpus root, sorted."""
    return sorted(name for name in self._members if name.endswith(".json"))

  def read(self, name: str) -> bytes:
    """The content of one file. Raises SgdxError if it is damaged."""
    try:
      return self._zip.read(self._members[name])
    except _BROKEN as e:
      raise self._broken(e) from None

  def checksums(self) -> Iterator[tuple[str, int]]:
    """(name, CRC-32) of schemas and dialogues, as the archive stores them."""
    for name, info in self._members.items():
      if _PART.fullmatch(name):
        yield name, info.CRC

  def _broken(self, error: Exception) -> SgdxError:
    return SgdxError(
      f"{self.origin}: not a complete zip file ({error})",
      expected="the official archive",
      fix=f"download it again: it was probably cut short; {DOWNLOAD_HINT}",
    )


class DirectorySource(Source):
  """The files of a folder; see `Source`."""

  def __init__(self, path: pathlib.Path):
    """Args: path of the folder. Raises SgdxError if it does not have the layout."""
    self.origin = str(path)
    self._root = path / _find_root(_json_names(path), self.origin)
    packed = self._root.glob("*/*.json.*")
    _check_unpacked([p.relative_to(self._root).as_posix() for p in packed], self.origin)

  def names(self) -> list[str]:
    """All file names, relative to the corpus root, sorted."""
    return _json_names(self._root)

  def read(self, name: str) -> bytes:
    """The content of one file."""
    return (self._root / name).read_bytes()


def _json_names(folder: pathlib.Path) -> list[str]:
  paths = (path for path in paths_below(folder) if path.name.endswith(".json"))
  # Regular files only: a folder may have such a name, and reading a pipe would block.
  return sorted(path.relative_to(folder).as_posix() for path in paths if path.is_file())


def paths_below(
  folder: pathlib.Path, ancestors: frozenset[str] = frozenset()
) -> Iterator[pathlib.Path]:
  """Yields what is below a folder, links followed; nothing for a file.

  Raises OSError for a folder that may not be read: without it, a corpus would look complete.
  """
  place = os.path.realpath(folder)
  if place in ancestors:  # a link that leads in a circle
    return
  try:
    names = os.listdir(folder)
  except (NotADirectoryError, FileNotFoundError):
    return
  for path in map(folder.joinpath, names):
    yield path
    if path.is_dir():
      yield from paths_below(path, ancestors | {place})
