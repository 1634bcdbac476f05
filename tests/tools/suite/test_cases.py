"""Cases of a suite, and `sgdx tools cases`: checked against the tools, taken from logs, covered."""

import json

import pytest
from commands import assert_four_parts, sgdx
from shared import shared_file

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.cases import Call, case_of, read_cases, shown_messages
from sgdx_t5x.tools.suite.leaks import Leak, coverage, find_leaks, same_requests, words
from sgdx_t5x.tools.suite.rewording import BASE, Rewording, apply
from sgdx_t5x.tools.suite.toolset import ToolSet

COUNT = {"type": "integer", "minimum": 1}
LOG = {
  "type": "object",
  "properties": {"repo": {"type": "string"}, "max_count": COUNT, "paths": {"type": "array"}},
  "required": ["repo"],
}
TOOLS = ToolSet(
  (
    OwnTool("git_log", "Lists the commits of a repository", LOG, "/0"),
    OwnTool("git_status", "What is not committed", LOG, "/1"),
  )
)
FUNCTIONS = [
  {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
  for tool in TOOLS.tools
]


def row(id="1", text="The last 5 of /srv", **fields):
  expect = [{"name": "git_log", "arguments": {"repo": "/srv", "max_count": 5}}]
  messages = [{"role": "user", "content": text}]
  return {"id": id, "messages": messages, "expect": expect, **fields}


def function_call(name, arguments):
  function = {"name": name, "arguments": json.dumps(arguments)}
  return {"id": "c", "type": "function", "function": function}


def write(path, rows):
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  return path


def test_a_case_is_read_and_written(tmp_path):
  accept = [{"name": "git_log", "arguments": {"max_count": "5"}}, [], "ask"]
  rows = [
    row(accept=accept, tags=["git"], reviewed="ana"),
    row("2", expect="ask", reviewed=None),
    row("3", expect=[], reviewed=None),
  ]
  path = write(tmp_path / "cases.jsonl", [{**rows[0], "from": "log 2026-10-02"}, *rows[1:]])
  cases = read_cases(path, TOOLS)
  assert cases[0].accept[0] == (Call("git_log", {"max_count": "5"}),)
  assert [case.row() for case in cases] == [
    {**rows[0], "accept": [accept[:1], [], "ask"]},
    *rows[1:],
  ]


def calls(**arguments):
  return [{"name": "git_log", "arguments": arguments}]


HISTORY = [{"role": "assistant", "tool_calls": [{"name": "git_log"}]}, {"role": "tool"}]
USED = [{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}]  # Anthropic's


@pytest.mark.parametrize(
  ("fields", "found"),
  [
    ({"messages": USED}, "not those of chat completions"),
    ({"expect": [{"name": "git_logs", "arguments": {}}]}, "no tool 'git_logs' (nearest: git_log"),
    ({"expect": calls()}, "git_log, $: 'repo' is a required property"),
    ({"expect": calls(repo=3)}, "$.repo: 3 is not of type 'string'"),
    ({"expect": calls(repo="/", max_count=0)}, "$.max_count: 0 is less than"),
    ({"expect": calls(repo="/", count=5)}, "git_log has no argument count"),
    ({"expect": "nothing"}, "'nothing' instead of calls or 'ask'"),
    ({"accept": [{"name": "git_show", "arguments": {}}]}, "no tool 'git_show'"),
    ({"messages": []}, "messages of the roles ()"),
    ({"messages": [{"role": "assistant", "content": "Yes"}]}, "messages of the roles (assistant)"),
    ({"messages": [{"role": "user", "content": " "}]}, "a message of the user that says nothing"),
    ({"messages": HISTORY}, "not those of chat completions (missing key 'function')"),
    ({"expect": {"name": "git_log"}}, "got `object` - at `$.expect`"),
    ({"expects": []}, "unknown key 'expects'"),
    ({"id": 3}, "Expected `str`, got `int` - at `$.id`"),
  ],
)
def test_what_is_wrong_with_a_case_is_named(fields, found, tmp_path):
  path = write(tmp_path / "cases.jsonl", [row("0"), row(**fields)])
  with pytest.raises(SgdxError) as error:
    read_cases(path, TOOLS)
  assert_four_parts(error.value.text, "cases.jsonl, line 2", found)


def test_all_faults_are_named_at_once(tmp_path):
  rows = [row("1"), row("1"), row("2", expect=calls()), row("3", messages=[])]
  with pytest.raises(SgdxError) as error:
    read_cases(write(tmp_path / "cases.jsonl", rows), TOOLS)
  for found in ("line 2, case '1': a second case", "line 3, case '2'", "line 4, case '3'"):
    assert found in error.value.found


def test_calls_in_the_history_are_shown_in_other_words():
  rewording = Rewording(
    "r", {"/git_log": "history", "/git_log/parameters/properties/repo": "where"}
  )
  history = [
    {"role": "user", "content": "The last of /srv"},
    {"role": "assistant", "tool_calls": [function_call("git_log", {"repo": "/srv"})]},
    {"role": "tool", "tool_call_id": "c", "content": "3f2a"},
  ]
  case = case_of(row(messages=history), "here")
  shown = shown_messages(case, TOOLS, rewording)
  assert shown[1]["tool_calls"] == [function_call("history", {"where": "/srv"})]
  assert [shown[0], shown[2]] == [history[0], history[2]]
  assert shown_messages(case, TOOLS, BASE) == history


# --- leaks and coverage --------------------------------------------------------------------


def test_words_of_names_and_texts():
  assert words("max_count, listDirectory and the HTTPServer's Straßen") == {
    *("max", "count", "list", "directory", "httpserver", "straßen"),
  }


def test_a_leak_is_a_word_that_only_some_wordings_have():
  rewording = Rewording(
    "r", {"/git_log": "history", "/git_log/description": "Shows commits and their authors"}
  )
  wordings = {"base": TOOLS, "r": apply(TOOLS, rewording)}
  texts = ("Commits of the repository?", "Who are the authors? Log them", "Anything?", "History")
  cases = [case_of(row(str(n), text), "here") for n, text in enumerate(texts)]
  cases[3] = case_of(row("3", texts[3], expect=[]), "here")  # of no tool
  assert find_leaks(cases, wordings) == [
    Leak("0", "repository", ("base",)),
    Leak("1", "author", ("r",)),
    Leak("1", "log", ("base",)),
  ]


def test_cases_of_one_request_and_coverage():
  cases = [case_of(row("1"), "here"), case_of(row("2", "the LAST 5, of srv!", expect=[]), "here")]
  cases.append(case_of(row("3", "The last 6 of /srv"), "here"))
  assert same_requests(cases) == [("1", "2")]
  covered = coverage(cases, TOOLS)
  assert covered.cases_of == {"git_log": 2, "git_status": 0}
  assert covered.no_call == 1
  assert covered.unused == {"git_log": ("paths",), "git_status": ("repo", "max_count", "paths")}


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def suite(tmp_path):
  file = tmp_path / "tools.json"
  file.write_text(json.dumps(FUNCTIONS))
  assert sgdx("tools", "import", file, "--out", tmp_path / "suite") == 0
  return tmp_path / "suite"


def test_cases_are_added_and_checked(suite, tmp_path, capsys):
  rewording = {"name": "r", "replaced": {"/git_log": "history"}}
  write(suite / "rewordings.jsonl", [rewording])
  mine = write(tmp_path / "mine.jsonl", [row("a", "Log of /srv", reviewed="ana"), row("b", "Five")])
  assert sgdx("tools", "cases", suite, "--add", mine) == 0
  printed = capsys.readouterr().out.splitlines()
  assert printed[0].strip() == "2 cases, 1 reviewed"
  assert ["git_log", "paths", "2"] in [line.split() for line in printed]
  for line in (
    "added: 2",
    "tools without a case: git_status",
    "cases with words that only some wordings have: 1 of 2",
    "  a: 'log' in base",
  ):
    assert line in printed
  before = (suite / "cases.jsonl").read_text()
  assert sgdx("tools", "cases", suite, "--add", mine) == 1  # what is there does not change
  assert_four_parts(
    capsys.readouterr().err, "mine.jsonl, line 1, case 'a': a second case of this id"
  )
  assert (suite / "cases.jsonl").read_text() == before
  assert sgdx("tools", "cases", suite) == 0


def test_a_log_gives_candidates_to_review(suite, tmp_path, capsys):
  asked = [{"role": "system", "content": "Short."}, {"role": "user", "content": "The last of /srv"}]
  call = function_call("git_log", {"repo": "/srv"})
  answer = {"role": "assistant", "content": None, "tool_calls": [call]}
  choice = {"choices": [{"message": answer, "finish_reason": "tool_calls"}]}
  cut_off = {"message": {"role": "assistant", "content": "I"}, "finish_reason": "length"}
  used = {"name": "git_log", "input": {"repo": "/srv"}}
  unknown = {**answer, "tool_calls": [function_call("git_show", {})]}
  rows = [
    {"messages": [*asked, answer], "tools": []},
    {"request": {"model": "m", "messages": asked}, "response": choice},
    {
      "custom_id": "r-3",
      "body": {"messages": asked},
      "response": {"status_code": 200, "body": choice},
    },
    {"messages": [*asked, {"role": "assistant", "content": "Which one?"}]},
    {"messages": [*asked, unknown]},
    {"request": {"messages": asked}, "response": {"error": {"message": "overloaded"}}},
    # Not cases in which no call is due.
    {"messages": [*asked, {"role": "assistant", "content": '{"name": "f", "arguments": {}}'}]},
    {"request": {"messages": asked}, "response": {"choices": [cut_off]}},
    {  # Anthropic's
      "request": {"system": "Short.", "messages": asked[1:]},
      "response": {"role": "assistant", "content": [{**used, "type": "tool_use"}]},
    },
  ]
  assert sgdx("tools", "cases", suite, "--add", write(tmp_path / "log.jsonl", rows)) == 0
  printed = capsys.readouterr().out
  assert "5 cases, 0 reviewed" in printed
  assert "line 7: no answer (a call that is in its text only)" in printed
  assert "line 8: no answer (cut off by a limit of tokens)" in printed
  assert "not added: " + str(tmp_path / "log.jsonl") + ", line 5, case 'log-5': no tool" in printed
  assert "line 6: no answer" in printed
  lines = (suite / "cases.jsonl").read_text().splitlines()
  expect = [{"name": "git_log", "arguments": {"repo": "/srv"}}]
  added = [json.loads(line) for line in lines]
  assert added[:3] == [
    {"id": id, "messages": asked, "expect": expect, "reviewed": None}
    for id in ("log-1", "log-2", "r-3")
  ]
  assert added[3]["expect"] == []
  assert added[4] == {"id": "log-9", "messages": asked, "expect": expect, "reviewed": None}


@pytest.mark.parametrize("line", ["", "\n", "[]", '{"messages": 3}', "{}", '{"user": "x"}', "{"])
def test_a_file_without_cases(line, suite, tmp_path, capsys):
  file = tmp_path / "mine.jsonl"
  file.write_text(line)
  code = sgdx("tools", "cases", suite, "--add", file)
  printed = capsys.readouterr()
  if code:
    assert_four_parts(printed.err, "mine.jsonl")
  else:
    assert "not added: " in printed.out


def test_a_case_with_a_misspelt_key_is_not_taken_for_a_log(suite, tmp_path, capsys):
  row = {"messages": [{"role": "user", "content": "The last 5"}], "expects": []}
  assert sgdx("tools", "cases", suite, "--add", write(tmp_path / "mine.jsonl", [row])) == 1
  assert_four_parts(capsys.readouterr().err, "unknown key 'expects'", "nearest: expect")


def test_a_suite_without_cases_or_tools(suite, tmp_path, capsys):
  assert sgdx("tools", "cases", suite) == 1
  assert_four_parts(capsys.readouterr().err, "cases.jsonl")
  assert sgdx("tools", "cases", tmp_path / "none") == 1
  assert_four_parts(capsys.readouterr().err, "which `sgdx tools import`")


def test_a_maintainers_cases(tmp_path, capsys):
  """24 cases in short form, which name no argument of the tools, from ../shared."""
  folder = shared_file("cases/own_tools/README.md").parent
  suite = tmp_path / "suite"
  assert sgdx("tools", "import", folder / "devbox.mcp.json", "--out", suite) == 0
  assert sgdx("tools", "cases", suite, "--add", folder / "cases.jsonl") == 0
  printed = capsys.readouterr().out
  assert "24 cases, 0 reviewed" in printed
  assert (
    "tools without a case: list_allowed_directories, git_diff_unstaged, git_reset, git_branch\n"
    in printed
  )
