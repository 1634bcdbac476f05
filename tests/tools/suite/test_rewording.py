"""Rewordings: words at JSON pointers, in all schemas of an object; calls in the base's words."""

import json

import pytest
from commands import assert_four_parts
from jsonschema import Draft202012Validator
from shared import shared_file

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.own_tools import OwnTool, read_tools
from sgdx_t5x.tools.schemas import PROPERTIES, all_schemas
from sgdx_t5x.tools.suite.rewording import BASE, Rewording, apply, back, forth, read_rewordings
from sgdx_t5x.tools.suite.toolset import ToolSet

EDIT = {
  "type": "object",
  "properties": {"old": {"type": "string", "description": "Before"}, "new": {"type": "string"}},
  "required": ["old"],
  "default": {"old": "x"},
}
TREE = {"properties": {"leaf": {"type": "string"}, "below": {"$ref": "#/$defs/tree"}}}
SCHEMA = {
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Where"},
    "a/b": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
    "first": {"$ref": "#/properties/a~1b/items"},
    "tree": {"$ref": "#/$defs/tree"},
    "description": {"type": "string"},
  },
  "required": ["path", "description"],
  "oneOf": [{"required": ["a/b"]}, {"required": ["first"]}],
  "dependentRequired": {"first": ["path"]},
  "$defs": {"edit": EDIT, "tree": TREE},
}
TOOLS = ToolSet((OwnTool("f", "Edits", SCHEMA, "/0"), OwnTool("g", "", {"type": "object"}, "/1")))
P = "/f/parameters"
WORDS = {
  "/f": "change",
  "/g": "f",  # a name that becomes free
  "/f/description": "Changes",
  "/g/description": "Added",
  f"{P}/properties/path": "file",
  f"{P}/properties/path/description": "Which",
  f"{P}/properties/a~1b": "edits",
  f"{P}/properties/description": "why",
  f"{P}/properties/description/description": "The reason",
  f"{P}/$defs/edit/properties/old": "before",
  f"{P}/$defs/tree/properties/below": "child",
}
CALL = {
  "path": "/srv",
  "a/b": [{"old": "1"}, {"new": "2", "more": 3}],
  "first": {"old": "4"},
  "tree": {"leaf": "a", "below": {"below": {"leaf": "b"}}},
  "free": {"path": "stays"},
}
REWORDED_CALL = {
  "file": "/srv",
  "edits": [{"before": "1"}, {"new": "2", "more": 3}],
  "first": {"before": "4"},
  "tree": {"leaf": "a", "child": {"child": {"leaf": "b"}}},
  "free": {"path": "stays"},
}


def test_words_are_replaced_and_nothing_else():
  rewording = Rewording("r", WORDS)
  before = json.dumps(TOOLS.for_openai())
  change, f = apply(TOOLS, rewording).tools
  assert (change.name, change.description, f.name, f.description) == (
    "change",
    "Changes",
    "f",
    "Added",
  )
  edit = {
    "type": "object",
    "properties": {
      "before": {"type": "string", "description": "Before"},
      "new": {"type": "string"},
    },
    "required": ["before"],
    "default": {"before": "x"},
  }
  assert change.parameters == {
    "type": "object",
    "properties": {
      "file": {"type": "string", "description": "Which"},
      "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
      "first": {"$ref": "#/properties/edits/items"},
      "tree": {"$ref": "#/$defs/tree"},
      "why": {"type": "string", "description": "The reason"},
    },
    "required": ["file", "why"],
    "oneOf": [{"required": ["edits"]}, {"required": ["first"]}],
    "dependentRequired": {"first": ["file"]},
    "$defs": {
      "edit": edit,
      "tree": {"properties": {"leaf": {"type": "string"}, "child": {"$ref": "#/$defs/tree"}}},
    },
  }
  assert list(change.parameters["properties"]) == ["file", "edits", "first", "tree", "why"]
  assert json.dumps(TOOLS.for_openai()) == before


def test_calls_there_and_back():
  rewording = Rewording("r", WORDS)
  assert forth("f", CALL, TOOLS, rewording) == ("change", REWORDED_CALL)
  assert back("change", REWORDED_CALL, TOOLS, rewording) == ("f", CALL)
  assert back("f", {}, TOOLS, rewording) == ("g", {})
  assert back("f", CALL, TOOLS, BASE) == ("f", CALL)
  assert apply(TOOLS, BASE) == TOOLS


OF_MAP = {"additionalProperties": {"type": "object", "properties": {"d": {"type": "string"}}}}


@pytest.mark.parametrize(
  ("schema", "pointer", "value", "reworded"),
  [
    (OF_MAP, "/additionalProperties/properties/d", {"k": {"d": "x"}}, {"k": {"e": "x"}}),
    ({"properties": {"d": {}}, **OF_MAP}, "/properties/d", {"d": 1, "k": {"d": "x"}},
     {"e": 1, "k": {"d": "x"}}),
    ({"$ref": "#A"}, "/../../$defs/two words/properties/d", {"d": 1}, {"e": 1}),
    ({"$ref": "#/$defs/two%20words"}, "/../../$defs/two words/properties/d", {"d": 1}, {"e": 1}),
    ({"properties": {"d": {}}, "dependencies": {"d": ["f"]}}, "/properties/d", {"d": 1, "f": 1},
     {"e": 1, "f": 1}),
  ],
)  # fmt: skip
def test_names_in_maps_and_behind_every_kind_of_reference(schema, pointer, value, reworded):
  defined = {"two words": {"$anchor": "A", "properties": {"d": {}}}}
  root = {"type": "object", "properties": {"a": schema}, "$defs": defined}
  tools = ToolSet((OwnTool("f", "", root, "/0"),))
  pointer = f"{P}/properties/a{pointer}".replace("/properties/a/../..", "")
  rewording = Rewording("r", {pointer: "e"})
  assert forth("f", {"a": value}, tools, rewording) == ("f", {"a": reworded})
  assert back("f", {"a": reworded}, tools, rewording) == ("f", {"a": value})
  (tool,) = apply(tools, rewording).tools
  Draft202012Validator(tool.parameters).validate({"a": reworded})
  assert tool.parameters["properties"]["a"].get("$ref") == schema.get("$ref")


def test_names_of_the_base_are_not_those_of_a_rewording():
  rewording = Rewording("r", WORDS)
  _, arguments = back("change", {"path": "/srv", "edits": [{"old": "x"}]}, TOOLS, rewording)
  assert "path" not in arguments
  assert "old" not in arguments["a/b"][0]


def test_a_property_is_renamed_in_all_branches_that_declare_it():
  branches = [{"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"type": "string"}}}]
  tools = ToolSet((OwnTool("f", "", {"anyOf": branches, "required": ["a"]}, "/0"),))
  (tool,) = apply(tools, Rewording("r", {"/f/parameters/anyOf/1/properties/a": "b"})).tools
  assert [list(branch["properties"]) for branch in tool.parameters["anyOf"]] == [["b"], ["b"]]
  assert tool.parameters["required"] == ["b"]


@pytest.mark.parametrize(
  ("replaced", "words"),
  [
    ({"/h": "x"}, ("'/h' points to nothing", "/f, /g")),
    ({"f": "x"}, ("'f' points to nothing",)),
    ({"": "x"}, ("'' points to nothing",)),
    ({"/f/parameters": "x"}, ("points to nothing",)),
    ({"/f/name": "x"}, ("points to nothing",)),
    ({f"{P}/properties": "x"}, ("points to nothing",)),
    ({f"{P}/properties/pat": "x"}, ("points to nothing",)),
    ({f"{P}/properties/path/type": "x"}, ("points to nothing", "values")),
    ({f"{P}/required/0": "x"}, ("points to nothing",)),
    ({f"{P}/$defs/edit": "x"}, ("points to nothing",)),
    ({"/f": "a name"}, ("the name 'a name', which APIs refuse",)),
    ({"/f": "a" * 65}, ("which APIs refuse",)),
    ({f"{P}/properties/path": "a name"}, ("the name 'a name', which APIs refuse",)),
    ({"/f": "g"}, ("two tools are called 'g'",)),
    ({f"{P}/properties/path": "first"}, ("'first' and 'path' are both called 'first'",)),
    ({f"{P}/$defs/edit/properties/old": "new"}, ("are both called 'new'",)),
  ],
)
def test_what_cannot_be_reworded_is_named(replaced, words):
  with pytest.raises(SgdxError) as error:
    apply(TOOLS, Rewording("r", replaced))
  assert_four_parts(error.value.text, "rewording r", *words)


def test_two_names_for_one_property():
  branches = [{"properties": {"a": {}}}, {"properties": {"a": {}}}]
  tools = ToolSet((OwnTool("f", "", {"anyOf": branches}, "/0"),))
  replaced = {f"/f/parameters/anyOf/{n}/properties/a": f"b{n}" for n in (0, 1)}
  with pytest.raises(SgdxError) as error:
    apply(tools, Rewording("r", replaced))
  assert_four_parts(error.value.text, "'b1', and elsewhere in the same object 'b0'")


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ('{"name": "a"}\n{"name": "a"}', ("line 2: a second rewording 'a'",)),
    ('{"name": "base"}', ("'base'",)),
    ('{"name": "a", "replaced": {"/f": 3}}', ("line 1",)),
    ("[]", ("line 1",)),
  ],
)
def test_a_file_that_has_no_rewordings(text, words, tmp_path):
  path = tmp_path / "rewordings.jsonl"
  path.write_text(text)
  with pytest.raises(SgdxError) as error:
    read_rewordings(path)
  assert_four_parts(error.value.text, *words)


@pytest.mark.parametrize("name", ["devbox.mcp.json", "petstore.openai.json"])
def test_every_name_of_real_tools(name):
  """A rewording of all names is again a schema, and its calls are those of the base."""
  base = ToolSet(tuple(read_tools(shared_file(f"cases/own_tools/{name}"))))
  replaced = {f"/{tool.name}": f"tool_{n}" for n, tool in enumerate(base.tools)}
  for tool in base.tools:
    for name in tool.parameters.get(PROPERTIES, ()):
      replaced[f"/{tool.name}/parameters/properties/{name}"] = f"new_{name}"
  rewording = Rewording("all", replaced)
  shown = apply(base, rewording)
  for tool, other in zip(base.tools, shown.tools, strict=True):
    Draft202012Validator.check_schema(other.parameters)
    assert len(list(all_schemas(other.parameters))) == len(list(all_schemas(tool.parameters)))
    arguments = dict.fromkeys(tool.parameters.get(PROPERTIES, ()), "x")
    called = forth(tool.name, arguments, base, rewording)
    assert all(argument.startswith("new_") for argument in called[1])
    assert back(*called, base, rewording) == (tool.name, arguments)
