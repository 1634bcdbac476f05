"""Options that several commands share, and how they are read."""

import argparse
import contextlib
import enum
import gc
import os
import pathlib
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.prompt_style import parse_format
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.inputs import check_not_input, protect
from sgdx_t5x.files.writing import check_regular

if TYPE_CHECKING:
  from sgdx_t5x.augment.variant_schemas import VariantSchemas
  from sgdx_t5x.data.corpus import Corpus

STDOUT = "-"
CORPUS = 'the official archive or a corpus in its layout (zip or folder), or "sample"'
HELP_WIDTH = 80  # for text that argparse does not wrap to the terminal's width


def add_command(
  subparsers: Any, name: str, doc: str, epilog: str, help: str
) -> argparse.ArgumentParser:
  """Adds a subcommand.

  Args:
    subparsers: what `ArgumentParser.add_subparsers` returned.
    name: the subcommand's name.
    doc: its description, usually the docstring of its module.
    epilog: examples and notes below the options, in lines of 80 columns or less, which are kept.
    help: a line for the list of subcommands.

  Returns:
    Its parser, which is also the attribute `parser` of what it parses.
  """
  parser = subparsers.add_parser(
    name,
    help=help,
    description=textwrap.fill(doc, HELP_WIDTH),
    epilog=epilog,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.set_defaults(parser=parser)
  parser.register("action", None, _Store)
  return parser


class _Store(argparse._StoreAction):
  """Stores an option; one of several values that is given again adds to what it has.

  argparse would drop the earlier values: `--predictions original=a --predictions v1=b` scored v1.
  """

  def __call__(self, parser, namespace, values, option_string=None):  # type: ignore[no-untyped-def]
    if self.option_strings and self.nargs == "+":
      before = getattr(namespace, self.dest)
      values = [*([] if before is self.default else before), *values]
    setattr(namespace, self.dest, values)


class Takes(enum.Enum):
  """What an option's values are; `check_paths` keeps outputs from overwriting inputs."""

  CORPUS = "a corpus to read: a file, a folder, or the word sample"
  INPUT = "a file or folder to read"
  NAMED_INPUT = "[NAME=]PATH of a file or folder to read"
  VARIANT = "NAME[=PATH] with a file or folder to read"
  OUTPUT = "a file to write"
  OUTPUT_OR_STDOUT = "a file to write, or -"
  FOLDER = "a folder to write"
  TEXT = "no path"


def add_option(
  parser: "argparse.ArgumentParser | argparse._ActionsContainer",
  takes: Takes,
  *names: str,
  **settings: Any,
) -> None:
  """Adds an option whose values are strings.

  Args:
    parser: the parser, or one of its groups.
    takes: what the strings are.
    names, settings: as for `ArgumentParser.add_argument`.
  """
  vars(parser.add_argument(*names, **settings))["takes"] = takes


def add_corpus(parser: argparse.ArgumentParser) -> None:
  """Adds the `--corpus` that commands share."""
  add_option(parser, Takes.CORPUS, "--corpus", required=True, help=CORPUS)


def add_split(
  parser: "argparse.ArgumentParser | argparse._ActionsContainer", default: str = "test"
) -> None:
  """Adds `--split` for commands that read one split. Args: parser, or one of its groups."""
  text = f"train, dev or test (default: {default})"
  add_option(parser, Takes.TEXT, "--split", default=default, help=text)


def add_splits(parser: argparse.ArgumentParser) -> None:
  """Adds `--split` for commands that read several splits, or "all"."""
  settings: dict[str, Any] = {"nargs": "+", "default": ["test"], "metavar": "NAME"}
  text = "train, dev, test, or all (default: test)"
  add_option(parser, Takes.TEXT, "--split", help=text, **settings)


def add_variants(parser: argparse.ArgumentParser, text: str) -> None:
  """Adds `--variant NAME[=DIR] ...`, which `parse_variants` reads. Args: text, its help."""
  settings: dict[str, Any] = {"required": True, "nargs": "+", "metavar": "NAME[=DIR]"}
  add_option(parser, Takes.VARIANT, "--variant", help=text, **settings)


def add_scoring(
  parser: "argparse.ArgumentParser | argparse._ArgumentGroup", zero_mean: bool = True
) -> None:
  """Adds the options that become `scoring.Settings`; see `scoring_settings`.

  Args:
    parser: the parser, or one of its groups.
    zero_mean: whether schema sensitivity is among the scores.
  """
  parser.add_argument(
    "--fuzzy",
    default="difflib",
    choices=("difflib", "levenshtein", "exact"),
    help="how values of non-categorical slots are compared (default: difflib, the official way)",
  )
  if zero_mean:
    parser.add_argument(
      "--zero-mean",
      default="zero",
      choices=("zero", "exclude"),
      help="SS of frames that are wrong under every variant: 0, or excluded (default: zero)",
    )
  add_option(
    parser,
    Takes.TEXT,
    "--prompt-style",
    nargs="+",
    default=[],
    metavar="FIELD=VALUE",
    help="format and style of the prompts of JSONL predictions, if not T5DST's default: "
    "format=d3st, or values=letters lowercase=true",
  )
  add_schemas(parser)
  parser.add_argument(
    "--allow-missing",
    action="store_true",
    help="if frames are missing or dialogues are unknown: score the rest and mark the result "
    "PARTIAL",
  )
  parser.add_argument(
    "--bootstrap-samples",
    type=int,
    default=1000,
    metavar="N",
    help="number of bootstrap samples (of dialogues) for 95%% confidence intervals "
    "(default: 1000; 0: no intervals)",
  )
  parser.add_argument(
    "--seed", type=int, default=0, help="random seed of the bootstrap (default: 0)"
  )


def add_schemas(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
  """Adds `--schemas`, the folders of custom variants; see `parse_schemas`."""
  add_option(
    parser,
    Takes.VARIANT,
    "--schemas",
    nargs="+",
    default=[],
    metavar="NAME=DIR",
    help="schemas of variants of your own, as given to `sgdx prompts --variant`",
  )


def parse_schemas(args: argparse.Namespace) -> dict[str, str]:
  """Returns variant -> folder of `--schemas`.

  Raises:
    UsageError: an item of another form.
    SgdxError: a folder that does not exist, also where nothing is of its variant.
  """
  from sgdx_t5x.files.reading import not_found

  folders = parse_named(args.schemas, "schemas", "NAME=DIR", "pass, for example, mine=my_schemas")
  for name, folder in folders.items():
    if not os.path.isdir(folder):
      expected = f"the schemas of variant {name}, FOLDER/SPLIT/schema.json"
      raise not_found(pathlib.Path(folder), expected, "folder")
  return folders


def schemas_of(variants: Sequence[str]) -> list[str]:
  """Returns the `--schemas` option for those of `--variant` that are NAME=DIR; [] for none."""
  own = [item for item in variants if "=" in item]
  return ["--schemas", *own] if own else []


def add_outputs(parser: argparse.ArgumentParser, numbers: str, of_frames: str) -> None:
  """Adds `--json` and `--per-frame`. Args: what they write, for the help."""
  text = f"also write all {numbers} to this JSON file"
  add_option(parser, Takes.OUTPUT, "--json", metavar="OUT", help=text)
  text = f"also write every frame's {of_frames}"
  add_option(parser, Takes.OUTPUT, "--per-frame", metavar="OUT", help=text)


def scoring_settings(args: argparse.Namespace) -> dict[str, Any]:
  """Returns the attributes of `scoring.Settings` that `add_scoring` added."""
  names = ("fuzzy", "zero_mean", "allow_missing", "bootstrap_samples", "seed")
  prompt_format = parse_format(args.prompt_style)
  given = {name: getattr(args, name) for name in names if hasattr(args, name)}
  return {"prompt_format": prompt_format, "schemas": parse_schemas(args), **given}


def check_least(
  args: argparse.Namespace, name: str, least: int, fix: str, expected: str = ""
) -> None:
  """Raises UsageError if a number that was given is below `least`.

  Args:
    args: the parsed options.
    name: the option's name, without "--".
    least: the smallest number allowed.
    fix: of the error.
    expected: of the error; defaults to "LEAST or more".
  """
  value = getattr(args, name.replace("-", "_"))
  if value is not None and not value >= least:  # nan is not
    raise UsageError(f"--{name} {value}", expected=expected or f"{least} or more", fix=fix)


def check_price(args: argparse.Namespace) -> None:
  """Refuses prices of tokens, `args.price`, that are negative, infinite or NaN."""
  if args.price and not all(0 <= price < float("inf") for price in args.price):
    raise UsageError(
      f"--price {args.price[0]} {args.price[1]}",
      expected="two prices of at least 0",
      fix="use the provider's prices per million tokens",
    )


def parse_variants(
  items: Sequence[str], corpus: "Corpus"
) -> "tuple[tuple[str, ...], VariantSchemas]":
  """Reads `--variant NAME NAME=DIR ...`. Returns the names, and the schemas they stand for.

  Raises:
    UsageError: a variant with two folders, NAME= without one, or a name that is no folder's.
  """
  from sgdx_t5x.augment.variant_schemas import VariantSchemas
  from sgdx_t5x.files import is_folder_name

  variants: dict[str, str | None] = {}
  for item in items:
    name, sign, folder = item.partition("=")
    again = variants.get(name, folder or None) != (folder or None)
    if not is_folder_name(name) or again or (sign and not folder) or (name == "all" and folder):
      raise UsageError(
        f"--variant {item}",
        expected="NAME, or NAME=DIR for custom schemas, with one DIR per name and no slash in NAME",
        fix="pass, for example, --variant original v3 mine=my_schemas",
      )
    variants[name] = folder or None
  folders = {name: folder for name, folder in variants.items() if folder}
  return tuple(variants), VariantSchemas(corpus, folders)


def parse_named(items: Sequence[str], option: str, expected: str, fix: str) -> dict[str, str]:
  """Reads NAME=PATH ... of an option. Returns name -> path.

  Args:
    items: the option's values.
    option: its name, without "--".
    expected, fix: of the error.

  Raises:
    UsageError: no name or path, or a name twice.
  """
  found: dict[str, str] = {}
  for item in items:
    name, _, path = item.partition("=")
    if not (name and path) or name in found:
      twice = name in found and f"has two values for {name}: {found[name]} and {path}"
      raise UsageError(
        f"--{option} {twice or item}", expected=f"{expected} with unique names", fix=fix
      )
    found[name] = path
  return found


def check_paths(args: argparse.Namespace) -> None:
  """Protects the inputs of a command; refuses, before any work, outputs that would overwrite them.

  Whatever else the command reads, such as the files of a folder, is protected when it is read;
  see `files.inputs`.

  Raises:
    UsageError: two outputs, or an output and an input, are one file.
    SgdxError: a folder that is not there or cannot be written to.
  """
  outputs = []
  for action in args.parser._actions:
    takes = getattr(action, "takes", Takes.TEXT)
    value = None if takes == Takes.TEXT else getattr(args, action.dest)
    for text in [value] if isinstance(value, str) else value or ():
      if takes in (Takes.OUTPUT, Takes.OUTPUT_OR_STDOUT, Takes.FOLDER):
        outputs.append((takes, action.option_strings[0], text))
      else:
        protect(_input_paths(takes, text))
  used: dict[pathlib.Path, str] = {}
  for takes, option, name in outputs:
    if takes == Takes.FOLDER:
      if os.path.isfile(name):
        check_not_input(name, option)
    elif (takes, name) != (Takes.OUTPUT_OR_STDOUT, STDOUT):
      _check_file(name, option, used)


def _input_paths(takes: Takes, text: str) -> list[str]:
  """Returns the paths that an option's value may name; they need not exist."""
  path = text.partition("=")[2]
  if takes == Takes.VARIANT:
    return [path]
  if takes == Takes.NAMED_INPUT:
    return [text, path]
  if takes == Takes.CORPUS:
    from sgdx_t5x.corpora import SAMPLE

    return [] if text == SAMPLE else [text]
  return [text] if takes == Takes.INPUT else []


def _check_file(name: str, option: str, used: dict[pathlib.Path, str]) -> None:
  """Refuses an output file that cannot be written. Args: used, path -> what already uses it."""
  path = pathlib.Path(name).resolve()
  if path in used or not name:
    raise UsageError(
      f"{option} {name!r}" + (f" is also {used[path]}" if name else " is empty"),
      expected="a separate file for each output",
      fix="choose another file",
    )
  check_not_input(path, option)
  if not path.is_dir():
    check_regular(name, option)
  if not os.access(path.parent, os.W_OK) or path.is_dir():
    why = "is a folder" if path.is_dir() else f"no writable folder {path.parent}"
    raise SgdxError(
      f"{option} {name}: {why}",
      expected="a file in an existing, writable folder",
      fix="create the folder, or choose another file",
    )
  used[path] = f"the file of {option}"


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
