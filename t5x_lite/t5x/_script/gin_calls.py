"""Errors of functions that gin calls with the values bound to them."""

from __future__ import annotations

import contextlib
import re

from gin import config as _gin_config

from t5x.errors import T5XError


@contextlib.contextmanager
def friendly_gin_errors():
  """Turns gin's complaints while calling configured functions into T5XErrors."""
  try:
    yield
  except RecursionError as e:
    raise T5XError(
      "The gin configuration refers to itself.",
      found="macros or references that depend on each other in a cycle",
      expected="references without a cycle",
      fix="find the macro or parameter bound to itself, such as X = %X, or to what contains it.",
    ) from e
  except (TypeError, ValueError, AttributeError) as e:
    error = _missing_parameters(str(e)) or _unknown_parameter(str(e)) or _not_for_optax(str(e))
    if error is None:
      raise
    raise error from e


def _missing_parameters(text: str) -> T5XError | None:
  match = re.search(r"missing \d+ required .*?: (.*)", text)
  where = re.search(r"In call to configurable '([^']+)'", text)
  if not match or not where:
    return None
  names = re.findall(r"'(\w+)'", match.group(1).splitlines()[0])
  return T5XError(
    f"gin does not bind all parameters of {where.group(1)!r}.",
    found="missing: " + ", ".join(names),
    expected="a value for each parameter without a default",
    fix="\n".join(f"{where.group(1)}.{n} = ..." for n in names),
  )


def _unknown_parameter(text: str) -> T5XError | None:
  """The error for a parameter that gin accepts, seeing **kwargs, but the class below does not."""
  match = re.search(r"got an unexpected keyword argument '(\w+)'", text)
  where = re.search(r"In call to configurable '([^']+)'", text)
  if not match or not where:
    return None
  name, param = where.group(1), match.group(1)
  bound = [s for (_, s), params in _gin_config._CONFIG.items() if param in params]
  if not any(selector.rpartition(".")[2] == name for selector in bound):
    return None  # the program passes it, not gin
  return T5XError(
    f"{name!r} has no parameter {param!r}.",
    found=f"{name}.{param}, which a gin file or the command line binds",
    expected="one of its parameters",
    fix="correct the parameter's name.",
  )


def _not_for_optax(text: str) -> T5XError | None:
  """The error for settings from which optax cannot make a transformation."""
  where = re.search(r"In call to configurable '(\w+)' \(<\w+ (\S+) ", text)
  name = where.group(1) if where else ""
  of_optax = [s for (_, s) in _gin_config._CONFIG if s.endswith(f".{name}") and "optax" in s]
  if not name or not of_optax:
    return None
  return T5XError(
    f"optax cannot create {name} with these settings.",
    found=text.split("\n")[0],
    expected="numbers, or the values in its documentation",
    available=", ".join(
      f"{name}.{k} = {v!r}" for k, v in _gin_config._CONFIG["", of_optax[0]].items()
    ),
    fix=f"correct them: optax.{name}",
  )
