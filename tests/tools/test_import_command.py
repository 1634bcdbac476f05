"""`sgdx tools import`: definitions stay as they are, in every form; what is wrong is named."""

import json

import pytest
from commands import assert_four_parts, sgdx

SCHEMA = {
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Where", "minLength": 1},
    "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
    "head": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
  },
  "required": ["path"],
  "$defs": {"edit": {"type": "object", "properties": {"new": {"type": "string"}}}},
}
DESCRIPTION = "Edits a file  "  # no final stop, and spaces
NAMED = {"name": "edit_file", "description": DESCRIPTION}
MCP = {"tools": [{**NAMED, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False}}]}


@pytest.fixture
def run(tmp_path):
  """Imports decoded JSON; returns the exit code and the written tools."""

  def run(data):
    file, out = tmp_path / "tools-file.json", tmp_path / "out"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    code = sgdx("tools", "import", file, "--out", out)
    written = out / "tools.json"
    return code, json.loads(written.read_text()) if written.exists() else None

  return run


@pytest.mark.parametrize(
  "data",
  [
    MCP,
    {"jsonrpc": "2.0", "id": 1, "result": MCP},
    [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}],
    {"tools": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}]},
    [{"type": "function", **NAMED, "parameters": SCHEMA, "strict": None}],
    [{**NAMED, "parameters": SCHEMA}],
    [{**NAMED, "input_schema": SCHEMA}],
  ],
)
def test_definitions_stay_as_they_are(data, run, capsys):
  code, tools = run(data)
  assert code == 0
  assert tools == [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}]
  printed = capsys.readouterr()
  assert ["edit_file", "3", "1"] in [line.split() for line in printed.out.splitlines()]
  assert ("not shown to models: annotations (of 1 tools)" in printed.out) == (
    "inputSchema" in str(data)
  )


def test_a_tool_without_parameters_or_description(run, capsys):
  code, tools = run([{"type": "function", "function": {"name": "get_me"}}])
  assert code == 0
  assert tools[0]["function"] == {
    "name": "get_me",
    "parameters": {"type": "object", "properties": {}},
  }
  assert "no description: get_me" in capsys.readouterr().out


PET = {"type": "object", "properties": {"tag": {"$ref": "#/components/schemas/Tag"}}}
OPENAPI = {
  "openapi": "3.0.4",
  "paths": {
    "/pet/{petId}": {
      "parameters": [{"$ref": "#/components/parameters/petId"}],
      "get": {"operationId": "getPetById", "summary": "Finds a pet"},
      "post": {
        "description": "Updates a pet",
        "requestBody": {
          "required": True,
          "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
        },
      },
    }
  },
  "components": {
    "parameters": {
      "petId": {
        "name": "petId",
        "in": "path",
        "required": True,
        "description": "ID of the pet",
        "schema": {"type": "integer", "format": "int64"},
      }
    },
    "schemas": {"Pet": PET, "Tag": {"type": "string"}, "Other": {"type": "string"}},
  },
}


def test_operations_of_openapi_are_tools(run):
  code, tools = run(OPENAPI)
  assert code == 0
  pet_id = {"type": "integer", "format": "int64", "description": "ID of the pet"}
  get, post = (tool["function"] for tool in tools)
  assert get == {
    "name": "getPetById",
    "description": "Finds a pet",
    "parameters": {"type": "object", "properties": {"petId": pet_id}, "required": ["petId"]},
  }
  assert post["name"] == "post_pet_petId_"
  assert post["parameters"] == {
    "type": "object",
    "properties": {"petId": pet_id, "body": {"$ref": "#/components/schemas/Pet"}},
    "required": ["petId", "body"],
    "components": {"schemas": {"Pet": PET, "Tag": {"type": "string"}}},
  }


TOOL = {"name": "f", "inputSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
  ("data", "words"),
  [
    ({"services": []}, ("none of the forms", "OpenAPI 3")),
    ({"swagger": "2.0", "paths": {}}, ("none of the forms of tools (swagger, paths)",)),
    ([], ("no tools",)),
    (["f"], ("/0: no tool: 'f'",)),
    ([{"name": "f"}], ("the tool 'f' has none of inputSchema",)),
    ({"tools": [TOOL, TOOL]}, ("/tools/1: a second tool of the name 'f'", "/tools/0")),
    ({"tools": [{**TOOL, "name": "a.b"}]}, ("the name 'a.b', which APIs refuse", "a_b")),
    ({"tools": [{**TOOL, "name": "a" * 65}]}, ("which APIs refuse",)),
    ([{**TOOL, "inputSchema": {"type": "array"}}], ("not the JSON Schema of an object",)),
    (
      [{"name": "f", "inputSchema": {"properties": {"a": {"$ref": "#/$defs/nowhere"}}}}],
      ("$ref to '#/$defs/nowhere', which is not there", "/0"),
    ),
    ([{"name": "f", "inputSchema": {"$ref": "https://host/x.json"}}], ("$ref to 'https://host",)),
    (
      {"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "#/x"}]}}}},
      ("/paths/~1a/get: $ref to '#/x'",),
    ),
    ({"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": 3}}}}, ("not of the form",)),
    ([{"name": "f", "parameters": {"properties": []}}], ("not the JSON Schema of an object",)),
    ("[" * 5_000, ("tools-file.json",)),
    ("openapi: 3.0.0\n", ("convert YAML to JSON",)),
  ],
)
def test_what_is_wrong_is_named(data, words, run, capsys):
  assert run(data) == (1, None)
  assert_four_parts(capsys.readouterr().err, "tools-file.json", *words)
