"""JSON Schemas as trees: the parts of one, and those that speak of the same value."""

import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
Keys = tuple[str, ...]  # the way from a schema to a part of it

PROPERTIES = "properties"
PATTERNS = "patternProperties"
DEPENDENT = ("dependentSchemas", "dependencies")  # the latter up to draft 7
NAMED = (PROPERTIES, PATTERNS, "$defs", "definitions", *DEPENDENT)  # name -> schema
_FURTHER = ("additionalProperties", "unevaluatedProperties")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
  "items", "additionalItems", "additionalProperties", "unevaluatedProperties", "contains",
  "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", *DEPENDENT)


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


def with_children(schema: Schema, change: Callable[[Any], Any]) -> dict[str, Any]:
  """Returns a copy of a schema in which the schemas directly in it are changed."""
  copy = dict(schema)
  for way, child in children(schema):
    inside: Any = copy
    for key in way[:-1]:
      inside[key] = dict(inside[key]) if isinstance(inside[key], dict) else list(inside[key])
      inside = inside[key]
    inside[int(way[-1]) if isinstance(inside, list) else way[-1]] = change(child)
  return copy


def all_schemas(root: Any) -> Iterator[Schema]:
  """Yields a schema and all schemas in it that are objects."""
  if isinstance(root, dict):
    yield root
    for _, child in children(root):
      yield from all_schemas(child)


def of_same_value(schemas: Sequence[Any], root: Schema) -> list[Schema]:
  """Returns parts of `root`, and what else applies to the same value: branches, references."""
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
  """Returns what schemas of one object say of a property, by name or of all further ones."""
  result = []
  for schema in schemas:
    further = [schema[key] for key in _FURTHER if isinstance(schema.get(key), dict)]
    result += _declared(schema, name) or further
  return result


def declares(schemas: Sequence[Schema], name: str) -> bool:
  """Whether schemas of one object have a property by name, or by a pattern."""
  return any(_declared(schema, name) for schema in schemas)


def _declared(schema: Schema, name: str) -> list[Any]:
  result = [schema[PROPERTIES][name]] if name in schema.get(PROPERTIES, ()) else []
  for pattern, part in schema.get(PATTERNS, {}).items():
    if not is_readable(pattern) or re.search(pattern, name):
      result.append(part)
  return result


def is_readable(pattern: str) -> bool:
  """Whether Python reads a regular expression: JSON Schema's are those of JavaScript."""
  try:
    re.compile(pattern)
  except (re.error, RecursionError, OverflowError):
    return False
  return True


def of_item(schemas: Sequence[Schema], index: int) -> list[Any]:
  """Returns what schemas of one list say of an item."""
  result = []
  for schema in schemas:
    items = schema.get("prefixItems", schema.get("items"))
    if isinstance(items, list):
      further = "items" if "prefixItems" in schema else "additionalItems"
      result.append(items[index] if index < len(items) else schema.get(further))
    else:
      result.append(items)
  return result


def undeclared(
  value: Any, root: Schema, schemas: Sequence[Any] | None = None, way: str = ""
) -> Iterator[tuple[str, bool]]:
  """Yields the properties in a value that its schema does not declare, and whether it allows them.

  A schema allows them if it says so by `additionalProperties`. An object inside it that declares no
  property at all may have any.

  Args: schemas, of a value inside another, in `root`; way, the names that lead there.
  """
  schemas = of_same_value([root] if schemas is None else schemas, root)
  if not schemas:
    return
  if isinstance(value, list):
    for index, item in enumerate(value):
      yield from undeclared(item, root, of_item(schemas, index), f"{way}[{index}]")
  elif isinstance(value, dict):
    # Below the arguments, {"type": "object"} alone means an object of any properties.
    has_names = not way or any(PROPERTIES in schema for schema in schemas)
    allowed = any(schema.get(key, False) is not False for schema in schemas for key in _FURTHER)
    for name, item in value.items():
      at = f"{way}.{name}" if way else name
      yield from undeclared(item, root, of_property(schemas, name), at)
      if has_names and not declares(schemas, name):
        yield at, allowed


# --- references ----------------------------------------------------------------------------


def references(schema: Any) -> Iterator[str]:
  """Yields the references in a schema."""
  for part in all_schemas(schema):
    if isinstance(part.get("$ref"), str):
      yield part["$ref"]


def resolved(document: Any, reference: str) -> Any:
  """Returns what a reference within a document points to; None if it is not there."""
  base, _, fragment = reference.partition("#")
  if base:
    document = next((part for part in _objects(document) if part.get("$id") == base), None)
  if fragment and not fragment.startswith("/"):
    anchored = (part for part in _objects(document) if _is_called(part, fragment))
    return next(anchored, None)
  for key in pointer_keys(urllib.parse.unquote(fragment)):
    if isinstance(document, list) and key.isdecimal() and int(key) < len(document):
      document = document[int(key)]
    elif isinstance(document, dict) and key in document:
      document = document[key]
    else:
      return None
  return document


def _is_called(part: Mapping[str, Any], anchor: str) -> bool:
  anchors = (part.get("$anchor"), part.get("$dynamicAnchor"))
  return anchor in anchors or part.get("$id") == f"#{anchor}"  # the latter up to draft 7


def _objects(part: Any) -> Iterator[dict[str, Any]]:
  """Yields all objects in decoded JSON."""
  if isinstance(part, dict):
    yield part
  for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
    yield from _objects(value)


def pointer_keys(pointer: str) -> tuple[str, ...]:
  """Returns the keys of a JSON pointer; () if it is none."""
  start, *keys = pointer.split("/")
  return () if start else tuple(key.replace("~1", "/").replace("~0", "~") for key in keys)
