"""Answers to cases in any words: from a cache, or from an endpoint, and judged.

An answer is known by the hash of its request, so one file holds those of all wordings and versions.
"""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
from sgdx_t5x.tools.endpoints.request_file import Request, to_json
from sgdx_t5x.tools.endpoints.runner import Send, pending
from sgdx_t5x.tools.messages import NoAnswer, read_answer
from sgdx_t5x.tools.suite.cases import Case, shown_messages
from sgdx_t5x.tools.suite.judge import Judgement, judge
from sgdx_t5x.tools.suite.rewording import Rewording, back
from sgdx_t5x.tools.suite.toolset import ToolSet

ANSWERS = "answers.jsonl"  # in a suite's folder


@dataclasses.dataclass(frozen=True, eq=False)
class Words:
  """Tools as a model sees them.

  Attributes:
    name: of these words, for people.
    toolset: the tools.
    rewording: their names, by which calls are read.
  """

  name: str
  toolset: ToolSet
  rewording: Rewording


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
  """A case in some words. Attributes: run, from 0; each is asked for itself."""

  words: Words
  case: Case
  run: int = 0


@dataclasses.dataclass(frozen=True)
class Response:
  """What a model answered to a question.

  Attributes:
    judgement: whether it is right.
    tools: names of the tools called, in the words of the base where it has them.
    calls: the calls in the words of the base, as one text to compare.
    text_call: the text of an answer without calls that has one in its text; else "".
  """

  judgement: Judgement
  tools: tuple[str, ...]
  calls: str
  text_call: str


class Requests:
  """Requests in memory, as `runner.Runner` takes them. Attributes: see `RequestSource`."""

  def __init__(self, path: pathlib.Path, model: str):
    """Args: path of the answers, for messages; model to ask."""
    self.path, self.model = path, model
    self.requests: list[Request] = []
    self._bodies: dict[str, bytes] = {}  # by id

  def add_named(self, name: str, body: bytes, run: int = 0) -> Request:
    """Adds a request and returns it. Args: name, for people; body to send; run, from 0."""
    # A second run has the same text, and is another request.
    hashed = body if not run else body + b"#%d" % run
    digest = hashlib.blake2b(hashed, digest_size=16).hexdigest()
    request = Request(f"{name}/{digest}", digest, len(self.requests), len(body), name, "")
    self.requests.append(request)
    self._bodies[request.id] = body
    return request

  def body(self, request: Request) -> bytes:
    """Returns the body to send."""
    return self._bodies[request.id]


def answered(requests: Requests, answers: AnswerFile, send: Send) -> dict[Request, Any]:
  """Sends what is not answered yet. Returns the answers, without those that were refused."""
  if groups := pending(requests.requests, answers, write=False):
    send(requests, answers, groups)
  return {x: answers.known(x.digest)[0] for x in requests.requests if answers.has(x.digest)}


def missing(requests: Requests, answers: AnswerFile) -> tuple[int, int]:
  """Returns how many requests would be sent, equal ones once, and their characters."""
  groups = pending(requests.requests, answers, write=False)
  return len(groups), sum(group[0].size for group in groups)


class Asker:
  """Asks questions, each request once, and judges the answers.

  Attributes:
    answers: all that are known.
  """

  def __init__(
    self, folder: pathlib.Path, base: ToolSet, model: str, parameters: Mapping[str, Any],
    calls_from_text: bool,
  ):  # fmt: skip
    """Reads the answers in a suite's folder.

    Args:
      folder: of the suite.
      base: the tools of which cases speak.
      model: its name at the endpoint.
      parameters: further fields of a request, such as a temperature.
      calls_from_text: whether calls in an answer's text count.
    """
    # Parameters in one order: an answer is known by the hash of its request.
    self._base, self._model, self._parameters = base, model, dict(sorted(parameters.items()))
    self._calls_from_text = calls_from_text
    self._path = folder / ANSWERS
    self.answers = AnswerFile(self._path, Requests(self._path, model), is_cache=True)

  def missing(self, questions: Sequence[Question]) -> tuple[int, int]:
    """Returns how many requests would be sent, and their characters."""
    return missing(self._requests(questions), self.answers)

  def ask(self, questions: Sequence[Question], send: Send) -> dict[Question, Response]:
    """Returns the responses, without those that the service refused to give."""
    requests = self._requests(questions)
    answers = answered(requests, self.answers, send)
    responses = {}
    for question, request in zip(questions, requests.requests, strict=True):
      # An earlier version may have kept what this one knows to be a refusal.
      with contextlib.suppress(NoAnswer):
        if request in answers:
          responses[question] = self._response(question, answers[request])
    return responses

  def _requests(self, questions: Sequence[Question]) -> Requests:
    requests = Requests(self._path, self._model)
    for question in questions:
      name = f"{question.case.id}/{question.words.name}"
      requests.add_named(name, self._body(question), question.run)
    return requests

  def _body(self, question: Question) -> bytes:
    words = question.words
    body = {
      "messages": shown_messages(question.case, self._base, words.rewording),
      "tools": words.toolset.for_openai(),
      "tool_choice": "auto",
      "model": self._model,
      **self._parameters,
    }
    return to_json(body, f"case {question.case.id}, with --param")

  def _response(self, question: Question, body: Mapping[str, Any]) -> Response:
    answer = read_answer(body, str(self._path))
    text_call = answer.call_in_text
    if self._calls_from_text:
      answer = answer.with_calls_of_text()
    words = question.words
    judgement = judge(answer.calls, question.case, self._base, words.toolset, words.rewording)
    if answer.calls is None:
      return Response(judgement, (), "malformed", text_call)
    names, calls = [], []
    for call in answer.calls:
      name, arguments = call_parts(call)
      translated = back(name, arguments or {}, self._base, words.rewording)
      names.append(translated[0])
      calls.append(json.dumps(translated, sort_keys=True))
    return Response(judgement, tuple(names), "\n".join(sorted(calls)), text_call)
