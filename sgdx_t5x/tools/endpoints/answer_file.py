"""Answers on disk: lines of OpenAI's batch output, appended one by one as they arrive.

A line is {"custom_id", "response": {"status_code", "body"}, "error", "request": {"hash", "model"}}.
It is passed to the operating system in one write before anything else is done with the answer: what
a process has written survives it, and only the last line of a file can be incomplete. A crash of
the whole machine can lose what the system had not written to the disk yet.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.files.writing import writing_fix
from sgdx_t5x.tools.endpoints.request_file import Request, RequestFile, to_json
from sgdx_t5x.tools.messages import NoAnswer, has_plain_calls, read_answer

_EXPECTED = "answers written by `sgdx tools run`"
_START = b'{"custom_id":'  # of every line


@dataclasses.dataclass
class Counts:
  """What is counted of answers.

  Attributes:
    cut_off: how many were ended by a limit of tokens.
    read, written: input and output tokens, as the service counts them.
    metered: how many answers reported them.
  """

  cut_off: int = 0
  read: int = 0
  written: int = 0
  metered: int = 0

  def add(self, body: Mapping[str, Any]) -> None:
    """Counts an answer."""
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if _is_count(read) and _is_count(written):
      self.read, self.written = self.read + read, self.written + written
      self.metered += 1
    if not has_plain_calls(body):
      with contextlib.suppress(NoAnswer, SgdxError):  # as an earlier version wrote them
        self.cut_off += read_answer(body, "").cut_off


def _is_count(value: Any) -> TypeGuard[int]:
  return type(value) is int and value >= 0


class AnswerFile:
  """The answers to requests: those already in the file, and new ones.

  Attributes:
    path: the file.
    ids: ids of the answered requests.
    counts: of the answers in the file; an answer shared by several requests counts once.
  """

  def __init__(self, path: str | pathlib.Path, requests: RequestFile):
    """Reads the existing answers. Nothing is changed.

    Args:
      path: a new file, or one of an earlier run with the same requests.
      requests: all requests.

    Raises:
      SgdxError: the file has anything but answers to these requests.
    """
    self.path, self.ids, self.counts = pathlib.Path(path), set[str](), Counts()
    self._model, self._descriptor, self._size = requests.model, -1, 0
    self._places: dict[str, int] = {}  # digest of a request -> byte offset of its answer
    if self.path.exists():
      if not self.path.is_file():
        raise SgdxError(f"{path}: not a regular file", expected="a file", fix="choose another file")
      self._check({request.id: request.digest for request in requests.requests}, requests)

  def _check(self, digests: dict[str, str], requests: RequestFile) -> None:
    """Reads the file; refuses answers to other requests."""
    for row, size in _rows(self.path):
      name, digest = row["custom_id"], row["request"]["hash"]
      if digests.get(name) != digest:
        found = f"{self.path}: an answer to {name!r}, which is not in {requests.path}"
        if name in digests:
          of, now = row["request"].get("model"), self._model
          why = "different text or parameters" if of == now else f"model {of!r}, now {now!r}"
          found = f"{self.path}: an answer to a different request {name!r}: {why}"
        raise SgdxError(
          found,
          expected="a new file, or the answers of an earlier run to the same requests",
          fix="choose another --out",
        )
      if digest not in self._places:
        self.counts.add(row["response"]["body"])
        self._places[digest] = self._size
      self._size += size
      self.ids.add(name)

  def has(self, digest: str) -> bool:
    """Whether an answer to an equal request is known."""
    return digest in self._places

  def known(self, digest: str) -> tuple[Any, int]:
    """Returns body and status of the answer to an equal request, of which there is one."""
    with self.path.open("rb") as file:
      file.seek(self._places[digest])
      response = decode_json(file.readline(), str(self.path), _EXPECTED)["response"]
    return response["body"], response.get("status_code", 200)

  def add(self, requests: Sequence[Request], body: Any, status: int = 200) -> None:
    """Writes an answer.

    Args:
      requests: what it answers; all of one digest.
      body: the answer.
      status: another than 200 if the service could not parse the model's call.

    Raises:
      RecursionError: it is nested too deeply; nothing is written.
      SgdxError: it cannot be written; earlier answers are kept. Or the file is gone.
    """
    about = {"hash": requests[0].digest, "model": self._model}
    response = {"status_code": status, "body": body}
    rows = (
      {"custom_id": x.id, "response": response, "error": None, "request": about} for x in requests
    )
    text, place = b"".join(to_json(row) + b"\n" for row in rows), self._size
    self._write(text)
    self.ids.update(request.id for request in requests)
    if about["hash"] not in self._places:
      self._places[about["hash"]] = place
      self.counts.add(body)

  def _write(self, text: bytes) -> None:
    self.check_place()
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

  def check_place(self) -> None:
    """Raises SgdxError if the open file was removed or moved: further answers would be lost."""
    if self._descriptor < 0:
      return
    with contextlib.suppress(OSError):
      if os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)):
        return
    number = len(self.ids)
    self.ids.clear()
    raise SgdxError(
      f"--out {self.path}: the file was removed or moved during the run",
      expected=f"the file with its {number:,} answers, to which the next one is appended",
      fix="move it back if it still exists, and run the same command again",
    )

  def close(self) -> None:
    """Flushes the file to the disk (fsync) and closes it."""
    if self._descriptor >= 0:
      os.fsync(self._descriptor)
      os.close(self._descriptor)
      self._descriptor = -1


def _rows(path: pathlib.Path) -> Iterator[tuple[dict[str, Any], int]]:
  """Yields rows and their sizes in bytes; skips a truncated last line.

  Raises:
    SgdxError: any other line that is not of this form.
  """
  with path.open("rb") as file:
    for number, line in enumerate(file, start=1):
      if not line.endswith(b"\n") and (line.startswith(_START) or _START.startswith(line)):
        return
      where = f"{path}, line {number}"
      row: Any = decode_json(line, where, _EXPECTED)
      try:
        good = isinstance(row["request"]["hash"], str) and isinstance(row["custom_id"], str)
        good = good and isinstance(row["response"]["body"], dict)
      except (KeyError, TypeError, IndexError):
        good = False
      if not good or not line.endswith(b"\n"):
        raise SgdxError(
          f"{where}: not an answer written by `sgdx tools run`",
          expected=_EXPECTED,
          fix="choose another file",
        )
      yield row, len(line)
