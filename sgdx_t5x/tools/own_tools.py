"""Tools of one's own, read from what servers and services write; definitions stay as they are.

  MCP        {"tools": [{"name", "inputSchema"}]}, alone or in the "result" of tools/list
  OpenAI     [{"type": "function", "function": {"name", "parameters"}}], or without "function"
  Anthropic  [{"name", "input_schema"}]
  OpenAPI 3  JSON or YAML; one tool per operation, with the parameters, and the first schema of a
             body, JSON's if there is one, as "body"

Lists may be in the "tools" of an object.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sgdx_t5x.errors import SgdxError, first_line, malformed, quoted, require
from sgdx_t5x.files.reading import decode_json, read_input
from sgdx_t5x.tools.definitions import LONGEST_NAME, legal_name
from sgdx_t5x.tools.schemas import pointer_keys, references, resolved

_EXPECTED = "a list of tools: MCP's tools/list, OpenAI's, Anthropic's, or OpenAPI 3 (JSON, YAML)"
_SCHEMAS = ("inputSchema", "input_schema", "parameters")
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_SHOWN = ("name", "description", "type", "function", *_SCHEMAS)
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_COMPONENTS = "components"
_NUMBER = r"[-+]?(?:0|[1-9]\d*)"
_YAML_VALUES = {  # type of a plain scalar -> its form in OpenAPI's YAML, which is 1.2
  "null": r"(?:~|null|Null|NULL|)\Z",
  "bool": r"(?:true|True|TRUE|false|False|FALSE)\Z",
  "int": rf"{_NUMBER}\Z",
  "float": rf"(?:{_NUMBER}(?:\.\d*)?|[-+]?\.\d+)(?:[eE][-+]?\d+)?\Z",
  "merge": r"<<\Z",
}


@dataclasses.dataclass(frozen=True)
class OwnTool:
  """A definition as it is in a file.

  Attributes:
    name: as it is.
    description: as it is; "" if there is none.
    parameters: the JSON Schema of its arguments, as it is.
    place: where it is in the file, as a JSON pointer.
    not_shown: further keys of the definition, which APIs do not show to models.
    read_only: whether MCP's annotations say so.
  """

  name: str
  description: str
  parameters: Mapping[str, Any]
  place: str
  not_shown: tuple[str, ...] = ()
  read_only: bool = False

  def for_openai(self) -> dict[str, Any]:
    """The tool as chat completions take it."""
    function: dict[str, Any] = {"name": self.name}
    if self.description:
      function["description"] = self.description
    return {"type": "function", "function": {**function, "parameters": self.parameters}}


def read_tools(path: pathlib.Path) -> list[OwnTool]:
  """Returns the tools of a file, in its order.

  Raises SgdxError: none of the forms; two tools of one name, a name that APIs refuse, a reference
  to what is not there.
  """
  return tools_of(decoded(read_input(path, _EXPECTED), path), path)


def decoded(content: bytes, path: pathlib.Path) -> Any:
  """Returns the content of a file, decoded. Raises SgdxError: neither JSON nor YAML."""
  if path.suffix not in (".yaml", ".yml"):
    return decode_json(content, str(path), _EXPECTED, "name YAML *.yaml; correct JSON")
  yaml = require("yaml", extra="tools", why=f"reading {path}")

  class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads what YAML 1.2 and JSON have: no, on, 10:30, 012 and dates stay texts."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

  for kind, pattern in _YAML_VALUES.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), None)
  try:
    return json.loads(json.dumps(yaml.load(content, Loader)))  # numbers as keys become texts
  except (yaml.YAMLError, ValueError, TypeError, RecursionError) as e:
    raise _error(path, "", f"not valid YAML ({first_line(e)})") from None


def tools_of(data: Any, path: pathlib.Path) -> list[OwnTool]:
  """Returns the tools of decoded JSON. Args: path, for errors. Raises: as `read_tools`."""
  try:
    is_openapi = isinstance(data, dict) and str(data.get("openapi", "")).startswith("3.")
    tools = list(_openapi(path, data) if is_openapi else _listed(path, data))
    _check(path, tools)
  except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as e:
    raise _error(path, "", f"not of the form: {malformed(e)}") from None
  return tools


def _check(path: pathlib.Path, tools: Sequence[OwnTool]) -> None:
  """Raises SgdxError for no tools, names that do not do, and references to nowhere."""
  if not tools:
    raise _error(path, "", "no tools")
  places: dict[str, str] = {}
  for tool in tools:
    if tool.name in places:
      fault = f"a second tool of the name {tool.name!r}; the first is {places[tool.name]}"
      raise _error(path, tool.place, fault, "rename one of them")
    if not legal_tool_name(tool.name):
      fix = f"rename it, for example {legal_name(tool.name)}"
      raise _error(path, tool.place, f"the name {tool.name!r}, which APIs refuse", fix)
    places[tool.name] = tool.place
    for reference in references(tool.parameters):
      if resolved(tool.parameters, reference) is None:
        fault = f"$ref to {reference!r}, which is not there"
        raise _error(
          path, tool.place, fault, "correct the reference, or put its schema in its place"
        )


def _listed(path: pathlib.Path, data: Any) -> Iterator[OwnTool]:
  """Yields the tools of a list of MCP, OpenAI or Anthropic."""
  # The list stands alone, in {"tools": ...}, or in an MCP server's {"result": {"tools": ...}}.
  place = ""
  for key in ("result", "tools"):
    if isinstance(data, dict) and key in data:
      data, place = data[key], f"{place}/{key}"
  if not isinstance(data, list):
    keys = ", ".join(map(str, data))[:80] if isinstance(data, dict) else type(data).__name__
    raise _error(path, "", f"none of the forms of tools ({keys})")
  for number, item in enumerate(data):
    at = f"{place}/{number}"
    # Chat completions put name, description and parameters under "function".
    inside = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(inside, dict) or not isinstance(inside.get("name"), str):
      raise _error(path, at, f"no tool: {quoted(item)[:80]}")
    key = next((key for key in _SCHEMAS if key in inside), None)
    if key is None and item is inside and item.get("type") != "function":
      raise _error(path, at, f"the tool {inside['name']!r} has none of {', '.join(_SCHEMAS)}")
    # OpenAI's functions leave "parameters" out if they have none.
    schema = {"type": "object", "properties": {}}
    if key is not None and inside[key] is not None:
      schema = inside[key]
    is_object = isinstance(schema, dict) and schema.get("type") in (None, "object", ["object"])
    if not is_object or not isinstance(schema.get("properties", {}), dict):
      raise _error(path, at, f"{key} of {inside['name']!r} is not the JSON Schema of an object")
    not_shown = tuple(key for key in {**item, **inside} if key not in _SHOWN)
    annotations = item.get("annotations")
    read_only = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
    text = str(inside.get("description") or "")
    yield OwnTool(inside["name"], text, schema, at, not_shown, read_only)


# --- OpenAPI -------------------------------------------------------------------------------


def _openapi(path: pathlib.Path, data: Mapping[str, Any]) -> Iterator[OwnTool]:
  """Yields a tool per operation."""
  paths, names = data.get("paths"), dict[str, str]()
  for url, item in paths.items() if isinstance(paths, dict) else ():
    escaped_url = url.replace("~", "~0").replace("/", "~1")
    if isinstance(item, dict) and "$ref" in item:
      item = {**_followed(path, f"/paths/{escaped_url}", data, item), **item}
    for method in _METHODS:
      operation = item.get(method) if isinstance(item, dict) else None
      if isinstance(operation, dict):
        at = f"/paths/{escaped_url}/{method}"
        name = _operation_name(str(operation.get("operationId") or f"{method}{url}"), names)
        text = operation.get("description") or operation.get("summary") or ""
        listed = [*item.get("parameters", ()), *operation.get("parameters", ())]
        parameters = {}  # one of an operation takes the place of one of all operations of its path
        for parameter in (_followed(path, at, data, part) for part in listed):
          parameters[parameter.get("name"), parameter.get("in")] = parameter
        schema = _arguments(path, at, data, parameters.values(), operation.get("requestBody"))
        yield OwnTool(name, str(text), schema, at)


def _operation_name(text: str, names: dict[str, str]) -> str:
  """Returns a name of its own for an operation: long ones may begin alike.

  Args: names, of the operations before it -> their texts; this one is added.
  """
  name = legal_name(text)
  if names.setdefault(name, text) != text:
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    name = f"{name[: LONGEST_NAME - 9]}_{digest}"
  return name


def _arguments(
  path: pathlib.Path,
  at: str,
  data: Mapping[str, Any],
  parameters: Iterable[Mapping[str, Any]],
  body: Any,
) -> dict[str, Any]:
  """Returns the arguments of an operation as a schema that contains what it refers to."""
  properties: dict[str, Any] = {}
  required: list[str] = []
  for definition in parameters:
    name = definition.get("name")
    if not isinstance(name, str) or name in properties:
      raise _error(path, at, f"a parameter of the name {name!r}, which is none or not unique")
    described = {"description": definition["description"]} if "description" in definition else {}
    schema_of_parameter = definition.get("schema") or _schema_of(definition.get("content"))
    properties[name] = {**schema_of_parameter, **described}
    required += [name] if definition.get("required") else []
  if body:
    definition = _followed(path, at, data, body)
    if "body" in properties:
      raise _error(path, at, "a parameter called body beside a body")
    properties["body"] = _schema_of(definition.get("content"))
    required += ["body"] if definition.get("required") else []
  schema: dict[str, Any] = {"type": "object", "properties": properties}
  if required:  # draft 4 has no empty list
    schema["required"] = required
  waiting = list(references(schema))
  while waiting:  # what is referred to keeps its place, so that references stay as they are
    keys = pointer_keys(urllib.parse.unquote(waiting.pop().removeprefix("#")))
    if keys[:1] != (_COMPONENTS,) or len(keys) < 3:
      continue
    # All of it, even if a part is meant: another reference may mean more.
    _, folder, name, *_ = keys
    component = data.get(_COMPONENTS, {}).get(folder, {}).get(name)
    copied = schema.setdefault(_COMPONENTS, {}).setdefault(folder, {})
    if component is not None and name not in copied:
      copied[name] = component
      waiting += references(component)
  return schema


def _schema_of(content: Any) -> Any:
  """Returns the schema of what is sent: of its JSON, else of its first type; {} without one."""
  media_types = content if isinstance(content, dict) else {}
  for name in sorted(media_types, key=lambda name: "json" not in name):
    if isinstance(media_types[name], dict) and "schema" in media_types[name]:
      return media_types[name]["schema"]
  return {}


def _followed(path: pathlib.Path, at: str, data: Mapping[str, Any], part: Any) -> dict[str, Any]:
  """Returns a part of an OpenAPI document, or what it refers to."""
  reference = part.get("$ref") if isinstance(part, dict) else None
  target = resolved(data, reference) if isinstance(reference, str) else part
  if not isinstance(target, dict):
    raise _error(path, at, f"$ref to {reference!r}, which is not there")
  return target


def legal_tool_name(name: str) -> bool:
  """Whether all APIs take a name of a tool."""
  return _NAME.fullmatch(name) is not None


def _error(path: pathlib.Path, place: str, fault: str, fix: str = "") -> SgdxError:
  place_in_file = f"{path}, {place}" if place else str(path)
  return SgdxError(f"{place_in_file}: {fault}", expected=_EXPECTED, fix=fix or "correct the file")
