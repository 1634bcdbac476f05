"""Strict judgement of a model's calls: the tool first, then each argument.

Arguments are validated against the schema that was shown, then compared in the words of the base:

  strings   equal but for space around them; of a format, such as date-time, if they mean the same
  numbers   equal as numbers; a number in quotes is mistyped
  lists     item by item; of enum's values, in any order
  objects   argument by argument; one that is left out has its default, and null is not given
            unless it is due
"""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import quoted
from sgdx_t5x.tools.call_texts import Untyped
from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.schemas import (
  PROPERTIES,
  Schema,
  declares,
  of_item,
  of_property,
  of_same_value,
  undeclared,
)
from sgdx_t5x.tools.suite.cases import Call, Case, Expected
from sgdx_t5x.tools.suite.rewording import Rewording, back
from sgdx_t5x.tools.suite.toolset import ToolSet, normal_form

# Keyword of JSON Schema that a call violates -> reason; any other is "invalid".
_REASONS = {
  "type": "mistyped",
  "required": "missing",
  "dependentRequired": "missing",
  "additionalProperties": "invented",
  "unevaluatedProperties": "invented",
  "format": "format",
  "pattern": "format",
}
_LONGEST_DETAIL = 200  # characters


@dataclasses.dataclass(frozen=True)
class Fault:
  """What is wrong with a call. Attributes: see `Judgement`."""

  reason: str
  detail: str


@dataclasses.dataclass(frozen=True)
class Judgement:
  """Whether an answer is right.

  Attributes:
    right: tools and arguments.
    right_tool: exactly the tools that are due are called, or none if none is.
    reason: kind of the first fault; "" if right. Of the tool: "malformed", "no call", "call",
      "unknown tool", "wrong tool". Of arguments: "mistyped", "missing", "invented", "format",
      "invalid" by the schema that was shown, "wrong value", "not due".
    detail: what is wrong.
    invented: how many arguments the tools do not have, and allow all the same.
  """

  right: bool
  right_tool: bool
  reason: str = ""
  detail: str = ""
  invented: int = 0


@dataclasses.dataclass(frozen=True)
class _Called:
  """A call of a tool that was shown, in the words of the base.

  Attributes: fault, of its arguments by the schema that was shown; invented, see `Judgement`.
  """

  call: Call
  fault: Fault | None
  invented: int


def judge(
  calls: Sequence[Any] | None, case: Case, base: ToolSet, shown_tools: ToolSet, rewording: Rewording
) -> Judgement:
  """Judges the calls of an answer.

  Args:
    calls: of `messages.Answer`: [{"name", "arguments": object or its JSON text}]; None, and an item
      None, are malformed.
    case: what is due, in the words of the base.
    base: the tools as they are.
    shown_tools: the tools that the model saw.
    rewording: the words in which it saw them; `rewording.BASE` if they are the base.
  """
  if calls is None:
    return _wrong_tool("malformed", "calls that the service could not parse")
  called = []
  for item in calls:
    name, arguments = call_parts(item)
    if arguments is None:
      return _wrong_tool("malformed", quoted(item))
    if name not in shown_tools.by_name:
      return _wrong_tool("unknown tool", name)
    try:
      called.append(_read(name, arguments, base, shown_tools, rewording))
    except RecursionError:
      return _wrong_tool("malformed", f"{name}: nested too deeply")
  judgements = [_compare(called, case.expect, base)]
  judgements += [_compare(called, due, base, as_written=True) for due in case.accept]
  return next((judgement for judgement in judgements if judgement.right), judgements[0])


def _wrong_tool(reason: str, detail: str) -> Judgement:
  return Judgement(False, False, reason, detail[:_LONGEST_DETAIL])


def _read(
  name: str, arguments: Mapping[str, Any], base: ToolSet, shown_tools: ToolSet, rewording: Rewording
) -> _Called:
  """Returns a call as it is compared."""
  schema = shown_tools.by_name[name].parameters
  arguments = {key: _typed(value, key, schema) for key, value in arguments.items()}
  fault = _violation(name, arguments, shown_tools)
  num_allowed = 0
  for way, is_allowed in undeclared(arguments, schema):
    num_allowed += is_allowed
    if not is_allowed and fault is None:
      fault = Fault("invented", f"{name}: {way}")
  return _Called(Call(*back(name, arguments, base, rewording)), fault, num_allowed)


def _typed(value: Any, name: str, root: Schema) -> Any:
  """Returns an argument that was written without its type as what its schema says it is."""
  if not isinstance(value, Untyped):
    return value
  of_argument = of_same_value(of_property(of_same_value([root], root), name), root)
  kinds = [schema["type"] for schema in of_argument if "type" in schema]
  if not kinds or any("string" in kind for kind in kinds):  # a name, or a list of them
    return value
  try:
    return json.loads(value.lower() if value.lower() in ("true", "false", "null") else value)
  except (ValueError, RecursionError):
    return value


def _violation(name: str, arguments: Mapping[str, Any], shown_tools: ToolSet) -> Fault | None:
  """Returns how arguments violate the schema of a tool."""
  from jsonschema.exceptions import best_match

  error = best_match(shown_tools.validator(name).iter_errors(arguments))
  if error is None:
    return None
  return Fault(_reason(error), f"{name}, {error.json_path}: {error.message}"[:_LONGEST_DETAIL])


def _reason(error: Any) -> str:
  """Returns the reason of an error of jsonschema; of alternatives, the one that all have."""
  reasons = set(map(_reason, error.context or ()))
  return reasons.pop() if len(reasons) == 1 else _REASONS.get(str(error.validator), "invalid")


def _compare(
  called: Sequence[_Called], expected: Expected, base: ToolSet, as_written: bool = False
) -> Judgement:
  """Judges calls of tools that were shown against one answer that is right.

  Args: as_written, whether a call that equals the one due is right even if the schema forbids it.
  """
  due = () if isinstance(expected, str) else expected
  names = sorted(item.call.name for item in called)
  due_names = sorted(call.name for call in due)
  if names != due_names:
    reason = "wrong tool" if names and due_names else "call" if names else "no call"
    return _wrong_tool(
      reason, f"{', '.join(names) or 'nothing'} called, {', '.join(due_names) or 'nothing'} due"
    )
  # Several calls of one tool may be due: each takes a call that is right, else the first one left.
  waiting = list(called)
  faults: list[Fault] = []
  for call in due:
    same_tool = [item for item in waiting if item.call.name == call.name]
    of_each = [_fault(item, call, base, as_written) for item in same_tool]
    index = of_each.index(None) if None in of_each else 0
    if fault := of_each[index]:
      faults.append(fault)
    waiting.remove(same_tool[index])
  invented = sum(item.invented for item in called)
  if faults:
    return Judgement(False, True, faults[0].reason, faults[0].detail, invented)
  return Judgement(True, True, invented=invented)


def _fault(called: _Called, due: Call, base: ToolSet, as_written: bool) -> Fault | None:
  """Returns what is wrong with the arguments of a call."""
  if as_written and called.call == due:
    return None
  root = base.by_name[due.name].parameters
  fault = called.fault or difference(called.call.arguments, due.arguments, [root], root, "")
  return fault and dataclasses.replace(fault, detail=fault.detail[:_LONGEST_DETAIL])


# --- values --------------------------------------------------------------------------------


def difference(
  actual: Any, due: Any, schemas: Sequence[Any], root: Schema, way: str
) -> Fault | None:
  """Returns the first difference between two values that a schema allows.

  Args:
    actual, due: decoded JSON, in the words of the base.
    schemas: those that apply to them, in `root`, that of the tool's arguments.
    way: names of the arguments that lead here, for messages.
  """
  schemas = of_same_value(schemas, root)
  if isinstance(actual, dict) and isinstance(due, dict):
    return next(_of_objects(actual, due, schemas, root, way), None)
  if isinstance(actual, list) and isinstance(due, list):
    return _of_lists(actual, due, schemas, root, way)
  if isinstance(actual, str) and isinstance(due, str):
    formats = [schema["format"] for schema in schemas if isinstance(schema.get("format"), str)]
    is_equal = _normal(formats, actual) == _normal(formats, due)
  else:
    # In Python True equals 1.
    is_equal = actual == due and isinstance(actual, bool) == isinstance(due, bool)
  if is_equal:
    return None
  # "5" instead of 5 is the right value in the wrong type, which is counted apart.
  is_one_text = isinstance(actual, str) != isinstance(due, str)
  in_quotes = is_one_text and str(actual).lower() == str(due).lower()
  return Fault(
    "mistyped" if in_quotes else "wrong value", f"{way}: {quoted(actual)}, not {quoted(due)}"
  )


def _normal(formats: Sequence[str], text: str) -> Any:
  """Returns the normal form of a text in the first of its formats, if it has it."""
  try:
    return normal_form(formats[0] if formats else None, text)
  except ValueError:
    return text.strip()


def _of_objects(
  actual: Mapping[str, Any],
  due: Mapping[str, Any],
  schemas: Sequence[Schema],
  root: Schema,
  way: str,
) -> Iterator[Fault]:
  """Yields the differences between two objects."""
  has_names = not way or any(PROPERTIES in schema for schema in schemas)
  for name in dict.fromkeys((*due, *actual)):
    property_schemas = of_property(schemas, name)
    of_branch = [schema for schema in schemas if _agrees(schema, due)]
    branches = of_same_value(of_property(of_branch, name), root)
    defaults = [schema["default"] for schema in branches if "default" in schema]
    at = f"{way}.{name}" if way else name
    compare = functools.partial(difference, schemas=property_schemas, root=root, way=at)
    if name not in actual or (actual[name] is None and due.get(name) is not None):
      if due[name] is not None and not (defaults and compare(defaults[0], due[name]) is None):
        yield Fault("missing", f"{at}: not given, but {quoted(due[name])} is due")
    elif name in due:
      if fault := compare(actual[name], due[name]):
        yield fault
    elif actual[name] is None or (defaults and compare(actual[name], defaults[0]) is None):
      continue
    elif declares(schemas, name) or not has_names:  # else it is invented, by the schema shown
      yield Fault("not due", f"{at}: {quoted(actual[name])}")


def _agrees(schema: Schema, due: Mapping[str, Any]) -> bool:
  """Whether an object has the constants by which a schema, one of several, tells its own."""
  for name, part in schema.get(PROPERTIES, {}).items():
    if isinstance(part, dict) and name in due:
      # OpenAPI 3.0, which has no `const`, says it by an enum of one value.
      possible = [part["const"]] if "const" in part else part.get("enum")
      if isinstance(possible, list) and due[name] not in possible:
        return False
  return True


def _of_lists(
  actual: Sequence[Any], due: Sequence[Any], schemas: Sequence[Schema], root: Schema, way: str
) -> Fault | None:
  """Returns the first difference between two lists."""
  of_enum = any("enum" in part for part in of_same_value(of_item(schemas, 0), root))
  if of_enum:
    if set(map(_item_text, actual)) == set(map(_item_text, due)):
      return None
  elif len(actual) == len(due):
    for index, (item, due_item) in enumerate(zip(actual, due, strict=True)):
      if fault := difference(item, due_item, of_item(schemas, index), root, f"{way}[{index}]"):
        return fault
    return None
  return Fault("wrong value", f"{way}: {quoted(list(actual))}, not {quoted(list(due))}")


def _item_text(item: Any) -> str:
  """Returns an item as a text to compare: 2.0 is 2, and True is not 1."""
  is_whole = isinstance(item, float) and item.is_integer()
  return json.dumps(int(item) if is_whole else item, sort_keys=True)
