"""Matching generated text with possible values of the schema, shared by formats."""

from sgdx_t5x.data.schema import Slot

NONE = "none"  # how answers say that a slot is not in the state


def loose(text: str) -> str:
  """Returns a text's letters and digits in lower case."""
  return "".join(c for c in text.lower() if c.isalnum())


def matching_value(text: str, slot: Slot) -> str | None:
  """Returns the possible value with a text's letters and digits, ignoring case, or None."""
  key = loose(text)
  return next((value for value in slot.possible_values if loose(value) == key), None)
