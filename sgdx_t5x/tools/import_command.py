"""`sgdx tools import`: tools of your own, as they are, into a suite's folder.

examples:
  sgdx tools import tools.json --out suite
  sgdx tools import openapi.yaml --out suite --trackers services
  sgdx tools import --command "npx my-server" --out suite

FILE is MCP's tools/list, a list of OpenAI or Anthropic, or OpenAPI 3 (JSON,
YAML). SUITE/tools.json keeps it: names, descriptions and schemas are shown to
models as they are. In a suite that is there it is replaced, and nothing else.
--command asks the MCP server that it starts for tools/list, and for nothing
else.

docs/tools/README.md
"""

import argparse
import collections
import pathlib
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tables import Table, count

if TYPE_CHECKING:
  from sgdx_t5x.corpus.schema import Schema
  from sgdx_t5x.tools.suite.toolset import ToolSet


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "import", __doc__)
  add_input(parser, "file", nargs="?", metavar="FILE", help="definitions of tools, see below")
  parser.add_argument("--command", metavar="CMD", help="starts an MCP server, instead of FILE")
  add_output(parser, "--out", required=True, metavar="SUITE", help="folder to write", folder=True)
  text = "also write the tools as services in SGD's form, DIR/test/schema.json, for trackers"
  add_output(parser, "--trackers", metavar="DIR", help=text, folder=True)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the tools, prints what they have. Returns 0. Raises SgdxError for bad input."""
  if bool(args.file) == bool(args.command):
    raise UsageError(
      "FILE and --command" if args.file else "neither FILE nor --command",
      expected="one of the two",
      fix='sgdx tools import tools.json --out suite, or --command "npx my-server"',
    )
  from sgdx_t5x.files.writing import atomic_folder, atomic_write, check_folder
  from sgdx_t5x.tools.own_tools import tools_of
  from sgdx_t5x.tools.suite.toolset import TOOLS, ToolSet
  from sgdx_t5x.tools.suite.trackers import services

  # A suite gets new tools and keeps its cases and rewordings.
  path = pathlib.Path(args.out) / TOOLS
  is_suite = path.is_file()
  if is_suite:
    check_no_inputs(args, [path])
  else:
    check_folder(args.out)
  trackers = check_folder(args.trackers, "--trackers") if args.trackers else None
  data, content = _definitions(args)
  toolset = ToolSet(tuple(tools_of(data, pathlib.Path(args.file or args.command))))
  schema, left_out = services(toolset) if trackers else (None, {})
  notes = _notes(toolset)
  if isinstance(data, dict) and _has_more(data):
    notes.append("not here: further pages of the list, which its nextCursor names")
  if is_suite:
    with atomic_write(path, "--out") as file:
      file.buffer.write(content)
    notes.append(f"replaced: {path}; all else in {args.out} stays")
  else:
    with atomic_folder(path.parent) as new_folder:
      new_folder.mkdir()
      (new_folder / TOOLS).write_bytes(content)
  if trackers and schema:
    _write_services(schema, trackers)
  for reason, places in left_out.items():
    notes.append(f"not for trackers: {reason} ({len(places):,}): {', '.join(places)}")
  rows = []
  for tool in toolset.tools:
    arguments = tool.parameters.get("properties", {})
    required = [name for name in arguments if name in tool.parameters.get("required", ())]
    rows.append((tool.name, count(len(arguments)), count(len(required))))
  header = ("tool", "arguments", "required")
  title = f"{len(toolset.tools):,} tools, shown to models as they are"
  output.show("text", [Table(title, header, tuple(rows))], {}, notes=notes)
  output.say_written(args.out, args.trackers)
  print(output.folded_command(["sgdx", "tools", "cases", args.out, "--write", "4"]))
  return 0


def _definitions(args: argparse.Namespace) -> tuple[Any, bytes]:
  """Returns the definitions, decoded, and as they are kept: JSON byte by byte."""
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.tools.own_tools import decoded
  from sgdx_t5x.tools.suite.server import server_tools

  if args.command:
    data = server_tools(args.command)
    return data, output.as_json(data).encode()
  path = pathlib.Path(args.file)
  content = read_input(path, "definitions of tools")
  data = decoded(content, path)
  return data, output.as_json(data).encode() if path.suffix in (".yaml", ".yml") else content


def _has_more(data: dict[str, Any]) -> bool:
  """Whether a list of MCP is one page of several."""
  result = data.get("result", data)
  return isinstance(result, dict) and bool(result.get("nextCursor"))


def _notes(toolset: "ToolSet") -> list[str]:
  """Returns what a maintainer should know of the tools. Raises SgdxError: not a JSON Schema."""
  from sgdx_t5x.tools.schemas import PATTERNS, PROPERTIES, all_schemas, is_readable

  hidden, unchecked, bare = collections.Counter(), collections.Counter(), collections.Counter()
  by_description = collections.defaultdict(list)
  for tool in toolset.tools:
    hidden.update(tool.not_shown)
    by_description[tool.description].append(tool.name)
    # JSON Schema allows keywords that nobody knows: they are no error, and check nothing.
    keywords = toolset.keywords(tool.name)
    for schema in all_schemas(tool.parameters):
      unchecked.update(schema.keys() - keywords)
      patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
      for pattern in (*patterns, *schema.get(PATTERNS, ())):
        unchecked[f"the pattern {pattern}"] += not is_readable(pattern)
      for name, part in schema.get(PROPERTIES, {}).items():
        bare[name] += isinstance(part, dict) and not part.get("description")
  notes = [f"not shown to models: {key} (of {number:,} tools)" for key, number in hidden.items()]
  notes += [
    f"not checked in calls: {key} ({n:,} times)" for key, n in sorted(unchecked.items()) if n
  ]
  for text, names in by_description.items():
    if not text:
      notes += [f"no description: {name}" for name in names]
    elif len(names) > 1:
      notes.append(f"one description for several tools: {', '.join(names)}")
  if total := bare.total():
    examples = ", ".join(f"{name} ({number:,})" for name, number in bare.most_common(3) if number)
    notes.append(f"arguments without a description: {total:,}, such as {examples}")
  return notes


def _write_services(schema: "Schema", folder: pathlib.Path) -> None:
  """Writes the tools in SGD's form."""
  from sgdx_t5x.files.writing import atomic_folder

  with atomic_folder(folder, "--trackers") as new_folder:
    (new_folder / "test").mkdir(parents=True)
    text = output.as_json(schema.to_json())
    (new_folder / "test" / "schema.json").write_text(text, encoding="utf-8", newline="\n")
