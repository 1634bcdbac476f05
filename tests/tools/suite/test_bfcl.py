"""BFCL's questions and possible answers as cases, in the form of its fourth version's files."""

import json

from commands import sgdx

from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.bfcl import case_of_question
from sgdx_t5x.tools.suite.cases import Call
from sgdx_t5x.tools.suite.judge import judge
from sgdx_t5x.tools.suite.rewording import BASE
from sgdx_t5x.tools.suite.toolset import ToolSet

AREA = {
  "type": "object",
  "properties": {
    "base": {"type": "integer"},
    "unit": {"type": "string"},
    "of": {"type": "object", "properties": {"name": {"type": "string"}}},
    "sides": {"type": "array", "items": {"type": "integer"}},
  },
  "required": ["base"],
}
TOOLS = ToolSet((OwnTool("geo_area", "An area", AREA, "/0"),))


def question(id, turns=1):
  return {"id": id, "question": [[{"role": "user", "content": f"Area of {id}"}]] * turns}


def possible(**arguments):
  return {"geo.area": arguments}


def right(case, *calls):
  calls = [{"name": "geo_area", "arguments": arguments} for arguments in calls]
  return judge(calls, case, TOOLS, TOOLS, BASE).right


def test_every_possible_answer_is_accepted():
  truth = [possible(base=[10, 20], unit=["cm", ""], of=[{"name": ["a", "b"]}])]
  case = case_of_question(question("1"), "here", {"1": truth}, TOOLS)
  assert case.expect == (Call("geo_area", {"base": 10, "unit": "cm", "of": {"name": "a"}}),)
  assert len(case.accept) == 2 * 2 * 2 - 1
  assert right(case, {"base": 20, "of": {"name": "b"}})
  assert not right(case, {"base": 20, "of": {"name": "c"}})
  assert not right(case, {"base": 10, "unit": "cm"})  # `of` cannot be left out


def test_parallel_calls_and_lists():
  truth = [possible(base=[1]), possible(base=[2], sides=[[3, 4]])]
  case = case_of_question(question("p"), "here", {"p": truth}, TOOLS)
  assert right(case, {"base": 2, "sides": [3, 4]}, {"base": 1})
  assert not right(case, {"base": 2, "sides": [4, 3]}, {"base": 1})


def test_what_a_suite_cannot_hold_is_named(tmp_path, capsys):
  """In one command: questions, and their answers in a file of their own."""
  (tmp_path / "tools.json").write_text(
    json.dumps([{"name": "geo_area", "description": "An area", "parameters": AREA}])
  )
  assert sgdx("tools", "import", tmp_path / "tools.json", "--out", tmp_path / "suite") == 0
  questions = [
    question("simple_0"),
    question("irrelevance_0"),
    question("multi_turn_0", turns=2),
    question("steps_0"),
    question("lost_0"),
    question("many_0"),
    question("other_0"),
    {"id": "odd_0", "question": 3, "ground_truth": []},
    question("wrong_0"),
    question("bare_0"),
  ]
  truths = {
    "simple_0": [possible(base=[10])],
    "multi_turn_0": [["area(base=1)"], ["area(base=2)"]],
    "steps_0": [["area(base=1)", "area(base=2)"]],
    "many_0": [possible(base=list(range(15)), unit=[*"abcdefghijklmnop"])],
    "other_0": [{"volume": {"base": [1]}}],
    "wrong_0": [possible(base=["ten"])],
    "bare_0": [possible(base=[10], unit="cm")],
  }
  files = [tmp_path / "BFCL_v4_x.json", tmp_path / "possible.json"]
  files[0].write_text("".join(json.dumps(row) + "\n" for row in questions))
  answers = [{"id": id, "ground_truth": truth} for id, truth in truths.items()]
  files[1].write_text("".join(json.dumps(row) + "\n" for row in answers))
  assert sgdx("tools", "cases", tmp_path / "suite", "--add", *files) == 0
  printed = capsys.readouterr().out
  assert "added: 2\n" in printed
  assert printed.count("not added: ") == 8
  for line, found in enumerate(
    (
      "'multi_turn_0' has 2 turns",
      "'steps_0' has 1 turns, with calls in between",
      "no possible answer to 'lost_0'",
      "'many_0' has over 200 right answers",
      "case 'other_0': no tool 'volume'",
      "not of the form",
      "case 'wrong_0': geo_area, $.base: 'ten' is not of type 'integer'",
      "unit has no list of values",
    ),
    start=3,
  ):
    assert f"line {line}" in printed
    assert found in printed
  added = [json.loads(line) for line in (tmp_path / "suite" / "cases.jsonl").open()]
  assert [(row["id"], row["reviewed"]) for row in added] == [
    ("simple_0", None),
    ("irrelevance_0", None),
  ]
  assert added[1]["expect"] == []
