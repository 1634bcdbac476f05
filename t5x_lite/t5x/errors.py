"""The one error type users see: what was found, expected and available, and how to fix it."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import re
from collections.abc import Iterable, Iterator
from typing import Any

_LONGEST_LINE = 1_000  # characters: a message may quote a whole file
_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class T5XError(ValueError):
  """A user's mistake, or a situation only the user can resolve.

  Scripts print it without a traceback (`--debug` shows it) and exit with `exit_code`.

  Args:
      message: one line that names the problem; left out, `found` is this headline.
      found: what was read, with the file, macro, step or array it was read from.
      expected: what the program needs instead.
      available: what exists, or the nearest names.
      fix: the command, flag or setting that resolves it.
  """

  exit_code = 1

  def __init__(
    self,
    message: str = "",
    *,
    found: object = None,
    expected: object = None,
    available: object = None,
    fix: object = None,
  ):
    self.message, self.found, self.expected = message, found, expected
    self.available, self.fix = available, fix
    sections = {"found": found if message else None, "expected": expected}
    lines = [message or str(found)]
    for name, text in {**sections, "available": available, "fix": fix}.items():
      if text is not None:
        lines.append(f"  {name + ':':<11}" + str(text).replace("\n", "\n" + " " * 13))
    self.text = _printable("\n".join(lines))
    super().__init__(self.text)


def _printable(text: str) -> str:
  """Returns a text with control characters escaped and overlong lines cut in the middle."""
  lines = _UNPRINTABLE.sub(lambda m: m[0].encode("unicode_escape").decode(), text).split("\n")
  half = _LONGEST_LINE // 2
  return "\n".join(x if len(x) <= _LONGEST_LINE else f"{x[:half]} ... {x[-half:]}" for x in lines)


class UsageError(T5XError):
  """A wrong command line: exit code 2."""

  exit_code = 2


class Interrupted(Exception):  # it is a request, not an error
  """Raised between steps or batches after Ctrl-C or SIGTERM. `signum` is the signal."""

  def __init__(self, signum: int):
    self.signum = signum
    super().__init__(f"stopped by signal {signum}")


def causes(error: BaseException | None) -> Iterator[BaseException]:
  """Yields an exception and its chain of causes or contexts, back to the first one."""
  visited = set()
  while error is not None and id(error) not in visited:
    yield error
    visited.add(id(error))
    error = error.__cause__ or error.__context__


def first_line(error: BaseException) -> str:
  """Returns the first line of an error's message, or its type's name if it has none."""
  return next(iter(str(error).strip().splitlines()), type(error).__name__)


def find_user_error(error: BaseException) -> Any:
  """Finds a user's mistake behind `error`: gin and thread pools re-raise under other types.

  That is a T5XError, or an error of a task's own module with the same `text` and `exit_code`.
  """
  for e in causes(error):
    if isinstance(getattr(e, "text", None), str) and hasattr(e, "exit_code"):
      return e
  return None


def nearest(name: str, names: Iterable[str], n: int = 4, cutoff: float = 0.5) -> list[str]:
  """Returns up to `n` of `names` that are closest to `name`, ignoring case.

  Args:
      name: the name.
      names: those to choose from.
      n: the largest number of them.
      cutoff: least likeness, in [0, 1] (`difflib.SequenceMatcher.ratio`).

  >>> nearest("trian", ["train", "evaluate"])
  ['train']
  """
  by_lower = {k.lower(): k for k in sorted(names)}
  close = difflib.get_close_matches(name.lower(), by_lower, n=n, cutoff=cutoff)
  return [by_lower[c] for c in close]


def check_whole(
  value: object, name: str, minimum: int = 1, optional: bool = False, fix: object = None
) -> None:
  """Raises T5XError unless `value` is a whole number of at least `minimum` that is not too large.

  Args of this check and of those below:
      value: what a setting was bound to.
      name: the setting, for the message.
      minimum: smallest number that is accepted.
      optional: None is accepted too.
      fix: how to set it; None: by its name.
  """
  if value is None and optional:
    return
  is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
  # Shapes and steps are 32-bit numbers; seeds, which may be negative, have 64 bits.
  below = 2**31 if minimum > -(2**63) else 2**63
  number = operator.index(value) if is_whole else minimum  # type: ignore[arg-type]
  if is_whole and minimum <= number < below:
    return
  none = f" and below 2**{below.bit_length() - 1}" if number >= below else ""
  none += ", or None" if optional else ""
  raise T5XError(
    f"{name} is not a valid number.",
    found=repr(value),
    expected="an integer" + (f" of at least {minimum}" if minimum > -(2**63) else "") + none,
    fix=fix or f"set {name}",
  )


def check_number(
  value: object,
  name: str,
  minimum: float | None = None,
  below: float = math.inf,
  optional: bool = False,
  fix: object = None,
) -> None:
  """Raises T5XError unless `value` is a finite number in [minimum, below).

  A scalar array counts as a number of any size. Without a minimum there is none.
  """
  if value is None and optional:
    return
  if not isinstance(value, numbers.Real) and getattr(value, "shape", None) == ():
    return
  is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
  if is_number and _is_finite(value) and (minimum is None or value >= minimum) and value < below:  # type: ignore[operator]
    return
  limits = [f"of at least {minimum:g}"] if minimum is not None else []
  limits += [f"below {below:g}"] if below < math.inf else []
  raise T5XError(
    f"{name} is not a valid number.",
    found=repr(value),
    expected=" ".join(["a number", " and ".join(limits)]).strip() + (", or None" * optional),
    fix=fix or f"set {name}",
  )


def _is_finite(value: object) -> bool:
  try:
    return math.isfinite(value)  # type: ignore[arg-type]
  except OverflowError:  # an integer that is too large for a float
    return False


def check_float_type(value: Any, name: str, optional: bool = False) -> None:
  """Raises T5XError unless `value` names a floating-point type, as weights need."""
  import jax.numpy as jnp

  if value is None and optional:
    return
  try:
    if jnp.issubdtype(jnp.dtype(value), jnp.floating):
      return
  except TypeError:
    pass
  raise T5XError(
    f"{name} is no floating-point type.",
    found=repr(value),
    expected="the name of a type",
    available="float32, bfloat16, float16",
    fix=f"{name} = 'float32'",
  )


def check_flag(value: object, name: str) -> None:
  """Raises T5XError unless `value` is True or False; text would always count as True."""
  if type(value).__name__ in ("bool", "bool_") or (type(value) is int and value in (0, 1)):
    return
  raise T5XError(
    f"{name} is neither True nor False.",
    found=repr(value),
    expected="True or False, without quotes",
    fix=f"set {name}",
  )


def not_in_lite(feature: str, instead: str | None = None) -> T5XError:
  """Returns the error for a part of T5X that t5x_lite does not cover, named by `feature`."""
  fix = "install Google's T5X (https://github.com/google-research/t5x); keep the gin files."
  return T5XError(
    f"{feature} is not in t5x_lite; Google's T5X has it.",
    expected="a part of T5X that t5x_lite covers",
    fix=f"{instead}, or {fix}" if instead else fix,
  )
