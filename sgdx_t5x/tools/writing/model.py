"""Drafts said by a model in its own words, and read by it again, which must give the same call.

No wording is seen. The writer gets the draft's sentence, in which a person's purpose has values in
it. The reader gets neutral cards: tools called tool_1 with arguments a1, a2, which have a person's
purposes for descriptions.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.tools.check.asking import Asker, Question, Requests, Words, answered, missing
from sgdx_t5x.tools.endpoints.request_file import to_json
from sgdx_t5x.tools.endpoints.runner import Send
from sgdx_t5x.tools.messages import read_answer
from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.rewording import Rewording, apply, elements, is_name
from sgdx_t5x.tools.suite.schemas import PROPERTIES
from sgdx_t5x.tools.suite.toolset import ToolSet
from sgdx_t5x.tools.writing.purposes import Purpose
from sgdx_t5x.tools.writing.values import pool

_PROMPT = (
  "What somebody wants of an assistant: {sentence}\nWrite what they say to it, in your own words: "
  "one or two sentences, with every value as it is here, and no further ones. Write nothing else."
)


class ModelWriter:
  """Rewrites drafts.

  Attributes:
    lost: why drafts are left out -> their ids.
  """

  def __init__(
    self, folder: pathlib.Path, purposes: Sequence[Purpose], toolset: ToolSet, model: str,
    parameters: Mapping[str, Any],
  ):  # fmt: skip
    """Reads the answers in a suite's folder.

    Args:
      folder: of the suite.
      purposes: of all tools that the reader can choose from.
      toolset: the tools of the suite.
      model: its name at the endpoint.
      parameters: further fields of a request, such as a temperature.
    """
    self._model, self._parameters = model, dict(sorted(parameters.items()))
    names = {purpose.tool for purpose in purposes if purpose.is_written}
    base = ToolSet(tuple(tool for tool in toolset.tools if tool.name in names))
    self._cards = neutral_cards(purposes, base)
    self._asker = Asker(folder, base, model, parameters, calls_from_text=True)
    self.answers = self._asker.answers
    self.lost: dict[str, list[str]] = {"no text": [], "the second reading is not the call": []}

  def missing(self, drafts: Sequence[Case]) -> tuple[int, int]:
    """Returns how many requests would be sent, about, and their characters."""
    to_write = missing(self._writing(drafts), self.answers)
    # What is read has about the length of the draft.
    to_read = self._asker.missing([Question(self._cards, draft) for draft in drafts])
    return to_write[0] + to_read[0], to_write[1] + to_read[1]

  def write(self, drafts: Sequence[Case], send: Send) -> list[Case]:
    """Returns the cases whose text the second reading understands. Args: send, see `Asker.ask`."""
    requests = self._writing(drafts)
    answers = answered(requests, self.answers, send)
    cases = []
    for draft, request in zip(drafts, requests.requests, strict=True):
      text = read_answer(answers[request], draft.id).text if request in answers else ""
      text = " ".join(text.split()).strip('"')
      if not text:
        self.lost["no text"].append(draft.id)
        continue
      messages = ({"role": "user", "content": text},)
      tags = (*draft.tags, f"model {self._model}")
      cases.append(dataclasses.replace(draft, messages=messages, tags=tags))
    questions = [Question(self._cards, case) for case in cases]
    responses = self._asker.ask(questions, send)
    accepted = []
    for question in questions:
      if question in responses and responses[question].judgement.right:
        accepted.append(question.case)
      else:
        self.lost["the second reading is not the call"].append(question.case.id)
    return accepted

  def _writing(self, drafts: Sequence[Case]) -> Requests:
    """Returns the requests to write, one per draft."""
    requests = Requests(self.answers.path, self._model)
    for draft in drafts:
      messages = [{"role": "user", "content": _PROMPT.format(sentence=draft.request)}]
      body = {"messages": messages, "model": self._model, **self._parameters}
      requests.add_named(draft.id, to_json(body, draft.id))
    return requests


def neutral_cards(purposes: Sequence[Purpose], base: ToolSet) -> Words:
  """Returns tools without their words: names are numbers, descriptions are purposes.

  What is inside an argument keeps its names, and loses its texts. An argument's description is an
  example of a value, since names and texts said what form it has.

  Args:
    purposes: of the tools.
    base: the tools.
  """
  purpose_of = {purpose.tool: purpose for purpose in purposes}
  replaced: dict[str, str] = {}
  for number, tool in enumerate(base.tools, start=1):
    purpose = purpose_of[tool.name]
    names: dict[str, str] = {}
    for pointer, text in elements(tool).items():
      if not is_name(pointer):
        replaced.setdefault(pointer, "")
      elif pointer.rpartition("/")[0] == f"/{tool.name}/parameters/{PROPERTIES}":
        names[text] = replaced[pointer] = f"a{len(names) + 1}"
        if values := list((purpose.pool_of(text) or pool(tool, text, base)).values()):
          replaced[f"{pointer}/description"] = f"as in {json.dumps(values[0], ensure_ascii=False)}"
    replaced[f"/{tool.name}"] = f"tool_{number}"
    replaced[f"/{tool.name}/description"] = purpose.renamed(names)
  rewording = Rewording("neutral cards", replaced)
  return Words(rewording.name, apply(base, rewording), rewording)
