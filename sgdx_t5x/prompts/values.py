"""Possible values in prompts, answers and styles, shared by formats."""

import dataclasses
import string
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from sgdx_t5x.arguments import NUMBER, PATH, checked_arguments
from sgdx_t5x.errors import SgdxError

NONE = "none"  # how answers say that a slot is not in the state
LETTERS = string.ascii_lowercase  # of choices


_Style = TypeVar("_Style", bound=type)


def checked_fields(style: _Style) -> _Style:
  """Decorates the dataclass of a style: wrong fields and types are UsageErrors, not TypeErrors.

  A field takes what has the type of its default, and a path if it names a file.
  """
  kinds: dict[str, Any] = {}
  for field in dataclasses.fields(style):
    kind = NUMBER if type(field.default) is int else type(field.default)
    kinds[field.name] = PATH if field.metadata.get("file") else kind
  style.__init__ = checked_arguments(style.__name__, **kinds)(style.__init__)  # type: ignore[misc]
  return style


def check_choices(style: Any, choices: Mapping[str, Collection[str]]) -> None:
  """Raises SgdxError for a field of a style that is not one of its choices."""
  for field, allowed in choices.items():
    if getattr(style, field) not in allowed:
      raise SgdxError(
        f"{type(style).__name__}.{field} = {getattr(style, field)!r}",
        expected="a supported value",
        available=", ".join(map(repr, allowed)),
        fix=f"set {field} to one of them",
      )


def check_letters(subject: str, number: int, fix: str) -> None:
  """Raises SgdxError, about `subject`, for more choices than there are letters."""
  if number > len(LETTERS):
    raise SgdxError(
      f"{subject} has {number} choices",
      expected=f"at most {len(LETTERS)}: one letter each",
      fix=fix,
    )


def choice_of_letter(text: str, number: int) -> int | None:
  """Returns which of `number` choices "b" or "B)" stands for; None for any other text."""
  letter = text.rstrip(")").lower()
  return LETTERS.index(letter) if len(letter) == 1 and letter in LETTERS[:number] else None


def loose(text: str) -> str:
  """Returns a text's letters and digits in lower case."""
  return "".join(c for c in text.lower() if c.isalnum())


def matching_value(
  text: str, values: Iterable[str], as_shown: Callable[[str], str] = str
) -> str | None:
  """Returns the value that a text stands for: the same, but for case, or but for punctuation.

  Args:
    text: of an answer.
    values: to choose from; the closest matches, and among equals the first. "$$" is not "$".
    as_shown: how a prompt shows a value, which is also a way to say it.

  Returns:
    A value, or None.
  """
  ways = [(value, {value, as_shown(value)}) for value in values]
  for normalise in (str, str.lower, loose):
    if key := normalise(text):
      for value, ways_to_say_it in ways:
        if key in map(normalise, ways_to_say_it):
          return value
  return None
