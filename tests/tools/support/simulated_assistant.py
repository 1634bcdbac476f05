"""Suites of made-up tools, and a model that finds a tool by the words of its description."""

import json
import random
import zlib

from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.cases import Call, Case
from sgdx_t5x.tools.suite.toolset import ToolSet

_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru")


def verbs(number, seed=0):
  """Distinct words that mean nothing."""
  rng = random.Random(seed)
  return ["".join(rng.choices(_SYLLABLES, k=4)) + f"{i:02}" for i in range(number)]


def tool(name, description, **more):
  """A tool with a path, and further properties with their descriptions."""
  properties = {"path": {"type": "string", "description": "A path."}}
  properties |= {key: {"type": "string", "description": text} for key, text in more.items()}
  schema = {"type": "object", "properties": properties, "required": ["path"]}
  return OwnTool(name, description, schema, "")


def toolset(words):
  """A tool per word, which is in its description."""
  return ToolSet(tuple(tool(f"tool_{i:02}", f"Does {word}.") for i, word in enumerate(words)))


def cases(words, of_each):
  """Cases that ask for the tools by the words of their descriptions."""
  return [
    Case(
      f"{word}-{i}",
      ({"role": "user", "content": f"Please {word} /srv/{word}/{i}"},),
      (Call(f"tool_{number:02}", {"path": f"/srv/{word}/{i}"}),),
      reviewed="ana",
    )
    for number, word in enumerate(words)
    for i in range(of_each)
  ]


def answer(messages, tools, churn=0.0):
  """The calls of the model: the tool that has the request's word in its description.

  Args:
    messages, tools: of a request, as an endpoint gets them.
    churn: share of requests in which it takes another tool without a cause.
  """
  _, word, path = messages[-1]["content"].split()
  functions = [tool["function"] for tool in tools]
  found = [x for x in functions if word in x.get("description", "")]
  chance = zlib.crc32(json.dumps([messages, tools]).encode()) / 2**32
  if not found or chance < churn:
    found = functions[-1:]
  argument = next(iter(found[0]["parameters"]["properties"]))
  return [{"name": found[0]["name"], "arguments": {argument: path}}]


class SimulatedAnswers:
  """The model as the `gold` of an `assistant_server.AssistantServer`."""

  def __init__(self, churn=0.0):
    self.churn = churn

  def __getitem__(self, key):
    return answer(*json.loads(key), churn=self.churn)
