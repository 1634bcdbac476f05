"""Options that several commands share, and how they are read."""

import argparse
import contextlib
import gc
import os
import pathlib
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x import annexes
from sgdx_t5x.cli.paths import (
  Parser,
  add_input,
  add_output,
  corpus_path,
  path_of_name,
  style_path,
)
from sgdx_t5x.cli.prompt_style import parse_format
from sgdx_t5x.errors import UsageError

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.variants.variant_schemas import VariantSchemas

CORPUS = 'the official archive or a corpus in its layout (zip or folder), or "sample"'
HELP_WIDTH = 80  # for text that argparse does not wrap to the terminal's width


def add_command(
  subparsers: Any, name: str, doc: str, epilog: str = "", help: str = ""
) -> argparse.ArgumentParser:
  """Adds a subcommand.

  Args:
    subparsers: what `ArgumentParser.add_subparsers` returned.
    name: the subcommand's name.
    doc: its description, usually the docstring of its module.
    epilog: examples and notes below the options, in lines of 80 columns or less, which are kept;
      "" for what follows the first paragraph of `doc`.
    help: a line for the list of subcommands; "" for a command of an annex, whose line is in
      `annexes.table("SUMMARIES")`.

  Returns:
    Its parser, which is also the attribute `parser` of what it parses.
  """
  if not epilog:
    doc, _, epilog = doc.partition("\n\n")
  words = f"{subparsers._prog_prefix} {name}".split()[1:]  # without "sgdx"
  if len(words) > 1:  # an annex's other commands are listed apart, see `commands.make_parser`
    help = help or annexes.table("SUMMARIES").get(" ".join(words), "")
  parser = subparsers.add_parser(
    name,
    **({"help": help} if help else {}),
    description=textwrap.fill(doc, HELP_WIDTH),
    epilog=epilog,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.set_defaults(parser=parser)
  parser.register("action", None, _Store)
  return parser


def add_group(subparsers: Any, name: str, doc: str, epilog: str = "", help: str = "") -> Any:
  """Adds a command that consists of subcommands. Returns what `add_command` takes to add them."""
  parser = add_command(subparsers, name, doc, epilog, help)
  parser.set_defaults(run=lambda args: parser.print_help() or 0)  # type: ignore[func-returns-value]
  return parser.add_subparsers(metavar="VERB")


class _Store(argparse._StoreAction):
  """Stores an option; one of several values that is given again adds to what it has.

  argparse would drop the earlier values: `--predictions original=a --predictions v1=b` scored v1.
  """

  def __call__(self, parser, namespace, values, option_string=None):  # type: ignore[no-untyped-def]
    if self.option_strings and self.nargs == "+":
      earlier = getattr(namespace, self.dest)
      values = [*([] if earlier is self.default else earlier), *values]
    setattr(namespace, self.dest, values)


def add_corpus(parser: argparse.ArgumentParser) -> None:
  """Adds the `--corpus` that commands share."""
  add_input(parser, "--corpus", required=True, help=CORPUS, path=corpus_path)


def add_allowed_modules(parser: argparse.ArgumentParser) -> None:
  """Adds the `--allow-module` of commands that run a checkpoint's config.gin."""
  text = "modules of your own that config.gin may import and run"
  parser.add_argument("--allow-module", nargs="+", default=[], metavar="NAME", help=text)


def add_split(parser: Parser, default: str = "test") -> None:
  """Adds `--split` for commands that read one split. Args: parser, or one of its groups."""
  text = f"train, dev or test (default: {default})"
  parser.add_argument("--split", default=default, help=text)


def add_splits(parser: argparse.ArgumentParser) -> None:
  """Adds `--split` for commands that read several splits, or "all"."""
  text = "train, dev, test, or all (default: test)"
  parser.add_argument("--split", nargs="+", default=["test"], metavar="NAME", help=text)


def add_variants(parser: argparse.ArgumentParser, text: str) -> None:
  """Adds `--variant NAME[=DIR] ...`, which `parse_variants` reads. Args: text, its help."""
  settings: dict[str, Any] = {"required": True, "nargs": "+", "metavar": "NAME[=DIR]"}
  add_input(parser, "--variant", help=text, **settings, path=path_of_name)


def add_limit(parser: Parser, text: str) -> None:
  """Adds `--limit` and its `--seed`, for `check_seed`. Args: parser or group; help of `--limit`."""
  parser.add_argument("--limit", type=int, metavar="N", help=text)
  parser.add_argument("--seed", type=int, default=0, help="random seed of --limit (default: 0)")


def add_scoring(parser: Parser) -> None:
  """Adds the options that become `scoring.Settings`; see `scoring_settings`."""
  text = "how values of non-categorical slots are compared (default: difflib, the official way)"
  parser.add_argument(
    "--fuzzy", default="difflib", choices=("difflib", "levenshtein", "exact"), help=text
  )
  add_reading(parser)
  text = (
    "number of bootstrap samples (of dialogues) for 95%% confidence intervals "
    "(default: 1000; 0: no intervals)"
  )
  parser.add_argument("--bootstrap-samples", type=int, default=1000, metavar="N", help=text)


def add_prompt_style(parser: Parser, text: str) -> None:
  """Adds `--prompt-style`, which `parse_format` reads. Args: text, its help."""
  settings: dict[str, Any] = {"metavar": "FIELD=VALUE", "help": text, "path": style_path}
  add_input(parser, "--prompt-style", several=True, **settings)


def add_reading(parser: Parser) -> None:
  """Adds the options for how predictions are read, which are among those of `add_scoring`."""
  add_prompt_style(
    parser,
    "format and style of the prompts of JSONL predictions, if not T5DST's default: "
    "format=d3st, or values=letters lowercase=true",
  )
  add_schemas(parser)
  text = (
    "if frames are missing or dialogues are unknown: score the rest and mark the result PARTIAL"
  )
  parser.add_argument("--allow-missing", action="store_true", help=text)


def add_schemas(parser: Parser) -> None:
  """Adds `--schemas`, the folders of custom variants; see `parse_schemas`."""
  text = "schemas of variants of your own, as given to `sgdx prompts --variant`"
  add_input(parser, "--schemas", several=True, metavar="NAME=DIR", help=text, path=path_of_name)


def parse_schemas(args: argparse.Namespace) -> dict[str, str]:
  """Returns variant -> folder of `--schemas`.

  Raises:
    UsageError: an item of another form.
    SgdxError: a folder that does not exist, also where nothing is of its variant.
  """
  from sgdx_t5x.files.reading import not_found

  folders = parse_named(args.schemas, "--schemas", "NAME=DIR", "pass, for example, mine=my_schemas")
  for name, folder in folders.items():
    if not os.path.isdir(folder):
      expected = f"the schemas of variant {name}, FOLDER/SPLIT/schema.json"
      raise not_found(pathlib.Path(folder), expected, "folder")
  return folders


def schemas_of(variants: Sequence[str]) -> list[str]:
  """Returns the `--schemas` option for those of `--variant` that are NAME=DIR; [] for none."""
  custom = [item for item in variants if "=" in item]
  return ["--schemas", *custom] if custom else []


def add_outputs(parser: argparse.ArgumentParser, numbers: str, of_frames: str) -> None:
  """Adds `--json` and `--per-frame`. Args: what they write, for the help."""
  text = f"also write all {numbers} to this JSON file"
  add_output(parser, "--json", metavar="OUT", help=text)
  text = f"also write every frame's {of_frames}"
  add_output(parser, "--per-frame", metavar="OUT", help=text)


def scoring_settings(args: argparse.Namespace) -> dict[str, Any]:
  """Returns the attributes of `scoring.Settings` that `add_scoring` or `add_reading` added."""
  names = ("fuzzy", "allow_missing", "bootstrap_samples")
  prompt_format = parse_format(args.prompt_style)
  settings = {name: getattr(args, name) for name in names if hasattr(args, name)}
  return {"prompt_format": prompt_format, "schemas": parse_schemas(args), **settings}


def check_seed(args: argparse.Namespace) -> None:
  """Raises UsageError for a `--seed` of a command that draws nothing but `--limit` dialogues."""
  if args.seed and args.limit is None:
    raise UsageError(
      f"--seed {args.seed} without --limit",
      expected="a number of dialogues, which are drawn at random",
      fix="add --limit N, or leave --seed out",
    )


def check_least(args: argparse.Namespace, name: str, minimum: int, fix: str) -> None:
  """Raises UsageError if a number that was given is below `minimum`.

  Args:
    args: the parsed options.
    name: the option's name, without "--".
    minimum: the smallest number allowed.
    fix: of the error.
  """
  value = getattr(args, name.replace("-", "_"))
  if value is not None and not value >= minimum:  # nan is not
    raise UsageError(f"--{name} {value}", expected=f"{minimum} or more", fix=fix)


def parse_variants(
  items: Sequence[str], corpus: "Corpus"
) -> "tuple[tuple[str, ...], VariantSchemas]":
  """Reads `--variant NAME NAME=DIR ...`. Returns the names, and the schemas they stand for.

  Raises:
    UsageError: a variant with two folders, NAME= without one, or a name that is no folder's.
  """
  from sgdx_t5x.files.writing import is_folder_name
  from sgdx_t5x.variants.variant_schemas import VariantSchemas

  variants: dict[str, str] = {}  # name -> folder; "" for the schemas that this name stands for
  for item in items:
    name, sign, folder = item.partition("=")
    has_two = variants.setdefault(name, folder) != folder
    if not is_folder_name(name) or has_two or (sign and not folder) or (name == "all" and folder):
      raise UsageError(
        f"--variant {item}",
        expected="NAME, or NAME=DIR for custom schemas, with one DIR per name and no slash in NAME",
        fix="pass, for example, --variant original v3 mine=my_schemas",
      )
  folders = {name: folder for name, folder in variants.items() if folder}
  return tuple(variants), VariantSchemas(corpus, folders)


def parse_named(items: Sequence[str], option: str, expected: str, fix: str) -> dict[str, str]:
  """Reads NAME=PATH ... of an option. Returns name -> path.

  Args:
    items: the option's values.
    option: its name, for the error; of a positional one, that shown in the help.
    expected, fix: of the error.

  Raises:
    UsageError: no name or path, or a name twice.
  """
  paths: dict[str, str] = {}
  for item in items:
    name, _, path = item.partition("=")
    if not (name and path) or name in paths:
      twice = name in paths and f"has two values for {name}: {paths[name]} and {path}"
      raise UsageError(
        f"{option} {twice or item}", expected=f"{expected} with unique names", fix=fix
      )
    paths[name] = path
  return paths


@contextlib.contextmanager
def no_cycles() -> Iterator[None]:
  """Disables garbage collection of cycles while predictions are read and scored.

  Scoring creates millions of small objects without cycles; looking for cycles took half of the
  time (six predictions of the real test files) and freed nothing.
  """
  enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if enabled:
      gc.enable()
