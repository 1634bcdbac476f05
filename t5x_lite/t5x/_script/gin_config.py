"""Gin configurations of the scripts: flags to bindings, parsing with complete errors.

Gin itself stops at the first unset macro and drops misspelt ones silently; here everything that
is wrong with a configuration is reported at once, with the nearest known names.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import gin
from etils import epath
from gin import config as _gin_config

from t5x._script.search_paths import installed_search_paths
from t5x.errors import T5XError, UsageError, find_user_error, nearest

_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT_SEARCH_PATHS = (".", _PACKAGE_PARENT)

# NAME=VALUE where NAME is MACRO, scope/mod.Class.param or mod.fn.param.
_BINDING = re.compile(r"^\s*([A-Za-z_][\w./]*)\s*=(.*)$", re.DOTALL)
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


def _is_macro(key: tuple[str, str]) -> bool:
  return key[1] in ("gin.macro", "macro")


def macros() -> dict[str, Any]:
  """Returns {macro: its value} of the parsed configuration."""
  return {k[0]: v.get("value") for k, v in _gin_config._CONFIG.items() if _is_macro(k)}


def _referenced_macros() -> dict[str, str]:
  """Returns {macro name: one place that refers to it} over the parsed configuration."""
  places = {}
  for (scope, selector), params in _gin_config._CONFIG.items():
    for param, value in params.items():
      for leaf in _gin_config._iterate_flattened_values(value):
        if not isinstance(leaf, gin.config.ConfigurableReference):
          continue
        if leaf.configurable.wrapped is _gin_config.macro:
          place = scope if _is_macro((scope, selector)) else f"{selector}.{param}"
          places.setdefault("/".join(leaf._scopes), place)
  return places


def _known_configurables() -> list[str]:
  """Short names (last two components and last one) of everything gin knows by now."""
  names = set()
  for selector in _gin_config._REGISTRY._selector_map:
    parts = selector.split(".")
    names.update({parts[-1], ".".join(parts[-2:])})
  return sorted(names - {"macro", "constant", "singleton"})


def _known_parameters(selector: str) -> list[str]:
  with contextlib.suppress(Exception):
    fn = _gin_config._REGISTRY.get_match(selector).wrapped
    return [p for p in inspect.signature(fn).parameters if p not in ("self", "args", "kwargs")]
  return []


def _explain(error: Exception, source: str) -> T5XError:
  """Rephrases an exception from gin's parser."""
  text = str(error)
  if match := re.search(r"No configurable matching '([^']*)'", text):
    return _unknown_name(match.group(1), source)
  if match := re.search(r"onfigurable '([^']*)' doesn't have a parameter named '(\w*)'", text):
    selector, param = match.groups()
    known = _known_parameters(selector)
    return T5XError(
      f"{selector!r} has no parameter {param!r} ({source}).",
      expected="one of its parameters",
      available=", ".join(nearest(param, known) or known),
      fix="correct the parameter's name.",
    )
  if match := re.search(r"[Cc]ouldn't resolve selector (\S+); .*has no attribute (\S+?)\.", text):
    return _unknown_attribute(match.group(1), match.group(2), text, source)
  if match := re.search(r"No module named '([^']+)'", text):
    return _missing_module(match.group(1), text, source)
  if isinstance(error, OSError) and "Unable to open file" in text:
    name = text.split("Unable to open file:", 1)[1].split(". Searched config paths:")[0].strip()
    return T5XError(
      f"The gin file {name!r} was not found.",
      expected="a path, or a path below one of: " + ", ".join(_folders()),
      available=_gin_neighbours(name) or None,
      fix="correct --gin_file or the include, or add --gin_search_paths=DIR.",
    )
  fix = "correct that line; quote strings and close brackets."
  if missing := re.search(r"'(\w+)' was not provided by an import", text):
    fix = f"import it in the file, above that line, such as `from t5x import {missing[1]}`."
  return T5XError(
    f"gin failed {source}.",
    found=text.strip() or type(error).__name__,
    expected="lines NAME = VALUE, `import`, `from` and `include`, where VALUE is a Python "
    "literal, @REFERENCE() or %MACRO",
    fix=fix,
  )


def _unknown_name(name: str, source: str) -> T5XError:
  known = _known_configurables()
  close = nearest(name, known) or nearest(name.rsplit(".", 1)[-1], known)
  if name.isupper():
    close = nearest(name, {**macros(), **_referenced_macros()}) or close
  return T5XError(
    f"gin does not know {name!r} ({source}).",
    found=name,
    expected="the name of a macro, or of a class, function or parameter that gin files import",
    available="nearest known names: " + (", ".join(close) or "no close match"),
    fix="correct the name; on the command line use the name without its module alias, "
    "for example --gin.train.eval_period=100 or --gin.MODEL_DIR=\"'/tmp/run'\".",
  )


def _unknown_attribute(selector: str, attribute: str, text: str, source: str) -> T5XError:
  module = re.search(r"<module '([^']+)'", text)
  known = vars(sys.modules[module.group(1)]) if module and module.group(1) in sys.modules else {}
  close = nearest(attribute, (k for k in known if not k.startswith("_")))
  return T5XError(
    f"{selector!r} does not exist ({source}).",
    found=text.strip().splitlines()[0],
    expected="a name defined in its module",
    available="nearest names: " + (", ".join(close) or "no close match"),
    fix="correct the name; if it is a part of T5X, t5x_lite may not cover it "
    "(Google's T5X has it).",
  )


def _missing_module(module: str, text: str, source: str) -> T5XError:
  extra = ""
  if module == "t5" or module.startswith("t5."):
    extra = " (`pip install t5` brings t5.data.mixtures; it is not needed otherwise)"
  return T5XError(
    f"A gin file imports {module!r}, which is not installed ({source}).",
    found=text.strip().splitlines()[0],
    expected="modules that Python can import",
    fix=f"install it, or set PYTHONPATH so that Python finds it{extra}.",
  )


def _gin_neighbours(path: str) -> str:
  """Names of gin files close to `path` (in the same folder under any search path)."""
  found: set[str] = set()
  for root in search_paths():
    folder = os.path.join(root, os.path.dirname(path))
    if os.path.isdir(folder):
      found.update(f for f in os.listdir(folder) if f.endswith(".gin"))
  close = nearest(os.path.basename(path), found) or sorted(found)[:8]
  return ", ".join(close)


def _exists_in_package(path: str) -> bool:
  """Whether `path` is `some/package/file.gin` of an importable package."""
  from gin import resource_reader

  try:
    return os.path.isfile(resource_reader._parse_config_path(path))
  except (ImportError, ValueError, TypeError):  # TypeError: a folder without __init__.py
    return False


def _use_safe_readers() -> None:
  """Replaces gin's file readers: its own fail on folders that look like packages, and log."""
  from gin import resource_reader

  _gin_config._FILE_READERS[:] = [
    (open, os.path.isfile),
    (lambda p: epath.Path(resource_reader._parse_config_path(p)).open(), _exists_in_package),
    (lambda p: epath.Path(p).open(), lambda p: "://" in p and epath.Path(p).exists()),
  ]


def _folders() -> list[str]:
  """Returns the search paths for an error, each once; an empty one is the current folder."""
  return list(dict.fromkeys(folder or "." for folder in search_paths()))


def search_paths() -> list[str]:
  """The folders gin looks in, in order."""
  return [str(p) for p in _gin_config._LOCATION_PREFIXES] or ["."]


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
      finalize_config: lock the configuration and run the checks of `check_config`.

  Raises:
      T5XError: for the first unreadable line, or all unset and unknown macros together. A user
          error raised by a module that a file imports is passed on unchanged.
  """
  _use_safe_readers()
  for path in (*gin_search_paths, *DEFAULT_SEARCH_PATHS, *installed_search_paths()):
    if path and path not in _gin_config._LOCATION_PREFIXES:
      gin.add_config_file_search_path(path)
  for gin_file in gin_files:
    try:
      gin.parse_config_file(gin_file, skip_unknown=skip_unknown)
    except Exception as e:
      if find_user_error(e):  # of a module that the file imports
        raise
      raise _explain(e, f"while reading {gin_file}") from e
  from_files = set(macros())
  for binding in gin_bindings:
    check_literal(binding)
    try:
      gin.parse_config(binding, skip_unknown=skip_unknown)
    except Exception as e:
      if find_user_error(e):
        raise
      raise _explain(e, f"on the command line: {binding}") from e
  _check_command_line_macros(gin_bindings, from_files)
  if finalize_config:
    check_config()
    try:
      gin.finalize()
    except ValueError as e:
      raise _explain(e, "in the whole configuration") from e


def _check_command_line_macros(gin_bindings: Sequence[str], from_files: set[str]) -> None:
  """Checks that macros on the command line are ones that a file defines or something refers to."""
  names = [m.group(1) for b in gin_bindings if (m := _BINDING.match(b))]
  known = from_files | set(_referenced_macros())
  unknown = [n for n in names if n in macros() and n not in known]
  if unknown:
    raise T5XError(
      "Unknown macro on the command line: " + ", ".join(unknown) + ".",
      found="no gin file defines or uses it, so it would have no effect",
      expected="a macro that is defined or used",
      available="; ".join(
        f"{n}: " + (", ".join(nearest(n, known)) or "no close match") for n in unknown
      ),
      fix="correct the name, or check that you pass the gin file that uses it.",
    )


def is_required(value: Any) -> bool:
  """Whether a bound value is gin.REQUIRED or the reference `%gin.REQUIRED`."""
  is_reference = isinstance(value, gin.config.ConfigurableReference)
  if is_reference and value.configurable.wrapped is _gin_config._retrieve_constant:
    value = value.scoped_configurable_fn()
  return value is gin.REQUIRED


def check_config() -> None:
  """Raises one T5XError that names every unset or undefined macro and required parameter."""
  unset, undefined = {}, {}
  defined, references = macros(), _referenced_macros()
  for (scope, selector), params in _gin_config._CONFIG.items():
    for param, value in params.items():
      if is_required(value):
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


def _example(name: str) -> str:
  """How to give a setting on the command line: strings have gin's quotes inside the shell's."""
  kinds = {"DIR": "DIR", "PATH": "PATH", "NAME": "NAME"}
  text = kinds.get(re.split(r"[._/]", name)[-1].upper())
  return f"""--gin.{name}="'{text}'\"""" if text else f"--gin.{name}=..."
