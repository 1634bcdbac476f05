"""The arguments of public functions: an SgdxError in place of Python's TypeErrors."""

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from sgdx_t5x.errors import UsageError, nearest

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
PATH = (str, os.PathLike)
NUMBER = numbers.Integral  # NumPy's, too
_NAMES: dict[Any, str] = {
  str: "a string",
  os.PathLike: "a path",
  Mapping: "a dict",
  Collection: "a list",
  numbers.Integral: "a whole number",
  bool: "True or False",
  Callable: "a function",
}
_MADE_BY = {  # class -> the public function that returns it
  "Comparison": "compare",
  "Content": "make_report",
  "Corpus": "open_corpus",
  "FrameTable": "read_frames",
  "Run": "read_run",
  "Scored": "score_predictions",
  "Scores": "score",
}


def checked_arguments(
  public_name: str = "", /, **kinds: Any
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
  """Decorates a public function: its arguments are checked before anything is done.

  Args:
    public_name: its name in `sgdx_t5x`, if that is another one.
    kinds: parameter -> class or classes of its value; None is accepted too if it is the default.
      Of `*args`, every value is checked.

  Returns:
    The decorator. The function then raises UsageError for an unknown, missing or repeated argument,
    naming the nearest, and for a value of another kind.
  """

  def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    signature, name = inspect.signature(function), public_name or function.__name__

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
      try:
        bound = signature.bind(*args, **kwargs)
      except TypeError as e:
        raise _wrong_call(name, signature, kwargs, str(e)) from None
      for argument, classes in kinds.items():
        if argument not in bound.arguments:  # it has its default
          continue
        parameter, value = signature.parameters[argument], bound.arguments[argument]
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for item in value if several else [value]:
          if item is not None or parameter.default is not None:
            check_kind(item, f"{name}: {argument}", classes)
      return function(*args, **kwargs)

    return call

  return decorate


def check_bootstrap(bootstrap_samples: int, seed: int, or_none: str = "") -> None:
  """Raises UsageError for too few or too many samples. Args: or_none, says that 0 is allowed."""
  # The ends of a 95% interval are the 2.5% tails: fewer than 100 samples have almost none there.
  is_none = or_none and bootstrap_samples == 0
  if seed < 0 or not (is_none or 100 <= bootstrap_samples <= 1_000_000):
    raise UsageError(
      f"{bootstrap_samples} bootstrap samples, seed {seed}",
      expected=f"{or_none}100 to 1,000,000 bootstrap samples, and a seed of at least 0",
      fix="omit both to use the defaults: 1,000 bootstrap samples, seed 0",
    )


def check_kind(value: Any, name: str, kinds: Any) -> None:
  """Raises UsageError unless a value has one of these classes. Args: name, for the message."""
  kinds = kinds if isinstance(kinds, tuple) else (kinds,)
  # A string is a collection of characters, which is never what is meant.
  is_text = isinstance(value, str) and str not in kinds
  if not is_text and isinstance(value, kinds):
    return
  expected = " or ".join(map(_kind_name, kinds))
  raise UsageError(
    f"{name} is of type {type(value).__name__}", expected=expected, fix=f"pass {expected}"
  )


def check_choice(value: str, name: str, choices: Collection[str]) -> None:
  """Raises UsageError unless a value is one of these. Args: name, for the message."""
  if value not in choices:
    raise UsageError(
      f"{name} = {value!r}",
      expected="one of " + ", ".join(choices),
      available=nearest(value, choices),
      fix="use one of these",
    )


def _wrong_call(
  function: str, signature: inspect.Signature, names: Iterable[str], text: str
) -> UsageError:
  parameters = dict(signature.parameters)
  parameters.pop("self", None)  # of a constructor; nobody passes it
  for name in names:
    if name not in parameters:
      return UsageError(
        f"{function} has no argument {name!r}",
        expected="one of its arguments",
        available=nearest(name, parameters),
        fix="correct the name; all arguments: " + ", ".join(parameters),
      )
  return UsageError(
    f"{function}: {text}",
    expected=f"{function}({', '.join(map(str, parameters.values()))})",
    fix=f"pass these arguments; help(sgdx_t5x.{function}) describes them",
  )


def _kind_name(kind: Any) -> str:
  name = _NAMES.get(kind, f"a {kind.__name__}")
  maker = _MADE_BY.get(kind.__name__)
  return f"{name}, as {maker} returns it" if maker else name
