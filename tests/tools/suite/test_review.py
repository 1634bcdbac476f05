"""`sgdx tools cases --review`: one key per candidate, nothing lost, resumed where it stopped."""

import json

import pytest
from commands import sgdx

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"name": "read", "description": "Reads", "parameters": SCHEMA}]


def row(id, **fields):
  expect = [{"name": "read", "arguments": {"path": f"/{id}"}}]
  messages = [{"role": "system", "content": "Short."}, {"role": "user", "content": f"Say /{id}"}]
  return {"id": id, "messages": messages, "expect": expect, "reviewed": None, **fields}


@pytest.fixture
def suite(tmp_path):
  folder = tmp_path / "suite"
  folder.mkdir()
  (folder / "tools.json").write_text(json.dumps(TOOLS))
  first = row("0", reviewed="li")
  rows = [first, row("1", **{"from": "log 7"}), row("2", expect="ask"), row("3"), row("4")]
  short = {"id": "5", "user": "Say /5", "name": "read", "arguments": {"path": "/5"}}
  (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, [*rows, short])) + "\n\n")
  return folder


def rows(suite):
  return [json.loads(line) for line in (suite / "cases.jsonl").read_text().splitlines()]


def review(suite, monkeypatch, *typed):
  """Types lines, an exception in their place is raised; then the input ends."""
  waiting = [*typed, EOFError()]

  def read(prompt):
    print(prompt, end="")
    line = waiting.pop(0)
    if isinstance(line, BaseException):
      raise line
    print(line)
    return line

  monkeypatch.setattr("builtins.input", read)
  return sgdx("tools", "cases", suite, "--review", "ana")


def test_keys_accept_drop_skip_and_resume(suite, monkeypatch, capsys):
  before = (suite / "cases.jsonl").read_text().splitlines()
  assert review(suite, monkeypatch, "a", "nonsense", "", "d", "S") == 0
  printed = capsys.readouterr().out
  assert printed.startswith(
    "\n1 of 5\n"
    "  case      1\n"
    "  system    Short.\n"
    "  user      Say /1\n"
    '  due       read {"path": "/1"}\n'
    "a accept, e edit, d drop, s skip, q quit: a\n"
    "\n2 of 5\n"
  )
  assert "no call: a value is missing, to ask for" in printed
  assert "5 cases, 2 reviewed" in printed
  assert [(r["id"], r.get("reviewed")) for r in rows(suite)] == [
    *(("0", "li"), ("1", "ana"), ("3", None), ("4", None), ("5", None)),
  ]
  assert rows(suite)[1] == row("1", **{"from": "log 7"}, reviewed="ana")
  after = (suite / "cases.jsonl").read_text().splitlines()
  assert [after[0], *after[2:]] == [before[0], *before[3:6]]  # others stay as they are

  assert review(suite, monkeypatch, "q") == 0
  assert "\n1 of 3\n  case      3\n" in capsys.readouterr().out


def test_ctrl_c_loses_nothing(suite, monkeypatch, capsys):
  assert review(suite, monkeypatch, "a", KeyboardInterrupt()) == 130
  assert "run the same command again to go on" in capsys.readouterr().err
  assert rows(suite)[1]["reviewed"] == "ana"


def test_edits_are_checked_before_they_are_accepted(suite, monkeypatch, capsys):
  right = '[{"name": "read", "arguments": {"path": "/srv"}}]'
  wrong = '[{"name": "write", "arguments": {}}]'
  typed = ("s", "s", "s", "s", "e", "Say /srv", wrong, "e", "Say /srv", "{", "e", "Say /srv", right)
  assert review(suite, monkeypatch, *typed, "a") == 0
  printed = capsys.readouterr().out
  assert "no tool 'write'" in printed
  assert "not valid JSON" in printed
  assert "Traceback" not in printed
  assert rows(suite)[-1] == {
    "id": "5",
    "messages": [{"role": "user", "content": "Say /srv"}],
    "expect": json.loads(right),
    "reviewed": "ana",
  }
