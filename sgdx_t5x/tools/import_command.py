"""`sgdx tools import`: tools of your own, checked, as a language model's API takes them."""

import argparse
import collections
import pathlib
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.tables import Table, count

_EPILOG = """\
examples:
  sgdx tools import tools.json --out mine
  sgdx tools import openapi.json --out mine

FILE is JSON: MCP's tools/list, a list of OpenAI or Anthropic, or OpenAPI 3. Names,
descriptions and schemas are not changed. DIR/tools.json has them in OpenAI's form.

docs/tools/README.md
"""


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "import", __doc__, _EPILOG)
  add_input(parser, "file", metavar="FILE", help="definitions of tools, see below")
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write", folder=True)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the tools, prints what they have. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.files.writing import atomic_folder, check_folder
  from sgdx_t5x.tools.own_tools import read_tools

  folder, tools = check_folder(args.out), read_tools(pathlib.Path(args.file))
  with atomic_folder(folder) as new:
    text = output.as_json([tool.for_openai() for tool in tools])
    new.mkdir()
    (new / "tools.json").write_text(text, encoding="utf-8", newline="\n")
  rows = []
  for tool in tools:
    arguments = tool.parameters.get("properties", {})
    required = [name for name in arguments if name in tool.parameters.get("required", ())]
    rows.append((tool.name, count(len(arguments)), count(len(required))))
  notes = [
    f"not shown to models: {key} (of {number:,} tools)"
    for key, number in collections.Counter(key for tool in tools for key in tool.not_shown).items()
  ]
  notes += [f"no description: {tool.name}" for tool in tools if not tool.description]
  header = ("tool", "arguments", "required")
  output.show("text", [Table(f"{len(tools):,} tools", header, tuple(rows))], {}, notes=notes)
  output.say_written(args.out)
  return 0
