"""JSON Schemas as trees: the parts of one, and those that speak of the same value."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.tools.own_tools import resolved

Schema = Mapping[str, Any]
Keys = tuple[str, ...]  # the way from a schema to a part of it

PROPERTIES = "properties"
DEPENDENT = "dependentSchemas"
NAMED = (PROPERTIES, "patternProperties", "$defs", "definitions", DEPENDENT)  # name -> schema
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
  "items", "additionalItems", "additionalProperties", "unevaluatedProperties", "contains",
  "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", DEPENDENT)


def children(schema: Any) -> Iterator[tuple[Keys, Any]]:
  """Yields the schemas directly in a schema, and where they are. `true` and `false` are some."""
  if not isinstance(schema, dict):
    return
  for key, value in schema.items():
    if key in NAMED and isinstance(value, dict):
      for name, child in value.items():
        yield (key, name), child
    elif key in _LISTED and isinstance(value, list):
      for number, child in enumerate(value):
        yield (key, str(number)), child
    elif key in _SINGLE:
      yield (key,), value
    elif key == "components" and isinstance(value, dict):  # OpenAPI's
      for folder, definitions in value.items():
        for name, child in definitions.items() if isinstance(definitions, dict) else ():
          yield (key, folder, name), child


def all_schemas(root: Any) -> Iterator[Schema]:
  """Yields a schema and all schemas in it that are objects."""
  if isinstance(root, dict):
    yield root
    for _, child in children(root):
      yield from all_schemas(child)


def of_same_value(schemas: Sequence[Any], root: Schema) -> list[Schema]:
  """Returns schemas and all that apply to the value which they describe: branches, references.

  Args:
    schemas: parts of `root`; those that are no objects are left out.
    root: where references are looked up.
  """
  result: dict[int, Schema] = {}
  waiting = list(schemas)
  while waiting:
    schema = waiting.pop(0)
    if isinstance(schema, dict) and id(schema) not in result:
      result[id(schema)] = schema
      waiting += [child for keys, child in children(schema) if keys[0] in _SAME_VALUE]
      if isinstance(schema.get("$ref"), str):
        waiting.append(resolved(root, schema["$ref"]))
  return list(result.values())


def of_property(schemas: Sequence[Schema], name: str) -> list[Any]:
  """Returns what schemas of one object say of a property: [] if none of them declares it."""
  result = []
  for schema in schemas:
    if name in schema.get(PROPERTIES, ()):
      result.append(schema[PROPERTIES][name])
    for pattern, part in schema.get("patternProperties", {}).items():
      if re.search(pattern, name):
        result.append(part)
  return result


def of_item(schemas: Sequence[Schema], index: int) -> list[Any]:
  """Returns what schemas of one list say of an item."""
  result = []
  for schema in schemas:
    items = schema.get("prefixItems", schema.get("items"))
    if isinstance(items, list):
      result.append(items[index] if index < len(items) else schema.get("items"))
    else:
      result.append(items)
  return result


def undeclared(value: Any, root: Schema) -> Iterator[tuple[str, bool]]:
  """Yields the properties in a value that its schema does not declare, and whether it allows them.

  A schema allows them if it says so by `additionalProperties`. An object inside it that declares no
  property at all may have any.

  Args:
    value: decoded JSON.
    root: its schema.
  """
  yield from _undeclared(value, [root], root, "")


def _undeclared(
  value: Any, schemas: Sequence[Any], root: Schema, way: str
) -> Iterator[tuple[str, bool]]:
  schemas = of_same_value(schemas, root)
  if not schemas:
    return
  if isinstance(value, list):
    for index, item in enumerate(value):
      yield from _undeclared(item, of_item(schemas, index), root, f"{way}[{index}]")
  elif isinstance(value, dict):
    declares = not way or any(PROPERTIES in schema for schema in schemas)
    allowed = any(schema.get("additionalProperties", False) is not False for schema in schemas)
    for name, item in value.items():
      at = f"{way}.{name}" if way else name
      if property_schemas := of_property(schemas, name):
        yield from _undeclared(item, property_schemas, root, at)
      elif declares:
        yield at, allowed
