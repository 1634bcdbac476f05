"""Gin configurations of the scripts: flags to bindings, unset, unknown and unused macros.

Gin itself stops at the first unset macro and accepts misspelt ones in silence; here all of them are
named at once, with the nearest names. Other errors of a gin file are told in gin's own words.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import gin
from etils import epath

from t5x._process.log import log
from t5x.errors import T5XError, UsageError, nearest

_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SEARCH_PATHS = "t5x.gin_search_paths"  # group of entry points
DEFAULT_SEARCH_PATHS = (".", _PACKAGE_PARENT)

# NAME=VALUE where NAME is MACRO, scope/mod.Class.param or mod.fn.param.
_BINDING = re.compile(r"^\s*([A-Za-z_][\w./]*)\s*=(.*)$", re.DOTALL)
# Likeness from which on two macros differ by a slip of the keyboard: 1 or 2 of 12 letters.
_SLIP = 0.85
_PROMPT_FREE_LITERAL = re.compile(r"^[@%(\[{'\"\d+-]|^(None|True|False)\b")


def rewrite_gin_args(args: Sequence[str]) -> list[str]:
  """Turns `--gin.NAME=VALUE` into `--gin_bindings=NAME = VALUE`, other arguments untouched.

  Raises:
      UsageError: if an argument starts with `--gin.` but has no `=VALUE`.

  >>> rewrite_gin_args(["--gin.MODEL_DIR='/tmp'", "--debug"])
  ["--gin_bindings=MODEL_DIR = '/tmp'", '--debug']
  """
  rewritten = []
  for arg in args:
    match = re.match(r"^--?gin\.(.*)$", arg, re.DOTALL)
    if not match:
      rewritten.append(arg)
      continue
    name, equals, value = match.group(1).partition("=")
    if not equals or not value.strip():
      raise UsageError(
        f"{arg!r} has no value.",
        expected="--gin.NAME=VALUE, where VALUE is a gin literal",
        fix=f"""write --gin.{name.strip()}=VALUE; strings need quotes: "'/tmp/run'".""",
      )
    rewritten.append(f"--gin_bindings={name.strip()} = {value.strip()}")
  return rewritten


def check_literal(binding: str) -> None:
  """Raises UsageError where a command-line value is an unquoted string (the usual slip)."""
  if re.match(r"\s*(import|from|include)\s", binding):
    return
  match = _BINDING.match(binding)
  if not match:
    raise UsageError(
      f"--gin_bindings={binding!r} is not of the form NAME = VALUE.",
      expected="NAME = VALUE, where NAME is that of a macro or of a parameter",
      fix="for example --gin.BATCH_SIZE=16 or --gin.train.eval_period=100",
    )
  name, value = match.group(1), match.group(2).strip()
  if _PROMPT_FREE_LITERAL.match(value) and not re.match(r"^\d+[A-Za-z_/]", value):
    return
  with contextlib.suppress(ValueError, SyntaxError):
    ast.literal_eval(value)
    return
  raise UsageError(
    f"The value of --gin.{name} is not a gin literal.",
    found=value,
    expected="a number, a quoted string, a list, a dict, True, False, None, @name or %MACRO",
    fix=f"""quote strings twice, once for gin and once for the shell: """
    f"""--gin.{name}="'{value}'" """.rstrip(),
  )


def parsed() -> Mapping[tuple[str, str], Mapping[str, Any]]:
  """Returns {(scope, configurable): {parameter: value}} of the parsed configuration."""
  return gin.config._CONFIG  # gin shows it to nobody before its own checks, which stop at once


def _is_macro(key: tuple[str, str]) -> bool:
  return key[1] in ("gin.macro", "macro")


def macros() -> dict[str, Any]:
  """Returns {macro: its value} of the parsed configuration."""
  return {k[0]: v.get("value") for k, v in parsed().items() if _is_macro(k)}


def _referenced_macros() -> dict[str, str]:
  """Returns {macro name: one place that refers to it} over the parsed configuration."""
  places: dict[str, str] = {}
  macro = gin.get_configurable(gin.config.macro)
  for (scope, selector), params in parsed().items():
    for param, value in params.items():
      for reference in gin.config.iterate_references(value, to=macro):
        place = scope if _is_macro((scope, selector)) else f"{selector}.{param}"
        places.setdefault(reference.config_key[0], place)
  return places


@contextlib.contextmanager
def _explained(context: str) -> Iterator[None]:
  """Turns gin's errors in the block into one in four parts. Args: context, for the headline."""
  try:
    yield
  except Exception as e:
    frames = traceback.walk_tb(e.__traceback__)
    if any(frame.f_code.co_name == "<module>" for frame, _ in frames):
      raise  # of a module that the file imports
    raise T5XError(
      f"gin failed {context}.",
      found=str(e).strip() or type(e).__name__,
      expected="lines NAME = VALUE, `import`, `from` and `include`, where VALUE is a Python "
      "literal, @REFERENCE() or %MACRO",
      fix="correct that line; what it names is imported above that line, such as `from t5x import "
      "utils`, and files are found below the folders of --gin_search_paths.",
    ) from e


def installed_search_paths() -> list[str]:
  """Returns the folders that installed packages add to the search path for gin files.

  A distribution names one by an entry point of the group `t5x.gin_search_paths`: the value is a
  package that holds gin files, and the folder is the parent of that package. The files of
  `some_project.gin` are thus found as `gin/FILE.gin`, as from the root of that project.
  """
  folders: dict[str, None] = {}
  for entry in importlib.metadata.entry_points(group=_SEARCH_PATHS):
    try:
      spec = importlib.util.find_spec(entry.value)
    except ImportError:  # the distribution is broken: whatever needs its files will report it
      continue
    for folder in (spec.submodule_search_locations or ()) if spec else ():
      folders[os.path.dirname(folder)] = None
  return list(folders)


@functools.cache  # one entry each, however often a program parses
def _add_search_path(folder: str) -> None:
  gin.add_config_file_search_path(folder)


def parse_gin_flags(
  gin_search_paths: Sequence[str],
  gin_files: Sequence[str],
  gin_bindings: Sequence[str],
  skip_unknown: bool | Sequence[str] = False,
  finalize_config: bool = True,
) -> None:
  """Parses gin files in order, then the command-line bindings, and checks the whole.

  Args:
      gin_search_paths: folders for files and includes, before the default ones, as in T5X.
      gin_files: gin files, later ones win.
      gin_bindings: `NAME = VALUE` strings; they win over the files.
      skip_unknown: as in gin.
      finalize_config: check and lock the configuration, as `finalize` does.

  Raises:
      T5XError: for the first unreadable line, or all unset and unknown macros together. What a
          module raises that a file imports is passed on.
  """
  for path in (*gin_search_paths, *DEFAULT_SEARCH_PATHS, *installed_search_paths()):
    if path:
      _add_search_path(path)
  gin.config.register_file_reader(_open_url, _is_url)
  for gin_file in gin_files:
    with _explained(f"while reading {gin_file}"):
      gin.parse_config_file(gin_file, skip_unknown=skip_unknown)
  from_files = set(macros())
  for binding in gin_bindings:
    check_literal(binding)
    with _explained(f"on the command line: {binding}"):
      gin.parse_config(binding, skip_unknown=skip_unknown)
  _check_command_line_macros(gin_bindings, from_files)
  if finalize_config:
    finalize()


def finalize() -> None:
  """Checks the whole configuration and locks it; raises T5XError for what is wrong with it."""
  check_config()
  check_classes()
  check_unused()
  with _explained("in the whole configuration"):
    gin.finalize()


def _is_url(path: str) -> bool:
  return "://" in path and epath.Path(path).exists()


def _open_url(path: str) -> Any:
  return epath.Path(path).open()


def _check_command_line_macros(gin_bindings: Sequence[str], from_files: set[str]) -> None:
  """Checks that macros on the command line are ones that a file defines or something refers to."""
  names = [m.group(1) for b in gin_bindings if (m := _BINDING.match(b))]
  valid = from_files | set(_referenced_macros())
  unknown = [n for n in names if n in macros() and n not in valid]
  if unknown:
    raise T5XError(
      "Unknown macro on the command line: " + ", ".join(unknown) + ".",
      found="no gin file defines or uses it, so it would have no effect",
      expected="a macro that is defined or used",
      available="; ".join(
        f"{n}: " + (", ".join(nearest(n, valid)) or "no close match") for n in unknown
      ),
      fix="correct the name, or check that you pass the gin file that uses it.",
    )


def is_required(value: Any) -> bool:
  """Whether a bound value is gin.REQUIRED or the reference `%gin.REQUIRED`."""
  return value is gin.REQUIRED or repr(value) == "%gin.REQUIRED"


def check_config() -> None:
  """Raises one T5XError that names every unset or undefined macro and required parameter."""
  unset, undefined = {}, {}
  defined, references = macros(), _referenced_macros()
  for (scope, selector), params in parsed().items():
    for param, value in params.items():
      if is_required(value):
        # gin keeps the macro X as the parameter "value" of a configurable in scope X.
        is_macro = _is_macro((scope, selector))
        path = "/".join(filter(None, [scope, selector]))
        name = scope if is_macro else f"{path}.{param}"
        unset[name] = references.get(scope, "") if is_macro else ""
  for name, place in references.items():
    if name not in defined:
      undefined[name] = place
  if not unset and not undefined:
    return
  lines = [f"{n}" + (f" (used by {p})" if p else "") for n, p in sorted(unset.items())]
  for name, place in sorted(undefined.items()):
    close = nearest(name, defined)
    hint = f"; nearest: {', '.join(close)}" if close else ""
    lines.append(f"{name} (used by {place}, defined nowhere{hint})")
  missing = [*sorted(unset), *sorted(undefined)]
  raise T5XError(
    f"{len(missing)} required setting{'s are' if len(missing) > 1 else ' is'} not set: "
    + ", ".join(missing),
    found="\n".join(lines),
    expected="a value for each",
    fix="set each one after the includes of your gin file (an include's "
    "`X = %gin.REQUIRED` overrides a value set above it), or on the command line: "
    + " ".join(map(_example, missing[:6])),
  )


def check_classes() -> None:
  """Raises T5XError for a parameter that takes a class and is bound to an object of one.

  Gin would fail to create the object: what the script passes to the class is missing.
  """
  of_macros = macros()
  for (_, selector), params in parsed().items():
    for param, value in params.items():
      if not param.endswith("_cls"):
        continue
      for _ in of_macros:  # more steps from one to another would be a circle
        if repr(value).startswith("%"):
          value = of_macros.get(repr(value)[1:])
      if not isinstance(value, gin.config.ConfigurableReference) or not value.evaluate:
        continue
      cls = value.configurable.wrapped
      # That of functools.partial makes objects, as a class does; so may what a function returns.
      if isinstance(cls, type) and "__call__" not in dir(cls):
        raise T5XError(
          f"{selector}.{param} takes a class, and is bound to an object of one.",
          found=repr(value),
          expected="the class, without (): the script creates the object",
          fix=f"{selector}.{param} = {repr(value).removesuffix('()')}",
        )


def check_unused() -> None:
  """Names the macros that nothing uses in one line; refuses those that look misspelt.

  An unused macro is often on purpose: a file that others include defines it for some of them.

  Raises:
      T5XError: one that is nearly a macro in use, which it was probably meant to set.
  """
  used = _referenced_macros()
  unused = sorted(set(macros()) - set(used))
  misspelt = {name: close for name in unused if (close := _intended(name, used))}
  if misspelt:
    raise T5XError(
      f"Nothing uses {', '.join(misspelt)}.",
      found="a macro that has no effect; it looks misspelt",
      expected="; ".join(f"{close} in place of {name}" for name, close in misspelt.items()),
      fix="correct the name in the gin file, delete the line, or choose another name for a macro "
      "that is meant to be unused.",
    )
  if unused:
    log(f"macros that nothing uses: {', '.join(unused)}")


def _intended(name: str, used: Iterable[str]) -> str:
  """Returns the macro in use that differs from a name by a slip of the keyboard; "" for none."""
  for candidate in nearest(name, used, cutoff=_SLIP):
    # STEPS_1 and STEPS_2 are two names, not a slip.
    if re.sub(r"\d+", "", name) != re.sub(r"\d+", "", candidate):
      return candidate
  return ""


def _example(name: str) -> str:
  """How to give a setting on the command line: strings have gin's quotes inside the shell's."""
  kinds = {"DIR": "DIR", "PATH": "PATH", "NAME": "NAME"}
  text = kinds.get(re.split(r"[._/]", name)[-1].upper())
  return f"""--gin.{name}="'{text}'\"""" if text else f"--gin.{name}=..."
