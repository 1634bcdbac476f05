"""The intents of a service as tools of a language model: names, descriptions, JSON Schema.

One tool per intent. Its arguments are the slots that the intent requires or accepts. A categorical
slot becomes an enum of its possible values and "dontcare"; all values are strings, as they are in
states.
"""

import dataclasses
import functools
import json
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import ServicePair

LONGEST_NAME = 64  # OpenAI: a-z, A-Z, 0-9, underscores, dashes, 64 characters; Anthropic as well
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_BETWEEN = "__"  # service and intent


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Tool:
  """An intent of a service in a variant's words. Compared by identity, like its service.

  Attributes:
    name: legal in all APIs; made of the variant's service and intent.
    service: original name of the service.
    intent: original name of the intent.
    description: the intent's, then the service's.
    properties: legal name of an argument -> its JSON Schema.
    slots: legal name of an argument -> original name of its slot.
    required: legal names of the arguments that the intent requires.
  """

  name: str
  service: str
  intent: str
  description: str
  properties: Mapping[str, Mapping[str, Any]]
  slots: Mapping[str, str]
  required: tuple[str, ...] = ()

  @property
  def parameters(self) -> dict[str, Any]:
    """Its arguments as a JSON Schema of an object."""
    return {
      "type": "object",
      "properties": dict(self.properties),
      "required": list(self.required),
      "additionalProperties": False,
    }

  @property
  def for_states(self) -> "Tool":
    """The tool as requests for a state show it: a state has only what was said so far."""
    return dataclasses.replace(self, required=())


def legal_name(text: str) -> str:
  """Returns a name of at most 64 letters, digits, underscores and dashes."""
  return _ILLEGAL.sub("_", text)[:LONGEST_NAME] or "_"


@functools.lru_cache(maxsize=1024)
def service_tools(pair: ServicePair) -> tuple[Tool, ...]:
  """Returns the tools of a service, in the order of its intents and a variant's words.

  Raises SgdxError: two slots of an intent have the same legal name.
  """
  intents = zip(pair.original.intents, pair.variant.intents, strict=True)
  return tuple(_tool(pair, original, variant) for original, variant in intents)


def all_tools(pairs: Mapping[str, ServicePair]) -> dict[str, Tool]:
  """Returns the tools of services of one variant by name. Raises SgdxError: two have one name."""
  tools: dict[str, Tool] = {}
  names: dict[str, str] = {}  # of a tool -> SERVICE__INTENT, with all characters
  for pair in pairs.values():
    for tool, intent in zip(service_tools(pair), pair.variant.intents, strict=True):
      full_name = f"{pair.variant.name}{_BETWEEN}{intent.name}"
      if tool.name in names:
        raise _collision("tools", names[tool.name], full_name)
      tools[tool.name], names[tool.name] = tool, full_name
  return tools


def _tool(pair: ServicePair, original: Intent, variant: Intent) -> Tool:
  properties: dict[str, Mapping[str, Any]] = {}
  slots: dict[str, str] = {}
  slot_names: dict[str, str] = {}  # legal name -> the variant's
  for slot, of_original in _arguments(pair, original):
    name = legal_name(slot.name)
    if name in slots:
      place = f"{pair.variant.name}, intent {variant.name!r}: "
      raise _collision("arguments", slot_names[name], slot.name, place)
    properties[name], slots[name], slot_names[name] = _property(slot), of_original.name, slot.name
  name = legal_name(f"{pair.variant.name}{_BETWEEN}{variant.name}")
  texts = filter(str.strip, (variant.description, pair.variant.description))
  described = " ".join(f"{text.rstrip('. ')}." for text in texts)
  required = tuple(name for name, slot in slots.items() if slot in original.required_slots)
  return Tool(name, pair.original.name, original.name, described, properties, slots, required)


def _arguments(pair: ServicePair, intent: Intent) -> Iterable[tuple[Slot, Slot]]:
  """Yields (slot of the variant, original slot), in the order of the service's slots."""
  accepted = {*intent.required_slots, *intent.optional_slots}
  for original, variant in zip(pair.original.slots, pair.variant.slots, strict=True):
    if original.name in accepted:
      yield variant, original


def _property(slot: Slot) -> dict[str, Any]:
  schema: dict[str, Any] = {"type": "string", "description": slot.description}
  if slot.is_categorical:
    schema["enum"] = list(dict.fromkeys((*slot.possible_values, DONTCARE)))
  return schema


def _collision(kind: str, first: str, second: str, place: str = "") -> SgdxError:
  """Returns the error for two names that become the same legal name."""
  name, other_name = (_ILLEGAL.sub("_", full_name) for full_name in (first, second))
  if name == other_name:
    reason = f"both names become {legal_name(name)!r} without illegal characters"
    fix = "rename one of the two in the schema"
  else:
    reason = (
      f"the names are too long ({len(name)} and {len(other_name)} characters): both are cut to "
      f"{LONGEST_NAME}, which leaves {legal_name(name)!r}"
    )
    fix = f"shorten them in the schema, so that their first {LONGEST_NAME} characters differ"
  return SgdxError(
    f"{place}{kind} {first!r} and {second!r}: {reason}",
    expected=f"{kind} with unique names of at most {LONGEST_NAME} letters, digits, underscores "
    "and dashes",
    fix=f"{fix}; a tool is named SERVICE{_BETWEEN}INTENT" if kind == "tools" else fix,
  )


# --- formats -------------------------------------------------------------------------------


def openai_tool(tool: Tool) -> dict[str, Any]:
  """Returns a tool as chat completions take it. Source: the package openai, FunctionDefinition."""
  function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
  return {"type": "function", "function": function}


def function_text(tool: Tool) -> str:
  """Returns a tool as a prompt of plain text shows it, see `Tool.for_states`."""
  return json.dumps(openai_tool(tool.for_states)["function"])


def anthropic_tool(tool: Tool) -> dict[str, Any]:
  """Returns a tool as the Messages API takes it. Source: the package anthropic, ToolParam."""
  return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def mcp_tool(tool: Tool) -> dict[str, Any]:
  """Returns a tool as a server's tools/list has it. Source: the package mcp, Tool."""
  return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}


def bfcl_tool(tool: Tool) -> dict[str, Any]:
  """Returns a tool as the Berkeley Function-Calling Leaderboard documents functions.

  It calls an object "dict", has no additionalProperties, requires a default for every optional
  argument, and allows no argument named like a Python keyword.

  Source: the package bfcl-eval, scripts/check_func_doc_format.py.
  """
  properties = {
    bfcl_name(name): x if name in tool.required else {**x, "default": ""}
    for name, x in tool.properties.items()
  }
  required = list(map(bfcl_name, tool.required))
  parameters = {"type": "dict", "properties": properties, "required": required}
  return {"name": tool.name, "description": tool.description, "parameters": parameters}


def bfcl_name(name: str) -> str:
  """Returns the name of an argument for BFCL."""
  return f"{name}_" if keyword.iskeyword(name) else name


FORMATS = {"openai": openai_tool, "mcp": mcp_tool, "bfcl": bfcl_tool, "anthropic": anthropic_tool}


def names_map(tools: Iterable[Tool], form: str = "openai") -> dict[str, Any]:
  """Returns tool -> {"service", "intent", "arguments": {argument: slot}}, all in original names.

  Args: form, a key of `FORMATS`.
  """
  argument_name = bfcl_name if form == "bfcl" else str
  originals = {}
  for tool in tools:
    slots = {argument_name(name): slot for name, slot in tool.slots.items()}
    originals[tool.name] = {"service": tool.service, "intent": tool.intent, "arguments": slots}
  return originals
