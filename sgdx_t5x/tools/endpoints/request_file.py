"""Requests of `sgdx tools requests` as they are sent: bodies, their hashes, samples of them.

A file of requests may be larger than memory: of a body, only its place in the file is kept.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any

import orjson

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.errors import SgdxError, UsageError, quoted
from sgdx_t5x.files.reading import decode_json, not_found, opened
from sgdx_t5x.prompts.selection import choose_dialogues
from sgdx_t5x.tools.requests import parse_request_id

_EXPECTED = "one request of `sgdx tools requests` per line"
_FIX = "write the file again with `sgdx tools requests`"
_SENT = ("messages", "tools", "tool_choice")  # keys of a row that is not a line of a batch
_URL = "/v1/chat/completions"


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
  """A request, without its text.

  Attributes:
    id: unique in its file.
    digest: hash of the body as it is sent. Requests with the same digest are sent once.
    offset: byte offset of its line in the file.
    size: characters of its body.
    dialogue_id: of its frame.
    service: of its frame, by its original name.
    body: what is sent, if it is kept in memory.
  """

  id: str
  digest: str
  offset: int
  size: int
  dialogue_id: str
  service: str
  body: bytes = b""


class TooDeep(SgdxError):
  """JSON with so many levels that Python can read but not write it."""


class RequestFile:
  """The requests of a file, in its order, with what is sent for each.

  Attributes: split, of the first request; variants, of all.
  """

  def __init__(self, path: str | pathlib.Path, model: str, parameters: Mapping[str, Any]):
    """Reads the whole file once.

    Args:
      path: JSON lines, of either form that `sgdx tools requests` writes.
      model: name of the model; "" for the one that the file names.
      parameters: further fields of the body, such as a temperature.

    Raises:
      SgdxError: no such file, or a line that is not a request.
      UsageError: no model is named, or the file names two.
    """
    self.path, self.model, self._given = pathlib.Path(path), model, bool(model)
    self._parameters = dict(sorted(parameters.items()))
    if not self.path.is_file():
      raise not_found(self.path, "requests of `sgdx tools requests`")
    self.split, self.variants = "", set[str]()
    with opened(self.path, _EXPECTED) as file:
      self.requests = list(self._read(file))
    if not self.requests:
      raise SgdxError(f"{self.path}: contains no requests", expected=_EXPECTED, fix=_FIX)

  def _read(self, file: IO[bytes]) -> Iterator[Request]:
    ids: set[str] = set()
    offset = 0
    for number, line in enumerate(file, start=1):
      if line.strip():
        place = f"{self.path}, line {number}"
        request = self._request(line, offset, place)
        if request.id in ids:
          raise _malformed(place, f"duplicate id {request.id!r}")
        ids.add(request.id)
        yield request
      offset += len(line)

  def __enter__(self) -> "RequestFile":
    self._files = contextlib.ExitStack()
    self._file = self._files.enter_context(opened(self.path, _EXPECTED))
    return self

  def __exit__(self, *_: object) -> None:
    self._files.close()

  def body(self, request: Request) -> bytes:
    """Returns the body to send; only within a `with` block."""
    self._file.seek(request.offset)
    return self._body(decode_json(self._file.readline(), str(self.path), _EXPECTED), str(self.path))

  def _request(self, line: bytes, offset: int, place: str) -> Request:
    row = decode_json(line, place, _EXPECTED, _FIX)
    name = row.get("custom_id", row.get("id")) if isinstance(row, dict) else None
    if not isinstance(name, str):
      raise _malformed(place, "neither custom_id nor id")
    example = ExampleId.parse(parse_request_id(name, place)[0], place)
    self.split = self.split or example.split
    self.variants.add(example.variant)
    body = self._body(row, place)
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    return Request(name, digest, offset, len(body.decode()), example.dialogue_id, example.service)

  def _body(self, row: Mapping[str, Any], place: str) -> bytes:
    sent = row.get("body") if "custom_id" in row else {k: row[k] for k in _SENT if k in row}
    if not isinstance(sent, dict) or not isinstance(sent.get("messages"), list):
      raise _malformed(place, "no messages")
    if row.get("url", _URL) != _URL:
      raise _malformed(place, f"a request to {quoted(row['url'])}, not to {_URL}")
    row_model = sent.get("model")
    if not self._given and (not row_model or self.model not in ("", row_model)):
      message = f"no --model, and {place} names {quoted(row_model) if row_model else 'no model'}"
      raise UsageError(
        message + (f", but earlier lines name {self.model!r}" if self.model else ""),
        expected="a single model, under its name at the endpoint",
        fix="add --model NAME",
      )
    self.model = self.model or str(row_model)
    # In an order that neither the form of the file nor that of --param changes: it is hashed.
    ordered = {key: sent[key] for key in _SENT if key in sent}
    body = {**ordered, **sent, "model": self.model, **self._parameters}
    return to_json(body, f"{place}, with --param")


def to_json(data: Any, place: str) -> bytes:
  """Returns data as a line of JSON without the newline; it may contain lone surrogates.

  Raises TooDeep: it has too many levels. Args: place, what it is, for the error.
  """
  with contextlib.suppress(TypeError):
    return orjson.dumps(data)
  try:
    return json.dumps(data).encode()
  except RecursionError:
    raise TooDeep(
      f"{place}: JSON nested too deeply", expected="fewer levels", fix="remove some of the levels"
    ) from None


def choose(
  requests: Sequence[Request], num_dialogues: int, seen_services: Collection[str] | None, seed: int
) -> list[Request]:
  """Returns the requests of a sample of dialogues, in all of their variants.

  Args:
    requests: to choose from.
    num_dialogues: how many; a larger number adds dialogues to those of a smaller one.
    seen_services: they and the unseen ones get equally many frames, as far as there are any. None
      if unknown: each service gets equally many.
    seed: seed of the order in which a service's dialogues are taken.
  """
  frames: dict[str, collections.Counter[str]] = {}
  for request in requests:
    frames.setdefault(request.dialogue_id, collections.Counter())[request.service] += 1

  def is_seen(service: str) -> bool:
    return seen_services is None or service in seen_services

  dialogue_ids = choose_dialogues(frames, num_dialogues, seed, group=is_seen)
  return [request for request in requests if request.dialogue_id in dialogue_ids]


def _malformed(place: str, fault: str) -> SgdxError:
  return SgdxError(f"{place}: {fault}", expected=_EXPECTED, fix=_FIX)
