"""Review of candidates at a terminal: each is accepted, edited, dropped, or left for later.

After each key the file is written, so that nothing is lost and the next run goes on from there.
"""

import codecs
import contextlib
import json
import pathlib
import textwrap
from collections.abc import Iterator
from typing import Any

from sgdx_t5x.errors import SgdxError, printable
from sgdx_t5x.files.reading import decode_json, read_input
from sgdx_t5x.files.writing import atomic_write, json_line
from sgdx_t5x.tools.suite.cases import Case, case_of, check_cases
from sgdx_t5x.tools.suite.toolset import ToolSet

_KEYS = "a accept, e edit, d drop, s skip, q quit: "
_WIDTH = 80


def review(path: pathlib.Path, toolset: ToolSet, reviewer: str) -> None:
  """Shows the candidates of a file, asks what to do with each, and does it. Ends with the input.

  Args: reviewer, whose name accepted cases get.
  """
  content = read_input(path, "cases").removeprefix(codecs.BOM_UTF8)
  lines = [line.decode() for line in content.splitlines()]
  rows = {n: decode_json(line, str(path), "cases") for n, line in enumerate(lines) if line.strip()}
  waiting = [place for place, row in rows.items() if row.get("reviewed") is None]
  for number, place in enumerate(waiting, start=1):
    print(f"\n{number} of {len(waiting)}")
    row = rows[place]
    while (key := _asked(row, str(path))) == "e":
      row = _edited(row, str(path), toolset)
    if key == "q":
      return
    if key != "s":
      lines[place] = json_line({**row, "reviewed": reviewer}).rstrip("\n") if key == "a" else ""
      with atomic_write(path, "SUITE") as file:
        file.writelines(f"{line}\n" for line in lines if line.strip())


def _asked(row: dict[str, Any], place: str) -> str:
  """Shows a case and returns the key that is pressed; "q" at the end of the input."""
  case = case_of(row, place)
  print("\n".join(_shown(case)))
  while True:
    try:
      key = input(_KEYS).strip().lower()
    except EOFError:
      print()
      return "q"
    if key and key in "aedsq":
      return key


def _shown(case: Case) -> Iterator[str]:
  """Yields the lines of a case."""
  texts = [("case", case.id)]
  for message in case.messages:
    content, calls = message.get("content"), message.get("tool_calls")
    content_text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    texts.append((message["role"], f"calls {json.dumps(calls)}" if calls else content_text))
  due = case.expect if isinstance(case.expect, str) else ""
  for call in case.calls:
    texts.append(("due", f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"))
  if not case.calls:
    texts.append(("due", "no call: a value is missing, to ask for" if due else "no call"))
  if case.accept:
    texts.append(("", f"and {len(case.accept):,} more answers are right"))
  for label, text in texts:
    start = f"  {label:9} "
    yield textwrap.fill(printable(text), _WIDTH, initial_indent=start, subsequent_indent=" " * 12)


def _edited(row: dict[str, Any], place: str, toolset: ToolSet) -> dict[str, Any]:
  """Asks for the last message and what is due. Returns the row, as it was if that is no case."""
  case = case_of(row, place)
  edited = {key: row[key] for key in row if key not in ("user", "name", "arguments")}
  last = dict(case.messages[-1])
  plain = case.row()["expect"]
  try:
    last["content"] = _typed(last["role"], str(last.get("content") or ""))
    expect = _typed("due", json.dumps(plain, ensure_ascii=False))
    edited["messages"] = [*case.messages[:-1], last]
    edited["expect"] = decode_json(expect, place, "calls")
    if edited["expect"] != plain:
      edited.pop("accept", None)  # of another call
    check_cases([(place, case_of(edited, place))], toolset)
  except EOFError:
    return row
  except SgdxError as e:
    print(e.text)
    return row
  return edited


def _typed(label: str, text: str) -> str:
  """Returns what somebody makes of a text, which stands in the line where the terminal can."""
  with contextlib.suppress(ImportError):
    import readline

    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
      return input(f"  {label:9} ").strip() or text
    finally:
      readline.set_startup_hook()
  return input(f"  {label:9} ").strip() or text
