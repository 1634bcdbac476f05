"""Tools as services in SGD's form, for trackers of states: one service per tool.

string, number      a slot
enum, boolean       a categorical slot
an object of these  slots OBJECT.NAME
any other           left out: lists, objects in objects, alternatives of types

Also left out are slots with a / in their names, or with the name of another, and tools without
slots: trackers refuse them.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot, parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.schemas import PROPERTIES, of_same_value
from sgdx_t5x.tools.suite.toolset import ToolSet

_TOGETHER = (
  "oneOf", "anyOf", "allOf", "dependentRequired", "dependentSchemas", "dependencies",
  "if", "not",
)  # fmt: skip


LeftOut = dict[str, list[str]]  # what -> TOOL.ARGUMENT, or TOOL


def services(toolset: ToolSet) -> tuple[Schema, LeftOut]:
  """Returns the tools as services, and what they leave out.

  Raises SgdxError: no tool has a slot, or one has a text that a schema cannot hold.
  """
  left_out: LeftOut = collections.defaultdict(list)
  with_slots = []
  for tool in toolset.tools:
    service = _service(tool, left_out)
    if service.slots:
      with_slots.append(service.to_json())
    else:
      left_out["no slots"].append(tool.name)
  if not with_slots:
    raise SgdxError(
      f"{len(toolset.tools):,} tools, none with slots",
      expected="arguments that a tracker can fill: strings, numbers, enums and booleans",
      fix="leave --trackers out",
    )
  return parse_schema(with_slots, "the tools as services"), left_out


def _service(tool: OwnTool, left_out: LeftOut) -> Service:
  """Returns a tool as a service of one intent. Args: left_out, to which what is lost is added."""
  root = tool.parameters
  slots: list[Slot] = []
  required: list[str] = []
  optional: dict[str, str] = {}
  for name, part, is_required in _arguments(root):
    schemas = of_same_value([part], root)
    slot = _slot(name, schemas)
    # A slot holds one string or one of some values: objects and lists have no place in a state.
    if slot is None:
      left_out[_kind(schemas)].append(f"{tool.name}.{name}")
      continue
    if "/" in name or name in required or name in optional:
      reason = "/ in a name" if "/" in name else "a second argument of the name"
      left_out[reason].append(f"{tool.name}.{name}")
      continue
    slots.append(slot)
    if is_required:
      required.append(name)
    else:
      default = next((item["default"] for item in schemas if item.get("default") is not None), "")
      optional[name] = str(default)
  for keyword in _TOGETHER:
    if keyword in root:
      left_out[f"{keyword} of all arguments"].append(tool.name)
  intent = Intent(tool.name, tool.description, not tool.read_only, tuple(required), optional)
  return Service(tool.name, tool.description, tuple(slots), (intent,))


def _arguments(root: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
  """Yields name, schema and whether it is required, of arguments; objects are taken apart."""
  for name, part in root.get(PROPERTIES, {}).items():
    is_required = name in root.get("required", ())
    schemas = of_same_value([part], root)
    objects = [schema for schema in schemas if schema.get(PROPERTIES)]
    if not objects or _kind(schemas) == "alternatives":
      yield name, part, is_required
      continue
    for schema in objects:
      for inner, inner_part in schema[PROPERTIES].items():
        inner_required = is_required and inner in schema.get("required", ())
        yield f"{name}.{inner}", inner_part, inner_required


def _kind(schemas: Sequence[Mapping[str, Any]]) -> str:
  """Returns the type of a value; "alternatives" if it has several besides null."""
  types: set[str] = set()
  for schema in schemas:
    listed = schema.get("type", ())
    types.update([listed] if isinstance(listed, str) else listed)
  types.discard("null")
  if "integer" in types and "number" in types:
    types.discard("integer")
  return "alternatives" if len(types) > 1 else next(iter(types), "string")


def _slot(name: str, schemas: Sequence[Mapping[str, Any]]) -> Slot | None:
  """Returns an argument as a slot; None for one that no slot can hold."""
  kind = _kind(schemas)
  if kind in ("array", "object", "alternatives"):
    return None
  description = next((item["description"] for item in schemas if "description" in item), "")
  values = next((item["enum"] for item in schemas if "enum" in item), ())
  if not values and not any(item.keys() & {"not", "if"} for item in schemas):
    values = [item["const"] for item in schemas if "const" in item]  # alternatives, or the only one
  values = [item for item in values if item is not None]
  if not values and kind == "boolean":
    values = [True, False]
  return Slot(name, description, bool(values), tuple(map(str, values)))
