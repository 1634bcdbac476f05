"""Cases to add to a suite: written by hand, taken from logs of chat completions, or from BFCL.

A log has, on a line, a conversation that ends with the model's message, or a request with its
response. What the model called is a candidate, not gold: somebody has to review it.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import decode_lines, read_input
from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.messages import NoAnswer, read_answer
from sgdx_t5x.tools.suite import bfcl
from sgdx_t5x.tools.suite.cases import Call, Case, case_of, check_cases
from sgdx_t5x.tools.suite.toolset import ToolSet

_OF_LOGS = {"request", "body", "input", "response", "choices"}
_EXPECTED = (
  "cases (see docs/tools/README.md), logs of chat completions, or BFCL's questions and possible "
  "answers, as JSON Lines"
)


def read_candidates(
  paths: Sequence[pathlib.Path], toolset: ToolSet
) -> tuple[list[tuple[str, Case]], list[str]]:
  """Returns the cases of files with their places, and why others of a log or of BFCL are none.

  The lines are cases, where "id" may be left out, of a log, or of BFCL. Cases that somebody wrote
  are not checked yet, see `check_cases`. Raises SgdxError: a line is neither, or a file has none.
  """
  cases: list[tuple[str, Case]] = []
  refused: list[str] = []
  rows: list[tuple[str, str, Any]] = []
  truths = {}  # all of them first: a question's possible answers may be in a later file
  for path in paths:
    lines = list(decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED))
    if not lines:
      raise SgdxError(f"{path}: no lines", expected=_EXPECTED, fix="pass a file with cases")
    start = path.name.partition(".")[0]
    for number, (place, row) in enumerate(lines, start=1):
      rows.append((place, f"{start}-{number}", row))
      if isinstance(row, dict) and bfcl.TRUTH in row:
        truths[str(row.get("id"))] = row[bfcl.TRUTH]
  for place, default_id, row in rows:
    keys = row.keys() if isinstance(row, dict) else ()
    if bfcl.TRUTH in keys and bfcl.QUESTION not in keys:
      continue
    if bfcl.QUESTION not in keys and not _is_log(row):
      row = {"id": default_id, **row} if isinstance(row, dict) else row
      cases.append((place, case_of(row, place)))
      continue
    try:
      if bfcl.QUESTION in keys:
        candidate = (place, bfcl.case_of_question(row, place, truths, toolset))
      else:
        candidate = (place, _of_log(row, default_id, place))
      check_cases([candidate], toolset)
      cases.append(candidate)
    except NoAnswer as e:
      refused.append(f"{place}: no answer ({e})")
    except (AttributeError, LookupError, TypeError, ValueError) as e:
      refused.append(f"{place}: not of the form: {malformed(e)}")
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


def _of_log(row: Mapping[str, Any], default_id: str, place: str) -> Case:
  """Returns a candidate. Raises NoAnswer; LookupError and others: no messages; SgdxError."""
  request = next((row[key] for key in ("request", "body", "input") if key in row), row)
  messages = list(request["messages"])
  if system := request.get("system"):  # Anthropic's
    messages.insert(0, {"role": "system", "content": system})
  has_response = "response" in row or "choices" in row
  answer = read_answer(row if has_response else messages.pop(), place)
  if answer.call_in_text:  # no case in which no call is due
    raise NoAnswer("a call that is in its text only")
  if answer.cut_off:
    raise NoAnswer("cut off by a limit of tokens")
  calls: list[Call] = []
  for call in [None] if answer.calls is None else answer.calls:  # None: malformed
    name, arguments = call_parts(call)
    if arguments is None:
      raise NoAnswer("calls that are not JSON")
    calls.append(Call(name, arguments))
  id = str(row.get("id") or row.get("custom_id") or default_id)
  return Case(id, tuple(messages), tuple(calls))
