"""Conversion of states to tool calls, and of tool calls to states.

A state is what the user has asked of a service so far. It is written as calls of the first other
intents, in schema order, that take the slots which the active intent does not take, and last of the
active intent. Conversely, the arguments of all calls together are the state; if one is given twice,
the later call counts.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, State
from sgdx_t5x.corpus.schema import NO_INTENT
from sgdx_t5x.errors import quoted
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.tools.definitions import Tool, bfcl_name, service_tools

ROLES = {USER: "user", SYSTEM: "assistant"}  # in chat completions
_LONGEST_QUOTE = 200  # characters of an answer that are shown


@dataclasses.dataclass(frozen=True, slots=True)
class CallFacts:
  """Facts about the calls of an answer, besides their state.

  Attributes:
    calls: how many there are.
    intent: original name of the intent of the last call to the frame's service; "NONE" without
      such a call.
    other_tools: names of tools called that are not of the frame's service.
    arguments: how many arguments the calls of the frame's service have.
    invented: how many of these their tool does not have.
    mistyped: how many of the rest are neither strings nor null.
    invalid: whether an answer, or the arguments of a call, are not JSON of the required form.
    fits_schema: whether the calls of the frame's service are JSON that their tools' schemas allow,
      apart from what those require: strings, of the enum if there is one. "" is not given.
    absent: whether the request had no tool of the frame's service.
    cut_off: whether the answer was ended by a limit of tokens.
    in_text: the text of an answer without calls, if a call is in it.
  """

  calls: int = 0
  intent: str = NO_INTENT
  other_tools: tuple[str, ...] = ()
  arguments: int = 0
  invented: int = 0
  mistyped: int = 0
  invalid: bool = False
  fits_schema: bool = True
  absent: bool = False
  cut_off: bool = False
  in_text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CalledFrame(PredictedFrame):
  """A prediction read from calls. A call cannot say that no intent is active: see docs."""

  facts: CallFacts = dataclasses.field(default_factory=CallFacts)


def state_calls(pair: ServicePair, state: State) -> list[dict[str, Any]]:
  """Returns a state, in original names, as calls {"name", "arguments"} with the names of a variant.

  Slots that no intent takes are left out. Without an active intent, no last call is added. The
  first of several acceptable values is written.
  """
  waiting = {slot: values[0] for slot, values in state.slot_values.items() if values}
  calls, active_calls = [], []
  # The active intent takes its slots before all others, and is called after them.
  for tool in sorted(service_tools(pair), key=lambda tool: tool.intent != state.active_intent):
    arguments = {name: waiting[slot] for name, slot in tool.slots.items() if slot in waiting}
    call = {"name": tool.name, "arguments": arguments}
    if tool.intent == state.active_intent:
      active_calls.append(call)
    elif arguments:
      calls.append(call)
    for slot in tool.slots.values():
      waiting.pop(slot, None)
  return [*calls, *active_calls]


def read_calls(
  calls: Any, pair: ServicePair, *, absent: bool = False, cut_off: bool = False, in_text: str = ""
) -> CalledFrame:
  """Reads the calls of an answer. It never raises: what makes no sense is a wrong answer.

  Null and the empty string mean that an argument is not given. Other strings stay as they are; a
  number or boolean becomes the matching possible value, ignoring case, or its text.

  Args:
    calls: decoded JSON, [{"name", "arguments": object or its JSON text}]; anything else is invalid.
    pair: the frame's service.
    absent, cut_off, in_text: see `CallFacts`.
  """
  tools = {tool.name: tool for tool in service_tools(pair)}
  values: dict[str, tuple[str, ...]] = {}
  other_tools, intent = [], NO_INTENT
  arguments = invented = mistyped = 0
  valid = fits = isinstance(calls, list)
  for call in calls if valid else ():
    name, call_arguments = call_parts(call)
    valid = valid and call_arguments is not None
    if name not in tools:
      other_tools.append(name)
      continue
    tool = tools[name]
    intent, names = tool.intent, _names(tool)
    for argument, value in (call_arguments or {}).items():
      arguments += 1
      if argument not in names:
        invented += 1
        continue
      slot, allowed = tool.slots[names[argument]], tool.properties[names[argument]].get("enum")
      fits = fits and isinstance(value, str) and (not value or not allowed or value in allowed)
      mistyped += not (value is None or isinstance(value, str))
      # A later call counts, even if it takes back what an earlier one gave.
      values.pop(slot, None)
      items = value if isinstance(value, list) else [value]
      if texts := [_text(item, pair, slot) for item in items if item is not None and item != ""]:
        values[slot] = tuple(texts)
  number = len(calls) if isinstance(calls, list) else 0
  return CalledFrame(
    values,
    facts=CallFacts(
      number,
      intent,
      tuple(other_tools),
      arguments,
      invented,
      mistyped,
      not valid,
      valid and fits and not invented,
      absent,
      cut_off,
      in_text[:_LONGEST_QUOTE],
    ),
  )


def _names(tool: Tool) -> dict[str, str]:
  """Returns name of an argument, also the one that BFCL asks for -> its name in the tool."""
  return {bfcl_name(name): name for name in tool.slots} | {name: name for name in tool.slots}


def call_parts(call: Any) -> tuple[str, Mapping[str, Any] | None]:
  """Returns name and arguments of a call; None for arguments that are not a JSON object."""
  if not isinstance(call, dict):
    return "", None
  name, arguments = call.get("name"), call.get("arguments")
  if isinstance(arguments, str):
    try:
      arguments = json.loads(arguments.strip() or "{}")
    except (ValueError, RecursionError):
      return name if isinstance(name, str) else "", None
  if arguments is None:
    arguments = {}  # of a tool that takes none
  return name if isinstance(name, str) else "", arguments if isinstance(arguments, dict) else None


def _text(value: Any, pair: ServicePair, slot: str) -> str:
  if isinstance(value, str):
    return value
  if isinstance(value, float) and value.is_integer():
    value = int(value)
  try:
    text = quoted(value) if isinstance(value, dict | list) else str(value)
  except ValueError:  # an integer with more digits than Python writes
    return ""
  values = pair.original.slots[pair.original.slot_index[slot]].possible_values
  return next((x for x in values if x.lower() == text.lower()), text)


def calls_text(calls: Iterable[Mapping[str, Any]]) -> str:
  """Returns calls as a model writes them in text: a JSON list."""
  return json.dumps(list(calls))
