"""Calls of a model that a service could not parse, as the service reports them."""

import ast
import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from sgdx_t5x.errors import quoted

MALFORMED = re.compile(
  r"malformed_(function|tool|model|output)|tool_use_failed|output_parse_failed|"
  r"unexpected_tool_call|too_many_tool_calls",
  re.I,
)
# Keys under which a service returns the text that it could not parse, and words of those that
# return it in a message (Ollama, llama.cpp, TGI, Bedrock, vLLM, Groq behind a router).
_WRITTEN = re.compile(
  r"(failed|malformed|invalid|raw|model)_?(generation|output|completion|tool_?call)", re.I
)
_UNPARSED = re.compile(
  r"error parsing tool call|failed to parse input at pos|tool error: failed to parse generated|"
  r"produced invalid sequence as part of tool|failed to parse tool call arguments as json|"
  r"validation errors? for list\[function-wrap|\btool_use_failed\b",
  re.I,
)
_DEEPEST = 6  # levels of an error that are searched
_MOST_BRACES = 8  # of a text of an error, at which an object may begin


def malformed_call(error: Any, depth: int = 0) -> str | None:
  """Returns what the model wrote, from an error that says the service could not parse it, or None.

  Args:
    error: decoded JSON, or a text that may contain JSON, as a router's may.
    depth: of this part in the whole.
  """
  if depth > _DEEPEST:
    return None
  nested: list[Any] = []
  # The model's text itself, if a key holds it; the message beside a code that says so; else deeper.
  if isinstance(error, dict):
    for key, value in error.items():
      if value and _WRITTEN.fullmatch(str(key)):
        return value if isinstance(value, str) else quoted(value)
    for key in ("code", "type", "status"):
      if isinstance(error.get(key), str) and MALFORMED.search(error[key]):
        return str(error.get("message", ""))
    nested = list(error.values())
  elif isinstance(error, list):
    nested = error
  elif isinstance(error, str):
    nested = list(_objects_in(error))
  for part in nested:
    if (text := malformed_call(part, depth + 1)) is not None:
      return text
  return error if isinstance(error, str) and _UNPARSED.search(error) else None


def _objects_in(text: str) -> Iterator[Any]:
  """Yields the object in a text, in JSON or as Python prints it: a client's error in a router's."""
  start = -1
  for _ in range(_MOST_BRACES):
    start = text.find("{", start + 1)
    if start < 0:
      return
    with contextlib.suppress(ValueError, RecursionError):
      yield json.JSONDecoder().raw_decode(text, start)[0]
      return
    with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
      yield ast.literal_eval(text[start : text.rfind("}") + 1])
      return
