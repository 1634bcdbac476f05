"""A checkpoint's config.gin, read before it is run.

Gin imports the modules that a configuration names, and the model that is built from it calls the
objects that it names. A checkpoint may come from a stranger, so both are judged first.
"""

import importlib
import tokenize
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import gin
from gin import config_parser

from sgdx_t5x.errors import SgdxError, first_line

PACKAGES = ("sgdx_t5x", "t5x", "seqio", "flax", "optax", "jax", "gin")
# Of gin, only what its own syntax stands for: other functions parse further configurations. Of the
# other packages, not what imports or unpickles whatever a string names.
_OF_GIN = ("macro", "_retrieve_constant", "singleton")
_RUN_STRINGS = ("import_module", "load", "parse_gin_flags", "require")
_DYNAMIC = "__gin__.dynamic_registration"  # with it, names are attributes of imported modules


class _Macro(NamedTuple):
  name: str


class _Names(config_parser.ParserDelegate):
  """Collects the names of configurables instead of looking them up."""

  def __init__(self) -> None:
    self.names: list[str] = []

  def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> None:
    self.names.append(scoped_configurable_name.rpartition("/")[2])

  def macro(self, macro_name: str) -> _Macro:
    return _Macro(macro_name)


def _statements(config: str) -> Iterator[tuple[Any, list[str]]]:
  """Yields each statement of a configuration, and the names of the configurables in it."""
  delegate = _Names()
  for statement in config_parser.ConfigParser(config, delegate):
    names, delegate.names = delegate.names, []
    if getattr(statement, "arg_name", True):  # a macro's name is in `selector` too
      names.extend(filter(None, [getattr(statement, "selector", None)]))
    yield statement, names


def trained_task(config: str) -> str:
  """Returns the task or mixture that a configuration of `t5x.train` names; "" if it names none."""
  statements = []
  try:
    for statement, _ in _statements(config):
      statements.append(statement)
  except (SyntaxError, ValueError, tokenize.TokenError):
    pass  # what is no configuration names no task either

  def is_name(statement: Any) -> bool:
    return (statement.scope, statement.arg_name) == ("train", "mixture_or_task_name")

  return next(_strings(statements, "MIXTURE_OR_TASK_NAME", is_name), "")


def check_config(config: str, path: str, allowed: Sequence[str] = ()) -> None:
  """Refuses a configuration that would import or call what lies outside the trusted packages.

  What lies inside them is imported here, but nothing is called.

  Args:
    config: the text of the config.gin.
    path: of the file, for errors.
    allowed: modules and packages that the user trusts besides `PACKAGES`.

  Raises:
    SgdxError: it names a module or object outside them, or includes another file.
    ImportError, ValueError: it names what is not installed here.
  """
  try:
    statements = list(_statements(config))
  except (SyntaxError, tokenize.TokenError) as e:
    raise SgdxError(
      f"{path}: not a gin file ({first_line(e)})",
      expected="a config.gin as `t5x.train` writes it",
      fix="copy the config.gin of the run that wrote the checkpoint",
    ) from None
  check_modules(_modules([statement for statement, _ in statements]), path, allowed)
  imported: dict[str, Any] | None = None  # by the name that they are bound to
  for statement, names in statements:
    place = f"{path}, line {statement.location.line_num}"
    if isinstance(statement, config_parser.IncludeStatement):
      raise SgdxError(
        f"{place}: includes {statement.filename}",
        expected="a config.gin as `t5x.train` writes it, in one file",
        fix="replace the line with the content of that file",
      )
    if isinstance(statement, config_parser.ImportStatement):
      if statement.module == _DYNAMIC:
        imported = {}
      else:
        module = importlib.import_module(statement.module)
        if not statement.is_from and not statement.alias:  # `import a.b` binds a
          module = importlib.import_module(statement.bound_name())
        if imported is not None:
          imported[statement.bound_name()] = module
    # After the imports above it: a name may lead through a trusted module to one that is not.
    for name in names:
      _check_object(name, imported, place, allowed)


def check_modules(modules: Iterable[str], path: str, allowed: Sequence[str]) -> None:
  """Raises SgdxError if some of the modules may not be imported. Args: see `check_config`."""
  refused = [name for name in modules if not _is_in(name, (*PACKAGES, *allowed))]
  if refused:
    raise _refusal(f"{path}: names the modules {', '.join(dict.fromkeys(refused))}", refused)


def _modules(statements: Sequence[Any]) -> Iterator[str]:
  """Yields the modules that a configuration imports: in statements, and by their names in strings.

  These are `MIXTURE_OR_TASK_MODULE` and the parameters `module`, such as DatasetConfig's.
  """
  for statement in statements:
    is_import = isinstance(statement, config_parser.ImportStatement)
    if is_import and not statement.module.startswith("__gin__."):
      yield statement.module
  yield from _strings(statements, "MIXTURE_OR_TASK_MODULE", lambda x: x.arg_name == "module")


def _strings(
  statements: Sequence[Any], macro: str, is_bound: Callable[[Any], bool]
) -> Iterator[str]:
  """Yields the strings that some parameters and a macro have, also through other macros.

  Args:
    statements: of a configuration.
    macro: its name.
    is_bound: whether a binding is of one of the parameters.
  """
  values: list[Any] = [_Macro(macro)]
  macros: dict[str, list[Any]] = {}  # a later binding replaces an earlier one: all are judged
  for statement in statements:
    if isinstance(statement, config_parser.BindingStatement):
      if is_bound(statement):
        values.append(statement.value)
      elif name := _macro_of(statement):
        macros.setdefault(name, []).append(statement.value)
  while values:
    value = values.pop()
    if isinstance(value, _Macro):
      values.extend(macros.pop(value.name, ()))  # taken out: macros may refer to each other
    elif isinstance(value, str):
      yield value


def _macro_of(statement: Any) -> str:
  """Returns the name of the macro that a statement binds: NAME = 1, or NAME/gin.macro.value = 1."""
  scope, selector, argument = statement.scope, statement.selector, statement.arg_name
  if not argument:
    return f"{scope}/{selector}" if scope else selector
  return scope if argument == "value" and selector.rpartition(".")[2] == "macro" else ""


def _check_object(
  name: str, imported: dict[str, Any] | None, place: str, allowed: Sequence[str]
) -> None:
  """Raises SgdxError unless a configurable, and all that its name leads through, is trusted.

  Args:
    name: dotted, without scopes.
    imported: what gin looks it up in; None: among what is registered by name.
    place, allowed: see `check_config`.
  """
  root, *attributes = name.split(".")
  if imported is None or root == "gin":
    attributes, value = [], gin.get_configurable(name)
  elif root in imported:
    value = imported[root]
  else:
    raise ValueError(f"{name}: nothing imports {root}")  # as gin says it of other names
  _check_trusted(value, name, place, allowed)
  for attribute in attributes:
    if not hasattr(value, attribute):
      raise ValueError(f"{name}: there is no {attribute}")
    value = getattr(value, attribute)
    _check_trusted(value, name, place, allowed)


def _check_trusted(value: Any, name: str, place: str, allowed: Sequence[str]) -> None:
  """Raises SgdxError unless a module or object belongs to a trusted package."""
  if isinstance(value, types.ModuleType):
    module = value.__name__
    trusted = _is_in(module, PACKAGES)
  else:
    module = getattr(value, "__module__", None)
    module = module if isinstance(module, str) else type(value).__module__
    called = getattr(value, "__name__", "")
    trusted = called in _OF_GIN if _is_in(module, ["gin"]) else called not in _RUN_STRINGS
    trusted = trusted and _is_in(module, PACKAGES)
  if not trusted and not _is_in(module, allowed):
    raise _refusal(f"{place}: {name} leads to the module {module}", [module])


def _is_in(module: str, packages: Iterable[str]) -> bool:
  return any(module == package or module.startswith(f"{package}.") for package in packages)


def _refusal(problem: str, modules: Iterable[str]) -> SgdxError:
  roots = list(dict.fromkeys(module.partition(".")[0] for module in modules))
  return SgdxError(
    problem,
    expected=f"a config.gin that only names what is in {', '.join(PACKAGES)}: it is run",
    fix=f"if you trust the authors of the checkpoint, add --allow-module {' '.join(roots)} "
    f"(in Python: allow_modules={roots}); docs/trackers.md says what this trusts",
  )
