"""`sgdx tools import`: definitions stay as they are, in every form; what is wrong is named."""

import json
import shlex
import shutil
import sys
import textwrap

import pytest
from commands import assert_four_parts, sgdx
from needs import lacks
from shared import shared_file

from sgdx_t5x.corpus.schema import check_slot_names, load_schema
from sgdx_t5x.tools.suite.toolset import read_suite
from sgdx_t5x.tracking.predicting import check_services

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
  """Imports decoded JSON; returns the exit code and the tools of the suite, as models see them."""

  def run(data, *options, name="tools-file.json"):
    file, out = tmp_path / name, tmp_path / "out"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    code = sgdx("tools", "import", file, "--out", out, *options)
    if not (out / "tools.json").exists():
      return code, None
    if file.suffix == ".json":
      assert (out / "tools.json").read_bytes() == file.read_bytes()
    return code, read_suite(out).for_openai()

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


@pytest.mark.parametrize("without", [{}, {"parameters": None}])
def test_a_tool_without_parameters_or_description(without, run, capsys):
  code, tools = run([{"type": "function", "function": {"name": "get_me", **without}}])
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


def test_operations_without_a_name_of_their_own(run):
  """Two URLs that begin alike have two names; optional parameters alone are valid in draft 4."""
  long = "/organisations/{organisation_id}/projects/{project_id}/environments"
  limit = {"name": "limit", "in": "query", "schema": {"minimum": 0, "exclusiveMinimum": True}}
  get = {"get": {"parameters": [limit]}}
  code, tools = run({"openapi": "3.0.3", "paths": {long: get, f"{long}/{{id}}": get}})
  first, second = (tool["function"]["name"] for tool in tools)
  assert (code, first) == (0, "get_organisations_organisation_id_projects_project_id_environmen")
  assert (len(second), second[:55]) == (64, first[:55])
  assert second != first


def test_operations_as_real_documents_have_them(run):
  """Overridden parameters, forms, bodies of bytes, path items elsewhere, names with dots."""
  by_path = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
  form = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Pair/properties/b"}}}
  pair = {"$ref": "#/components/schemas/Pair"}
  json_of = {"content": {"application/xml": {"schema": {}}, "application/x+json": {"schema": pair}}}
  item = {
    "parameters": [{**by_path, "description": "Of all"}],
    "get": {"operationId": "pets.get/one", "parameters": [{**by_path, "description": "Its own"}]},
    "put": {"operationId": "put", "requestBody": {"content": {"application/octet-stream": {}}}},
    "post": {"operationId": "post", "requestBody": {"content": {"multipart/x": {"schema": form}}}},
    "patch": {"operationId": "patch", "requestBody": json_of},
  }
  pair_schema = {"properties": {"b": {"type": "integer"}, "again": pair}}
  components = {"pathItems": {"Pets": item}, "schemas": {"Pair": pair_schema}}
  paths = {"/pets/{id}": {"$ref": "#/components/pathItems/Pets"}}
  code, tools = run({"openapi": "3.1.0", "paths": paths, "components": components})
  assert code == 0
  functions = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
  assert list(functions) == ["pets_get_one", "put", "post", "patch"]
  assert functions["pets_get_one"]["properties"]["id"]["description"] == "Its own"
  assert functions["put"]["properties"]["body"] == {}
  assert functions["post"]["properties"]["body"] == form
  assert functions["patch"]["properties"]["body"] == pair
  for name in ("post", "patch"):
    assert functions[name]["components"] == {"schemas": {"Pair": pair_schema}}


@pytest.mark.parametrize(
  "part",
  [
    {"examples": [{"$ref": "#/nowhere"}]},  # data, not a reference
    {"default": {"$ref": "x"}},
    {"$ref": "other"},
    {"$ref": "https://host/root#/$defs/two%20words"},
    {"$ref": "#anchor"},
  ],
)
def test_references_of_every_kind(part, run):
  defined = {"two words": {"$anchor": "anchor", "$id": "other"}}
  schema = {"$id": "https://host/root", "properties": {"a": part}, "$defs": defined}
  assert run([{"name": "f", "inputSchema": schema}])[0] == 0


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
    ("openapi: 3.0.0\n", ("name YAML *.yaml",)),
  ],
)
def test_what_is_wrong_is_named(data, words, run, capsys):
  assert run(data) == (1, None)
  assert_four_parts(capsys.readouterr().err, "tools-file.json", *words)


def test_parameters_that_are_no_json_schema(run, capsys):
  properties = {"a": {"type": "text"}}
  assert run({"tools": [{**TOOL, "inputSchema": {"properties": properties}}]}) == (1, None)
  assert_four_parts(capsys.readouterr().err, "tool f (/tools/0), $.properties.a.type: 'text' is")


def test_openapi_in_yaml_is_that_in_json(run, tmp_path):
  yaml = pytest.importorskip("yaml")
  from_json = run(OPENAPI)[1]
  shutil.rmtree(tmp_path / "out")
  text = yaml.safe_dump({**OPENAPI, "info": {"version": "DATE"}}, sort_keys=False)
  text = text.replace("DATE", "2019-05-18")  # which YAML would make a date
  assert run(text, name="tools-file.yaml") == (0, from_json)


def test_yaml_has_the_values_of_json(run, tmp_path):
  """YAML 1.1, which PyYAML reads, takes no for false, 10:30 for 630, and 012 for 10."""
  pytest.importorskip("yaml")
  texts = ["no", "on", "y", "NO", "10:30", "012", "1_000", "2019-05-18", "="]
  properties = {"on": {"enum": texts}, "no": {"enum": [1, -2.5, 1e3, 0.5, True, False, None]}}
  schema = "{properties: {on: {enum: TEXTS}, no: {enum: [1, -2.5, 1e3, .5, true, FALSE, ~]}}}"
  text = f"tools: [{{name: f, inputSchema: {schema}}}]".replace("TEXTS", f"[{', '.join(texts)}]")
  assert run(text, name="tools-file.yaml")[0] == 0
  (tool,) = json.loads((tmp_path / "out" / "tools.json").read_text())["tools"]
  assert tool["inputSchema"]["properties"] == properties


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "- x\n", "a: &a [*a]", "a: !!binary aGk="])
def test_yaml_that_is_none_of_the_forms(text, run, capsys):
  assert run(text, name="tools-file.yaml") == (1, None)
  assert_four_parts(capsys.readouterr().err, "tools-file.yaml")


def test_what_a_maintainer_should_know_is_said_once(run, capsys):
  part = {"type": "string", "xml": {"name": "x"}, "pattern": "^\\p{L}$"}
  tools = [{"name": n, "inputSchema": {"properties": {"a": part, "b": part}}} for n in "fg"]
  tools = [{**tool, "description": "Does it"} for tool in tools]
  assert run({"tools": tools, "nextCursor": "2"})[0] == 0
  printed = capsys.readouterr().out.splitlines()
  assert "not checked in calls: xml (4 times)" in printed
  assert "not checked in calls: the pattern ^\\p{L}$ (4 times)" in printed  # JavaScript's
  assert "not here: further pages of the list, which its nextCursor names" in printed
  assert "one description for several tools: f, g" in printed
  assert "arguments without a description: 4, such as a (2), b (2)" in printed


def test_services_for_trackers(run, tmp_path, capsys):
  properties = {
    "path": {"type": "string", "description": "Where"},
    "by": {"$ref": "#/$defs/by"},
    "how": {"oneOf": [{"const": "up", "title": "Up"}, {"const": "down"}]},
    "force": {"type": "boolean"},
    "head": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
    "edits": {"type": "array"},
    "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "to": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "object"}}},
  }
  schema = {
    "properties": properties,
    "required": ["path"],
    "$defs": {"by": {"enum": ["name", "size"]}},
    "oneOf": [{"required": ["path"]}],
  }
  tool = {**NAMED, "inputSchema": schema, "annotations": {"readOnlyHint": True}}
  assert run([tool], "--trackers", tmp_path / "services")[0] == 0
  text = (tmp_path / "services/test/schema.json").read_bytes()
  (service,) = load_schema(text, "schema.json")
  values = {slot.name: slot.possible_values for slot in service.slots}
  assert values == {
    "path": (),
    "by": ("name", "size"),
    "how": ("up", "down"),
    "force": ("True", "False"),
    "head": (),
    "to.x": (),
  }
  (intent,) = service.intents
  assert (intent.name, intent.is_transactional) == ("edit_file", False)
  assert intent.required_slots == ("path",)
  assert intent.optional_slots == {"by": "", "how": "", "force": "", "head": "5", "to.x": ""}
  printed = capsys.readouterr().out
  for what in (
    "array (1): edit_file.edits",
    "alternatives (1): edit_file.id",
    "object (1): edit_file.to.y",
    "oneOf of all arguments (1): edit_file",
  ):
    assert f"not for trackers: {what}\n" in printed


def test_services_are_such_that_trackers_take_them(run, tmp_path, capsys):
  names = ("a.b", "c/d", "e")
  properties = {name: {"type": "string"} for name in names}
  properties["a"] = {"type": "object", "properties": {"b": {"type": "string"}}}
  lists = {"properties": {"ids": {"type": "array"}}}
  tools = [{"name": "ping", "inputSchema": {}}, {"name": "select", "inputSchema": lists}]
  tools.append({"name": "search", "inputSchema": {"properties": properties}})
  assert run(tools, "--trackers", tmp_path / "services")[0] == 0
  schema = load_schema((tmp_path / "services/test/schema.json").read_bytes(), "schema.json")
  check_services(schema)
  check_slot_names(schema)
  assert {service.name: [*service.slot_index] for service in schema} == {"search": ["a.b", "e"]}
  printed = capsys.readouterr().out
  assert "not for trackers: no slots (2): ping, select\n" in printed
  assert "not for trackers: / in a name (1): search.c/d\n" in printed
  assert "not for trackers: a second argument of the name (1): search.a.b\n" in printed


def test_tools_without_slots_are_nothing_for_trackers(run, tmp_path, capsys):
  tools = [{"name": "ping", "inputSchema": {}}]
  assert run(tools, "--trackers", tmp_path / "services") == (1, None)
  assert_four_parts(capsys.readouterr().err, "1 tools, none with slots", "leave --trackers out")
  assert not (tmp_path / "services").exists()


@pytest.mark.parametrize("data", [MCP, {"result": MCP}, MCP["tools"], {"openapi": "3.1.0"}])
def test_a_file_of_tools_is_no_schema(data, tmp_path, capsys):
  file = tmp_path / "tools.json"
  file.write_text(json.dumps(data))
  assert sgdx("track", "--schema", file) == 1
  assert_four_parts(capsys.readouterr().err, "definitions of tools", "sgdx tools import FILE")


def test_real_lists_of_tools_stay_as_they_are(tmp_path):
  for name, number in (("devbox.mcp.json", 27), ("petstore.openai.json", 19)):
    file = shared_file(f"cases/own_tools/{name}")
    assert sgdx("tools", "import", file, "--out", tmp_path / name) == 0
    assert (tmp_path / name / "tools.json").read_bytes() == file.read_bytes()
    assert len(read_suite(tmp_path / name).tools) == number


SERVER = """
  import json, sys
  pages = {None: "first", "2": "second"}
  for line in sys.stdin:
    request = json.loads(line)
    method, params = request["method"], request.get("params") or {}
    print(method, file=open(sys.argv[1], "a"))
    if method == "initialize":
      result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "tiny", "version": "1"}}
    elif method == "tools/list":
      cursor = params.get("cursor")
      result = {"tools": [{"name": pages[cursor], "inputSchema": {"type": "object"}}]}
      result |= {} if cursor else {"nextCursor": "2"}
    else:
      continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.mark.skipif(lacks("mcp"), reason="needs mcp")
def test_a_server_is_asked_for_its_tools_alone(tmp_path):
  server, log, out = tmp_path / "server.py", tmp_path / "methods.txt", tmp_path / "out"
  server.write_text(textwrap.dedent(SERVER))
  command = shlex.join([sys.executable, str(server), str(log)])
  assert sgdx("tools", "import", "--command", command, "--out", out) == 0
  assert [tool.name for tool in read_suite(out).tools] == ["first", "second"]
  assert set(log.read_text().split()) == {"initialize", "notifications/initialized", "tools/list"}


@pytest.mark.parametrize(
  "command", ["no-such-program-here", f"{shlex.quote(sys.executable)} -c ''"]
)
@pytest.mark.skipif(lacks("mcp"), reason="needs mcp")
def test_a_command_that_is_no_server(command, tmp_path, capsys):
  assert sgdx("tools", "import", "--command", command, "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, "--command", "an MCP server")
  assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not lacks("mcp"), reason="mcp is installed")
def test_without_the_package_mcp_a_server_is_refused(tmp_path, capsys):
  assert sgdx("tools", "import", "--command", "server", "--out", tmp_path / "out") == 1
  assert_four_parts(
    capsys.readouterr().err, "mcp is not installed", 'pip install "sgdx_t5x[tools]" mcp'
  )


def test_in_a_suite_the_tools_alone_are_replaced(run, tmp_path, capsys):
  assert run(MCP)[0] == 0
  suite = tmp_path / "out"
  others = {name: f"{name}\n" for name in ("cases.jsonl", "answers.jsonl", "mine.txt")}
  for name, text in others.items():
    (suite / name).write_text(text)
  code, tools = run([NAMED | {"name": "edit", "parameters": SCHEMA}])
  assert (code, [tool["function"]["name"] for tool in tools]) == (0, ["edit"])
  assert {x.name: x.read_text() for x in suite.iterdir() if x.name in others} == others
  assert len(list(suite.iterdir())) == 4
  assert f"replaced: {suite}/tools.json; all else in {suite} stays\n" in capsys.readouterr().out

  before = (suite / "tools.json").read_bytes()
  (tmp_path / "bad.json").write_text("[]")
  assert sgdx("tools", "import", tmp_path / "bad.json", "--out", suite) == 1
  assert (suite / "tools.json").read_bytes() == before
  capsys.readouterr()
  assert sgdx("tools", "import", suite / "tools.json", "--out", suite) == 2
  assert_four_parts(capsys.readouterr().err, "is also an input")
  (suite / "tools.json").unlink()  # no suite any more
  assert run(MCP) == (1, None)
  assert_four_parts(capsys.readouterr().err, "already exists and is not empty")


@pytest.mark.parametrize("args", [(), ("FILE", "--command", "x"), ("--command", "'")])
def test_either_a_file_or_a_command(args, tmp_path, capsys):
  file = tmp_path / "tools.json"
  file.write_text(json.dumps(MCP))
  args = [file if arg == "FILE" else arg for arg in args]
  assert sgdx("tools", "import", *args, "--out", tmp_path / "out") == 2
  assert_four_parts(capsys.readouterr().err, "--command")
