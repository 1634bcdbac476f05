"""Cases to add to a suite: written by hand, or taken from logs of chat completions.

A log has, on a line, a conversation that ends with the model's message, or a request with its
response. What the model called is a candidate, not gold: somebody has to review it.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import decode_lines, read_input
from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.messages import NoAnswer, read_answer
from sgdx_t5x.tools.suite.cases import Call, Case, case_of, check_cases
from sgdx_t5x.tools.suite.toolset import ToolSet

_OF_LOGS = {"request", "body", "input", "response", "choices"}
_EXPECTED = "cases (see docs/tools/README.md), or logs of chat completions, as JSON Lines"


def read_candidates(
  path: pathlib.Path, toolset: ToolSet
) -> tuple[list[tuple[str, Case]], list[str]]:
  """Returns the cases of a file with their places, and why others of a log are none.

  Args:
    path: lines of cases, where "id" may be left out, or of a log.
    toolset: the tools of the suite.

  Raises:
    SgdxError: a line is neither. Cases that somebody wrote are not checked yet, see `check_cases`.
  """
  cases: list[tuple[str, Case]] = []
  refused: list[str] = []
  lines = decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED)
  for number, (where, row) in enumerate(lines, start=1):
    default_id = f"{path.name.partition('.')[0]}-{number}"
    if not _is_log(row):
      row = {"id": default_id, **row} if isinstance(row, dict) else row
      cases.append((where, case_of(row, where)))
      continue
    try:
      candidate = (where, _of_log(row, default_id, where))
      check_cases([candidate], toolset)
      cases.append(candidate)
    except NoAnswer as e:
      refused.append(f"{where}: no answer ({e})")
    except SgdxError as e:
      refused.append(e.found.partition("\n")[0])
  return cases, refused


def _is_log(row: Any) -> bool:
  """Whether a line is of a log: a request, or messages of which the last is the model's."""
  if not isinstance(row, dict) or {"expect", "name", "user"} & row.keys():
    return False
  if _OF_LOGS & row.keys():
    return True
  messages = row.get("messages")
  last = messages[-1] if isinstance(messages, list) and messages else None
  return isinstance(last, dict) and last.get("role") == "assistant"


def _of_log(row: Mapping[str, Any], default_id: str, where: str) -> Case:
  """Returns a candidate. Raises NoAnswer; SgdxError: no messages, or no answer in a known form."""
  try:
    request = next((row[key] for key in ("request", "body", "input") if key in row), row)
    messages = list(request["messages"])
    if "response" in row or "choices" in row:
      answer = read_answer(row, where)
    else:
      answer = read_answer(messages.pop(), where)
    parts = [call_parts(call) for call in answer.calls or ()]
  except (AttributeError, LookupError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{where}: {malformed(e)}", expected=_EXPECTED, fix="correct the line, or leave it out"
    ) from None
  if answer.calls is None or any(arguments is None for _, arguments in parts):
    raise NoAnswer("calls that are not JSON")
  calls = tuple(Call(name, arguments or {}) for name, arguments in parts)
  return Case(str(row.get("id") or row.get("custom_id") or default_id), tuple(messages), calls)
