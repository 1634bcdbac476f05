"""Calls that a model wrote as text: JSON, alone, fenced or in tags, and Python as BFCL has it.

Servers without a parser for a model's calls leave them in the text of its message.
"""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

# Keys of a call that may hold its name, and its arguments.
NAMES = ("name", "function", "tool", "tool_name", "action")
ARGUMENTS = ("arguments", "args", "input", "parameters", "tool_input", "action_input")
_LISTS = ("tool_calls", "function_calls", "calls")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<((?:tool|function)_?calls?)>(.*?)(?:</\1>|(?=<\1>)|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^<>\s]+)>(.*?)(?:</function>|(?=<function=)|\Z)", re.DOTALL)
_PARAMETER = re.compile(
  r"<parameter=([^<>\s]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_FENCED = re.compile(r"\s*```\w*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_START = re.compile(r"[{\[]")
_MOST_FAILURES = 200  # braces that begin no JSON, after which a text is not searched further
_LITERALS = {"true": True, "false": False, "null": None}


def written_calls(text: str) -> list[Any] | None:
  """Returns the calls of an answer that is text, by design a list; None if it has none."""
  with contextlib.suppress(ValueError, RecursionError):
    value = json.loads(text)
    if isinstance(value, list):
      return [(named_call(item) or item) if isinstance(item, dict) else item for item in value]
    if isinstance(value, str):  # quoted once more
      text = value
  return text_calls(text) or python_calls(text)


def text_calls(text: str) -> list[Any] | None:
  """Returns the calls that a text consists of or contains, as `calls.read_calls` takes them.

  Args:
    text: what a model wrote.

  Returns:
    None if there is none; an item is None if it is marked as a call, and malformed.
  """
  text = _THOUGHTS.sub("", text)
  if (in_python := python_calls(text)) and all(in_python):  # None in it: maybe another form
    return in_python
  blocks = [block for _, block in _TAGGED.findall(text)]
  calls: list[Any] = []
  for block in blocks or [text]:
    in_block: list[Any] = [_function(name, body) for name, body in _FUNCTION.findall(block)]
    in_block = in_block or list(_json_calls(block)) or list(_dict_calls(block))
    calls += in_block or ([None] if blocks else [])
  return calls or None


def _function(name: str, body: str) -> dict[str, Any]:
  """Returns the call of a tag <function=NAME>, whose body is JSON or tags <parameter=NAME>."""
  if values := _PARAMETER.findall(body):
    return {"name": name, "arguments": {key: value.strip("\n") for key, value in values}}
  return {"name": name, "arguments": body.strip()}


def _json_calls(text: str) -> Iterator[dict[str, Any]]:
  """Yields the calls in the JSON values of a text."""
  decoder, position, failures = json.JSONDecoder(), 0, 0
  while (start := _START.search(text, position)) and failures < _MOST_FAILURES:
    try:
      value, position = decoder.raw_decode(text, start.start())
    except RecursionError:
      return
    except ValueError:
      failures, position = failures + 1, start.end()
    else:
      yield from _calls_of(value)


def _dict_calls(text: str) -> Iterator[dict[str, Any]]:
  """Yields the calls of a text that is JSON but for the quotes, True, False and None of Python."""
  fenced = _FENCED.match(text)
  text = (fenced[1] if fenced else text).strip()
  if not _START.match(text):
    return
  try:
    with warnings.catch_warnings(action="ignore"):  # about invalid escape sequences
      value = _literal(ast.parse(text, mode="eval").body)
  except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
    return
  yield from _calls_of(value)


def _calls_of(value: Any) -> Iterator[dict[str, Any]]:
  """Yields the calls that a JSON value consists of."""
  if isinstance(value, list):
    for item in value:
      if not isinstance(item, list):
        yield from _calls_of(item)
  elif isinstance(value, dict):
    if any(isinstance(value.get(key), list) for key in _LISTS):
      for key in _LISTS:
        yield from _calls_of(value.get(key))
    elif isinstance(value.get("function"), dict):
      yield from _calls_of(value["function"])
    elif call := named_call(value):
      # The definition of a tool has its parameters in the same place.
      schema = call["arguments"]
      if not (isinstance(schema, dict) and isinstance(schema.get("properties"), dict)):
        yield call


def named_call(item: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns {"name", "arguments"} of a call under any usual keys; None if it lacks one of them."""
  name = next((item[key] for key in NAMES if isinstance(item.get(key), str)), None)
  key = next((key for key in ARGUMENTS if isinstance(item.get(key), dict | str)), None)
  return None if name is None or key is None else {"name": name, "arguments": item[key]}


# --- Python --------------------------------------------------------------------------------


def python_calls(text: str) -> list[Any] | None:
  """Returns the calls of "[find(city='Rome'), book(seats=2)]"; None if it is not such a list.

  Only literals are evaluated, those of JSON too; a bare name stands for its text, as for BFCL.

  Args:
    text: what a model wrote, maybe fenced or in quotes.
  """
  fenced = _FENCED.match(text)
  text = (fenced[1] if fenced else text).strip().strip("`\"'").strip()
  if "(" not in text:
    return None
  try:
    with warnings.catch_warnings(action="ignore"):  # about invalid escape sequences
      body = ast.parse(text if text.startswith("[") else f"[{text}]", mode="eval").body
    return [_python_call(x) for x in body.elts] if isinstance(body, ast.List) else None
  except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
    return None


def _python_call(call: ast.expr) -> dict[str, Any] | None:
  """Returns a call with named arguments; None for anything else."""
  if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
    return None
  arguments: Any
  try:
    arguments = {k.arg: _literal(k.value) for k in call.keywords}
  except (ValueError, TypeError):
    arguments = ast.unparse(call)  # no JSON: this call is malformed, the others are not
  return {"name": ast.unparse(call.func), "arguments": arguments}


def _literal(node: ast.expr | None) -> Any:
  """Returns the value of a literal of Python or JSON. Raises ValueError for anything else."""
  if isinstance(node, ast.Name):
    return _LITERALS.get(node.id, node.id)
  if isinstance(node, ast.List | ast.Tuple | ast.Set):
    return [_literal(item) for item in node.elts]
  if isinstance(node, ast.Dict):
    keys, values = map(_literal, node.keys), map(_literal, node.values)
    return dict(zip(map(str, keys), values, strict=True))
  if node is None:  # the key of {**others}
    raise ValueError
  return ast.literal_eval(node)
