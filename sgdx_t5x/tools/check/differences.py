"""What differs between two versions of tools, as changes that can be made one by one.

Tools are matched by name, then by a file of renames: a JSON object, pointer in the old tools -> new
name, with the pointers of `suite/rewording.py`:

  {"/git_log": "log", "/git_log/parameters/properties/max_count": "limit"}
"""

import collections
import dataclasses
import enum
import itertools
import json
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, is_text, read_input
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.schemas import undeclared
from sgdx_t5x.tools.suite.rewording import Rewording, apply, back, elements, is_name
from sgdx_t5x.tools.suite.toolset import ToolSet

NOW = "now"  # the name of the new tools' words
_EXPECTED = 'a JSON object of pointers in the old tools and new names, {"/git_log": "log"}'


class Kind(enum.StrEnum):
  """What a change does."""

  TEXT = "text"
  RENAMED = "renamed"
  SCHEMA = "schema"
  ADDED = "added"
  DROPPED = "dropped"
  ORDER = "order"


@dataclasses.dataclass(frozen=True)
class Change:
  """A change that can be made alone.

  Attributes:
    kind: what it does.
    tool: the tool's old name; of one that was added, its name; "" for their order.
    pointer: the place, which begins with the tool's old name.
    old, new: texts or names; "" where there is none.
  """

  kind: Kind
  tool: str
  pointer: str
  old: str = ""
  new: str = ""


ORDER = Change(Kind.ORDER, "", "/")


@dataclasses.dataclass(frozen=True)
class Differences:
  """Two versions of tools.

  Attributes:
    renames: pointer in the old tools -> new name.
    changes: that make the new ones of the old.
    possible_renames: (tool dropped, tool added) with the same parameters.
  """

  old_tools: ToolSet
  new_tools: ToolSet
  renames: Mapping[str, str]
  changes: tuple[Change, ...]
  possible_renames: tuple[tuple[str, str], ...]

  @property
  def base(self) -> ToolSet:
    """The old tools and those added: what cases speak of."""
    added = self.tools_of(Kind.ADDED)
    return ToolSet((*self.old_tools.tools, *(self.new_tools.by_name[name] for name in added)))

  @property
  def grown(self) -> ToolSet:
    """The new tools without those that have lost a name, whose cases may need `renames`."""
    lost = set()
    for tool in self.old_tools.tools:
      new_name = _new_name(tool.name, self.renames)
      if new_tool := self.new_tools.by_name.get(new_name):
        inside = _inside(self.renames, f"/{tool.name}")
        kept = dict(_old_pointers(tool, elements(new_tool), inside))
        if any(is_name(place) and place not in kept for place in elements(tool)):
          lost.add(new_name)
    return ToolSet(tuple(tool for tool in self.new_tools.tools if tool.name not in lost))

  def to_base(self, name: str, arguments: Any) -> tuple[str, Any]:
    """Returns a call of either version in the words of `base`; the old ones, where it fits both."""
    translated = back(name, arguments, self.base, Rewording(NOW, self.renames))
    tools = self.base.by_name
    if name not in tools:
      return translated

    def num_unknown(name: str, arguments: Any) -> int:
      return sum(1 for _ in undeclared(arguments, tools[name].parameters))

    is_new = num_unknown(*translated) < num_unknown(name, arguments)
    return translated if is_new else (name, arguments)

  def tools_of(self, kind: Kind) -> list[str]:
    """Returns the tools that have a change of a kind."""
    return list(dict.fromkeys(change.tool for change in self.changes if change.kind is kind))

  def with_changes(self, changes: Collection[Change]) -> tuple[ToolSet, Rewording]:
    """Returns tools of which only some were changed, and their names, for answers.

    With none of `self.changes`, the tools are the old ones, with all of them the new ones.
    """
    applied = set(changes)
    schemas = {change.tool for change in applied if change.kind is Kind.SCHEMA}
    words = {c.pointer: c.new for c in applied if c.kind in (Kind.TEXT, Kind.RENAMED)}
    reworded = apply(self.old_tools, Rewording(NOW, words))
    tools: list[OwnTool] = []
    for old_tool, tool in zip(self.old_tools.tools, reworded.tools, strict=True):
      if Change(Kind.DROPPED, old_tool.name, f"/{old_tool.name}") in applied:
        continue
      if old_tool.name in schemas:
        parameters = self.new_tools.by_name[_new_name(old_tool.name, self.renames)].parameters
        tool = dataclasses.replace(tool, parameters=parameters)
        # The names of the parameters come with it.
        words |= _inside(self.renames, f"/{old_tool.name}")
      tools.append(tool)
    for change in self.changes:
      if change in applied and change.kind is Kind.ADDED:
        tools.append(self.new_tools.by_name[change.tool])
    if ORDER in applied:
      tools.sort(key=self._place_of)
    return ToolSet(tuple(tools)), Rewording(NOW if applied else "old", words)

  def _place_of(self, tool: OwnTool) -> int:
    """Returns where a tool is among the new ones; tools that were dropped are last."""
    names = list(self.new_tools.by_name)
    name = tool.name if tool.name in names else _new_name(tool.name, self.renames)
    return names.index(name) if name in names else len(names)


def differences(old_tools: ToolSet, new_tools: ToolSet, renames: Mapping[str, str]) -> Differences:
  """Compares two versions of tools. Raises SgdxError: a rename of what one of them lacks."""
  apply(old_tools, Rewording("renames", renames))  # raises for a pointer to nowhere
  for pointer, name in renames.items():
    if pointer.count("/") == 1 and name not in new_tools.by_name:
      raise SgdxError(
        f"renames, {pointer}: no tool {name!r} among the new ones",
        expected="the name of a new tool",
        available=", ".join(list(new_tools.by_name)[:8]),
        fix="correct the file of renames",
      )
  changes: list[Change] = []
  matched: set[str] = set()
  dropped: list[OwnTool] = []
  for tool in old_tools.tools:
    name = _new_name(tool.name, renames)
    if name in new_tools.by_name:
      matched.add(name)
      changes += _changes_of_tool(tool, new_tools.by_name[name], renames)
    else:
      dropped.append(tool)
      changes.append(Change(Kind.DROPPED, tool.name, f"/{tool.name}"))
  added = [tool for tool in new_tools.tools if tool.name not in matched]
  changes += [Change(Kind.ADDED, tool.name, f"/{tool.name}") for tool in added]
  possible_renames: list[tuple[str, str]] = []
  for dropped_tool, added_tool in itertools.product(dropped, added):
    if dropped_tool.parameters == added_tool.parameters:
      possible_renames.append((dropped_tool.name, added_tool.name))
  result = Differences(old_tools, new_tools, renames, tuple(changes), tuple(possible_renames))
  if _shown(result.with_changes(changes)[0]) == _shown(new_tools):
    return result
  return dataclasses.replace(result, changes=(*changes, ORDER))


def _shown(tools: ToolSet) -> str:
  """Returns what a model sees, as text: in JSON the order of keys counts, and 1 is not true."""
  return json.dumps(tools.for_openai())


def read_renames(path: str | pathlib.Path) -> dict[str, str]:
  """Returns the renames of a file. Raises SgdxError: not of the form."""
  data = decode_json(read_input(path, _EXPECTED), str(path), _EXPECTED)
  if not isinstance(data, dict) or not all(map(is_text, data.values())):
    raise SgdxError(f"{path}: not of the form", expected=_EXPECTED, fix="correct the file")
  return data


def _new_name(tool: str, renames: Mapping[str, str]) -> str:
  return renames.get(f"/{tool}", tool)


def _inside(renames: Mapping[str, str], pointer: str) -> dict[str, str]:
  """Returns the renames below a pointer."""
  return {place: name for place, name in renames.items() if place.startswith(f"{pointer}/")}


def _changes_of_tool(
  old_tool: OwnTool, new_tool: OwnTool, renames: Mapping[str, str]
) -> Iterator[Change]:
  """Yields the changes that make one tool of another.

  Parameters that differ in more than texts and names are one change.
  """
  pointer = f"/{old_tool.name}"
  if old_tool.name != new_tool.name:
    yield Change(Kind.RENAMED, old_tool.name, pointer, old_tool.name, new_tool.name)
  inside = _inside(renames, pointer)
  old_texts = elements(old_tool)
  new_texts = dict(_old_pointers(old_tool, elements(new_tool), inside))
  texts = []
  for place in dict.fromkeys((*old_texts, *new_texts)):
    old_text, new_text = old_texts.get(place, ""), new_texts.get(place, "")
    if old_text != new_text and not is_name(place):
      texts.append(Change(Kind.TEXT, old_tool.name, place, old_text, new_text))
  words = inside | {change.pointer: change.new for change in texts}
  try:
    reworded = apply(ToolSet((old_tool,)), Rewording(NOW, words)).tools[0].parameters
  except SgdxError:  # a text in a place that the old tool does not have
    reworded = old_tool.parameters
  if json.dumps(reworded) != json.dumps(new_tool.parameters):
    yield from (change for change in texts if change.pointer == f"{pointer}/description")
    differing = ", ".join(_different_properties(old_tool.parameters, new_tool.parameters, inside))
    yield Change(Kind.SCHEMA, old_tool.name, f"{pointer}/parameters", "", differing or "differs")
    return
  for place, name in inside.items():
    yield Change(Kind.RENAMED, old_tool.name, place, place.rpartition("/")[2], name)
  yield from texts


def _old_pointers(
  old_tool: OwnTool, new_texts: Mapping[str, str], renames: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
  """Yields the texts of a new tool at their places in the old one. Args: renames inside it."""
  for pointer, text in new_texts.items():
    place = f"/{old_tool.name}"
    for key in pointer.split("/")[2:]:
      old_keys = (p for p, name in renames.items() if p.rpartition("/")[0] == place and name == key)
      place = next(old_keys, f"{place}/{key}")
    yield place, text


def _different_properties(
  old_schema: Mapping[str, Any], new_schema: Mapping[str, Any], renames: Mapping[str, str]
) -> Iterator[str]:
  """Yields in words how the properties of two schemas differ, as far as names and types go."""
  old_properties = old_schema.get("properties", {})
  new_properties = new_schema.get("properties", {})
  new_names = {pointer.rpartition("/")[2]: name for pointer, name in renames.items()}
  for name in new_properties:
    if name not in old_properties and name not in new_names.values():
      yield f"{name} added"
  for name, schema in old_properties.items():
    new_name = new_names.get(name, name)
    if new_name not in new_properties:
      yield f"{name} gone"
    elif schema != new_properties[new_name]:
      yield f"{name} differs"
  if old_schema.get("required", []) != new_schema.get("required", []):
    yield f"required: {', '.join(new_schema.get('required', [])) or 'none'}"


def counts_of(changes: Sequence[Change]) -> str:
  """Returns how many changes there are of each kind, as a text."""
  names = {
    Kind.TEXT: "texts changed",
    Kind.RENAMED: "names changed",
    Kind.SCHEMA: "schemas changed",
    Kind.ADDED: "tools added",
    Kind.DROPPED: "tools dropped",
    Kind.ORDER: "order changed",
  }
  numbers = collections.Counter(change.kind for change in changes)
  texts = []
  for kind, name in names.items():
    if numbers[kind]:
      texts.append(name if kind is Kind.ORDER else f"{numbers[kind]} {name}")
  return ", ".join(texts) or "no change"
