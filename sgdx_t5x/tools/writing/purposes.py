"""Purposes of tools: one line per tool, in which a person says what users ask it for.

  {"tool": "git_log", "purpose": "Commits of {repo_path|a repository}[, only the last {max_count}]",
   "values": {"repo_path": {"my site": "/srv/site", "the app": "/srv/app"}}}

A place in braces is an argument. What follows "|" is said where its value is missing, so that the
assistant has to ask. A part in brackets is said only if its arguments are given. "values" are
lists, or what is said -> what is meant; they replace those of the program. The tool null has
requests that no tool serves.
"""

import dataclasses
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import converted, decode_lines, read_input
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.schemas import PROPERTIES
from sgdx_t5x.tools.suite.toolset import ToolSet
from sgdx_t5x.tools.writing.values import Pool, pool, said_as

PURPOSES = "purposes.jsonl"  # in a suite's folder
_EXPECTED = (
  'lines of {"tool", "purpose"}, maybe with "values"; a purpose has every required argument, as in '
  '"Commits of {repo_path|a repository}[, only the last {max_count}]"'
)
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_PLACE = re.compile(r"\{([^{}|]+)(?:\|([^{}]*))?\}")


@dataclasses.dataclass(frozen=True)
class Purpose:
  """What users ask a tool for.

  Attributes:
    tool: its name; None for a request that no tool serves.
    purpose: the line, see the module.
    values: argument -> values of the person's own: a list, or what is said -> value.
  """

  tool: str | None
  purpose: str
  values: Mapping[str, list[Any] | dict[str, Any]] = dataclasses.field(default_factory=dict)

  @property
  def parts(self) -> list[tuple[str, bool]]:
    """The parts of the line, in order, and whether each is optional."""
    return [(text, number % 2 == 1) for number, text in enumerate(_OPTIONAL.split(self.purpose))]

  @property
  def always_given(self) -> set[str]:
    """The arguments with a place outside brackets."""
    return arguments(_OPTIONAL.sub("", self.purpose))

  @property
  def is_written(self) -> bool:
    """Whether somebody has put words into the form."""
    return says(self.purpose)

  @property
  def missing_words(self) -> dict[str, str]:
    """Argument -> what is said where its value is missing."""
    return {name: words for name, words in _PLACE.findall(self.purpose) if words.strip()}

  def pool_of(self, argument: str) -> Pool:
    """The person's values of an argument; {} if there are none."""
    values = self.values.get(argument, {})
    return said_as(values) if isinstance(values, list) else values

  def renamed(self, names: Mapping[str, str]) -> str:
    """Returns the line with other names in its places, without the words for missing values."""
    return _PLACE.sub(lambda place: f"{{{names[place[1]]}}}", self.purpose)

  def sentence(self, phrases: Mapping[str, str]) -> str:
    """Returns the line as a user says it. Args: phrases, argument -> words; others are left out."""
    texts = []
    for part, is_optional in self.parts:
      if not is_optional or arguments(part) & phrases.keys():
        # Booleans are said by the words around their place.
        texts.append(_PLACE.sub(lambda place: place[0] if phrases.get(place[1]) else "", part))
    text = re.sub(r" +([,.;:?!])", r"\1", " ".join("".join(texts).split()))
    return _PLACE.sub(lambda place: phrases[place[1]], text)


def says(text: str) -> bool:
  """Whether somebody has written something besides the places of a form."""
  return _PLACE.sub("", text).strip(" []") != ""


def arguments(text: str) -> set[str]:
  """Returns the arguments that have a place in a text."""
  return {place[1] for place in _PLACE.finditer(text)}


def read_purposes(path: pathlib.Path, toolset: ToolSet) -> list[Purpose]:
  """Returns the purposes of a file, also those that nobody has written yet.

  Raises SgdxError: a line is not of the form; a tool or argument that is not there; two lines of a
  tool; a required argument without a place outside brackets.
  """
  purposes: dict[str, Purpose] = {}
  lines = decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED)
  for place, row in lines:
    purpose = converted(row, Purpose, place, _EXPECTED, "correct the line")
    fault, available = _fault(purpose, toolset) if purpose.is_written else ("", ())
    if purpose.tool is not None and purpose.tool not in toolset.by_name:
      fault, available = f"no tool {purpose.tool!r}", toolset.by_name
    key = purpose.tool or f"(no tool) {purpose.purpose}"
    if key in purposes:
      fault, available = f"a second purpose of {key}", ()
    if fault:
      raise SgdxError(
        f"{place}: {fault}",
        expected=_EXPECTED,
        available=nearest(fault.split("'")[1], available) if available else "",
        fix="correct the line, or remove it",
      )
    purposes[key] = purpose
  return list(purposes.values())


def _fault(purpose: Purpose, toolset: ToolSet) -> tuple[str, Collection[str]]:
  """Returns what is wrong with a purpose, "" if nothing, and names that there are instead."""
  if re.search(r"[\[\]{}]", _PLACE.sub("", _OPTIONAL.sub(r"\1", purpose.purpose))):
    return "braces or brackets that do not match", ()
  tool = toolset.by_name.get(purpose.tool or "")
  declared = tool.parameters.get(PROPERTIES, {}) if tool else {}
  for name in sorted(arguments(purpose.purpose) | purpose.values.keys()):
    if name not in declared:
      return f"no argument {name!r}", declared
  required = tool.parameters.get("required", ()) if tool else ()
  for name in required:
    if name not in purpose.always_given:
      return f"no place for {name!r}, which is required, outside brackets", ()
  for part, is_optional in purpose.parts:
    if is_optional and not arguments(part):
      return "a part in brackets without an argument", ()
  return "", ()


def form(tool: OwnTool, toolset: ToolSet) -> dict[str, Any]:
  """Returns the line of a tool for a person to fill in: places, and values that only they know."""
  places, optional_places = [], []
  unknown: dict[str, list[Any]] = {}
  for name in tool.parameters.get(PROPERTIES, {}):
    is_required = name in tool.parameters.get("required", ())
    if is_required:
      places.append(f"{{{name}|}}")
    else:
      optional_places.append(f"[{{{name}}}]")
    values = pool(tool, name, toolset)
    if not values or (is_required and "" in values):  # a boolean that has to be said
      unknown[name] = []
  row: dict[str, Any] = {"tool": tool.name, "purpose": " ".join((*places, *optional_places))}
  return {**row, "values": unknown} if unknown else row


def check_distinct(sentences: Sequence[tuple[str, str]]) -> None:
  """Raises SgdxError if two tools have one sentence. Args: tool and sentence, without values."""
  tools: dict[str, str] = {}
  for tool, sentence in sentences:
    key = sentence.lower()
    if tools.setdefault(key, tool) != tool:
      raise SgdxError(
        f"{PURPOSES}: {tools[key]} and {tool} have one request, {sentence!r}",
        expected="requests that say which tool is due",
        fix="say in one of the two what tells it from the other",
      )
