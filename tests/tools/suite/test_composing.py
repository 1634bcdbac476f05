"""Rewordings composed of paraphrases: order by distance, style of names, what cannot be a name."""

import json

import pytest
from aiohttp import web
from assistant_server import AssistantServer
from commands import assert_four_parts, sgdx

from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.composing import compose, paraphrases_in
from sgdx_t5x.tools.suite.rewording import apply, elements, is_name, read_rewordings
from sgdx_t5x.tools.suite.toolset import ToolSet

PATH = {"type": "string", "description": "Path of the repository", "title": ""}
LIMIT = {"anyOf": [{"type": "integer", "description": "How many"}, {"type": "null"}]}
SCHEMA = {"type": "object", "properties": {"repo_path": PATH, "a/b": LIMIT}}
LOG = OwnTool("gitLog", "Shows the last commits", SCHEMA, "")
ADD = OwnTool("add", "", {"type": "object", "properties": {"path": PATH}}, "")
TOOLS = ToolSet((LOG, ADD))


def test_elements_are_the_texts_that_rewordings_replace():
  assert elements(LOG) == {
    "/gitLog": "gitLog",
    "/gitLog/description": "Shows the last commits",
    "/gitLog/parameters/properties/repo_path": "repo_path",
    "/gitLog/parameters/properties/repo_path/description": "Path of the repository",
    "/gitLog/parameters/properties/a~1b": "a/b",
    "/gitLog/parameters/properties/a~1b/anyOf/0/description": "How many",
  }


def test_variant_k_takes_the_kth_paraphrase_by_distance():
  """By hand: "Shows the history" shares 1 of 4 words (show; last, commit, history), see `words`."""
  texts = ["Prints a log", "Shows the history", "Shows the last commits", "Show the last commit."]
  rewordings, left_out = compose(TOOLS, {"/gitLog/description": texts}, 4)
  chosen = [rewording.replaced["/gitLog/description"] for rewording in rewordings]
  assert chosen == ["Show the last commit.", "Shows the history", "Prints a log", "Prints a log"]
  assert left_out == []
  assert [rewording.name for rewording in rewordings] == ["v1", "v2", "v3", "v4"]


def test_properties_of_any_name_have_descriptions():
  """As in Notion's API: what is the name of an argument shows from the front of a pointer."""
  schema = {"properties": {"properties": {"description": "A map"}, "description": {"title": "T"}}}
  tool = OwnTool("f", "", {"type": "object", **schema}, "")
  names = [pointer.removeprefix("/f/parameters/") for pointer in elements(tool) if is_name(pointer)]
  assert names == ["/f", "properties/properties", "properties/description"]
  texts = [text for pointer, text in elements(tool).items() if not is_name(pointer)]
  assert texts == ["A map", "T"]


def test_names_keep_their_style_and_stay_unique():
  paraphrases = {
    "/gitLog": ["show the history"],
    "/gitLog/parameters/properties/repo_path": ["folder of repository"],
    "/gitLog/parameters/properties/a~1b": ["repo path", "most commits"],
    "/add": ["gitLog", "stage files"],
    "/add/parameters/properties/path": ["!"],
  }
  [first, second], left_out = compose(TOOLS, paraphrases, 2)
  assert first.replaced == {
    "/gitLog": "showTheHistory",
    "/gitLog/parameters/properties/repo_path": "folder_of_repository",
    "/gitLog/parameters/properties/a~1b": "repoPath",  # in the style of the first name with one
  }
  assert left_out == ["rewording v1: two tools are called 'gitLog'"]
  assert second.replaced["/add"] == "stageFiles"
  apply(TOOLS, second)


@pytest.mark.parametrize("answer", ["", "{", "no", "[1]", '{"/add": "add"}', "[" * 100_000])
def test_answers_without_paraphrases(answer):
  assert paraphrases_in(answer, ADD) == {}


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def suite(tmp_path):
  folder = tmp_path / "suite"
  folder.mkdir()
  (folder / "tools.json").write_text(json.dumps(TOOLS.for_openai()))
  return folder


def test_a_model_writes_rewordings_that_are_asked_for_once(suite, capsys):
  def writer(number, body):
    """Writes two paraphrases of each text, fenced; for the second tool none."""
    texts = json.loads(body["messages"][0]["content"].partition("\n\n")[2])
    found = {pointer: ["in quite other words", f"{text} x"] for pointer, text in texts.items()}
    content = "Sorry." if "/add" in texts else f"A {{}}?</think>```json\n{json.dumps(found)}\n```"
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    return web.json_response({"choices": [choice]})

  path = suite / "rewordings.jsonl"
  with AssistantServer({}, writer) as server:
    args = ("tools", "reword", suite, "--endpoint", server.url, "--model", "m", "--variants", "2")
    assert sgdx(*args, "--dry-run", "--price", "1", "1") == 0
    assert "input, at 4 characters per token, 0.00 and what it writes" in capsys.readouterr().err
    assert not path.exists()
    assert sgdx(*args) == 0
    printed = capsys.readouterr().err
    assert "requests: 2 to send, for 2 tools" in printed
    assert "no paraphrases in the answer for add" in printed
    assert "texts with a paraphrase: 6 of 9" in printed
    first, second = read_rewordings(path)
    assert first.replaced["/gitLog"] == "gitLogX"
    assert second.replaced["/gitLog"] == "inQuiteOtherWords"

    assert sgdx(*args) == 1  # it may have been corrected by hand
    assert_four_parts(capsys.readouterr().err, "rewordings.jsonl exists")
    before = path.read_text()
    path.unlink()
    assert sgdx(*args) == 0
    assert "requests: 0 to send" in capsys.readouterr().err
    assert path.read_text() == before


def test_by_hand(suite, tmp_path, capsys):
  texts = tmp_path / "texts.jsonl"
  assert sgdx("tools", "reword", suite, "--init", texts) == 0
  rows = list(map(json.loads, texts.read_text().splitlines()))
  assert rows[0] == {"element": "/gitLog", "original": "gitLog", "paraphrases": []}
  for option in ("--init", "--paraphrases"):
    assert sgdx("tools", "reword", suite, option, texts, "--dry-run") == 2
    assert_four_parts(capsys.readouterr().err, "--dry-run without --endpoint")
  args = ("tools", "reword", suite, "--paraphrases", texts, "--variants", "1")
  assert sgdx(*args) == 1
  assert_four_parts(capsys.readouterr().err, "no paraphrase of any text")
  rows[0]["paraphrases"] = ["commits of branch"]
  texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
  assert sgdx(*args) == 0
  [rewording] = read_rewordings(suite / "rewordings.jsonl")
  assert rewording.replaced == {"/gitLog": "commitsOfBranch"}
  capsys.readouterr()


@pytest.mark.parametrize(
  ("line", "words"), [('{"element": "/ad", "paraphrases": []}', "/ad"), ("[]", "texts.jsonl")]
)
def test_bad_paraphrases(suite, tmp_path, capsys, line, words):
  (tmp_path / "texts.jsonl").write_text(line + "\n")
  assert sgdx("tools", "reword", suite, "--paraphrases", tmp_path / "texts.jsonl") == 1
  assert_four_parts(capsys.readouterr().err, words)
