"""Answers on disk: lines of OpenAI's batch output, appended one by one as they arrive.

A line is {"custom_id", "response": {"status_code", "body"}, "error", "request": {"hash", "model"}}.
It is passed to the operating system in one write before anything else is done with the answer: what
a process has written survives it, and only the last line of a file can be incomplete.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, not_found
from sgdx_t5x.files.writing import writing_fix
from sgdx_t5x.tools.endpoints.request_file import Request, RequestFile, to_json
from sgdx_t5x.tools.messages import NoAnswer, has_plain_calls, read_answer
from sgdx_t5x.tools.requests import Size

_EXPECTED = "answers written by `sgdx tools run`"
_START = b'{"custom_id":'  # of every line

_Place = tuple[pathlib.Path, int]  # where a line is: its file, and the offset of its start


@dataclasses.dataclass
class Counts:
  """What is counted of answers.

  Attributes:
    answers: how many there are.
    silent: how many have no call.
    in_text: how many of these have a call in their text.
    example: such a text.
    cut_off: how many were ended by a limit of tokens.
    input_tokens, output_tokens: as the service counts them.
    metered: how many answers reported them.
  """

  answers: int = 0
  silent: int = 0
  in_text: int = 0
  example: str = ""
  cut_off: int = 0
  input_tokens: int = 0
  output_tokens: int = 0
  metered: int = 0

  def add(self, body: Mapping[str, Any]) -> None:
    """Counts an answer."""
    usage = body.get("usage")
    if isinstance(usage, dict):
      tokens: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
      if all(type(number) is int and number >= 0 for number in tokens):
        self.input_tokens += tokens[0]
        self.output_tokens += tokens[1]
        self.metered += 1
    if has_plain_calls(body):
      self.answers += 1
      return
    with contextlib.suppress(NoAnswer, SgdxError):  # as an earlier version wrote them
      answer = read_answer(body, "")
      self.answers += 1
      self.silent += answer.calls == []
      self.cut_off += answer.cut_off
      if text := answer.call_in_text:
        self.in_text, self.example = self.in_text + 1, self.example or text


class AnswerFile:
  """The answers to requests: those already in the file, and new ones.

  Attributes:
    path: the file.
    ids: ids of the answered requests.
    counts: of the answers in the file; an answer shared by several requests counts once.
  """

  def __init__(self, path: str | pathlib.Path, file: RequestFile | None, model: str = ""):
    """Reads the existing answers. Nothing is changed.

    Args:
      path: a new file, or one of an earlier run with the same requests.
      file: all requests; None if it may have answers to any. Only new ones are counted then.
      model: its name, if `file` does not have it.

    Raises SgdxError: the file has anything but answers to these requests.
    """
    self.path, self.ids, self.counts = pathlib.Path(path), set[str](), Counts()
    self._model, self._descriptor, self._size = file.model if file else model, -1, 0
    self._known: dict[str, _Place] = {}
    if self.path.exists():
      if not self.path.is_file():
        raise SgdxError(f"{path}: not a regular file", expected="a file", fix="choose another file")
      digests = {request.id: request.digest for request in file.requests} if file else {}
      for place, end, row in _rows(self.path):
        self._size, digest = end, row["request"]["hash"]
        is_answer = _is_answer(row["response"]["body"])
        if file:
          self._check_request(row, digests, file.path)
        if file and is_answer:
          self.ids.add(row["custom_id"])
          if digest not in self._known:
            self.counts.add(row["response"]["body"])
        if is_answer:
          self._known[digest] = place

  def _check_request(
    self, row: Mapping[str, Any], digests: Mapping[str, str], path: pathlib.Path
  ) -> None:
    """Raises SgdxError for an answer of the file to none of the requests at `path`."""
    name, request = row["custom_id"], row["request"]
    if digests.get(name) == request["hash"]:
      return
    fault = f"a different request {name!r}: different text or parameters"
    if name not in digests:
      fault = f"{name!r}, which is not in {path}"
    elif (model := request.get("model")) != self._model:
      fault = f"a different request {name!r}: model {model!r}, now {self._model!r}"
    raise SgdxError(
      f"{self.path}: an answer to {fault}",
      expected="a new file, or the answers of an earlier run to the same requests",
      fix=f"choose another --out, with --reuse {self.path} to reuse answers to equal requests",
    )

  def reuse(self, paths: Sequence[str], digests: Collection[str]) -> None:
    """Registers answers of other files to requests of these digests. Raises SgdxError: no file."""
    for path in map(pathlib.Path, paths):
      if not path.is_file():
        raise not_found(path, _EXPECTED)
      if path.suffix == ".gz":
        raise SgdxError(
          f"--reuse {path}: compressed", expected="plain text", fix=f"gunzip --keep {path}"
        )
      for place, _, row in _rows(path):
        if row["request"]["hash"] in digests and _is_answer(row["response"]["body"]):
          self._known.setdefault(row["request"]["hash"], place)

  def known(self, digest: str) -> tuple[Any, int]:
    """Returns body and status of the answer to an equal request, of which there is one."""
    path, start = self._known[digest]
    with contextlib.suppress(OSError, LookupError, TypeError), path.open("rb") as file:
      file.seek(start)
      row: Any = decode_json(file.readline(), str(path), _EXPECTED)
      if row["request"]["hash"] == digest:
        return row["response"]["body"], row["response"].get("status_code", 200)
    raise _changed(f"{path}: the file", "the file with the answers that were in it")

  def has(self, digest: str) -> bool:
    """Whether an answer to an equal request is known."""
    return digest in self._known

  def pending(self, requests: Sequence[Request], *, write: bool) -> list[list[Request]]:
    """Returns the requests to send, grouped: those with the same body are sent once.

    Args:
      requests: all that are wanted.
      write: whether to write known answers to equal requests, for requests that lack one.
    """
    waiting: dict[str, list[Request]] = {}
    for request in requests:
      if request.id not in self.ids:
        waiting.setdefault(request.digest, []).append(request)
    for digest in list(filter(self.has, waiting)):
      group = waiting.pop(digest)
      if write:
        self.add(group, *self.known(digest))
    return list(waiting.values())

  def missing(self, requests: Sequence[Request]) -> Size:
    """Returns the size of the requests that would be sent, equal ones once."""
    groups = self.pending(requests, write=False)
    return Size(len(groups), sum(group[0].size for group in groups))

  def add(self, requests: Sequence[Request], body: Any, status: int = 200) -> None:
    """Writes an answer to requests of one digest.

    Its status is another than 200 if the service could not parse the model's call.

    Raises:
      TooDeep: it is nested too deeply; nothing is written.
      SgdxError: it cannot be written; earlier answers are kept. Or the file is gone.
    """
    digest = requests[0].digest
    row = {
      "custom_id": "",
      "response": {"status_code": status, "body": body},
      "error": None,
      "request": {"hash": digest, "model": self._model},
    }
    text = b""
    for request in requests:
      text += to_json({**row, "custom_id": request.id}, f"{self.path}: an answer") + b"\n"
    place = (self.path, self._size)
    self._write(text)
    self.ids.update(request.id for request in requests)
    # A known answer of another file was not counted: with this line, it is in this file, too.
    earlier_place = self._known.setdefault(digest, place)
    if earlier_place is place or earlier_place[0] != self.path:
      self.counts.add(body)

  def _write(self, text: bytes) -> None:
    self.check_place()
    try:
      if self._descriptor < 0:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.ftruncate(self._descriptor, self._size)  # incomplete line of a run that was killed
      num_written = 0
      while num_written < len(text):  # a write can be partial where the disk gets full
        num_written += os.write(self._descriptor, text[num_written:])
      self._size += num_written
    except OSError as e:
      with contextlib.suppress(OSError):
        os.ftruncate(self._descriptor, self._size)
      raise SgdxError(
        f"--out {self.path}: {e.strerror}",
        expected="a file that can be written, on a disk with enough space",
        fix=writing_fix(e, "move the file to another disk and pass its new path"),
      ) from None

  def check_place(self) -> None:
    """Raises SgdxError if the file was removed, moved or changed since it was read or written."""
    if not self._size:
      return
    try:
      status = os.stat(self.path)
      is_same = status.st_size >= self._size
      if self._descriptor >= 0:
        ours = os.fstat(self._descriptor)
        is_same = is_same and (status.st_dev, status.st_ino) == (ours.st_dev, ours.st_ino)
    except OSError:
      is_same = False
    if not is_same:
      number = len(self.ids)
      self.ids.clear()
      expected = f"the file with its {number:,} answers, to which the next one is appended"
      raise _changed(f"--out {self.path}: the file", expected)

  def close(self) -> None:
    """Closes the file once it is on the disk."""
    if self._descriptor >= 0:
      os.fsync(self._descriptor)
      os.close(self._descriptor)
      self._descriptor = -1


def _changed(file: str, expected: str) -> SgdxError:
  return SgdxError(
    f"{file} was removed, moved or changed during the run",
    expected=expected,
    fix="move it back if it still exists, and run the same command again",
  )


def _is_answer(body: Mapping[str, Any]) -> bool:
  """Whether a model answered; not if the service failed, which earlier versions wrote, too."""
  if not has_plain_calls(body):
    with contextlib.suppress(SgdxError):  # of another form, which scoring names
      try:
        read_answer(body, "")
      except NoAnswer:
        return False
  return True


def _rows(path: pathlib.Path) -> Iterator[tuple[_Place, int, dict[str, Any]]]:
  """Yields places, ends and rows; skips a truncated last line.

  Raises SgdxError: any other line that is not of this form.
  """
  start = 0
  with path.open("rb") as file:
    for number, line in enumerate(file, start=1):
      is_whole = line.endswith(b"\n")
      line = line.rstrip(b"\0")  # of blocks that a crash of the machine left unwritten
      if not is_whole and (line.startswith(_START) or _START.startswith(line)):
        return
      place = f"{path}, line {number}"
      row: Any = decode_json(line, place, _EXPECTED) if is_whole else None
      try:
        is_answer = isinstance(row["request"]["hash"], str) and isinstance(row["custom_id"], str)
        is_answer = is_answer and isinstance(row["response"]["body"], dict)
      except (KeyError, TypeError, IndexError):
        is_answer = False
      if not is_answer:
        raise SgdxError(
          f"{place}: not an answer written by `sgdx tools run`",
          expected=_EXPECTED,
          fix="choose another file",
        )
      yield (path, start), start + len(line), row
      start += len(line)


# Sends groups of equal requests, and writes the answers: those without one were refused.
Send = Callable[[AnswerFile, list[list[Request]]], None]
