"""`sgdx tools cases --write`: values, purposes that a person wrote, and a model that says them."""

import json
import re

import pytest
from aiohttp import web
from assistant_server import AssistantServer, error
from commands import assert_four_parts, sgdx
from shared import shared_file

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.toolset import ToolSet
from sgdx_t5x.tools.writing.drafts import draft_cases
from sgdx_t5x.tools.writing.model import neutral_cards
from sgdx_t5x.tools.writing.purposes import Purpose, form, read_purposes
from sgdx_t5x.tools.writing.values import pool

LOG = {
  "type": "object",
  "properties": {
    "repo_path": {"type": "string", "description": "Where the history is"},
    "max_count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
    "order": {"$ref": "#/$defs/order"},
    "merges": {"type": "boolean", "default": True, "title": "With merges"},
    "edits": {"type": "array", "items": {"type": "object"}},
  },
  "required": ["repo_path"],
  "$defs": {"order": {"type": "string", "enum": ["by_date", "by_name"]}},
}
CLOCK = {"type": "object", "properties": {"tz": {"type": "string"}}, "required": ["tz"]}
TOOLS = ToolSet(
  (
    OwnTool("git_log", "Lists the history", LOG, "/0"),
    OwnTool("clock", "Tells the time", CLOCK, "/1"),
    OwnTool("stop", "Stops", {"type": "object", "properties": {}}, "/2"),
  )
)
FUNCTIONS = [
  {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
  for tool in TOOLS.tools
]
HISTORY = Purpose(
  "git_log",
  "Commits of {repo_path|a repo}[, the last {max_count}][, {order}][, none merged{merges}]",
)
TIME = Purpose("clock", "How late is it in {tz}?")
PURPOSES = [HISTORY, TIME, Purpose("stop", "Enough!"), Purpose(None, "Thanks, bye")]


@pytest.mark.parametrize(
  ("schema", "values"),
  [
    ({"enum": ["a_b", None, 3]}, {"a b": "a_b", "3": 3}),
    ({"type": "string", "examples": ["x", "y"], "default": "z"}, {"x": "x", "y": "y"}),
    ({"type": "boolean"}, {"": True}),
    ({"type": "boolean", "default": True}, {"": False}),
    ({"type": "integer", "maximum": 3, "default": 2}, {"3": 3}),
    ({"type": "number", "minimum": 2000, "maximum": 2001}, {"2000": 2000, "2001": 2001}),
    ({"type": "integer", "multipleOf": 40, "minimum": 120}, {"120": 120, "160": 160}),
    ({"type": "string", "default": "z"}, {"z": "z"}),
    ({"type": ["string", "null"], "default": None}, {}),
    ({"type": "object"}, {}),
    ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 2}, {"1 and 2": [1, 2]}),
    ({"type": "array", "items": {"type": "string"}, "default": []}, {}),
    ({"type": "array", "items": {"$ref": "#/properties/thing"}}, {}),
    ({"anyOf": [{"enum": ["p"]}, {"type": "null"}]}, {"p": "p"}),
  ],
)
def test_values_that_a_schema_allows(schema, values):
  tool = OwnTool("t", "", {"type": "object", "properties": {"thing": schema}}, "")
  assert pool(tool, "thing", ToolSet((tool,))) == values


@pytest.mark.parametrize(
  ("name", "schema", "said", "value"),
  [
    ("source_timezone", {}, "Tokyo", "Asia/Tokyo"),
    ("repoPath", {}, "/tmp/report", "/tmp/report"),
    ("commit_message", {}, "Version 2", "Version 2"),
    ("branchNames", {"pattern": "^d"}, "develop", "develop"),
    ("x", {"format": "date"}, "2026-05-01", "2026-05-01"),
  ],
)
def test_values_of_a_format_or_a_name(name, schema, said, value):
  schema = {"type": "object", "properties": {name: {"type": "string", **schema}}}
  tool = OwnTool("t", "", schema, "")
  assert pool(tool, name, ToolSet((tool,)))[said] == value


def test_drafts_have_optional_parts_in_turn_a_missing_value_and_no_tool():
  drafts, reasons = draft_cases(PURPOSES, TOOLS, 4, seed=0)
  assert reasons == ["stop: 1 of 4, its values allow no more"]
  by_id = {draft.id: draft for draft in drafts}
  assert [*by_id][:5] == [f"git_log-{n}" for n in range(1, 6)]
  given = [set(case.calls[0].arguments) - {"repo_path"} for case in list(by_id.values())[:4]]
  assert given == [set(), {"max_count"}, {"order"}, {"merges"}]
  ordered = by_id["git_log-3"]
  order = ordered.calls[0].arguments["order"]
  assert ordered.request.endswith(f", {order.replace('_', ' ')}")
  assert by_id["git_log-4"].calls[0].arguments["merges"] is False
  assert by_id["git_log-4"].request.endswith(", none merged")
  assert (by_id["git_log-5"].request, by_id["git_log-5"].expect) == ("Commits of a repo", "ask")
  assert [case.request for case in by_id.values() if not case.expect] == ["Thanks, bye"]
  assert sum(id.startswith("stop") for id in by_id) == 1  # one request is one case
  assert len({case.request for case in by_id.values()}) == len(by_id)

  assert draft_cases(PURPOSES, TOOLS, 4, seed=0)[0] == drafts
  assert draft_cases(PURPOSES, TOOLS, 4, seed=1)[0] != drafts
  assert draft_cases(PURPOSES[1:], TOOLS, 4, seed=0)[0] == drafts[5:]  # tool by tool


def test_a_persons_values_and_what_has_none():
  own = Purpose("clock", "How late is it in {tz}?", {"tz": {"the office": "Europe/Oslo", "no": 3}})
  edits = Purpose("git_log", "Rewrite {repo_path}[ so: {edits}]")
  drafts, reasons = draft_cases([own, edits], TOOLS, 2, seed=0)
  assert drafts[0].request == "How late is it in the office?"
  assert drafts[0].calls[0].arguments == {"tz": "Europe/Oslo"}
  assert reasons == [
    "clock.tz does not allow 3",
    "clock: 1 of 2, its values allow no more",
    "no values for git_log.edits: is left out",
  ]
  assert all(draft.calls[0].arguments.keys() <= {"repo_path", "tz"} for draft in drafts)


def test_a_persons_items_of_a_list():
  schema = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
  }
  tools = ToolSet((OwnTool("find", "", schema, ""),))
  purpose = Purpose("find", "What is tagged {tags}?", {"tags": ["bug", "docs"]})
  drafts, reasons = draft_cases([purpose], tools, 2, seed=0)
  assert reasons == []
  assert {case.request: case.calls[0].arguments["tags"] for case in drafts} == {
    "What is tagged bug and docs?": ["bug", "docs"],
    "What is tagged bug?": ["bug"],
  }


def test_values_are_said_as_they_are_and_a_part_with_all_of_its_values():
  own = {"repo_path": ["/my  {old} , repo"]}
  purpose = Purpose("git_log", "Commits of {repo_path} [ so: {edits} by {order}]", own)
  drafts, _ = draft_cases([purpose], TOOLS, 3, seed=0)
  assert [case.request for case in drafts] == ["Commits of /my  {old} , repo"]
  assert drafts[0].calls[0].arguments == {"repo_path": "/my  {old} , repo"}


def test_nothing_is_given_that_is_not_said():
  schema = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}},
    "required": ["c"],
  }
  tool = OwnTool("go", "", schema, "")
  tools = ToolSet((tool,))
  assert form(tool, tools) == {
    "tool": "go",
    "purpose": "{c|} [{a}] [{b}]",
    "values": {"c": []},
  }
  drafts, reasons = draft_cases([Purpose("go", "Go {c}[{b}]")], tools, 3, seed=0)
  assert (drafts, reasons) == ([], ["no values for go.c: no cases"])
  own = {"c": {"slowly": False, "fast": True}}
  drafts, _ = draft_cases([Purpose("go", "Go {c} [{a}] [{b}] [twice{b}]", own)], tools, 3, seed=0)
  for case in drafts:
    given = case.calls[0].arguments
    assert given["c"] is ("fast" in case.request)
    assert ("b" in given) is ("twice" in case.request)
    assert "a" not in given


def test_a_call_that_the_whole_schema_forbids_is_named():
  schema = {**CLOCK, "properties": {**CLOCK["properties"], "a": {"enum": [1]}}, "minProperties": 2}
  tools = ToolSet((OwnTool("clock", "", schema, ""),))
  drafts, reasons = draft_cases([Purpose("clock", "In {tz}[ by {a}]")], tools, 2, seed=0)
  assert [set(case.calls[0].arguments) for case in drafts] == [{"tz", "a"}] * 2
  (reason,) = reasons  # there are two cases nevertheless
  assert reason.startswith("clock: a call that its schema forbids: {'tz'")


def test_where_requests_repeat_optional_parts_have_other_values():
  own = {"repo_path": {"my site": "/srv"}, "max_count": [5, 6, 7]}
  purpose = Purpose("git_log", "Commits of {repo_path|a repo}[, the last {max_count}]", own)
  drafts, reasons = draft_cases([purpose], TOOLS, 4, seed=0)
  assert [case.expect == "ask" for case in drafts] == [False, False, True, False, False]
  counts = [case.calls[0].arguments.get("max_count") for case in drafts if case.calls]
  assert counts[0] is None
  assert sorted(counts[1:]) == [5, 6, 7]
  assert reasons == []
  drafts, reasons = draft_cases([purpose], TOOLS, 6, seed=0)
  assert len(drafts) == 5
  assert reasons == ["git_log: 4 of 6, its values allow no more"]


def test_two_tools_of_one_request_are_refused():
  same = [Purpose("git_log", "Show me {repo_path}"), Purpose("clock", "show me {tz}")]
  with pytest.raises(SgdxError) as error:
    draft_cases(same, TOOLS, 2, seed=0)
  assert_four_parts(error.value.text, "git_log and clock have one request, 'show me {}'")


@pytest.mark.parametrize(
  ("row", "found"),
  [
    ({"tool": "git_logs", "purpose": "x"}, "no tool 'git_logs'"),
    ({"tool": "clock", "purpose": "Time in {zone}"}, "no argument 'zone'"),
    ({"tool": "clock", "purpose": "Time {tz}", "values": {"zone": []}}, "no argument 'zone'"),
    ({"tool": "clock", "purpose": "Time[ in {tz}]"}, "no place for 'tz', which is required"),
    ({"tool": "clock", "purpose": "Time in {tz"}, "braces or brackets that do not match"),
    ({"tool": "clock", "purpose": "Time[ now] in {tz}"}, "a part in brackets without an argument"),
    ({"tool": None, "purpose": "Book {seats}"}, "no argument 'seats'"),
    ({"tool": "stop", "purpose": "Enough"}, "a second purpose of stop"),
    ({"tool": None, "purpose": "Bye"}, "a second purpose of (no tool) Bye"),
    ({"tool": "clock"}, "missing required field `purpose`"),
  ],
)
def test_what_is_wrong_with_a_purpose_is_named(row, found, tmp_path):
  path = tmp_path / "purposes.jsonl"
  before = [{"tool": "stop", "purpose": "Halt"}, {"tool": None, "purpose": "Bye"}]
  path.write_text("".join(json.dumps(line) + "\n" for line in [*before, row]))
  with pytest.raises(SgdxError) as error:
    read_purposes(path, TOOLS)
  assert_four_parts(error.value.text, "purposes.jsonl, line 3", found)


def test_neutral_cards_have_no_word_of_the_tools():
  words = neutral_cards(PURPOSES, TOOLS)
  card = words.toolset.tools[0].for_openai()["function"]
  assert card["name"] == "tool_1"
  assert card["description"] == "Commits of {a1}[, the last {a2}][, {a3}][, none merged{a4}]"
  text = json.dumps([tool.for_openai() for tool in words.toolset.tools])
  for word in ("git_log", "history", "repo_path", "max_count", "With merges", "clock", "Tells"):
    assert word not in text
  assert card["parameters"]["properties"]["a2"]["maximum"] == 9  # what a value may be stays


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def suite(tmp_path):
  folder = tmp_path / "suite"
  folder.mkdir()
  (folder / "tools.json").write_text(json.dumps(FUNCTIONS))
  return folder


def write_purposes(suite, purposes):
  rows = [{"tool": x.tool, "purpose": x.purpose, "values": dict(x.values)} for x in purposes]
  (suite / "purposes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def cases(suite):
  return [json.loads(line) for line in (suite / "cases.jsonl").read_text().splitlines()]


def test_a_form_then_cases_that_are_frozen(suite, capsys):
  """The first run writes a form, the second cases; neither writes what is there anew."""
  assert sgdx("tools", "cases", suite, "--write", "4") == 0
  printed = capsys.readouterr().out
  assert "tools without a purpose: git_log, clock, stop\n" in printed
  assert all(len(line) <= 80 for line in printed.splitlines() if not line.startswith("say what"))
  rows = [json.loads(line) for line in (suite / "purposes.jsonl").read_text().splitlines()]
  assert rows == [*(form(tool, TOOLS) for tool in TOOLS.tools), {"tool": None, "purpose": ""}]
  assert rows[0] == {
    "tool": "git_log",
    "purpose": "{repo_path|} [{max_count}] [{order}] [{merges}] [{edits}]",
    "values": {"edits": []},
  }
  assert not (suite / "cases.jsonl").exists()

  write_purposes(suite, [HISTORY, TIME])
  assert sgdx("tools", "cases", suite, "--write", "4") == 0
  printed = capsys.readouterr().out
  assert "9 cases, 0 reviewed" in printed
  assert "written: 9, to be reviewed" in printed
  assert "tools without a purpose: stop\n" in printed
  assert json.loads((suite / "purposes.jsonl").read_text().splitlines()[-1])["tool"] == "stop"
  first = (suite / "cases.jsonl").read_text()

  write_purposes(suite, [Purpose("git_log", "What happened in {repo_path}?"), *PURPOSES[1:]])
  assert sgdx("tools", "cases", suite, "--write", "9") == 0
  printed = capsys.readouterr().out
  assert "written: 2, to be reviewed" in printed  # of stop, and of no tool
  assert "written before, and left as they are: 9" in printed
  assert (suite / "cases.jsonl").read_text().startswith(first)


def test_a_request_that_is_there_is_not_written_again(suite, capsys):
  write_purposes(suite, [Purpose("stop", "Enough!")])
  row = {"id": "mine", "user": "enough", "expect": []}
  (suite / "cases.jsonl").write_text(json.dumps(row) + "\n")
  assert sgdx("tools", "cases", suite, "--write", "2") == 0
  assert "left out, another case has the request: stop-1" in capsys.readouterr().out
  assert len(cases(suite)) == 1


def reading(messages, tools):
  """A model that finds the tool whose purpose a request is, and the values in its places."""
  text = messages[-1]["content"].removeprefix("Hello! ")
  for tool in (tool["function"] for tool in tools):
    pattern = re.sub(r"\\\[.*?\\\]", "", re.escape(tool["description"]))
    pattern = re.sub(r"\\\{(a\d)\\\}", r"(?P<\1>.+?)", pattern)
    if found := re.fullmatch(pattern, text):
      values = {"Lima": "America/Lima", "Tokyo": "Asia/Tokyo"}  # all the geography that it knows
      arguments = {name: values.get(said, said) for name, said in found.groupdict().items()}
      return [{"name": tool["name"], "arguments": arguments}]
  return []


class Reader:
  """The model as the `gold` of an `AssistantServer`."""

  def __getitem__(self, key):
    return reading(*json.loads(key))


def test_a_model_writes_and_a_second_reading_recovers_the_call(suite, capsys):
  """It says nothing about the tool stop, and knows two of six cities."""
  asked = []

  def write(number, body):
    asked.append(body)
    if "tools" in body:
      return None
    sentence = body["messages"][-1]["content"].split(": ", 1)[1].split("\n")[0]
    said = "" if sentence == "Enough!" else f'"Hello!\n{sentence}"'
    message = {"role": "assistant", "content": said}
    return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

  write_purposes(suite, [Purpose("git_log", "Commits of {repo_path}"), *PURPOSES[1:]])
  args = ("--write", "6", "--model", "small-1", "--backoff", "0.01", "--endpoint")
  with AssistantServer(Reader(), write) as server:
    assert sgdx("tools", "cases", suite, *args, server.url) == 0
    printed = capsys.readouterr().out
    assert "left out, no text: 1 (stop-1)" in printed
    assert "left out, the second reading is not the call: 4 (clock-" in printed
    assert "written: 8, to be reviewed" in printed  # 5 paths, 2 cities, no tool
    number = len(asked)
    assert sgdx("tools", "cases", suite, *args, server.url) == 0
    assert len(asked) == number  # what was lost is not asked for again
  rows = cases(suite)
  assert rows[0]["messages"][0]["content"].startswith("Hello! Commits of /")
  assert rows[0]["tags"] == ["written", "model small-1"]
  for word in ("git_log", "repo_path", "clock", "history", "Tells the time"):
    assert word not in json.dumps(asked)


def test_without_an_endpoint_that_answers_nothing_is_written(suite, capsys):
  write_purposes(suite, [TIME])
  args = ("--write", "3", "--model", "small-1", "--retries", "0", "--endpoint")
  with AssistantServer({}, lambda number, body: error(401, "no key")) as server:
    assert sgdx("tools", "cases", suite, *args, server.url) == 1
  assert_four_parts(capsys.readouterr().err, "status 401")
  assert not (suite / "cases.jsonl").exists()
  assert sgdx("tools", "cases", suite, "--model", "small-1") == 2
  assert_four_parts(capsys.readouterr().err, "--write, --endpoint and --model")


def test_a_dry_run_writes_and_asks_nothing(suite, capsys):
  assert sgdx("tools", "cases", suite, "--write", "2", "--dry-run") == 0
  assert [path.name for path in suite.iterdir()] == ["tools.json"]
  write_purposes(suite, PURPOSES)
  for more in ((), ("--model", "m", "--endpoint", "http://127.0.0.1:1")):
    assert sgdx("tools", "cases", suite, "--write", "2", "--dry-run", *more) == 0
    printed = capsys.readouterr()
    assert "would be written: 7 cases" in printed.out
  assert "requests: 14 to send, for 7 cases" in printed.err
  assert sorted(path.name for path in suite.iterdir()) == ["purposes.jsonl", "tools.json"]


@pytest.mark.parametrize(
  "options", [(), ("--add", "x.jsonl"), ("--review", "ana"), ("--write", "2", "--review", "ana")]
)
def test_a_dry_run_is_of_writing_alone(options, suite, capsys):
  assert sgdx("tools", "cases", suite, *options, "--dry-run") == 2
  assert_four_parts(capsys.readouterr().err, "--dry-run with --add or --review")


@pytest.mark.parametrize("name", ["devbox.mcp.json", "petstore.openai.json"])
def test_a_maintainers_tools(name, tmp_path, capsys):
  """The form of each list, from ../shared, with a made-up word per tool, gives valid cases."""
  file = shared_file(f"cases/own_tools/{name}")
  suite = tmp_path / "suite"
  assert sgdx("tools", "import", file, "--out", suite) == 0
  assert sgdx("tools", "cases", suite, "--write", "3") == 0
  rows = [json.loads(line) for line in (suite / "purposes.jsonl").read_text().splitlines()]
  for number, row in enumerate(rows):
    row["purpose"] = f"word{number} {row['purpose']}"
  (suite / "purposes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  capsys.readouterr()
  assert sgdx("tools", "cases", suite, "--write", "3") == 0  # which checks each by its schema
  assert "one request in several cases" not in capsys.readouterr().out
  tools = {row["tool"] for row in rows if row["tool"]}
  without = {
    row["tool"] for row in rows if any(f"{{{x}|" in row["purpose"] for x in row.get("values", {}))
  }
  called = {call["name"] for row in cases(suite) if row["expect"] for call in row["expect"]}
  assert called == tools - without
