"""Files that a command reads and writes: no output overwrites an input, however it is spelled.

The only place where the two are compared, as by `os.path.samefile`: links count. So does every
file below a folder that is an input, but for scores and test reports, which are written anew.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.writing import check_regular

STDOUT = "-"
_Path = str | os.PathLike[str]
Parser = argparse.ArgumentParser | argparse._ActionsContainer
_RESULT = re.compile(rb'<\?xml|\{\s*"format": "sgdx-(check|diff|frames|score|tools-check)/')


def add_input(
  parser: Parser,
  *names: str,
  path: Callable[[str], str] = str,
  several: bool = False,
  **settings: Any,
) -> None:
  """Adds an option whose values name files or folders to read.

  Args:
    parser: the parser, or one of its groups.
    path: returns the path in a value, or "": `corpus_path` and so on; default: the value.
    several: whether it takes one or more values; [] if it is not given.
    names, settings: as for `ArgumentParser.add_argument`.
  """
  if several:
    settings |= {"nargs": "+", "default": []}
  vars(parser.add_argument(*names, **settings))["input_path"] = path


def add_output(
  parser: Parser, *names: str, folder: bool = False, stdout: bool = False, **settings: Any
) -> None:
  """Adds an option that names a file, or a folder, to write; with `stdout`, "-" is no file's name.

  Other arguments: see `add_input`.
  """
  kind = "folder" if folder else "file"
  vars(parser.add_argument(*names, **settings)).update(output=kind, to_stdout=stdout)


def corpus_path(text: str) -> str:
  """The path of a corpus or of demonstrations; the word "sample" names none."""
  return "" if text == "sample" else text


def path_of_name(text: str) -> str:
  """The path in NAME=PATH; a NAME alone names none."""
  return text.partition("=")[2]


def named_path(text: str) -> str:
  """The path in [NAME=]PATH."""
  return text if os.path.exists(text) else path_of_name(text)


def style_path(text: str) -> str:
  """The path in a FIELD=VALUE of --prompt-style: SDT's demonstrations."""
  return os.path.expandvars(corpus_path(path_of_name(text))) if text.startswith("demos=") else ""


def check_paths(args: argparse.Namespace) -> None:
  """Refuses, before any work, output files that cannot be written or are inputs.

  Folders are refused if they hold files of others, see `files.check_folder`. A command that
  replaces files in a folder calls `check_no_inputs` for them.

  Raises:
    UsageError: two outputs, or an output and an input, are one file or folder.
    SgdxError: a folder that is not there or cannot be written to.
  """
  used: dict[pathlib.Path, str] = {}  # output -> its option
  for action in args.parser._actions:
    kind, name = getattr(action, "output", None), getattr(args, action.dest, None)
    if kind is None or name is None or (name == STDOUT and action.to_stdout):
      continue
    if name == STDOUT:
      raise UsageError(
        f"{action.option_strings[0]} -",
        expected=f"a {kind}: this is not written to the terminal or a pipe",
        fix=f"name a {kind}",
      )
    option, path = action.option_strings[0], pathlib.Path(name).resolve()
    if path in used or not name:
      raise UsageError(
        f"{option} {name!r}" + (f" is also the {kind} of {used[path]}" if name else " is empty"),
        expected=f"a separate {kind} for each output",
        fix=f"choose another {kind}",
      )
    used[path] = option
    if path.is_file():
      check_no_inputs(args, [path], option)
    if kind == "file":
      check_regular(name, option)
      if not os.access(path.parent, os.W_OK):
        raise SgdxError(
          f"{option} {name}: no writable folder {path.parent}",
          expected="a file in an existing, writable folder",
          fix="create the folder, or choose another file",
        )


def check_no_inputs(
  args: argparse.Namespace, paths: Iterable[_Path], option: str = "--out"
) -> None:
  """Refuses to replace files that are inputs or in a folder that is, and folders that hold inputs.

  Args:
    args: the command's arguments.
    paths: what will be replaced; need not exist. Of a folder, `files.check_folder` or a manifest
      must have shown that the command wrote its files, which may then be in an input's folder.
    option: the option that named them, for messages.

  Raises:
    UsageError: an input would be lost.
  """
  from sgdx_t5x.corpus.sources import paths_below

  replaced = [pathlib.Path(path) for path in paths if os.path.exists(path)]
  if not replaced:
    return
  named = _by_inode(_paths_read(args))
  # Which files of a folder are read depends on more than their names.
  in_folders = itertools.chain.from_iterable(map(paths_below, map(pathlib.Path, named.values())))
  inputs = {**_by_inode(in_folders), **named} if any(map(os.path.isfile, replaced)) else named
  for path in replaced:
    if path.is_dir():
      below = _by_inode([path, *paths_below(path)])
      for inode in below.keys() & named.keys():
        raise UsageError(
          f"{option} {path} contains {named[inode]}, which this command reads",
          expected="a folder that contains no inputs: its content is replaced",
          fix="name another folder",
        )
      continue
    (inode,) = _by_inode([path])
    if inode in named or (inode in inputs and not _is_result(path)):
      name = inputs[inode]
      also = "" if os.path.abspath(name) == os.path.abspath(path) else f": it is {name}"
      raise UsageError(
        f"{option} {str(path)!r} is also an input{also}",
        expected="an output file that is not also an input, or in a folder that is",
        fix="name another file",
      )


def _is_result(path: pathlib.Path) -> bool:
  """Whether a file begins as what commands write for readers and `sgdx report`."""
  from sgdx_t5x.files.reading import opened

  try:
    with opened(path, "results") as file:
      return bool(_RESULT.match(file.read(100)))
  except (OSError, SgdxError):
    return False


def _by_inode(paths: Iterable[_Path]) -> dict[tuple[int, int], str]:
  """Returns what identifies a file, however its path is spelled -> path, of those that exist."""
  found = {}
  for path in filter(os.path.exists, paths):
    status = os.stat(path)
    found[status.st_dev, status.st_ino] = os.fspath(path)
  return found


# --- what a command reads ------------------------------------------------------------------


def _paths_read(args: argparse.Namespace) -> Iterator[str]:
  """Yields the files and folders that a command's options name or imply, of those that exist."""
  for action in args.parser._actions:
    if path_in := getattr(action, "input_path", None):
      value = getattr(args, action.dest)
      texts = [value] if isinstance(value, str) else value or ()
      for path in filter(os.path.exists, map(path_in, texts)):
        yield from filter(os.path.exists, (path, *_frames_file(path)))


def _frames_file(path: str) -> list[str]:
  """The per-frame scores that a report names: `sgdx diff` and `sgdx report` read them too."""
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.scoring.score_files import frames_path

  if not os.path.isfile(path):
    return []
  try:
    report = json.loads(read_input(path, "a report"))
    return [str(frames_path(pathlib.Path(path), report["per_frame"]["file"]))]
  except (OSError, SgdxError, ValueError, RecursionError, LookupError, TypeError):
    return []  # another kind of file
