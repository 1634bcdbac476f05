"""Cases of a suite: what users say, and the calls that are due."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, malformed, nearest
from sgdx_t5x.files.reading import converted, decode_lines, read_input
from sgdx_t5x.tools.schemas import undeclared
from sgdx_t5x.tools.suite.rewording import BASE, Rewording, forth
from sgdx_t5x.tools.suite.toolset import ToolSet

CASES = "cases.jsonl"  # in a suite's folder
ASK = "ask"
_ROLES = ("system", "developer", "user", "assistant", "tool")
_FIX = "correct these lines"
_MOST_FAULTS = 10  # that one error lists
_EXPECTED = (
  'lines of {"id", "messages": [{"role", "content"}], "expect": [{"name", "arguments"}] or [] or '
  f'"{ASK}"}}, maybe with "accept", "tags", "reviewed", "from"'
)


@dataclasses.dataclass(frozen=True)
class Call:
  """A call of a tool, in the words of the base."""

  name: str
  arguments: Mapping[str, Any]


# From name and arguments of a call to those in other words.
Translate = Callable[[str, Any], tuple[str, Any]]
# Calls, in any order; () for none; "ask" where a required value is missing, so that none is due.
Expected = tuple[Call, ...] | str


@dataclasses.dataclass(frozen=True)
class Case:
  """A request and what is due.

  Attributes:
    id: unique in a suite.
    messages: of chat completions, up to the one to answer; may have calls and their results.
    expect: the calls that are due; see `Expected`.
    accept: further answers that are right, also such that the tools' schemas forbid.
    tags: of its author.
    reviewed: who has read it; None: nobody, a candidate.
  """

  id: str
  messages: tuple[Mapping[str, Any], ...]
  expect: Expected
  accept: tuple[Expected, ...] = ()
  tags: tuple[str, ...] = ()
  reviewed: str | None = None

  @property
  def calls(self) -> tuple[Call, ...]:
    """The calls that are due."""
    return () if isinstance(self.expect, str) else self.expect

  @property
  def request(self) -> str:
    """What the user says in its messages."""
    texts = (message.get("content") for message in self.messages if message["role"] == "user")
    return "\n".join(text if isinstance(text, str) else json.dumps(text) for text in texts)

  def row(self) -> dict[str, Any]:
    """The case as a line of the file."""

    def plain(expected: Expected) -> Any:
      return expected if isinstance(expected, str) else list(map(dataclasses.asdict, expected))

    row = {"id": self.id, "messages": list(self.messages), "expect": plain(self.expect)}
    row |= {"accept": list(map(plain, self.accept))} if self.accept else {}
    row |= {"tags": list(self.tags)} if self.tags else {}
    return {**row, "reviewed": self.reviewed}


def case_of(row: Any, place: str) -> Case:
  """Returns the case of a decoded line. Raises SgdxError: it is not of the form.

  "user" is short for one message of the user, and "name" with "arguments" for one call.
  """
  fields = {field.name for field in dataclasses.fields(Case)}
  if isinstance(row, dict):
    row = dict(row)
    if isinstance(row.get("user"), str):
      row["messages"] = [{"role": "user", "content": row.pop("user")}]
    if "name" in row and "expect" not in row:
      row["expect"] = [{"name": row.pop("name"), "arguments": row.pop("arguments", {})}]
    row.pop("from", None)  # for its author
    if unknown := [key for key in row if key not in fields]:
      raise SgdxError(
        f"{place}: unknown key {unknown[0]!r}",
        expected=_EXPECTED,
        available=nearest(unknown[0], fields),
        fix="correct the key, or leave it out",
      )
    if isinstance(row.get("accept"), list):  # of which each may be a single call
      row["accept"] = [[item] if isinstance(item, dict) else item for item in row["accept"]]
  return converted(row, Case, place, _EXPECTED, "correct the line")


def read_cases(
  path: str | pathlib.Path,
  toolset: ToolSet,
  to_base: Translate | None = None,
  fix: str = _FIX,
  also_of: ToolSet | None = None,
) -> list[Case]:
  """Returns the cases of a file. Raises SgdxError: a line is not of the form, or has faults.

  Args:
    path: the file.
    toolset: the tools of which the cases speak.
    to_base: translates calls of the file into the words of `toolset`.
    fix: of the error.
    also_of: further tools of which a case may speak instead, as it stands in the file.
  """
  path = pathlib.Path(path)
  lines = decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED)
  located = [(place, case_of(row, place)) for place, row in lines]
  if to_base is None:
    check_cases(located, toolset, fix)
    return [case for _, case in located]
  excused = {case.id for _, case in located if also_of and not any(faults(case, also_of))}
  located = [(place, _with_calls(case, to_base)) for place, case in located]
  check_cases(located, toolset, fix, excused)  # also that messages can be translated
  return [
    dataclasses.replace(case, messages=tuple(_messages(case, to_base))) for _, case in located
  ]


def _with_calls(case: Case, translate: Translate) -> Case:
  """Returns a case with the calls that are right in other words."""

  def translated(expected: Expected) -> Expected:
    if isinstance(expected, str):
      return expected
    return tuple(Call(*translate(call.name, call.arguments)) for call in expected)

  accept = tuple(map(translated, case.accept))
  return dataclasses.replace(case, expect=translated(case.expect), accept=accept)


def check_cases(
  located: Sequence[tuple[str, Case]],
  toolset: ToolSet,
  fix: str = _FIX,
  excused: Collection[str] = (),
) -> None:
  """Checks cases against the tools of the suite. Args: excused, ids of cases that others allow.

  Raises SgdxError, which lists the first faults of all cases: an id twice, no message to answer, a
  tool that is not there, or arguments that its schema forbids.
  """
  found: list[str] = []
  ids: set[str] = set()
  for place, case in located:
    case_faults = [] if case.id in excused else list(faults(case, toolset))
    if case.id in ids:
      case_faults.insert(0, "a second case of this id")
    ids.add(case.id)
    found += [f"{place}, case {case.id!r}: {fault}" for fault in case_faults]
  if found:
    ellipsis = f"\nand {len(found) - _MOST_FAULTS:,} more" if len(found) > _MOST_FAULTS else ""
    raise SgdxError(
      "\n".join(found[:_MOST_FAULTS]) + ellipsis,
      expected="unique ids, messages that end with one to answer, and calls that the tools allow",
      available=f"tools {nearest('', toolset.by_name)}",
      fix=fix,
    )


def faults(case: Case, toolset: ToolSet) -> Iterator[str]:
  """Yields what is wrong with a case of these tools, in words."""
  roles = [str(message.get("role")) for message in case.messages]
  if not roles or roles[-1] not in ("user", "tool") or not set(roles) <= {*_ROLES}:
    yield f"messages of the roles ({', '.join(roles)}), of which the last is not to be answered"
  user_texts = [m.get("content") for m in case.messages if m.get("role") == "user"]
  if not all(str(text or "").strip() for text in user_texts):
    yield "a message of the user that says nothing"
  try:
    shown_messages(case, toolset, BASE)
  except (AttributeError, LookupError, TypeError, ValueError) as e:
    yield f"calls among the messages that are not those of chat completions ({malformed(e)})"
  if any(map(_has_other_calls, case.messages)):
    yield "calls among the messages that are not those of chat completions (tool_calls)"
  for expected in (case.expect, *case.accept):
    if isinstance(expected, str):
      if expected != ASK:
        yield f"{expected!r} instead of calls or {ASK!r}"
      continue
    for call in expected:
      tool = toolset.by_name.get(call.name)
      if tool is None:
        yield f"no tool {call.name!r} ({nearest(call.name, toolset.by_name)})"
      elif expected is case.expect:
        for error in toolset.validator(call.name).iter_errors(call.arguments):
          yield f"{call.name}, {error.json_path}: {error.message}"
        for way, allowed in undeclared(call.arguments, tool.parameters):
          if not allowed:
            yield f"{call.name} has no argument {way}"


def _has_other_calls(message: Mapping[str, Any]) -> bool:
  """Whether a message has calls or results in a form whose names no rewording would reach."""
  content = message.get("content")
  blocks = content if isinstance(content, list) else []
  kinds = [str(block.get("type")) for block in blocks if isinstance(block, dict)]
  return bool(message.get("function_call")) or any(kind.startswith("tool") for kind in kinds)


def shown_messages(case: Case, base: ToolSet, rewording: Rewording) -> list[dict[str, Any]]:
  """Returns a case's messages, the calls among them in the words of a rewording."""
  return _messages(case, functools.partial(forth, base=base, rewording=rewording))


def _messages(case: Case, translate: Translate) -> list[dict[str, Any]]:
  """Returns a case's messages, the calls among them in other words."""
  messages = []
  for message in map(dict, case.messages):
    if isinstance(message.get("tool_calls"), list):
      message["tool_calls"] = [_translated(call, translate) for call in message["tool_calls"]]
    messages.append(message)
  return messages


def _translated(call: Any, translate: Translate) -> Any:
  """Returns a call in chat completions' form in other words."""
  function = call["function"]
  name, arguments = translate(function["name"], json.loads(function["arguments"] or "{}"))
  return {**call, "function": {**function, "name": name, "arguments": json.dumps(arguments)}}
