"""Files that a command reads and writes: no output overwrites an input, however it is spelled.

The only place where the two are compared, as by `os.path.samefile`: links count.
"""

import argparse
import functools
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
_Parser = argparse.ArgumentParser | argparse._ActionsContainer
# What commands read in a folder, which can hold other files that they wrote.
_OF_CORPUS = re.compile(r"(schema|perturbation|dialogues.*)\.json(\.gz|\.xz)?")
_PREDICTIONS = ".jsonl"  # in the folder itself, or below it in one of these:
_OF_PREDICTIONS = (os.curdir, "inference_eval", "train", "dev", "test")


def add_input(
  parser: _Parser, *names: str, path: Callable[[str], str] = str, **settings: Any
) -> None:
  """Adds an option whose values name files or folders to read.

  Args:
    parser: the parser, or one of its groups.
    path: returns the path in a value, or "": `corpus_path` and so on; default: the value.
    names, settings: as for `ArgumentParser.add_argument`.
  """
  vars(parser.add_argument(*names, **settings))["input_path"] = path


def add_output(parser: _Parser, *names: str, folder: bool = False, **settings: Any) -> None:
  """Adds an option that names a file, or a folder, to write. Other arguments: see `add_input`."""
  vars(parser.add_argument(*names, **settings))["output"] = "folder" if folder else "file"


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
    UsageError: two outputs, or an output and an input, are one file.
    SgdxError: a folder that is not there or cannot be written to.
  """
  used: dict[pathlib.Path, str] = {}  # output file -> its option
  for action in args.parser._actions:
    kind, name = getattr(action, "output", None), getattr(args, action.dest, None)
    if kind is None or name in (None, STDOUT):
      continue
    option = action.option_strings[0]
    if kind == "folder":
      if os.path.isfile(name):
        check_no_inputs(args, [name], option)
      continue
    path = pathlib.Path(name).resolve()
    if path in used or not name:
      raise UsageError(
        f"{option} {name!r}" + (f" is also the file of {used[path]}" if name else " is empty"),
        expected="a separate file for each output",
        fix="choose another file",
      )
    used[path] = option
    if path.is_file():
      check_no_inputs(args, [path], option)
    _check_writable(name, path, option)


def check_no_inputs(
  args: argparse.Namespace, paths: Iterable[_Path], option: str = "--out"
) -> None:
  """Refuses to replace files that are inputs, and folders that hold one.

  Args:
    args: the command's arguments.
    paths: what will be replaced; need not exist.
    option: the option that named them, for messages.

  Raises:
    UsageError: an input would be lost.
  """
  from sgdx_t5x.corpus.sources import paths_below

  paths = [os.fspath(path) for path in paths if os.path.exists(path)]
  inputs = list(_paths_read(args)) if paths else []
  status = functools.cache(os.stat)  # `samefile` would ask the file system again for each pair
  for path in paths:
    replaced = [pathlib.Path(path), *paths_below(pathlib.Path(path))]
    for place, name in itertools.product(filter(os.path.exists, replaced), inputs):
      if not os.path.samestat(status(place), status(name)):
        continue
      if os.path.isdir(path):
        raise UsageError(
          f"{option} {path} contains {name}, which this command reads",
          expected="a folder that contains no inputs: its content is replaced",
          fix="name another folder",
        )
      also = "" if os.path.abspath(name) == os.path.abspath(path) else f": it is {name}"
      raise UsageError(
        f"{option} {path!r} is also an input{also}",
        expected="an output file that is not also an input",
        fix="name another file",
      )


def _check_writable(name: str, path: pathlib.Path, option: str) -> None:
  if not path.is_dir():
    check_regular(name, option)
  if not os.access(path.parent, os.W_OK) or path.is_dir():
    reason = "is a folder" if path.is_dir() else f"no writable folder {path.parent}"
    raise SgdxError(
      f"{option} {name}: {reason}",
      expected="a file in an existing, writable folder",
      fix="create the folder, or choose another file",
    )


# --- what a command reads ------------------------------------------------------------------


def _paths_read(args: argparse.Namespace) -> Iterator[str]:
  """Yields the files and folders that a command's options name or imply, of those that exist."""
  for action in args.parser._actions:
    if path_in := getattr(action, "input_path", None):
      value = getattr(args, action.dest)
      texts = [value] if isinstance(value, str) else value or ()
      for path in filter(os.path.exists, map(path_in, texts)):
        yield from filter(os.path.exists, (path, *_files_in(path), *_frames_file(path)))


def _files_in(folder: str) -> Iterator[str]:
  """Yields the files of a corpus, and predictions, in a folder that is an input."""
  from sgdx_t5x.corpus.sources import paths_below

  for path in paths_below(pathlib.Path(folder)):
    place = os.path.relpath(path.parent, folder)
    if _OF_CORPUS.fullmatch(path.name) or (_PREDICTIONS in path.name and place in _OF_PREDICTIONS):
      yield str(path)


def _frames_file(path: str) -> list[str]:
  """The per-frame scores that a report names: `sgdx diff` and `sgdx report` read them too."""
  from sgdx_t5x.scoring.score_files import frames_path

  if not path.endswith(".json") or not os.path.isfile(path):
    return []
  try:
    report = json.loads(pathlib.Path(path).read_bytes())
    return [str(frames_path(pathlib.Path(path), report["per_frame"]["file"]))]
  except (OSError, ValueError, RecursionError, LookupError, TypeError):
    return []  # another kind of file
