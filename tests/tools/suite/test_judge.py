"""Strict judgement: every construct of JSON Schema, in the base's words and in others.

What is right for each construct is from a maintainer's notes on own tools: the schema that was
shown decides, then equality; nothing is coerced.
"""

import json

import pytest
from shared import shared_file

from sgdx_t5x.tools.call_texts import Untyped
from sgdx_t5x.tools.own_tools import OwnTool, read_tools
from sgdx_t5x.tools.suite.cases import ASK, Call, Case, case_of
from sgdx_t5x.tools.suite.judge import judge
from sgdx_t5x.tools.suite.rewording import BASE, Rewording, apply, forth
from sgdx_t5x.tools.suite.toolset import ToolSet

USER = ({"role": "user", "content": "..."},)
INTEGER = {"type": "integer", "minimum": 1, "maximum": 9}
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}}
LINE = {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}}
NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}

OF_MAP = {"n": {"type": "integer", "default": 1}, "at": {"type": "string", "format": "date-time"}}
MAP = {"type": "object", "additionalProperties": {"type": "object", "properties": OF_MAP}}
KIND_A = {"properties": {"kind": {"const": "a"}, "n": {"default": 1}}, "required": ["kind"]}
KIND_B = {"properties": {"kind": {"const": "b"}, "n": {"default": 2}}, "required": ["kind"]}
ENUM_A = {"properties": {"kind": {"enum": ["a"]}, "n": {"default": 1}}, "required": ["kind"]}
ENUM_B = {"properties": {"kind": {"enum": ["b"]}, "n": {"default": 2}}, "required": ["kind"]}
DEFINED = {"A": {"$anchor": "A", "type": "integer"}, "two words": {"type": "integer"}}


def tool(properties, name="f", **keywords):
  schema = {"type": "object", "properties": properties, **keywords}
  return OwnTool(name, "Does it", schema, "/0")


# Schema of the argument a, what is due, what is called, reason ("" if right).
VALUES = [
  ({"type": "string"}, "x", "x", ""),
  ({"type": "string"}, "x", " x\n", ""),
  ({"type": "string"}, "x", "X", "wrong value"),
  ({"type": "string"}, "5", 5, "mistyped"),
  ({}, "5", 5, "mistyped"),
  ({"type": "string", "format": "date-time"}, "2019-05-18T12:00:00Z", "2019-05-18 14:00+02:00", ""),
  ({"type": "string", "format": "date-time"}, "2019-05-18", "the 18th of May", "format"),
  ({"type": "string", "format": "date-time"}, "2019-05-18", "2019-05-19", "wrong value"),
  ({"type": "string", "format": "date-time"}, "2019-05-18T12:00:00Z", "2019-05-18t12:00:00z", ""),
  ({"type": "string", "format": "email"}, "a@b.org", "a at b", "format"),
  ({"type": "string", "format": "uri"}, "https://b.org/a", "b.org/a", "format"),
  (
    {"type": "string", "format": "uuid"},
    "123e4567-e89b-12d3-a456-426614174000",
    "123E4567-E89B-12D3-A456-426614174000",
    "",
  ),
  ({"type": "string", "pattern": "^[0-9a-f]+$"}, "3f2a", "3g", "format"),
  ({"type": "string", "pattern": "^\\p{L}+$"}, "a", "1", "wrong value"),  # JavaScript's
  ({"type": "object", "patternProperties": {"^\\p{L}$": {}}}, {"a": 1}, {"a": 1}, ""),
  ({"type": "string", "nullable": True}, None, None, ""),  # OpenAPI 3.0
  ({"enum": ["a"], "type": "string", "nullable": True}, "a", None, "missing"),
  ({"type": "number", "multipleOf": 0.01}, 19.99, 19.99, ""),
  ({"type": "number", "multipleOf": 0.01}, 19.99, 19.995, "invalid"),
  (MAP, {"k": {}}, {"k": {"n": 1}}, ""),
  (MAP, {"k": {"at": "2019-05-18"}}, {"k": {"at": "2019-05-18T00:00Z"}}, ""),
  (MAP, {"k": {}}, {"k": {"m": 1}}, "invented"),
  (MAP, {"k": {}}, {"k": {}, "l": {}}, "not due"),
  ({"$ref": "#A"}, 5, 5, ""),
  ({"$ref": "#/$defs/two%20words"}, 5, 5, ""),
  ({"oneOf": [KIND_A, KIND_B]}, {"kind": "b", "n": 2}, {"kind": "b"}, ""),
  ({"oneOf": [KIND_A, KIND_B]}, {"kind": "b", "n": 1}, {"kind": "b"}, "missing"),
  # OpenAPI 3.0 says a constant as an enum of one value.
  ({"oneOf": [ENUM_A, ENUM_B]}, {"kind": "b"}, {"kind": "b", "n": 2}, ""),
  ({"oneOf": [ENUM_A, ENUM_B]}, {"kind": "b"}, {"kind": "b", "n": 1}, "not due"),
  ({"type": "array", "items": {"enum": [1, 2]}}, [1, 2], [2.0, 1.0], ""),
  ({"type": "array", "items": {"enum": [1, True]}}, [1], [True], "wrong value"),
  # Written between tags, without a type.
  ({"type": "integer"}, 5, Untyped("5"), ""),
  ({"type": "boolean"}, True, Untyped("True"), ""),
  ({"type": ["array", "null"], "items": {"type": "integer"}}, [1], Untyped("[1]"), ""),
  ({"type": "string"}, "5", Untyped("5"), ""),
  ({"type": ["integer", "string"]}, "5", Untyped("5"), ""),
  (NULLABLE, 3, Untyped("3"), ""),
  ({"type": "integer"}, 5, Untyped("five"), "mistyped"),
  ({"enum": ["name", "size"]}, "size", "size", ""),
  ({"enum": ["name", "size"]}, "size", "Size", "invalid"),
  ({"const": "v1"}, "v1", "v2", "invalid"),
  ({"type": "boolean"}, True, True, ""),
  ({"type": "boolean"}, True, "true", "mistyped"),
  ({"type": "boolean"}, True, 1, "mistyped"),
  ({}, 1, True, "wrong value"),
  (INTEGER, 5, 5.0, ""),
  (INTEGER, 5, "5", "mistyped"),
  (INTEGER, 5, 6, "wrong value"),
  (INTEGER, 5, 10, "invalid"),
  ({"type": "number", "multipleOf": 0.5}, 2.5, 2.4, "invalid"),
  ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ["a", "b"], ""),
  ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ["b", "a"], "wrong value"),
  ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ["a"], "wrong value"),
  ({"type": "array", "items": {"type": "string"}}, ["a"], "a", "mistyped"),
  ({"type": "array", "minItems": 1}, ["a"], [], "invalid"),
  (COLOURS, ["red", "blue"], ["blue", "red"], ""),
  (COLOURS, ["red", "blue"], ["blue"], "wrong value"),
  (LINE, {"old": "x", "new": "y"}, {"new": "y", "old": "x"}, ""),
  (LINE, {"old": "x"}, {"old": "x", "new": "y"}, "not due"),
  (LINE, {"old": "x"}, {"old": "x", "line": 3}, "invented"),
  ({"type": "array", "items": LINE}, [{"old": "x"}], [{"old": "z"}], "wrong value"),
  ({"type": "object"}, {"x": 1}, {"x": 1}, ""),
  ({"type": "object"}, {"x": 1}, {"x": 1, "y": 2}, "not due"),
  (NULLABLE, 3, 3, ""),
  (NULLABLE, 3, "3", "mistyped"),
  (NULLABLE, 3, None, "missing"),
  (NULLABLE, None, None, ""),
  (NULLABLE, None, 3, "wrong value"),
  ({"type": ["integer", "null"]}, None, None, ""),
  ({"type": "integer"}, 3, None, "mistyped"),
  ({"oneOf": [{"type": "string"}, COLOURS]}, "x", "x", ""),
  ({"oneOf": [{"type": "string"}, COLOURS]}, "x", ["red"], "wrong value"),
  ({"oneOf": [{"type": "string"}, COLOURS]}, "x", 5, "mistyped"),
  ({"allOf": [{"$ref": "#/$defs/line"}]}, {"old": "x"}, {"old": "x"}, ""),
  ({"$ref": "#/$defs/line"}, {"old": "x"}, {"old": 3}, "mistyped"),
]


@pytest.mark.parametrize(
  "rewording", [BASE, Rewording("r", {"/f": "g", "/f/parameters/properties/a": "z"})]
)
@pytest.mark.parametrize(("schema", "due", "given", "reason"), VALUES)
def test_a_value(schema, due, given, reason, rewording):
  base = ToolSet((tool({"a": schema}, **{"$defs": {"line": LINE, **DEFINED}}),))
  name, arguments = forth("f", {"a": given}, base, rewording)
  case = Case("1", USER, (Call("f", {"a": due}),))
  found = judge(
    [{"name": name, "arguments": arguments}], case, base, apply(base, rewording), rewording
  )
  assert found.reason == reason, found.detail
  assert (found.right, found.right_tool) == (not reason, True)


ROUND = {"n": {"type": "integer", "default": 10}, "p": {"type": "string"}}
EITHER = {"oneOf": [{"required": ["n"]}, {"required": ["p"]}]}
NEEDED = {"dependentRequired": {"n": ["p"]}}


# Further keywords of the schema, the arguments that are due, those called, reason, invented.
@pytest.mark.parametrize(
  ("keywords", "due", "given", "reason", "invented"),
  [
    ({}, {}, {"n": 10}, "", 0),  # left out is the default
    ({}, {"n": 10}, {}, "", 0),
    ({}, {"n": 9}, {}, "missing", 0),
    ({}, {"p": "x"}, {}, "missing", 0),
    ({}, {}, {"p": "x"}, "not due", 0),
    ({}, {}, {"p": ""}, "not due", 0),
    ({"required": ["p"]}, {}, {}, "missing", 0),
    (EITHER, {"n": 9}, {"n": 9}, "", 0),
    (EITHER, {"n": 10}, {}, "missing", 0),
    (NEEDED, {"n": 9, "p": "x"}, {"n": 9}, "missing", 0),
    ({"additionalProperties": False}, {}, {"force": True}, "invented", 0),
    ({}, {}, {"force": True}, "invented", 0),
    ({"additionalProperties": True}, {}, {"force": True}, "", 1),
    ({"additionalProperties": {"type": "boolean"}}, {}, {"force": 3}, "mistyped", 1),
    (
      {"patternProperties": {"^x-": {}}, "additionalProperties": False},
      {},
      {"x-a": 3},
      "not due",
      0,
    ),
  ],
)
def test_arguments_together(keywords, due, given, reason, invented):
  base = ToolSet((tool(ROUND, **keywords),))
  case = Case("1", USER, (Call("f", due),))
  found = judge([{"name": "f", "arguments": json.dumps(given)}], case, base, base, BASE)
  assert (found.reason, found.invented) == (reason, invented), found.detail


F, G, H = ({"name": name, "arguments": {}} for name in "fgh")
FX, FY = ({"name": "f", "arguments": {"p": value}} for value in "xy")


@pytest.mark.parametrize(
  ("expect", "calls", "reason"),
  [
    ([F], [F], ""),
    ([F], [{"name": "f", "arguments": None}], ""),  # a tool without parameters
    ([F], [], "no call"),
    ([F], [G], "wrong tool"),
    ([F], [F, F], "wrong tool"),
    ([F], [H], "unknown tool"),
    ([F], [None], "malformed"),
    ([F], [{"name": "f", "arguments": "{"}], "malformed"),
    ([F], None, "malformed"),
    ([FX, G, FY], [FY, FX, G], ""),
    ([FX, FY], [FX, FX], "wrong value"),
    ([], [], ""),
    ([], [F], "call"),
    (ASK, [], ""),
    (ASK, [F], "call"),
  ],
)
def test_tools(expect, calls, reason):
  base = ToolSet((tool(ROUND), tool({}, name="g")))
  case = case_of({"id": "1", "messages": list(USER), "expect": expect}, "here")
  found = judge(calls, case, base, base, BASE)
  assert (found.reason, found.right) == (reason, not reason)
  assert found.right_tool == (reason in ("", "wrong value"))


def test_what_is_accepted_is_right_also_against_the_schema():
  base = ToolSet((tool(ROUND), tool({}, name="g")))
  row = {"id": "1", "messages": list(USER), "expect": [{"name": "f", "arguments": {"n": 5}}]}
  row["accept"] = [{"name": "f", "arguments": {"n": "5"}}, {"name": "g", "arguments": {}}, ASK]
  case = case_of(row, "here")
  for n, right in ((5, True), ("5", True), ("6", False)):
    assert judge([{"name": "f", "arguments": {"n": n}}], case, base, base, BASE).right == right
  assert judge([G], case, base, base, BASE).right
  assert judge([], case, base, base, BASE).right


def test_names_of_the_base_are_none_where_others_are_shown():
  base = ToolSet((tool({"p": {"type": "string"}}, additionalProperties=True),))
  rewording = Rewording("r", {"/f": "look", "/f/parameters/properties/p": "place"})
  shown = apply(base, rewording)
  case = Case("1", USER, (Call("f", {"p": "x"}),))

  def reason(name, argument):
    return judge(
      [{"name": name, "arguments": {argument: "x"}}], case, base, shown, rewording
    ).reason

  assert reason("look", "place") == ""
  assert reason("look", "p") == "missing"
  assert reason("f", "place") == "unknown tool"


def test_arguments_nested_too_deeply_are_malformed():
  base = ToolSet((tool({"below": {"$ref": "#"}}),))
  case = Case("1", USER, (Call("f", {}),))
  deep = '{"below": ' * 400 + "{}" + "}" * 400
  found = judge([{"name": "f", "arguments": deep}], case, base, base, BASE)
  assert (found.right, found.reason) == (False, "malformed")


def test_real_tools_of_a_maintainer():
  """Four wrong answers and a canonical one, from ../shared/cases/own_tools, see its README."""
  folder = shared_file("cases/own_tools/README.md").parent
  devbox = ToolSet(tuple(read_tools(folder / "devbox.mcp.json")))
  rows = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
  cases = [case_of({"id": str(n), **row}, "here") for n, row in enumerate(rows)]
  for case in cases:
    (call,) = case.calls
    gold = [{"name": call.name, "arguments": dict(call.arguments)}]
    assert judge(gold, case, devbox, devbox, BASE).right
  reasons = []
  for line in (folder / "lst.jsonl").read_text().splitlines():
    row = json.loads(line)
    calls = [{**call, "name": call["name"].partition("__")[2]} for call in row["calls"]]
    case = cases[int(row["id"].split("-")[0].rpartition("_")[2])]
    reasons.append(judge(calls, case, devbox, devbox, BASE).reason)
  assert reasons == ["wrong value", "wrong tool", "invented", "wrong value"]

  store = ToolSet(tuple(read_tools(folder / "petstore.openai.json")))
  due = {"quantity": 2, "shipDate": "2019-05-18"}
  case = Case("c", USER, (Call("placeOrder", due),))
  answers = [
    json.loads(line)["calls"] for line in (folder / "canon.jsonl").read_text().splitlines()
  ]
  canonical, as_said = ([{**calls[0], "name": "placeOrder"}] for calls in answers)
  assert judge(canonical, case, store, store, BASE).right
  assert judge(as_said, case, store, store, BASE).reason == "format"
