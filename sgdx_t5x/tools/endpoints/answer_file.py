"""Answers on disk: lines of OpenAI's batch output, appended one by one as they arrive.

A line is {"custom_id", "response": {"status_code", "body"}, "error", "request": {"hash", "model"}}.
It is passed to the operating system in one write before anything else is done with the answer: what
a process has written survives it, and only the last line of a file can be incomplete. A crash of
the whole machine can lose what came since the last `sync`, a few seconds of answers.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeGuard

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, not_found
from sgdx_t5x.files.writing import writing_fix
from sgdx_t5x.tools.endpoints.request_file import Request, RequestFile, to_json

_EXPECTED = "answers written by `sgdx tools run`"
_START = b'{"custom_id":'  # of every line


@dataclasses.dataclass
class Usage:
  """Tokens, as the service counts them.

  Attributes:
    read, written: input and output tokens.
    answers: how many reported them.
  """

  read: int = 0
  written: int = 0
  answers: int = 0

  def add(self, response: Any) -> None:
    """Counts an answer. Args: response, its body."""
    usage = response.get("usage")
    read, written = (
      usage.get(f"{x}_tokens") if isinstance(usage, dict) else None
      for x in ("prompt", "completion")
    )
    if _is_count(read) and _is_count(written):
      self.read, self.written = self.read + read, self.written + written
      self.answers += 1


def _is_count(value: Any) -> TypeGuard[int]:
  return type(value) is int and value >= 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
  """Where an answer is."""

  path: pathlib.Path
  start: int


class AnswerFile:
  """The answers to requests: those already in the file, and new ones.

  Attributes:
    path: the file.
    ids: ids of the answered requests.
    usage: of the answers in the file; an answer shared by several requests counts once.
  """

  def __init__(self, path: str | pathlib.Path, requests: RequestFile):
    """Reads the existing answers. Nothing is changed.

    Args:
      path: a new file, or one of an earlier run with the same requests.
      requests: all requests.

    Raises:
      SgdxError: the file has anything but answers to these requests.
    """
    self.path, self.ids, self.usage = pathlib.Path(path), set[str](), Usage()
    self._model, self._descriptor, self._size = requests.model, -1, 0
    self._known: dict[str, _Place] = {}
    if self.path.exists():
      if not self.path.is_file():
        raise SgdxError(f"{path}: not a regular file", expected="a file", fix="choose another file")
      self._check({request.id: request.digest for request in requests.requests}, requests)

  def _check(self, digests: dict[str, str], requests: RequestFile) -> None:
    """Reads the file; refuses answers to other requests."""
    for place, row in _rows(self.path):
      name, request = row["custom_id"], row["request"]
      self._size = place.start + row["size"]
      if digests.get(name) != request["hash"]:
        found = f"{self.path}: an answer to {name!r}, which is not in {requests.path}"
        if name in digests:
          of, now = request.get("model"), self._model
          why = "different text or parameters" if of == now else f"model {of!r}, now {now!r}"
          found = f"{self.path}: an answer to a different request {name!r}: {why}"
        raise SgdxError(
          found,
          expected="a new file, or the answers of an earlier run to the same requests",
          fix=f"choose another --out, with --reuse {self.path} to reuse answers to equal requests",
        )
      if request["hash"] not in self._known:
        self.usage.add(row["response"]["body"])
      self._known[request["hash"]] = place
      self.ids.add(name)

  def reuse(self, paths: Sequence[str], digests: Collection[str]) -> None:
    """Registers answers of other files. Args: digests, of the requests that matter.

    Raises:
      SgdxError: no such file, or not a file of answers.
    """
    for path in map(pathlib.Path, paths):
      if not path.is_file():
        raise not_found(path, _EXPECTED)
      if path.suffix == ".gz":
        raise SgdxError(
          f"--reuse {path}: compressed", expected="plain text", fix=f"gunzip --keep {path}"
        )
      for place, row in _rows(path):
        if row["request"]["hash"] in digests:
          self._known.setdefault(row["request"]["hash"], place)

  def known(self, digest: str) -> Any:
    """Returns the body of an answer to an equal request; None if there is none."""
    if not (place := self._known.get(digest)):
      return None
    with place.path.open("rb") as file:
      file.seek(place.start)
      return decode_json(file.readline(), str(place.path), _EXPECTED)["response"]["body"]

  def has(self, digest: str) -> bool:
    """Whether an answer to an equal request is known."""
    return digest in self._known

  def add(self, requests: Sequence[Request], response: Any) -> None:
    """Writes an answer. Args: requests that it answers, of one digest; response, its body.

    Raises:
      TooDeep: it is nested too deeply; nothing is written.
      SgdxError: it cannot be written; earlier answers are kept.
    """
    about = {"hash": requests[0].digest, "model": self._model}
    answer = {"status_code": 200, "body": response}
    rows = (
      {"custom_id": x.id, "response": answer, "error": None, "request": about} for x in requests
    )
    self._write(b"".join(to_json(row, f"{self.path}: an answer") + b"\n" for row in rows))
    self.ids.update(request.id for request in requests)
    before = self._known.get(about["hash"])
    if not before or before.path != self.path:
      self.usage.add(response)

  def _write(self, text: bytes) -> None:
    try:
      if self._descriptor < 0:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.ftruncate(self._descriptor, self._size)  # incomplete line of a run that was killed
      written = 0
      while written < len(text):  # a write can be partial where the disk gets full
        written += os.write(self._descriptor, text[written:])
      self._size += written
    except OSError as e:
      with contextlib.suppress(OSError):
        os.ftruncate(self._descriptor, self._size)
      raise SgdxError(
        f"--out {self.path}: {e.strerror}",
        expected="a file that can be written, on a disk with enough space",
        fix=writing_fix(e, "move the file to another disk and pass its new path"),
      ) from None

  def sync(self) -> None:
    """Flushes what was written to the disk (fsync), which may take a while."""
    if self._descriptor >= 0:
      os.fsync(self._descriptor)

  def close(self) -> None:
    """Syncs and closes the file."""
    if self._descriptor >= 0:
      self.sync()
      os.close(self._descriptor)
      self._descriptor = -1


def _rows(path: pathlib.Path) -> Iterator[tuple[_Place, dict[str, Any]]]:
  """Yields places and rows, with their sizes in bytes as "size"; skips a truncated last line.

  Raises:
    SgdxError: any other line that is not of this form.
  """
  start = 0
  with path.open("rb") as file:
    for number, line in enumerate(file, start=1):
      is_whole = line.endswith(b"\n")
      if not is_whole and (line.startswith(_START) or _START.startswith(line)):
        return
      where = f"{path}, line {number}"
      row: Any = decode_json(line, where, _EXPECTED) if is_whole else None
      try:
        good = isinstance(row["request"]["hash"], str) and isinstance(row["custom_id"], str)
        good = good and isinstance(row["response"]["body"], dict)
      except (KeyError, TypeError, IndexError):
        good = False
      if not good:
        raise SgdxError(
          f"{where}: not an answer written by `sgdx tools run`",
          expected=_EXPECTED,
          fix="choose another file",
        )
      yield _Place(path, start), {**row, "size": len(line)}
      start += len(line)
