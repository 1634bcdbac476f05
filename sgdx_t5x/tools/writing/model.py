"""Drafts said by a model in its own words, and read by it again, which must give the same call.

No wording is seen. The writer gets the draft's sentence, in which a person's purpose has values in
it. The reader gets neutral cards: tools called tool_1 with arguments a1, a2, which have a person's
purposes for descriptions.
"""

import dataclasses
import json
from collections.abc import Sequence

from sgdx_t5x.tools.check.asking import Asker, Question, Words
from sgdx_t5x.tools.requests import Size
from sgdx_t5x.tools.schemas import PROPERTIES
from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.rewording import Rewording, apply, elements, is_name
from sgdx_t5x.tools.suite.toolset import ToolSet
from sgdx_t5x.tools.writing.purposes import Purpose
from sgdx_t5x.tools.writing.values import pool

_PROMPT = (
  "What somebody wants of an assistant: {sentence}\nWrite what they say to it, in your own words: "
  "one or two sentences, with every value as it is here, and no further ones. Write nothing else."
)


def size_of_rewriting(drafts: Sequence[Case], cards: Words, asker: Asker) -> Size:
  """Returns the size of the requests that `rewritten` would send, about."""
  # What is read has about the length of the draft.
  return asker.missing([Question(cards, draft) for draft in drafts], _prompts(drafts))


def rewritten(
  drafts: Sequence[Case], cards: Words, asker: Asker
) -> tuple[list[Case], dict[str, list[str]]]:
  """Says drafts in a model's words.

  Args:
    drafts: of tools that are among the cards.
    cards: what the reader sees, see `neutral_cards`.
    asker: of the tools on the cards.

  Returns:
    The cases whose text the second reading understands, and why others are lost -> their ids.
  """
  texts = asker.texts(_prompts(drafts))
  questions = []
  without_text: list[str] = []
  for draft in drafts:
    text = " ".join(texts.get(draft.id, "").split()).strip('"')
    if not text:
      without_text.append(draft.id)
      continue
    messages = ({"role": "user", "content": text},)
    tags = (*draft.tags, f"model {asker.model}")
    questions.append(Question(cards, dataclasses.replace(draft, messages=messages, tags=tags)))
  responses = asker.ask(questions)
  accepted = []
  misread: list[str] = []
  for question in questions:
    if question in responses and responses[question].judgement.right:
      accepted.append(question.case)
    else:
      misread.append(question.case.id)
  return accepted, {"no text": without_text, "the second reading is not the call": misread}


def _prompts(drafts: Sequence[Case]) -> dict[str, str]:
  """Returns id of a draft -> the request to say it."""
  return {draft.id: _PROMPT.format(sentence=draft.request) for draft in drafts}


def neutral_cards(purposes: Sequence[Purpose], base: ToolSet) -> Words:
  """Returns tools without their words: names are numbers, descriptions are their purposes.

  What is inside an argument keeps its names, and loses its texts. An argument's description is an
  example of a value, since names and texts said what form it has.
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
