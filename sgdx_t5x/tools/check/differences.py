"""What differs between two versions of tools, as changes that can be made one by one.

Tools are matched by name, then by a file of renames: a JSON object, pointer in the old tools -> new
name, with the pointers of `suite/rewording.py`:

  {"/git_log": "log", "/git_log/parameters/properties/max_count": "limit"}
"""

import dataclasses
import enum
import json
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, is_text, read_input
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.rewording import Rewording, apply, elements, is_name
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
    old, new: the versions.
    renames: pointer in the old tools -> new name.
    changes: that make the new ones of the old.
    possible_renames: (tool dropped, tool added) with the same parameters.
  """

  old: ToolSet
  new: ToolSet
  renames: Mapping[str, str]
  changes: tuple[Change, ...]
  possible_renames: tuple[tuple[str, str], ...]

  @property
  def base(self) -> ToolSet:
    """The old tools and those added: what cases speak of."""
    added = self.tools_of(Kind.ADDED)
    return ToolSet((*self.old.tools, *(self.new.by_name[name] for name in added)))

  def tools_of(self, kind: Kind) -> list[str]:
    """Returns the tools that have a change of a kind."""
    return list(dict.fromkeys(change.tool for change in self.changes if change.kind is kind))

  def with_changes(self, changes: Collection[Change]) -> tuple[ToolSet, Rewording]:
    """Returns tools of which only some were changed, and their names, for answers.

    Args:
      changes: some of `self.changes`; with none of them, the tools are the old ones, with all the
        new ones.
    """
    made = set(changes)
    schemas = {change.tool for change in made if change.kind is Kind.SCHEMA}
    words = {c.pointer: c.new for c in made if c.kind in (Kind.TEXT, Kind.RENAMED)}
    reworded = apply(self.old, Rewording(NOW, words))
    tools: list[OwnTool] = []
    for old, tool in zip(self.old.tools, reworded.tools, strict=True):
      if Change(Kind.DROPPED, old.name, f"/{old.name}") in made:
        continue
      if old.name in schemas:
        parameters = self.new.by_name[_new_name(old.name, self.renames)].parameters
        tool = dataclasses.replace(tool, parameters=parameters)
        # The names of the parameters come with it.
        inside = f"/{old.name}/"
        words.update((p, name) for p, name in self.renames.items() if p.startswith(inside))
      tools.append(tool)
    for change in self.changes:
      if change in made and change.kind is Kind.ADDED:
        tools.append(self.new.by_name[change.tool])
    if ORDER in made:
      tools.sort(key=self._place_of)
    return ToolSet(tuple(tools)), Rewording(NOW if made else "old", words)

  def _place_of(self, tool: OwnTool) -> int:
    """Returns where a tool is among the new ones; tools that were dropped are last."""
    names = [new.name for new in self.new.tools]
    new_name = _new_name(tool.name, self.renames)
    name = tool.name if tool.name in names else new_name
    return names.index(name) if name in names else len(names)


def differences(old: ToolSet, new: ToolSet, renames: Mapping[str, str]) -> Differences:
  """Compares two versions of tools.

  Raises:
    SgdxError: a rename of what the old tools do not have, or to what the new ones do not have.
  """
  _check_renames(old, new, renames)
  changes: list[Change] = []
  matched: set[str] = set()
  for tool in old.tools:
    name = _new_name(tool.name, renames)
    if name in new.by_name:
      matched.add(name)
      changes += _changes_of_tool(tool, new.by_name[name], renames)
    else:
      changes.append(Change(Kind.DROPPED, tool.name, f"/{tool.name}"))
  added = [tool for tool in new.tools if tool.name not in matched]
  changes += [Change(Kind.ADDED, tool.name, f"/{tool.name}") for tool in added]
  dropped = [old.by_name[c.tool] for c in changes if c.kind is Kind.DROPPED]
  possible = tuple(
    (before.name, after.name)
    for before in dropped
    for after in added
    if before.parameters == after.parameters
  )
  result = Differences(old, new, renames, tuple(changes), possible)
  if _shown(result.with_changes(changes)[0]) == _shown(new):
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


def _check_renames(old: ToolSet, new: ToolSet, renames: Mapping[str, str]) -> None:
  apply(old, Rewording("renames", renames))  # raises for a pointer to nowhere
  for pointer, name in renames.items():
    if pointer.count("/") == 1 and name not in new.by_name:
      raise SgdxError(
        f"renames, {pointer}: no tool {name!r} among the new ones",
        expected="the name of a new tool",
        available=", ".join(list(new.by_name)[:8]),
        fix="correct the file of renames",
      )


def _changes_of_tool(old: OwnTool, new: OwnTool, renames: Mapping[str, str]) -> Iterator[Change]:
  """Yields the changes that make one tool of another.

  Parameters that differ in more than texts and names are one change.
  """
  pointer = f"/{old.name}"
  if old.name != new.name:
    yield Change(Kind.RENAMED, old.name, pointer, old.name, new.name)
  inside = {p: name for p, name in renames.items() if p.startswith(f"{pointer}/")}
  old_texts, new_texts = elements(old), dict(_old_pointers(old, elements(new), inside))
  texts = []
  for place in dict.fromkeys((*old_texts, *new_texts)):
    before, after = old_texts.get(place, ""), new_texts.get(place, "")
    if before != after and not is_name(place):
      texts.append(Change(Kind.TEXT, old.name, place, before, after))
  words = inside | {change.pointer: change.new for change in texts}
  try:
    reworded = apply(ToolSet((old,)), Rewording(NOW, words)).tools[0].parameters
  except SgdxError:  # a text in a place that the old tool does not have
    reworded = old.parameters
  if json.dumps(reworded) != json.dumps(new.parameters):
    yield from (change for change in texts if change.pointer == f"{pointer}/description")
    what = ", ".join(_different_properties(old.parameters, new.parameters, inside))
    yield Change(Kind.SCHEMA, old.name, f"{pointer}/parameters", "", what or "differs")
    return
  for place, name in inside.items():
    yield Change(Kind.RENAMED, old.name, place, place.rpartition("/")[2], name)
  yield from texts


def _old_pointers(
  old: OwnTool, new_texts: Mapping[str, str], renames: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
  """Yields the texts of a new tool at their places in the old one. Args: renames inside it."""
  for pointer, text in new_texts.items():
    place = f"/{old.name}"
    for key in pointer.split("/")[2:]:
      old_keys = (p for p, name in renames.items() if p.rpartition("/")[0] == place and name == key)
      place = next(old_keys, f"{place}/{key}")
    yield place, text


def _different_properties(
  old: Mapping[str, Any], new: Mapping[str, Any], renames: Mapping[str, str]
) -> Iterator[str]:
  """Yields in words how the properties of two schemas differ, as far as names and types go."""
  before, after = (schema.get("properties", {}) for schema in (old, new))
  new_names = {pointer.rpartition("/")[2]: name for pointer, name in renames.items()}
  for name in after:
    if name not in before and name not in new_names.values():
      yield f"{name} added"
  for name, schema in before.items():
    new_name = new_names.get(name, name)
    if new_name not in after:
      yield f"{name} gone"
    elif schema != after[new_name]:
      yield f"{name} differs"
  if old.get("required", []) != new.get("required", []):
    yield f"required: {', '.join(new.get('required', [])) or 'none'}"


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
  parts = []
  for kind, name in names.items():
    number = sum(change.kind is kind for change in changes)
    if number:
      parts.append(name if kind is Kind.ORDER else f"{number} {name}")
  return ", ".join(parts) or "no change"
