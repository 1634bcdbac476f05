"""The one error that users see: what was found, expected and available, and how to fix it."""

import difflib
import functools
import importlib
import os
import re
import types
from collections.abc import Iterable
from typing import Any

_LONGEST_LINE = 1_000  # characters: a message may quote a whole file
_LONGEST_NAME = 200  # characters compared when looking for similar names
# Control characters, those that end lines or reorder them (bidirectional), and half characters.
_CONTROLS = re.compile(
  "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_DOCUMENT = re.compile(r"(?<![\w./])(?:(?:docs|tasks)/(?:[\w-]+/)*[\w-]+\.md|docs/metrics/)")


def with_document_paths(text: str) -> str:
  """Replaces "docs/NAME.md" by the path of that file, unless the current folder has it.

  In a checkout, docs/ and tasks/ are next to the package; when installed, inside it.
  """
  root = os.path.dirname(os.path.abspath(__file__))
  root = root if os.path.isdir(os.path.join(root, "docs")) else os.path.dirname(root)
  return _DOCUMENT.sub(lambda m: m[0] if os.path.exists(m[0]) else os.path.join(root, m[0]), text)


class SgdxError(Exception):
  """An error in the input or in a command's arguments, described in four parts.

  Args:
    found: what was found and where (file, dialogue, turn, slot).
    expected: what should have been there.
    available: what exists instead, or the closest matches; may be empty.
    fix: the command or setting that solves it.

  `t5x_lite` prints exceptions that have `text` and `exit_code` without a traceback.
  """

  exit_code = 1

  def __init__(self, found: str, *, expected: str, available: str = "", fix: str):
    self.found, self.expected = printable(found), printable(expected)
    self.available, self.fix = printable(available), printable(fix)
    lines = [self.found, f"  expected:  {self.expected}"]
    if available:
      lines.append(f"  available: {self.available}")
    lines.append(f"  fix:       {self.fix}")
    self.text = with_document_paths("\n".join(lines))
    super().__init__(self.text)

  def __reduce__(self):
    """Pickles the parts, since errors also come from other processes."""
    # By default only `args` are pickled, and the constructor needs keywords.
    keywords = {"expected": self.expected, "available": self.available, "fix": self.fix}
    return functools.partial(type(self), **keywords), (self.found,)


class UsageError(SgdxError):
  """Invalid or conflicting arguments of a command."""

  exit_code = 2


def first_line(error: BaseException) -> str:
  """Returns the first line of an error's message, or its type's name if it has none."""
  return next(iter(str(error).strip().splitlines()), type(error).__name__)


def require(module: str, *, extra: str, why: str, packages: str = "") -> types.ModuleType:
  """Imports a package that `pip install sgdx_t5x` alone does not install.

  Args:
    module: dotted name of the package or of a module in it.
    extra: the extra of sgdx_t5x that installs it, see pyproject.toml.
    why: what it is needed for.
    packages: further arguments of `pip install`, for packages that no extra installs.

  Returns:
    The module.

  Raises:
    SgdxError: it is not installed, or cannot be imported.
  """
  try:
    return importlib.import_module(module)
  except ImportError as e:
    problem = f"{module} cannot be imported: {first_line(e)}"
    if isinstance(e, ModuleNotFoundError) and e.name:  # of the module, or of one that it imports
      problem = f"the package {e.name} is not installed"
    raise SgdxError(
      problem,
      expected=f"{module}, for {why}",
      fix=f'pip install "sgdx_t5x[{extra}]" {packages}'.rstrip(),
    ) from None


def escaped(text: str, kept: str = "") -> str:
  """Returns a text with its control characters as escapes. Args: kept, those that stay."""

  def escape(match: re.Match[str]) -> str:
    return match[0] if match[0] in kept else match[0].encode("unicode_escape").decode()

  return _CONTROLS.sub(escape, text)


def printable(text: str) -> str:
  """Returns a text with control characters escaped and overlong lines cut in the middle."""
  lines = escaped(text, kept="\n").split("\n")
  # The end of a long line often says what is wrong with it, as of a path.
  half = _LONGEST_LINE // 2
  return "\n".join(x if len(x) <= _LONGEST_LINE else f"{x[:half]} ... {x[-half:]}" for x in lines)


def quoted(value: Any) -> str:
  """Returns `repr` of decoded JSON for an error, whatever its depth and length."""
  try:
    return printable(repr(value))
  except RecursionError:
    return "nested too deeply to be shown"


def malformed(error: Exception) -> str:
  """Describes what is wrong with decoded JSON, given the KeyError, TypeError ... it raised."""
  return f"missing key {error}" if isinstance(error, KeyError) else f"wrong type: {error}"


def nearest(name: str, names: Iterable[str], limit: int = 8) -> str:
  """Returns the names closest to `name`, or the first few, as one line for an error."""
  names = list(dict.fromkeys(map(str, names)))
  close = difflib.get_close_matches(str(name)[:_LONGEST_NAME], names, n=3, cutoff=0.6)
  if close:
    return "nearest: " + ", ".join(close)
  and_more = f", ... ({len(names)} in all)" if len(names) > limit else ""
  return ", ".join(names[:limit]) + and_more if names else "nothing"
