"""Reads `--prompt-style`: a prompt format and the fields of its style."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.errors import UsageError, nearest

if TYPE_CHECKING:
  from sgdx_t5x.prompts.protocol import PromptFormat


def parse_format(items: Sequence[str]) -> "PromptFormat":
  """Reads `--prompt-style FIELD=VALUE ...`; fields that are not given keep their defaults.

  The field "format" names the prompt format, a key of `prompts.FORMATS`; the others are those of
  its style.

  Raises:
    UsageError: an unknown field or format, or a value that is not of the field's type.
    SgdxError: a value that the style refuses.
  """
  from sgdx_t5x.prompts import DEFAULT, FORMATS, load_format

  texts: dict[str, str] = {}
  for item in items:
    field, _, value = item.partition("=")
    if texts.setdefault(field, value) != value:
      raise UsageError(
        f"--prompt-style {field}={texts[field]} and {item}",
        expected="one value per field",
        fix="omit one of them",
      )
  name = texts.pop("format", DEFAULT)
  style = load_format(name).style
  defaults = {field.name: getattr(style, field.name) for field in dataclasses.fields(style)}
  changes: dict[str, Any] = {}
  for field, value in texts.items():
    if field not in defaults:
      raise UsageError(
        f"--prompt-style {field}{value and '='}{value}",
        expected=f"FIELD=VALUE with a field of {type(style).__name__}",
        available=nearest(field, ("format", *defaults)),
        fix=f"pass format={field}"
        if field in FORMATS
        else "correct or omit the field (docs/formats.md lists them); for answers of a trained "
        "model, use the style of the task that it was trained on",
      )
    changes[field] = _typed(field, value, defaults[field])
  return load_format(name, dataclasses.replace(style, **changes))


def _typed(field: str, text: str, default: Any) -> Any:
  """Returns the text as a value of the default's type. Raises UsageError if it is none."""
  kind = type(default)
  expected = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind)
  try:
    if kind is bool:
      return {"true": True, "false": False}[text.lower()]
    return kind(text) if expected else text
  except (KeyError, ValueError):
    raise UsageError(
      f"--prompt-style {field}={text}", expected=expected or "", fix=f"{field}={default}, as usual"
    ) from None
