"""`sgdx tools check`, typed as a user types it, against a server that plays a simulated model."""

import dataclasses
import json
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from assistant_server import AssistantServer, error
from commands import assert_four_parts, sgdx
from simulated_assistant import SimulatedAnswers, cases, toolset, verbs

WORDS = verbs(12)
TOOLS = toolset(WORDS)
BAD = "tool_03"


def write_tools(path, tools):
  path.write_text(json.dumps(tools.for_openai()))


def with_description(tools, name, text):
  changed = (dataclasses.replace(x, description=text) if x.name == name else x for x in tools.tools)
  return dataclasses.replace(tools, tools=tuple(changed))


def reworded(tools):
  """The same tools, whose descriptions say it otherwise."""
  changed = (
    dataclasses.replace(x, description=f"This tool {x.description.lower()}") for x in tools.tools
  )
  return dataclasses.replace(tools, tools=tuple(changed))


@pytest.fixture
def suite(tmp_path):
  folder = tmp_path / "suite"
  folder.mkdir()
  write_tools(folder / "tools.json", TOOLS)
  rows = [json.dumps(case.row()) for case in cases(WORDS, 8)]
  (folder / "cases.jsonl").write_text("\n".join(rows) + "\n")
  return folder


def check(suite, server, *args):
  endpoint = ("--endpoint", server.url, "--backoff", "0.01") if server else ()
  return sgdx("tools", "check", suite, "--model", "small-1", *endpoint, *args)


def test_a_bad_edit_is_broken_and_named(suite, tmp_path, capsys):
  """From the edit to the word that hurts; then the same again without a network."""
  old, out, junit = tmp_path / "old.json", tmp_path / "out.json", tmp_path / "out.xml"
  write_tools(old, TOOLS)
  write_tools(suite / "tools.json", with_description(reworded(TOOLS), BAD, ""))
  args = ("--against", old, "--json", out, "--junit", junit)
  with AssistantServer(SimulatedAnswers()) as server:
    assert check(suite, server, *args) == 1
    assert set(server.answered.values()) == {1}
  printed = capsys.readouterr()
  assert "BROKEN: 8 cases broke, 0 were fixed" in printed.out
  assert f"{BAD}/description" in printed.out
  # The cases of the emptied description have its word.
  assert "only some wordings have: 8; of the others, 0 broke and 0 were fixed" in printed.out
  assert "cases:    96; they show a drop of 8 points, or of 13 if 3% flip" in printed.err
  assert "requests: 384 to send, for 384 questions" in printed.err

  data = json.loads(out.read_text())
  assert data["verdict"] == "BROKEN"
  assert data["comparisons"][0]["right"]["broken"] == 8
  assert data["comparisons"][0]["right"]["p"] == 2 / 2**8
  assert data["noise"]["churn"] == 0
  cause = data["causes"][0]
  assert [change["pointer"] for change in cause["changes"]] == [f"/{BAD}/description"]
  assert (len(cause["cases"]), cause["only_these"]) == (8, 8)
  assert cause["called_instead"] == "tool_11"

  tests = ElementTree.parse(junit).getroot()
  assert len(tests.findall(".//testcase")) == 96
  assert len(tests.findall(".//failure")) == 8
  comment = (suite / "report.md").read_text()
  assert "**BROKEN**: 8 cases broke" in comment
  assert "5 of 8 broken cases" in comment
  assert f"| {BAD} | tool_11 (wrong tool) | /{BAD}/description |" in comment

  assert check(suite, None, *args) == 1
  replayed = capsys.readouterr()
  assert "requests: 0 to send, for 384" in replayed.err
  assert replayed.out == printed.out


def test_a_harmless_edit_is_the_same_although_the_model_wavers(suite, tmp_path, capsys):
  write_tools(tmp_path / "old.json", TOOLS)
  write_tools(suite / "tools.json", reworded(TOOLS))
  with AssistantServer(SimulatedAnswers(churn=0.03)) as server:
    assert check(suite, server, "--against", tmp_path / "old.json") == 0
  printed = capsys.readouterr().out
  assert "SAME: a drop of" in printed
  assert "harmless changes (order of tools, white space) flip" in printed


def test_one_tool_of_twelve_is_lost_by_a_model_that_wavers(suite, tmp_path, capsys):
  """The whole is within the noise, p = .15; its tool is not, and is named with the text."""
  write_tools(tmp_path / "old.json", TOOLS)
  write_tools(suite / "tools.json", with_description(reworded(TOOLS), BAD, ""))
  with AssistantServer(SimulatedAnswers(churn=0.03)) as server:
    assert check(suite, server, "--against", tmp_path / "old.json") == 1
  printed = capsys.readouterr().out
  assert f"BROKEN: 9 cases broke, 3 were fixed; {BAD}" in printed
  assert "not found: chance" in printed
  assert f"{BAD}/description" in printed


def test_renamed_added_and_dropped_tools(suite, tmp_path, capsys):
  """A rename costs nothing by itself; cases of a dropped tool and of a new one are not compared."""
  write_tools(tmp_path / "old.json", dataclasses.replace(TOOLS, tools=TOOLS.tools[:-1]))
  new = [dataclasses.replace(x, name=f"new_{x.name}") for x in TOOLS.tools[1:-1]]
  write_tools(suite / "tools.json", dataclasses.replace(TOOLS, tools=(*new, TOOLS.tools[-1])))
  renames = {f"/{x.name}": f"new_{x.name}" for x in TOOLS.tools[1:-1]}
  (tmp_path / "renames.json").write_text(json.dumps(renames))
  args = ("--against", tmp_path / "old.json", "--renames", tmp_path / "renames.json")
  with AssistantServer(SimulatedAnswers()) as server:
    assert check(suite, server, *args, "--largest-drop", "30") == 0
  printed = capsys.readouterr().out
  assert "10 names changed, 1 tools added, 1 tools dropped" in printed
  assert "cases of dropped tools, not asked: 8 (" in printed
  assert "cases of new tools or arguments, no baseline: 8 of 8 right" in printed
  assert "SAME: a drop of" in printed


def test_cases_in_the_words_of_either_version(suite, tmp_path, capsys):
  """What `sgdx tools cases` takes, the new words, can be asked in the old ones, too."""
  old, renames = tmp_path / "old.json", tmp_path / "renames.json"
  write_tools(old, TOOLS)
  rows = (suite / "cases.jsonl").read_text().splitlines()
  history = [{"type": "function", "function": {"name": "tool_00", "arguments": '{"path": "/"}'}}]
  used = [{"role": "assistant", "tool_calls": history}, {"role": "tool", "content": "done"}]
  first = json.loads(rows[0])
  first |= {"messages": [*used, *first["messages"]], "accept": [first["expect"]]}
  in_old_words = "\n".join((json.dumps(first), *rows[1:]))
  new_words = in_old_words.replace('"tool_0', '"new_0').replace('"path', '"place')
  new_words = new_words.replace('\\"path', '\\"place')
  new = json.dumps(TOOLS.for_openai()).replace('"tool_0', '"new_0').replace('"path"', '"place"')
  (suite / "tools.json").write_text(new)
  (suite / "cases.jsonl").write_text(new_words)
  assert sgdx("tools", "cases", suite) == 0
  names = {f"/tool_0{n}": f"new_0{n}" for n in range(10)}
  names |= {f"/{x.name}/parameters/properties/path": "place" for x in TOOLS.tools}
  renames.write_text(json.dumps(names))
  outputs = []
  capsys.readouterr()
  for text in (new_words, in_old_words):
    (suite / "cases.jsonl").write_text(text)
    with AssistantServer(SimulatedAnswers()) as server:
      assert check(suite, server, "--against", old, "--renames", renames) == 0
    outputs.append(capsys.readouterr().out)
  assert outputs[0] == outputs[1]
  assert "22 names changed" in outputs[0]
  assert "SAME: a drop of" in outputs[0]
  assert not server.answered  # the second time: the requests are the same

  (suite / "cases.jsonl").write_text(new_words)
  assert check(suite, None, "--against", old, "--dry-run") == 1
  assert_four_parts(capsys.readouterr().err, "tool_10 has no argument place", "--renames FILE")


def test_a_case_of_an_argument_that_was_added_is_asked_now_alone(suite, tmp_path, capsys):
  write_tools(tmp_path / "old.json", TOOLS)
  new = json.loads(json.dumps(TOOLS.for_openai()))
  new[0]["function"]["parameters"]["properties"]["depth"] = {"type": "integer"}
  (suite / "tools.json").write_text(json.dumps(new))
  first, *others = (suite / "cases.jsonl").read_text().splitlines()
  row = json.loads(first)
  row["expect"][0]["arguments"]["depth"] = 2
  (suite / "cases.jsonl").write_text("\n".join((json.dumps(row), *others)))
  with AssistantServer(SimulatedAnswers()) as server:
    assert check(suite, server, "--against", tmp_path / "old.json") == 0
  printed = capsys.readouterr().out
  assert "95 cases" in printed
  assert "cases of new tools or arguments, no baseline: 0 of 1 right" in printed

  del new[0]["function"]["parameters"]["properties"]["path"]  # it may be called depth now
  (suite / "tools.json").write_text(json.dumps(new))
  assert check(suite, None, "--against", tmp_path / "old.json", "--dry-run") == 1
  assert_four_parts(capsys.readouterr().err, "tool_00 has no argument depth", "--renames FILE")


def test_a_hint_at_a_rename_can_be_followed(suite, tmp_path, capsys):
  old, renames = tmp_path / "old.json", tmp_path / "renames.json"
  write_tools(old, TOOLS)
  new = [dataclasses.replace(TOOLS.tools[0], name="other"), *TOOLS.tools[1:]]
  write_tools(suite / "tools.json", dataclasses.replace(TOOLS, tools=tuple(new)))
  text = (suite / "cases.jsonl").read_text().replace("tool_00", "other")
  (suite / "cases.jsonl").write_text(text)
  with AssistantServer(SimulatedAnswers()) as server:
    assert check(suite, server, "--against", old) == 0
    hint = "if tool_00 was renamed to other: --renames FILE with "
    printed = capsys.readouterr().out
    renames.write_text(printed.partition(hint)[2].splitlines()[0])
    assert check(suite, server, "--against", old, "--renames", renames) == 0
  assert "old -> new: 1 names changed\n96 cases" in capsys.readouterr().out

  (suite / "cases.jsonl").write_text("\n".join(text.splitlines()[:8]))  # of that tool alone
  assert check(suite, None, "--against", old, "--dry-run") == 1
  assert_four_parts(capsys.readouterr().err, "no cases to ask", "--renames FILE")


def test_against_a_git_revision(suite, capsys):
  def git(*args):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", suite, *identity, *args], check=True, capture_output=True)

  git("init")
  git("add", "tools.json")
  git("commit", "-m", "tools")
  with pytest.MonkeyPatch.context() as patch, AssistantServer(SimulatedAnswers()) as server:
    patch.chdir(suite)
    assert check(".", server, "--against", "HEAD:tools.json", "--placebos", "0") == 0
    assert "old -> new: no change" in capsys.readouterr().out
    assert check(".", server, "--against", "nowhere:tools.json") == 1
  assert_four_parts(capsys.readouterr().err, "--against nowhere:tools.json")


def test_fragility_under_rewordings(suite, tmp_path, capsys):
  texts = {f"/{x.name}/description": f"{x.description} Really." for x in TOOLS.tools}
  rewordings = [
    {"name": "kind", "replaced": texts},
    {"name": "cruel", "replaced": {**texts, f"/{BAD}/description": "Lists.", f"/{BAD}": "other"}},
  ]
  (suite / "rewordings.jsonl").write_text("\n".join(map(json.dumps, rewordings)) + "\n")
  out = tmp_path / "out.json"
  with AssistantServer(SimulatedAnswers()) as server:
    assert check(suite, server, "--reword", "2", "--by-kind", "--json", out) == 1
    assert check(suite, server, "--reword", "3") == 1
  printed = capsys.readouterr()
  assert "has 2 rewordings" in printed.err
  data = json.loads(out.read_text())
  verdicts = {x["words"]: x["verdict"] for x in data["comparisons"]}
  assert verdicts == {
    "kind": "SAME",
    "cruel": "BROKEN",
    "cruel, names only": "SAME",
    "cruel, texts only": "BROKEN",
  }
  assert data["comparisons"][1]["right"]["p"] == 4 * 2 / 2**8  # Holm
  most = data["retained"]["tools"][0]
  assert most == {
    "name": BAD, "cases": 8, "share": 0.5, "worst": 0.0, "interval": [0.5, 0.5],
    "called_instead": "tool_11",
  }  # fmt: skip
  shares = {row["name"]: row["share"] for row in data["retained"]["kinds"]}
  assert shares == pytest.approx(
    {"names and texts": 1 - 8 / 96 / 2, "names only": 1, "texts only": 1 - 8 / 96}
  )
  assert "the most fragile first" in printed.out


def test_a_model_that_writes_its_calls_as_text(suite, tmp_path, capsys):
  def as_text(number, body):
    call = {"name": TOOLS.tools[0].name, "arguments": {"path": "/srv"}}
    message = {"role": "assistant", "content": json.dumps(call)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    from aiohttp import web

    return web.json_response({"choices": [choice]})

  write_tools(tmp_path / "old.json", TOOLS)
  with AssistantServer(SimulatedAnswers(), as_text) as server:
    args = ("--against", tmp_path / "old.json")
    assert check(suite, server, *args) == 1
    printed = capsys.readouterr().out
    assert "NO CALLS: 384 answers without a call, 384 with one in their text" in printed
    assert check(suite, server, *args, "--calls-from-text") == 0
  assert "CANNOT TELL: 0 of 96 right before" in capsys.readouterr().out


def test_refused_requests_are_left_out(suite, capsys):
  """A prompt that is too long for the service is not a wrong answer of the model."""
  first = json.dumps(cases(WORDS, 8)[0].messages[0]["content"])

  def fault(number, body):
    if number > 3 and json.dumps(body["messages"][0]["content"]) == first:
      return error(400, "the prompt is too long")
    return None

  order = json.loads((suite / "cases.jsonl").read_text().splitlines()[0])["id"]
  lines = (suite / "cases.jsonl").read_text().splitlines()
  (suite / "cases.jsonl").write_text("\n".join((*lines[1:], lines[0])) + "\n")
  with AssistantServer(SimulatedAnswers(), fault) as server:
    assert check(suite, server) == 0
  printed = capsys.readouterr()
  assert f"left out, the service refused them: 1 ({order})" in printed.out
  assert "95 cases" in printed.out
  assert "the prompt is too long" in printed.err


def test_costs_are_said_before_and_nothing_is_sent_by_a_dry_run(suite, capsys):
  assert check(suite, None, "--dry-run", "--price", "2", "10", "--repeat", "2") == 0
  printed = capsys.readouterr()
  assert "requests: 384 to send" in printed.err  # twice, and two placebos
  assert "input, at 4 characters per token, 0." in printed.err
  assert not printed.out
  assert sorted(x.name for x in suite.iterdir()) == ["cases.jsonl", "tools.json"]


@pytest.mark.parametrize(
  ("args", "code", "words"),
  [
    ((), 1, "288 answers are not in"),
    (("--against", "nothing.json"), 1, "nothing.json"),
    (("--renames", "nothing.json"), 2, "--renames without --against"),
    (("--by-kind",), 2, "--by-kind without --reword"),
    (("--repeat", "0"), 2, "--repeat 0"),
    (("--json", "suite/rewordings.jsonl"), 2, "a file of the suite"),
    (("--largest-drop", "0"), 2, "--largest-drop 0"),
    (("--reword", "1"), 1, "rewordings.jsonl"),
  ],
)
def test_bad_input_is_an_error_of_four_parts(suite, monkeypatch, capsys, args, code, words):
  monkeypatch.chdir(suite.parent)
  assert check(suite, None, *args) == code
  assert_four_parts(capsys.readouterr().err, words)
