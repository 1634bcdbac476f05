"""`sgdx tools export`: the schemas of a corpus, in any variant, as tools for a language model.

examples:
  sgdx tools export --corpus sgd.zip --variant original v1 v2 v3 --out tools
  sgdx tools export --corpus sgd.zip --variant v3 --split all --format mcp \\
    --out mcp
  sgdx tools export --corpus sample --variant original mine=DIR --out tools

One tool per intent; its arguments are the slots that the intent requires or
accepts. Files are OUT/VARIANT/SPLIT/tools.json (tools.jsonl for bfcl), and
names.json beside it: the intent and the slots of the original schema that the
names stand for.

A variant is original, v1 ... v5, bt_zh, bt_ja, bt_ko, para_1 ... para_15,
corrupt_SEED, or NAME=DIR for schemas of your own in DIR/SPLIT/schema.json.

docs/tools/README.md: from schemas to a table of scores.
"""

import argparse
import itertools
import json
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus, add_splits, add_variants
from sgdx_t5x.cli.paths import add_output
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tables import Table, count

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.tools.definitions import Tool

_FORMATS = ("openai", "mcp", "bfcl", "anthropic")


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "export", __doc__)
  add_corpus(parser)
  add_variants(parser, "variants of the schema, see below")
  add_splits(parser)
  parser.add_argument(
    "--format", default="openai", choices=_FORMATS, help="format of the tools (default: openai)"
  )
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write", folder=True)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the tools, prints what was written. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.options import parse_variants
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import atomic_folder, check_folder
  from sgdx_t5x.prompts.protocol import service_pairs
  from sgdx_t5x.tools.definitions import all_tools

  folder = check_folder(args.out)
  corpus = open_corpus(args.corpus)
  variants, schemas = parse_variants(args.variant, corpus)
  tools_of_file: dict[tuple[str, str], dict[str, Tool]] = {}
  for variant, split in itertools.product(variants, _splits(args.split, corpus)):
    corpus.check_kinds(split, variant)
    pairs = service_pairs(corpus.schema(split), schemas.get(split, variant))
    tools_of_file[variant, split] = all_tools(pairs)
  rows = []
  with atomic_folder(folder) as new_folder:
    for (variant, split), tools in tools_of_file.items():
      _write(new_folder / variant / split, tools, args.format)
      num_services = len({tool.service for tool in tools.values()})
      num_arguments = sum(len(tool.slots) for tool in tools.values())
      rows.append((variant, split, *map(count, (num_services, len(tools), num_arguments))))
  header = ("variant", "split", "services", "tools", "arguments")
  output.show("text", [Table(f"tools ({args.format})", header, tuple(rows), left=2)], {})
  output.say_written(args.out)
  return 0


def _splits(names: list[str], corpus: "Corpus") -> tuple[str, ...]:
  if "all" not in names:
    return tuple(dict.fromkeys(names))
  if len(names) > 1:
    raise UsageError(
      f"--split {' '.join(names)}",
      expected="either all, or names of splits",
      available=", ".join(corpus.splits),
      fix="pass only --split all",
    )
  return corpus.splits


def _write(folder: pathlib.Path, tools: "Mapping[str, Tool]", form: str) -> None:
  """Writes one file of tools and the map of their names."""
  from sgdx_t5x.tools.definitions import FORMATS, names_map

  folder.mkdir(parents=True)
  definitions: Any = [FORMATS[form](tool) for tool in tools.values()]
  if form == "bfcl":
    name, text = "tools.jsonl", "".join(f"{json.dumps(tool)}\n" for tool in definitions)
  else:
    name = "tools.json"
    text = output.as_json({"tools": definitions} if form == "mcp" else definitions)
  (folder / name).write_text(text, encoding="utf-8", newline="\n")
  names = output.as_json(names_map(tools.values(), form))
  (folder / "names.json").write_text(names, encoding="utf-8", newline="\n")
