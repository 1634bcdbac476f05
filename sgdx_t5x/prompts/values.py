"""Possible values in prompts, answers and styles, shared by formats."""

import string
from collections.abc import Collection, Mapping
from typing import Any

from sgdx_t5x.data.schema import Slot
from sgdx_t5x.errors import SgdxError

NONE = "none"  # how answers say that a slot is not in the state
LETTERS = string.ascii_lowercase  # of choices


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


def loose(text: str) -> str:
  """Returns a text's letters and digits in lower case."""
  return "".join(c for c in text.lower() if c.isalnum())


def matching_value(text: str, slot: Slot) -> str | None:
  """Returns the possible value with a text's letters and digits, ignoring case, or None."""
  key = loose(text)
  return next((value for value in slot.possible_values if loose(value) == key), None)
