"""Tool calls as predictions: answers of LLM services and leaderboards, one JSON row each.

A row has the id of its request as "custom_id" or "id", and an answer in one of these forms:

  services, harnesses  what `messages` reads, in the row or in its "response"
  BFCL's results       "result": [{NAME: arguments}] or "[NAME(a='b')]"
  bare rows            "calls": [{"name", "arguments"}]
  text                 "prediction", as `t5x.infer` writes it: a JSON list of such calls, or what
                       `call_texts` reads

Arguments are an object or its JSON text. These forms were checked against the packages openai 3.54,
anthropic 2.12 and bfcl-eval 2026.3.23.
"""

import functools
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.example_id import FRAME, ExampleId
from sgdx_t5x.errors import SgdxError, quoted
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.scoring.predictions.files import Paths, find_files, is_rows
from sgdx_t5x.scoring.predictions.rows import PredictionRow, numbered_lines, row_id, row_text
from sgdx_t5x.tools.call_texts import NAMES, named_call, written_calls
from sgdx_t5x.tools.calls import read_calls
from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.messages import Answer, NoAnswer, read_answer, read_call, unknown_form
from sgdx_t5x.tools.requests import parse_request_id

_EXPECTED = "one answer per line to a request of `sgdx tools requests`"
_BFCL_FAILED = "Error during inference:"  # as it logs an error, with or without a traceback
_ASK_AGAIN = "send them again, or use --allow-missing to score the others, marked PARTIAL"


def answered_style(sources: Mapping[str, Paths], split: str) -> ToolStyle:
  """Returns the style of the answered requests, which is part of an answer's id.

  Only the first row of `sources`, variant -> file or folder of answers, is read. Raises SgdxError
  for files that are not JSON lines, or a first row that is not an answer.
  """
  for source in sources.values():
    for file in find_files(source, split):
      if not is_rows(file):
        raise SgdxError(
          f"{file} is not named *.jsonl",
          expected="answers in JSON Lines format",
          fix="rename the file if that is its format; `sgdx score` reads DSTC8 dialogues",
        )
      for place, line in numbered_lines(file):
        row = decode_json(line, place, _EXPECTED, "write one row per line")
        return parse_request_id(_request_id(row, place), place)[1]
  return ToolStyle()


def call_rows(
  file: pathlib.Path,
  style: ToolStyle,
  allow_missing: bool,
  on_read: Callable[[int], None] = lambda size: None,
  from_text: bool = False,
) -> Iterator[PredictionRow]:
  """Yields the answers in a file. Model output is accepted as it is, however wrong.

  Args:
    file: JSON lines.
    style: the style of the requests.
    allow_missing: leave out requests that the service did not answer.
    on_read: called from time to time with the number of further bytes read.
    from_text: whether calls in the text of an answer without any count.

  Raises:
    SgdxError: a row that has none of the forms above, or is truncated; an answer to another kind
      of request; failed requests, unless `allow_missing`.
  """
  failed: dict[str, str] = {}  # by id
  answered: set[str] = set()  # ids; one that was asked again may have failed before or after
  for place, line in numbered_lines(file, on_read):
    row = decode_json(line, place, _EXPECTED, "write one row per line")
    name, row_style, absent = parse_request_id(_request_id(row, place), place)
    if row_style != style:
      raise SgdxError(
        f"{place}: an answer to a request that shows {row_style}",
        expected=f"answers to requests that show {style}, like the first one",
        fix="score the answers to each request file separately",
      )
    example = ExampleId.parse(name, place)
    if example.unit != FRAME:
      raise SgdxError(
        f"{place}: an answer for a single slot (id {name!r})",
        expected="one answer per frame, with an id that ends in /*",
        fix="score answers to prompts in another format with `sgdx score`",
      )
    try:
      answer = row_answer(row, place, from_text)
    except NoAnswer as e:
      failed[name] = f"{place}, {name}: {e}"
      continue
    answered.add(name)
    read_frame = functools.partial(
      read_calls, answer.calls, absent=absent, cut_off=answer.cut_off, in_text=answer.call_in_text
    )
    yield PredictionRow(place, example, "", read_frame)
  failures = [fault for name, fault in failed.items() if name not in answered]
  if failures and not allow_missing:
    raise SgdxError(
      f"{len(failures):,} requests failed; {failures[0]}",
      expected="an answer to every request",
      available="; ".join(failures[1:4]),
      fix=_ASK_AGAIN,
    )


def _request_id(row: Any, place: str) -> str:
  if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
    return row["custom_id"]
  return row_id(row, place)


def row_answer(row: Mapping[str, Any], place: str, from_text: bool = False) -> Answer:
  """Returns the answer in a row. Args: as of `call_rows`.

  Raises:
    NoAnswer: the service did not answer.
    SgdxError: the row has none of the forms.
  """
  if "calls" in row:
    calls = row["calls"]
    if not isinstance(calls, str | list):
      raise unknown_form(row, place, "calls that are no list")
    calls = written_calls(calls) if isinstance(calls, str) else calls
    return Answer(None if calls is None else [_bare_call(call, place) for call in calls])
  if "prediction" in row:
    return Answer(written_calls(row_text(row, place, FRAME) or ""))
  if isinstance(row.get("result"), list | str) and not row.get("function_call"):  # else ERNIE's
    if "traceback" in row or str(row["result"]).startswith(_BFCL_FAILED):
      raise NoAnswer(quoted(row["result"]))
    return Answer(_bfcl_calls(row["result"], place))
  answer = read_answer(row, place)
  return answer.with_calls_of_text() if from_text else answer


def _bare_call(call: Any, place: str) -> Any:
  """Returns a call as {"name", "arguments"}; as it is if it has no name, which is invalid."""
  if not isinstance(call, dict):
    return call
  if len(call) == 1 and isinstance(next(iter(call.values())), dict):  # as BFCL has it
    return _bfcl_call(call)
  return call if call.keys().isdisjoint(NAMES) else read_call(call, place)


def _bfcl_calls(result: list[Any] | str, place: str) -> list[Any] | None:
  """Returns the calls of a BFCL result, which are structured (list) or written as text (str)."""
  calls = written_calls(result) if isinstance(result, str) else result
  if any(isinstance(item, list) for item in calls or ()):
    raise unknown_form({}, place, "a result of several turns or steps")
  if calls is None:
    return None
  listed: list[Any] = []
  for item in calls:
    # A decoded result has the text of a call in each item.
    listed += (written_calls(item) or [None]) if isinstance(item, str) else [_bfcl_call(item)]
  return listed


def _bfcl_call(item: Any) -> dict[str, Any] | None:
  if not isinstance(item, dict):
    return None
  if len(item) == 1:
    name, arguments = next(iter(item.items()))
    return {"name": name, "arguments": arguments}
  return named_call(item)
