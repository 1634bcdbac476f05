"""Answers to cases in any words: from a cache, or from an endpoint, and judged.

An answer is known by the hash of its request, so one file holds those of all wordings and versions.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.files.locks import lock
from sgdx_t5x.tools.call_texts import without_thoughts
from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.endpoint_options import request_parameters, sender
from sgdx_t5x.tools.endpoints.answer_file import AnswerFile, Send
from sgdx_t5x.tools.endpoints.request_file import Request, to_json
from sgdx_t5x.tools.messages import NoAnswer, read_answer
from sgdx_t5x.tools.requests import Size
from sgdx_t5x.tools.suite.cases import Case, shown_messages
from sgdx_t5x.tools.suite.judge import Judgement, judge
from sgdx_t5x.tools.suite.rewording import Rewording, back
from sgdx_t5x.tools.suite.toolset import ToolSet

ANSWERS = "answers.jsonl"  # in a suite's folder


@dataclasses.dataclass(frozen=True, eq=False)
class Words:
  """Tools as a model sees them. Attributes: rewording, the names by which calls are read."""

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


class Asker:
  """Asks a model questions and prompts, each request once, and judges the answers to questions.

  Attributes:
    model: its name at the endpoint.
    answers: all that are known, those in a suite's folder.
  """

  def __init__(
    self, folder: pathlib.Path, base: ToolSet, model: str, parameters: Mapping[str, Any],
    calls_from_text: bool, send: Send,
  ):  # fmt: skip
    """Reads the answers in a suite's folder.

    Args:
      folder: of the suite.
      base: the tools of which cases speak.
      model: see the class.
      parameters: further fields of a request, such as a temperature.
      calls_from_text: whether calls in an answer's text count.
      send: sends what is not answered yet.
    """
    # Parameters in one order: an answer is known by the hash of its request.
    self._base, self.model, self._parameters = base, model, dict(sorted(parameters.items()))
    self._calls_from_text, self._send = calls_from_text, send
    self.answers = AnswerFile(folder / ANSWERS, None, model)

  def missing(
    self, questions: Sequence[Question] = (), prompts: Mapping[str, str] | None = None
  ) -> Size:
    """Returns the size of the requests that `ask` and `texts` would send."""
    requests = [*self._of_questions(questions), *self._of_prompts(prompts or {})]
    return self.answers.missing(requests)

  def ask(self, questions: Sequence[Question]) -> dict[Question, Response]:
    """Returns the responses, without those that the service refused to give."""
    answers = self._answers_to(self._of_questions(questions))
    responses = {}
    for question, answer in zip(questions, answers, strict=True):
      # An earlier version may have kept what this one knows to be a refusal.
      with contextlib.suppress(NoAnswer):
        if answer is not None:
          responses[question] = self._response(question, answer)
    return responses

  def texts(self, prompts: Mapping[str, str]) -> dict[str, str]:
    """Returns name of a prompt -> what the model answers, without what the service refused."""
    texts = {}
    answers = self._answers_to(self._of_prompts(prompts))
    for name, answer in zip(prompts, answers, strict=True):
      if answer is not None:
        texts[name] = without_thoughts(read_answer(answer, name).text)
    return texts

  def _answers_to(self, requests: Sequence[Request]) -> list[Any]:
    """Sends what is not answered yet. Returns the answers; None for what was refused."""
    if groups := self.answers.pending(requests, write=False):
      self._send(self.answers, groups)
    digests = [request.digest for request in requests]
    return [self.answers.known(x)[0] if self.answers.has(x) else None for x in digests]

  def _of_questions(self, questions: Sequence[Question]) -> list[Request]:
    requests = []
    for question in questions:
      words = question.words
      messages = shown_messages(question.case, self._base, words.rewording)
      fields = {"messages": messages, "tools": words.toolset.for_openai(), "tool_choice": "auto"}
      requests.append(self._request(f"{question.case.id}/{words.name}", fields, question.run))
    return requests

  def _of_prompts(self, prompts: Mapping[str, str]) -> list[Request]:
    messages = {name: [{"role": "user", "content": prompt}] for name, prompt in prompts.items()}
    return [self._request(name, {"messages": texts}) for name, texts in messages.items()]

  def _request(self, name: str, fields: Mapping[str, Any], run: int = 0) -> Request:
    """Returns a request. Args: name, for people; run, from 0: each is another request."""
    body = to_json({**fields, "model": self.model, **self._parameters}, f"{name}, with --param")
    hashed = body if not run else body + b"#%d" % run
    digest = hashlib.blake2b(hashed, digest_size=16).hexdigest()
    return Request(f"{name}/{digest}", digest, 0, len(body), name, "", body)

  def _response(self, question: Question, body: Mapping[str, Any]) -> Response:
    answer = read_answer(body, str(self.answers.path))
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


@contextlib.contextmanager
def asker_of_suite(args: argparse.Namespace, tools: ToolSet) -> Iterator[Asker]:
  """Yields what asks a model about tools; a suite's answers are locked while some may be added.

  Args:
    args: the options; without --calls-from-text, calls in texts count.
    tools: of which the suite's cases speak.
  """
  folder, parameters = pathlib.Path(args.suite), request_parameters(args)
  with contextlib.nullcontext() if args.dry_run else lock(folder / ANSWERS, "SUITE"):
    from_text = getattr(args, "calls_from_text", True)
    asker = Asker(folder, tools, args.model, parameters, from_text, sender(args))
    with contextlib.closing(asker.answers):
      yield asker
