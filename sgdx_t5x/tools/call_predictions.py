"""Tool calls as predictions: answers of LLM services and leaderboards, one JSON row each.

A row has the id of its request as "custom_id" or "id", and its calls in one of these places:

  OpenAI's batches     "response": {"status_code": 200, "body": {"choices": [...]}}
  chat completions     "choices": [{"message": {"tool_calls": [{"function": {...}}]}}], in the
                       row or in its "response"
  OpenAI's responses   "output": [{"type": "function_call", "name", "arguments"}], as above
  Anthropic            "content": [{"type": "tool_use", "name", "input"}], in the row, in its
                       "response", or in the "result": {"type", "message"} of a batch
  BFCL's results       "result": [{NAME: arguments}] or "[NAME(a='b')]"
  bare rows            "calls": [{"name", "arguments"}]
  text                 "prediction", as `t5x.infer` writes it: a JSON list of such calls

Arguments are an object or its JSON text. These forms were checked against the packages openai 3.54,
anthropic 2.12 and bfcl-eval 2026.3.23.
"""

import ast
import functools
import json
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.example_id import FRAME, ExampleId
from sgdx_t5x.errors import SgdxError, quoted
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.scoring.predictions.files import Paths, find_files, is_rows
from sgdx_t5x.scoring.predictions.rows import PredictionRow, numbered_lines, row_id, row_text
from sgdx_t5x.tools.calls import read_calls
from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.requests import parse_request_id

_EXPECTED = "one answer per line to a request of `sgdx tools requests`"
_UNANSWERED = ("failed", "cancelled")  # status of an OpenAI response
_ASK_AGAIN = "send them again, or use --allow-missing to score the others, marked PARTIAL"


class _Failed(Exception):
  """A request that the service did not answer."""


def answered_style(sources: Mapping[str, Paths], split: str) -> ToolStyle:
  """Returns the style of the answered requests, which is part of an answer's id.

  Args:
    sources: variant -> file or folder of answers; only the first row is read here.
    split: the split of the corpus.

  Raises:
    SgdxError: files that are not JSON lines, or a first row that is not an answer.
  """
  for source in sources.values():
    for file in find_files(source, split):
      if not is_rows(file):
        raise SgdxError(
          f"{file} is not named *.jsonl",
          expected="answers in JSON Lines format",
          fix="rename the file if that is its format; `sgdx score` reads DSTC8 dialogues",
        )
      for where, line in numbered_lines(file):
        row = decode_json(line, where, _EXPECTED, "write one row per line")
        return parse_request_id(_request_id(row, where), where)[1]
  return ToolStyle()


def call_rows(
  file: pathlib.Path,
  style: ToolStyle,
  allow_missing: bool,
  on_read: Callable[[int], None] = lambda size: None,
) -> Iterator[PredictionRow]:
  """Yields the answers in a file. Model output is accepted as it is, however wrong.

  Args:
    file: JSON lines.
    style: the style of the requests.
    allow_missing: leave out requests that the service did not answer.
    on_read: called from time to time with the number of further bytes read.

  Raises:
    SgdxError: a row that has none of the forms above, or is truncated; an answer to another kind
      of request; failed requests, unless `allow_missing`.
  """
  failed: list[str] = []
  for where, line in numbered_lines(file, on_read):
    row = decode_json(line, where, _EXPECTED, "write one row per line")
    name, found, absent = parse_request_id(_request_id(row, where), where)
    if found != style:
      raise _other_request(where, found, style)
    example = ExampleId.parse(name, where)
    if example.unit != FRAME:
      raise SgdxError(
        f"{where}: an answer for a single slot (id {name!r})",
        expected="one answer per frame, with an id that ends in /*",
        fix="omit --calls if these are answers to prompts in another format",
      )
    try:
      calls = _row_calls(row, where)
    except _Failed as e:
      failed.append(f"{where}, {name}: {e}")
      continue
    read = functools.partial(read_calls, calls, absent=absent)
    yield PredictionRow(where, example, "", read)
  if failed and not allow_missing:
    raise SgdxError(
      f"{len(failed):,} requests failed; {failed[0]}",
      expected="an answer to every request",
      available="; ".join(failed[1:4]),
      fix=_ASK_AGAIN,
    )


def _request_id(row: Any, where: str) -> str:
  if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
    return row["custom_id"]
  return row_id(row, where)


def _other_request(where: str, found: ToolStyle, style: ToolStyle) -> SgdxError:
  return SgdxError(
    f"{where}: an answer to a request that shows {found}",
    expected=f"answers to requests that show {style}, like the first one",
    fix="score the answers to each request file separately",
  )


def _row_calls(row: Mapping[str, Any], where: str) -> Any:
  """Returns the calls of a row; None if they cannot be parsed.

  Raises:
    _Failed: the service did not answer.
    SgdxError: the row has none of the forms.
  """
  if "calls" in row:
    return row["calls"]
  if "prediction" in row:
    return _json_or_none(row_text(row, where, FRAME))
  answer = _answer(row)
  if isinstance(answer, dict):
    if isinstance(answer.get("choices"), list) and answer["choices"]:
      choice = answer["choices"][0]
      answer = choice.get("message") if isinstance(choice, dict) else None
    if isinstance(answer, dict):
      return _service_calls(answer, where)
  if "result" in row and isinstance(row["result"], list | str):
    return _bfcl_calls(row["result"])
  raise _unknown_form(row, where)


def _answer(row: Mapping[str, Any]) -> Any:
  """Returns what the service answered, out of what it is wrapped in. Raises _Failed: an error."""
  answer: Any = row
  for key in ("response", "result", "body", "message"):
    if isinstance(answer, dict) and key in answer and "choices" not in answer:
      if isinstance(answer.get("error"), dict) or (answer[key] is None and "error" in answer):
        raise _Failed(quoted(answer["error"]))
      status = answer[key].get("status_code", 200) if isinstance(answer[key], dict) else 200
      if status != 200:
        raise _Failed(f"status {status}")
      answer = answer[key]
  if isinstance(answer, dict) and (answer.get("error") or answer.get("status") in _UNANSWERED):
    raise _Failed(quoted(answer.get("error") or answer["status"]))
  if "result" in row and isinstance(row.get("traceback"), str):  # as BFCL logs it
    raise _Failed(quoted(row["result"]))
  return answer


def _service_calls(answer: Mapping[str, Any], where: str) -> list[Any]:
  """Returns the calls in a message of OpenAI or Anthropic, or in an OpenAI response."""
  content = answer.get("content")
  if isinstance(answer.get("tool_calls"), list):
    return [
      call.get("function") if isinstance(call, dict) else None for call in answer["tool_calls"]
    ]
  if isinstance(answer.get("output"), list):
    items = (x for x in answer["output"] if isinstance(x, dict))
    return [x for x in items if x.get("type") == "function_call"]
  if isinstance(content, list):
    items = (x for x in content if isinstance(x, dict) and x.get("type") == "tool_use")
    return [{"name": x.get("name"), "arguments": x.get("input")} for x in items]
  if answer.get("role") == "assistant":  # text, or a refusal
    return []
  if answer.get("type") in ("errored", "expired", "canceled"):
    raise _Failed(str(answer["type"]))
  raise _unknown_form(answer, where)


def _bfcl_calls(result: list[Any] | str) -> list[Any] | None:
  """Returns the calls of a BFCL result, which are structured (list) or written as text (str)."""
  if isinstance(result, str):
    return _python_calls(result)
  pairs = [next(iter(x.items())) if isinstance(x, dict) and len(x) == 1 else None for x in result]
  return [pair and {"name": pair[0], "arguments": pair[1]} for pair in pairs]


def _python_calls(text: str) -> list[Any] | None:
  """Returns the calls of "[find(city='Rome'), book(seats=2)]"; None if it is not such a list.

  Only literals are evaluated.
  """
  text = text.strip().strip("`").strip()
  try:
    with warnings.catch_warnings(action="ignore"):  # about invalid escape sequences
      body = ast.parse(text if text.startswith("[") else f"[{text}]", mode="eval").body
    if not isinstance(body, ast.List):
      return None
    return [_python_call(call) for call in body.elts]
  except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
    return None


def _python_call(call: ast.expr) -> dict[str, Any] | None:
  """Returns a call with named arguments; None for anything else. Raises ValueError."""
  if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
    return None
  arguments = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
  return {"name": ast.unparse(call.func), "arguments": arguments}


def _json_or_none(text: str | None) -> Any:
  try:
    return json.loads(text or "")
  except (ValueError, RecursionError):
    return None


def _unknown_form(row: Mapping[str, Any], where: str) -> SgdxError:
  return SgdxError(
    f"{where}: no tool calls found",
    expected='an OpenAI, Anthropic or BFCL answer, or {"id", "calls": [{"name", "arguments"}]}',
    available=", ".join(map(str, row))[:200],
    fix="use one of the formats in docs/tools/README.md; an answer without calls has an empty list",
  )
