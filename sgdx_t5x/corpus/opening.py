"""Opening a corpus: the official archive, a folder of its layout, or the embedded sample."""

import json
import os
import pathlib
import re
import stat
from typing import Any

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.sources import DOWNLOAD_HINT, ArchiveSource, DirectorySource, is_archive
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import SgdxError

SAMPLE = "sample"
_MOST_BYTES = 64_000_000  # of a file that is decoded, only to say what it is
_PACKED = {  # first bytes -> kind of file
  b"\x1f\x8b": "a gzip file",
  b"BZh": "a bzip2 file",
  b"\xfd7zXZ\x00": "an xz file",
  b"7z\xbc\xaf\x27\x1c": "a 7z archive",
  b"Rar!": "a rar archive",
  b"\x28\xb5\x2f\xfd": "a zstd file",
}
_VARIANT = re.compile(r"/(?:sgd_x/data|back_translations)/[^/]+$")
_TAR, _TAR_PLACE = b"ustar", 257
_DIALOGUES, _SCHEMA, _TOOLS = "dialogues", "a schema", "a list of tools"
_PREDICTIONS = "predictions or prompts"
_PASS = 'pass a zip archive, its unpacked folder, or "sample"'
_HINTS = {
  _DIALOGUES: "put it beside its schema.json, in FOLDER/test (or train, dev), and pass FOLDER",
  _SCHEMA: "`sgdx simulate --init FILE --out DIR` starts a corpus for a schema of your own",
  _TOOLS: "write the tools as services of a schema.json, for which `sgdx simulate` makes dialogues",
  _PREDICTIONS: f"pass it with --predictions, and as the corpus what was predicted: {_PASS}",
}


@checked_arguments(where=PATH)
def open_corpus(where: str | os.PathLike) -> Corpus:
  """Opens the official archive (zip), a folder with its layout, or "sample".

  Raises:
    SgdxError: nothing exists there, it is another kind of file, or the zip is truncated.
  """
  if str(where) == SAMPLE:
    from sgdx_t5x.corpus.sample import SampleSource

    return Corpus(SampleSource())
  path = pathlib.Path(where)
  if path.is_dir():
    return Corpus(DirectorySource(path))
  if not path.exists():
    raise SgdxError(
      f"no archive or folder at {path}",
      expected='the official SGD archive (zip), its unpacked folder, or "sample"',
      fix=f"check the path; {DOWNLOAD_HINT}",
    )
  if not is_archive(path):
    raise _not_a_corpus(path)
  return Corpus(ArchiveSource(path))


# --- files that are no corpus ---------------------------------------------------------------


def _not_a_corpus(path: pathlib.Path) -> SgdxError:
  """Returns the error for a file that is given as a corpus and is not a zip archive.

  Args:
    path: something that exists and is no folder. Only regular files are read.
  """
  kind, hint = _kind(path)
  fix = hint or f"{_PASS}; {DOWNLOAD_HINT}"
  if root := _corpus_around(path.resolve()):
    fix = f"pass the folder of the whole corpus: {root}"
  return SgdxError(
    f"{path} is not a corpus but {kind}",
    expected="a zip archive or a folder with SPLIT/schema.json and SPLIT/dialogues_*.json, where "
    'SPLIT is train, dev or test; or "sample"',
    fix=fix,
  )


def _corpus_around(path: pathlib.Path) -> pathlib.Path | None:
  """Returns the corpus that a file lies in, if it does: not that of a variant within a corpus."""
  for folder in path.parents:
    is_variant = _VARIANT.search(folder.as_posix())
    if not is_variant and any((folder / split / "schema.json").is_file() for split in SPLITS):
      return folder
  return None


def _kind(path: pathlib.Path) -> tuple[str, str]:
  """Returns what a file is, and what to do with it; "" for nothing in particular."""
  try:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would block, a device may have no end
      return "a pipe or device", ""
    if not status.st_size:
      return "an empty file", ""
    with path.open("rb") as file:
      content = file.read(_MOST_BYTES)
  except OSError as e:
    return f"a file that cannot be read ({e.strerror})", "check its permissions"
  for start, kind in _PACKED.items():
    if content.startswith(start):
      return kind, "unpack it; " + _PASS
  if content[_TAR_PLACE:].startswith(_TAR):
    return "a tar archive", "unpack it, and pass the folder with train/, dev/ and test/"
  try:
    text = content.decode("utf-8-sig").strip()
  except UnicodeDecodeError:
    return "a file that is neither a zip archive nor text", ""
  if not text:
    return "an empty file", ""
  if text[:200].lower().startswith(("<!doctype html", "<html")):
    return "a page of the web (HTML)", f"download the file itself; {DOWNLOAD_HINT}"
  return _kind_of_text(text)


def _kind_of_text(text: str) -> tuple[str, str]:
  try:
    data = json.loads(text)
  except (ValueError, RecursionError):
    pass
  else:
    kind = _kind_of_json(data)
    return f"{kind} (JSON)", _HINTS.get(kind, "")
  try:
    first = json.loads(text.split("\n", 1)[0])
  except (ValueError, RecursionError):
    return "text that begins like JSON" if text.startswith(("{", "[")) else "a text file", ""
  if not isinstance(first, dict | list):  # the first line of a text may be a number
    return "a text file", ""
  kind = _kind_of_json(first)
  return f"{kind} (JSON Lines)", _HINTS.get(kind, "")


def _kind_of_json(data: Any) -> str:
  """Returns what decoded JSON is: a key of `_HINTS`, or a few words."""
  if isinstance(data, dict) and isinstance(data.get("tools"), list) and "messages" not in data:
    return _TOOLS  # as a server's tools/list
  items = data if isinstance(data, list) else [data]
  if not items:
    return "an empty list"
  first = items[0]
  if not isinstance(first, dict):
    return "a list" if isinstance(data, list) else "a value"
  if "dialogue_id" in first and "turns" in first:
    return _DIALOGUES
  if "service_name" in first:
    return _SCHEMA
  if "function" in first or {"inputSchema", "input_schema", "parameters"}.intersection(first):
    return _TOOLS
  if {"prediction", "example_id", "inputs", "messages", "prompt"}.intersection(first):
    return _PREDICTIONS
  if isinstance(name := first.get("format"), str) and name.startswith("sgdx-"):
    return f"output of this package, {name}"
  keys = ", ".join(list(first)[:5]) or "no keys"
  return f"a list of objects with {keys}" if isinstance(data, list) else f"an object with {keys}"
