"""Calls that a model wrote as text: JSON, alone, fenced or in tags, and Python as BFCL has it.

Servers without a parser for a model's calls leave them in the text of its message.
"""

import ast
import contextlib
import json
import keyword
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

# Keys of a call that may hold its name, and its arguments.
NAMES = ("name", "function", "tool", "tool_name", "function_name", "action")
ARGUMENTS = (
  "arguments", "args", "input", "parameters", "params", "tool_input", "tool_kwargs",
  "action_input",
)  # fmt: skip
_LISTS = ("tool_calls", "function_calls", "calls")
_NESTED = ("function", "function_call", "functionCall", "tool_call", "tool_use", "toolUse")
# What a model thinks before it answers, in the marks of its chat template.
_THOUGHT = r"(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning)"
_THOUGHTS = re.compile(
  rf"<{_THOUGHT}>.*?(?:</{_THOUGHT}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)"
  r"|<\|START_THINKING\|>.*?(?:<\|END_THINKING\|>|\Z)|<\|inner_prefix\|>.*?(?:<\|inner_suffix\|>|\Z)"
  r"|<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|(?=<\|(?:start|channel)\|>)|\Z)"
  r"|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>",  # gpt-oss' mark of the rest
  re.DOTALL,
)
# Many templates open the thoughts themselves, so that the text only has their end.
_END_OF_THOUGHTS = re.compile(
  rf".*(?:</{_THOUGHT}>|\[/THINK\]|<\|END_THINKING\|>|<\|inner_suffix\|>)", re.DOTALL
)
_OF_VENDOR = r"(?:\w+[:_]|｜\w+｜)?"  # before a tag's name: minimax:, longcat_, DeepSeek's
_TAGGED = re.compile(
  rf"<({_OF_VENDOR}(?:tool|function)_?calls?)>(.*?)(?:</\1>|(?=<\1>)|\Z)", re.DOTALL | re.I
)
_OF_FUNCTION = rf"{_OF_VENDOR}(?:invoke|function|(?:tool|function)_call)"
_NAMED = rf"<(?:function=|{_OF_FUNCTION}\s(?:[^<>]*\s)?name=)"
_FUNCTION = re.compile(
  rf"{_NAMED}[\"']?([^<>\s\"']+)[\"']?[^<>]*>(.*?)(?:</{_OF_FUNCTION}>|(?={_NAMED})|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
  rf"<{_OF_VENDOR}parameter(?:=| name=[\"']?)([^<>\s\"']+)[\"']?([^<>]*)>(.*?)"
  rf"(?:</{_OF_VENDOR}parameter>|(?=<{_OF_VENDOR}parameter[= ])|\Z)",
  re.DOTALL,
)
# GLM's: a name, then pairs of tags.
_KEY, _VALUE = rf"{_OF_VENDOR}arg_key>", rf"{_OF_VENDOR}arg_value>"
_KEYED = re.compile(rf"\s*([\w.-]+)\s*(?=<{_KEY}|\Z)")
_PAIR = re.compile(
  rf"<{_KEY}([^<]*)</{_KEY}\s*<{_VALUE}(.*?)(?:</{_VALUE}|(?=<{_KEY})|\Z)", re.DOTALL
)
_TOKEN = re.compile(r"<[|｜][^<>|｜]*[|｜]>|</s>|<eos>|<end_of_turn>")
# A special token, a name, maybe further tokens, and an object: Mistral, Kimi, DeepSeek, gpt-oss.
_SPECIAL = re.compile(
  r"(?:\[TOOL_CALLS\]|<[|｜]tool[_▁]call[_▁]begin[|｜]>(?:function<[|｜]tool[_▁]sep[|｜]>)?|\bto=|>>>"
  r"|^\**[Aa]ction:\** *)\s*(?:functions\.)?([\w.-]+)(?::\d+)?"
  r"(?:\s|\[\w+\]\w*+|<[|｜][^<>]*[|｜]>(?:json)?|```json|json|code|commentary|analysis"
  r"|\**[Aa]ction [Ii]nput:\**)*(?=\{)",
  re.M,
)
# Whatever else begins a call, which then is malformed: it is not taken for an answer in words.
_BEGINS_CALL = re.compile(
  r"\[TOOL_CALLS\]|<[|｜]?(?:python_tag|(?:start_)?(?:tool|function)[_▁]calls?(?:[_▁](?:start|begin))?"
  r"|tools_prefix)[|｜]?>|\bto=functions\.|<invoke\b|<(?:tool|function)_?calls?\b",
  re.I,
)
_FENCED = re.compile(r"\s*```\w*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
# Python in a text: fenced, or between the special tokens of LFM and Llama.
_CODE = re.compile(
  r"(?:```(?:python|py|tool_code|tool_call)\s*\n|<\|(?:tool_call|python)_start\|>)"
  r"(.*?)(?:```|<\|(?:tool_call|python)_end\|>|\Z)",
  re.DOTALL,
)
_NAMED_LIST = re.compile(r"<\|tools_prefix\|>(.*?)(?:<\|tools_suffix\|>|\Z)", re.DOTALL)  # Apertus
_START = re.compile(r"[{\[]")
_MOST_FAILURES = 200  # braces that begin no JSON, after which a text is not searched further
# Texts in quotes, which stay, or an argument and its bare value.
_BARE = re.compile(
  r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|\b([^\W\d]\w*)\s*=\s*([^\s'"()\[\]{},=][^'"()\[\]{},]*|(?=['"(\[{]))"""
)
_KEYWORD = "__keyword"  # after a name that Python reserves, until it is parsed
_LITERALS = {"true": True, "false": False, "null": None}
_ANSWER = re.compile(r"Final Answer|directly[-_]answer")  # LangChain's and Command R's "no call"


class Untyped(str):
  """A value that was written without its type, between tags: "5" may be a text or a number."""


def without_thoughts(text: str) -> str:
  """Returns what a model answered without what it thought before."""
  text = _THOUGHTS.sub("", text)
  end = _END_OF_THOUGHTS.match(text)
  return text[end.end() :] if end else text


def written_calls(text: str) -> list[Any] | None:
  """Returns the calls of an answer that is text, by design a list; None if it has none."""
  text = _without_last_tokens(without_thoughts(text))
  value: Any = None
  with contextlib.suppress(ValueError, RecursionError):
    value = json.loads(text)
  if isinstance(value, str):  # quoted once more
    text = value
  value = value if isinstance(value, list) else _in_python(text)
  if isinstance(value, list):
    return [_written_call(item) for item in value]
  return text_calls(text) or python_calls(text)


def _written_call(item: Any) -> Any:
  """Returns an item of a list of calls as {"name", "arguments"}; as it is if it is no call."""
  if not isinstance(item, dict):
    return item
  return named_call(item) or next(calls_of(item), item)


def text_calls(text: str) -> list[Any] | None:
  """Returns the calls that a text consists of or contains, as `calls.read_calls` takes them.

  None if there is none; an item is None if it is marked as a call, and malformed.
  """
  text = without_thoughts(text)
  codes = _CODE.findall(text)
  # Of a fenced text, `python_calls` reads the first block; of another, code may be in an argument.
  ways = (codes, [text]) if text.lstrip().startswith("```") else ([text], codes)
  calls: list[Any] = []
  for parts in (*ways, [_TOKEN.sub(" ", text)]):
    for part in parts:
      in_python = python_calls(part) or []
      calls += in_python if all(in_python) else []  # None in it: maybe another form
    if calls:
      return calls
  blocks = [block for _, block in _TAGGED.findall(text)]
  for block in blocks or [text]:
    in_block = _special_calls(block, bool(blocks)) or list(_json_calls(block))
    # JSON but for quotes, True and None.
    in_block = in_block or list(calls_of(_in_python(_without_last_tokens(block))))
    in_block = in_block or [call for call in python_calls(block) or () if call and blocks]
    calls += in_block or ([None] if blocks or _BEGINS_CALL.search(block) else [])
  return calls or None


def _special_calls(block: str, is_tagged: bool) -> list[Any]:
  """Returns the calls that a text marks by tags or special tokens around a name.

  Args: is_tagged, whether it is the inside of a tag of a call, where a name alone is one.
  """
  calls: list[Any] = [_function(name, body) for name, body in _FUNCTION.findall(block)]
  if calls:
    return calls
  values = _PAIR.findall(block)
  if (keyed := _KEYED.match(block)) and (values or is_tagged):
    arguments = {key.strip(): Untyped(value) for key, value in values}
    return [{"name": keyed[1], "arguments": arguments}]
  for listed in _NAMED_LIST.findall(block):
    with contextlib.suppress(ValueError, RecursionError, AttributeError, TypeError):
      for item in json.loads(listed):
        calls += [{"name": name, "arguments": arguments} for name, arguments in item.items()]
  for found in _SPECIAL.finditer(block):
    with contextlib.suppress(ValueError, RecursionError):
      arguments, _ = json.JSONDecoder().raw_decode(block, found.end())
      calls.append({"name": found[1], "arguments": arguments})
  return calls


def _function(name: str, body: str) -> dict[str, Any]:
  """Returns the call of a tag of a function, whose body is JSON or tags of parameters."""
  if values := _PARAMETER.findall(body):
    arguments = {key: _parameter(kind, value.strip("\n")) for key, kind, value in values}
    return {"name": name, "arguments": arguments}
  return {"name": name, "arguments": _without_last_tokens(body).strip()}


def _parameter(attributes: str, value: str) -> Any:
  """Returns the value of a tag of a parameter: JSON, if DeepSeek's attribute says so."""
  if 'string="false"' in attributes:
    with contextlib.suppress(ValueError, RecursionError):
      return json.loads(value)
  return Untyped(value)


def _without_last_tokens(text: str) -> str:
  """Returns a text that ends in an object or a list without the special tokens after it."""
  end = max(text.rfind("}"), text.rfind("]")) + 1
  return text if _TOKEN.sub("", text[end:]).strip() else text[:end]


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
      yield from calls_of(value)


def _in_python(text: str) -> Any:
  """Returns a list or an object that is written in Python's literals, maybe fenced; else None."""
  fenced = _FENCED.match(text)
  text = (fenced[1] if fenced else text).strip()
  if not _START.match(text):
    return None
  try:
    with warnings.catch_warnings(action="ignore"):  # about invalid escape sequences
      return _literal(ast.parse(text, mode="eval").body)
  except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
    return None


def calls_of(value: Any) -> Iterator[dict[str, Any]]:
  """Yields the calls that a JSON value consists of."""
  if isinstance(value, list):
    for item in value:
      if not isinstance(item, list):
        yield from calls_of(item)
  elif isinstance(value, dict):
    if any(isinstance(value.get(key), list) for key in _LISTS):
      for key in _LISTS:
        yield from calls_of(value.get(key))
    elif inside := next((value[x] for x in _NESTED if isinstance(value.get(x), dict)), None):
      yield from calls_of(inside)
    elif (call := named_call(value)) and not _ANSWER.fullmatch(call["name"]):
      # The definition of a tool has its parameters in the same place.
      schema = call["arguments"]
      if not (isinstance(schema, dict) and isinstance(schema.get("properties"), dict)):
        yield call


def named_call(item: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns {"name", "arguments"} of a call under any usual keys; None if it lacks one of them."""
  name = next((item[key] for key in NAMES if isinstance(item.get(key), str)), None)
  keys = [key for key in ARGUMENTS if key in item and isinstance(item[key], dict | str | None)]
  key = next((key for key in keys if item[key] is not None), keys[0] if keys else None)
  return None if name is None or key is None else {"name": name, "arguments": item[key]}


# --- Python --------------------------------------------------------------------------------


def python_calls(text: str) -> list[Any] | None:
  """Returns the calls of "[find(city='Rome'), book(seats=2)]"; None if it is not such a list.

  The text may be fenced or in quotes. Only literals are evaluated, those of JSON too; anything else
  stands for its text, as a bare name does for BFCL: an argument that is no literal costs neither
  its call nor those beside it.
  """
  fenced = _FENCED.match(text)
  text = (fenced[1] if fenced else text).strip().strip("`\"'").strip()
  if "(" not in text:
    return None
  for source in (text, _BARE.sub(_quoted_bare, text)):
    with contextlib.suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
      return _python_list(source)
  return None


def _python_list(source: str) -> list[Any] | None:
  """Returns the calls of a list, or on lines of their own. Raises SyntaxError and others."""
  with warnings.catch_warnings(action="ignore"):  # about invalid escape sequences
    try:
      listed = source if source.startswith("[") else f"[{source}]"
      module, source = ast.parse(listed), listed
    except SyntaxError:
      module = ast.parse(source)
  calls: list[Any] = []
  for statement in module.body:
    if not isinstance(statement, ast.Expr):
      return None
    value = statement.value
    for item in value.elts if isinstance(value, ast.List) else [value]:
      if isinstance(item, ast.Call) and item.args and ast.unparse(item.func) == "print":
        item = item.args[0]
      calls.append(_python_call(item, source))
  return calls


def _quoted_bare(found: re.Match[str]) -> str:
  """Returns an argument with its value in quotes unless that is a literal; texts stay."""
  if found[1]:
    return found[0]
  name, value = found[2], found[3].strip()
  name += _KEYWORD if keyword.iskeyword(name) else ""
  with contextlib.suppress(SyntaxError):
    ast.parse(value or "None", mode="eval")
    return f"{name}={value}"
  return f"{name}={json.dumps(value)}"


def _python_call(call: ast.expr, source: str) -> dict[str, Any] | None:
  """Returns a call with named arguments; None for anything else."""
  if not isinstance(call, ast.Call) or call.args:
    return None
  arguments: dict[str, Any] = {}
  for argument in call.keywords:
    if argument.arg is None:
      return None
    arguments[argument.arg.removesuffix(_KEYWORD)] = _value(argument.value, source)
  # Gemini writes its tools as functions of a module.
  return {"name": ast.unparse(call.func).removeprefix("default_api."), "arguments": arguments}


def _value(node: ast.expr, source: str) -> Any:
  """Returns the value of a literal, or the text of anything else: the rest of its call counts."""
  try:
    value = _literal(node)
    json.dumps(value)
  except (ValueError, TypeError):
    return ast.get_source_segment(source, node)
  return value


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
