"""Rewordings: texts of tools replaced at JSON pointers, and calls in the words of the base again.

A pointer begins with a tool's name and goes on in its definition. One to a tool or a property
replaces its name, any other a description or title:

  /git_log                                        the tool's name
  /git_log/description                            its description
  /git_log/parameters/properties/max_count        the property's name
  /git_log/parameters/properties/max_count/title  its title

A property is renamed in all schemas that speak of the same object: branches, what references point
to, lists of required names.
"""

import collections
import dataclasses
import itertools
import pathlib
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import converted, decode_lines, read_input
from sgdx_t5x.tools.definitions import LONGEST_NAME
from sgdx_t5x.tools.own_tools import OwnTool, legal_tool_name
from sgdx_t5x.tools.schemas import (
  DEPENDENT,
  NAMED,
  PROPERTIES,
  Keys,
  Schema,
  all_schemas,
  children,
  of_item,
  of_property,
  of_same_value,
  pointer_keys,
  with_children,
)
from sgdx_t5x.tools.suite.toolset import ToolSet

REWORDINGS = "rewordings.jsonl"  # in a suite's folder
TEXTS = ("description", "title")
_PROPERTY_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{1,{LONGEST_NAME}}}")  # what Anthropic's API takes
_EXPECTED = 'lines of {"name": NAME, "replaced": {JSON pointer: text}}'
_POINTERS = "a pointer to a tool, a property, a description or a title, as in /TOOL/description"


@dataclasses.dataclass(frozen=True)
class Rewording:
  """Words for tools. Its name is unique in a suite.

  Attributes: replaced, JSON pointer -> the text in its place; see the module.
  """

  name: str
  replaced: Mapping[str, str] = dataclasses.field(default_factory=dict)


BASE = Rewording("base")


def elements(tool: OwnTool) -> dict[str, str]:
  """Returns the pointers to what can be reworded of a tool, and the texts there."""
  pointer = f"/{tool.name}"
  texts = {pointer: tool.name, f"{pointer}/description": tool.description}
  texts.update(_elements_in(tool.parameters, f"{pointer}/parameters", ()))
  return {place: text for place, text in texts.items() if text}


def _elements_in(schema: Any, pointer: str, keys: Keys) -> Iterator[tuple[str, str]]:
  """Yields the elements of a schema. Args: pointer to it; keys, the last of the pointer."""
  if keys[:1] == (PROPERTIES,):
    yield pointer, keys[1]
  for key in TEXTS if isinstance(schema, dict) else ():
    if isinstance(schema.get(key), str):
      yield f"{pointer}/{key}", schema[key]
  for way, child in children(schema):
    yield from _elements_in(child, _joined(pointer, way), way)


def is_name(pointer: str) -> bool:
  """Whether a pointer is to a tool or a property, and not to a description or title."""
  _, *keys = pointer_keys(pointer)  # the first is a tool's name
  # A property may be called "description", or "properties": what is a name shows from the front.
  keyword, is_named = "", False
  for key in keys:
    is_named = keyword in NAMED and not is_named
    if not is_named:
      keyword = key
  return not keys or (is_named and keyword == PROPERTIES)


def read_rewordings(path: str | pathlib.Path) -> list[Rewording]:
  """Returns the rewordings of a file. Raises SgdxError: not of the form, two of one name."""
  path = pathlib.Path(path)
  rewordings: dict[str, Rewording] = {}
  for place, row in decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED):
    rewording = converted(row, Rewording, place, _EXPECTED, "correct the line")
    if rewording.name in (*rewordings, BASE.name):
      raise SgdxError(
        f"{place}: a second rewording {rewording.name!r}",
        expected=f"unique names other than {BASE.name!r}",
        fix="rename one of them",
      )
    rewordings[rewording.name] = rewording
  return list(rewordings.values())


def apply(base: ToolSet, rewording: Rewording) -> ToolSet:
  """Returns the tools in other words, in the same order.

  Raises SgdxError: a pointer to nowhere, or to what is no name, description or title; a name that
  APIs refuse; two tools or two properties of one name.
  """
  words = [_Words(tool, rewording) for tool in base.tools]
  pointers = {pointer for of_tool in words for pointer in of_tool.pointers}
  for pointer in rewording.replaced:
    if pointer not in pointers:
      raise _nowhere(rewording, pointer, (f"/{tool.name}" for tool in base.tools))
  tools: dict[str, OwnTool] = {}
  for of_tool in words:
    tool = of_tool.reworded()
    if tool.name in tools:
      raise _collision(rewording, f"two tools are called {tool.name!r}")
    tools[tool.name] = tool
  return ToolSet(tuple(tools.values()))


def back(
  name: str, arguments: Mapping[str, Any], base: ToolSet, rewording: Rewording
) -> tuple[str, Any]:
  """Returns name and arguments of a call of a reworded tool in the words of the base."""
  for tool in base.tools:
    if rewording.replaced.get(f"/{tool.name}", tool.name) == name:
      return tool.name, _Words(tool, rewording).translated(arguments, back=True)
  return name, arguments


def forth(
  name: str, arguments: Mapping[str, Any], base: ToolSet, rewording: Rewording
) -> tuple[str, Any]:
  """Returns name and arguments of a call of the base in a rewording's words: reverses `back`."""
  tool = base.by_name.get(name)
  if tool is None:
    return name, arguments
  words = _Words(tool, rewording)
  return words.name, words.translated(arguments, back=False)


class _Words:
  """The words of a rewording for one tool."""

  def __init__(self, tool: OwnTool, rewording: Rewording):
    """Finds what each pointer replaces; pointers to other tools are ignored."""
    self._tool, self._rewording = tool, rewording
    self._root = tool.parameters
    self._top: dict[str, str] = {}  # "name" and "description" of the tool
    self._texts: dict[int, dict[str, str]] = collections.defaultdict(dict)  # id of a schema ->
    self._renames: dict[int, dict[str, str]] = {}  # id of a schema -> old name -> new name
    self.pointers = []
    for pointer, text in rewording.replaced.items():
      keys = pointer_keys(pointer)
      if keys[:1] == (tool.name,):
        self.pointers.append(pointer)
        self._place(pointer, keys[1:], text)
    if self._renames:
      self._check_names()

  @property
  def name(self) -> str:
    """The tool's name."""
    return self._top.get("name", self._tool.name)

  def reworded(self) -> OwnTool:
    """Returns the tool in these words."""
    if not self.pointers:
      return self._tool
    description = self._top.get("description", self._tool.description)
    parameters = self._copied(self._root)
    return dataclasses.replace(
      self._tool, name=self.name, description=description, parameters=parameters
    )

  def translated(self, arguments: Any, back: bool) -> Any:
    """Returns arguments in these words, or, if `back`, such arguments in the base's."""
    return self._value(arguments, [self._root], back) if self._renames else arguments

  # --- places ------------------------------------------------------------------------------

  def _place(self, pointer: str, keys: Keys, text: str) -> None:
    """Notes what a pointer replaces. Args: keys, what follows the tool's name in it."""
    if not keys:
      if not legal_tool_name(text):
        raise _illegal(self._rewording, pointer, text)
      self._top["name"] = text
    elif keys == ("description",):
      self._top["description"] = text
    elif keys[0] != "parameters":
      raise _nowhere(self._rewording, pointer)
    else:
      path, remaining = self._path(keys[1:])
      schema, way = path[-1]
      if len(remaining) == 1 and remaining[0] in TEXTS and isinstance(schema, dict):
        self._texts[id(schema)][remaining[0]] = text
      elif remaining or way[:1] != (PROPERTIES,):
        raise _nowhere(self._rewording, pointer)
      elif not _PROPERTY_NAME.fullmatch(text):
        raise _illegal(self._rewording, pointer, text)
      else:
        self._rename(pointer, path[-2][0], way[1], text)

  def _path(self, keys: Keys) -> tuple[list[tuple[Any, Keys]], Keys]:
    """Returns the schemas along a way, each with the keys that lead there, and the keys left."""
    path: list[tuple[Any, Keys]] = [(self._root, ())]
    while True:
      for way, child in children(path[-1][0]):
        if keys[: len(way)] == way:
          path.append((child, way))
          keys = keys[len(way) :]
          break
      else:
        return path, keys

  def _rename(self, pointer: str, schema: Schema, old_name: str, new_name: str) -> None:
    """Renames a property in all schemas of the same object as `schema`."""
    for same_object in self._same_object(schema):
      names = self._renames.setdefault(id(same_object), {})
      if names.setdefault(old_name, new_name) != new_name:
        raise _collision(
          self._rewording,
          f"{pointer} is {new_name!r}, and elsewhere in the same object {names[old_name]!r}",
        )

  def _same_object(self, schema: Schema) -> list[Schema]:
    """Returns the schemas that apply to an object together with `schema`."""
    together = [of_same_value([part], self._root) for part in all_schemas(self._root)]
    result = {id(schema): schema}
    size = 0
    while size < len(result):
      size = len(result)
      for group in together:
        if any(id(part) in result for part in group):
          result.update((id(part), part) for part in group)
    return list(result.values())

  def _check_names(self) -> None:
    """Raises SgdxError if two properties of an object have one name."""
    for schema in all_schemas(self._root):
      group = of_same_value([schema], self._root)
      names = set[str]().union(*(part.get(PROPERTIES, ()) for part in group))
      old_names: dict[str, str] = {}
      for name in sorted(names):
        new_name = self._renames.get(id(schema), {}).get(name, name)
        if old_names.setdefault(new_name, name) != name:
          pair = f"{old_names[new_name]!r} and {name!r}"
          fault = f"{self._tool.name}: {pair} are both called {new_name!r}"
          raise _collision(self._rewording, fault)

  # --- copies ------------------------------------------------------------------------------

  def _copied(self, schema: Any) -> Any:
    """Returns a schema in these words."""
    if not isinstance(schema, dict):
      return schema
    copy = with_children(schema, self._copied)
    for key, value in copy.items():
      copy[key] = self._renamed(schema, key, value)
    return {**copy, **self._texts.get(id(schema), {})}

  def _renamed(self, schema: Schema, key: str, value: Any) -> Any:
    """Returns the value of a keyword of a schema with the names of properties in these words."""
    names = self._renames.get(id(schema), {})
    if key == "required" and isinstance(value, list):
      return [names.get(name, name) for name in value]
    if key in (PROPERTIES, "dependentRequired", *DEPENDENT) and isinstance(value, dict):
      renamed = {}
      for name, part in value.items():
        # What depends on a property is a list of names, or a schema.
        is_list = isinstance(part, list)
        renamed[names.get(name, name)] = [names.get(x, x) for x in part] if is_list else part
      return renamed
    if key in ("default", "const", "example"):
      return self._value(value, [schema], back=False)
    if key in ("enum", "examples") and isinstance(value, list):
      return [self._value(item, [schema], back=False) for item in value]
    return self._moved(value) if key == "$ref" and isinstance(value, str) else value

  def _moved(self, reference: str) -> str:
    """Returns a reference to where renames have moved what it points to."""
    if not reference.startswith("#/"):
      return reference
    keys = pointer_keys(urllib.parse.unquote(reference.removeprefix("#")))
    path, remaining = self._path(keys)
    moved: list[str] = []
    for (parent, _), (_, way) in itertools.pairwise(path):
      if way[0] in (PROPERTIES, *DEPENDENT):
        way = (way[0], self._renames.get(id(parent), {}).get(way[1], way[1]))
      moved += way
    new_keys = (*moved, *remaining)
    return reference if new_keys == keys else urllib.parse.quote(_joined("#", new_keys), "#/~$")

  def _value(self, value: Any, schemas: Sequence[Any], back: bool) -> Any:
    """Returns decoded JSON with the names of its properties translated."""
    schemas = of_same_value(schemas, self._root)
    if not schemas:
      return value
    if isinstance(value, list):
      return [self._value(item, of_item(schemas, index), back) for index, item in enumerate(value)]
    if not isinstance(value, dict):
      return value
    new_names: dict[str, str] = {}
    for schema in schemas:
      new_names.update(self._renames.get(id(schema), {}))
    old_names = {new_name: old_name for old_name, new_name in new_names.items()}
    result = {}
    for name, item in value.items():
      if back:
        # The base's name, where another is shown, is one that the tool does not have.
        old_name = f"{name} (not shown)" if name in new_names else name
        if name in old_names:
          old_name = old_names[name]
        result[old_name] = self._value(item, of_property(schemas, old_name), back)
      else:
        result[new_names.get(name, name)] = self._value(item, of_property(schemas, name), back)
    return result


def _joined(pointer: str, keys: Keys) -> str:
  """Returns the JSON pointer to what keys lead to from a pointer: reverses `pointer_keys`."""
  return "/".join((pointer, *(key.replace("~", "~0").replace("/", "~1") for key in keys)))


# --- errors --------------------------------------------------------------------------------


def _nowhere(rewording: Rewording, pointer: str, available: Any = ()) -> SgdxError:
  return SgdxError(
    f"rewording {rewording.name}: {pointer!r} points to nothing that can be reworded",
    expected=_POINTERS,
    available=nearest(pointer, available) if available else "",
    fix="correct the pointer; values, as those of an enum, are not reworded",
  )


def _illegal(rewording: Rewording, pointer: str, text: str) -> SgdxError:
  return SgdxError(
    f"rewording {rewording.name}, {pointer}: the name {text!r}, which APIs refuse",
    expected=f"1 to {LONGEST_NAME} letters, digits, underscores and dashes",
    fix="choose another name",
  )


def _collision(rewording: Rewording, fault: str) -> SgdxError:
  return SgdxError(
    f"rewording {rewording.name}: {fault}",
    expected="names that stay unique",
    fix="choose other names",
  )
