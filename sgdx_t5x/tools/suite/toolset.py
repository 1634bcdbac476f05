"""The tools of a suite, as they are shown to models and as calls of them are validated."""

import dataclasses
import datetime
import decimal
import functools
import math
import pathlib
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError, first_line, require
from sgdx_t5x.tools.own_tools import OwnTool, read_tools
from sgdx_t5x.tools.schemas import PATTERNS, is_readable, with_children

TOOLS = "tools.json"  # in a suite's folder
_EXTRA = "tools"
_DIGITS = 400  # of quotients; a float has up to 309 before its point
_ANNOTATIONS = (
  "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
  "components", "definitions", "$schema", "$id", "$anchor", "$comment", "$defs", "then", "else",
  "minContains", "maxContains", "nullable",
  "exclusiveMinimum", "exclusiveMaximum",  # of draft 4, which heeds them with `minimum`
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ToolSet:
  """Definitions of tools with unique names, in the order in which they are shown together."""

  tools: tuple[OwnTool, ...]

  @functools.cached_property
  def by_name(self) -> Mapping[str, OwnTool]:
    """Name -> tool."""
    return {tool.name: tool for tool in self.tools}

  def for_openai(self) -> list[dict[str, Any]]:
    """What a model is shown: `tools` of a request to chat completions."""
    return [tool.for_openai() for tool in self.tools]

  def validator(self, name: str) -> Any:
    """Returns jsonschema's validator of the arguments of a tool."""
    if name not in self._validators:
      self._validators[name] = _validator(self.by_name[name])
    return self._validators[name]

  def keywords(self, name: str) -> set[str]:
    """Returns the keywords of JSON Schema that `validator` heeds, and those that assert nothing."""
    return {*self.validator(name).VALIDATORS, *_ANNOTATIONS}

  @functools.cached_property
  def _validators(self) -> dict[str, Any]:
    return {}


def read_suite(folder: str | pathlib.Path) -> ToolSet:
  """Returns the tools of a suite's folder. Raises SgdxError: none there, or see `read_tools`."""
  path = pathlib.Path(folder) / TOOLS
  if not path.is_file():
    raise SgdxError(
      f"no file at {path}",
      expected="a suite, which `sgdx tools import` writes",
      fix=f"sgdx tools import FILE --out {folder}",
    )
  return ToolSet(tuple(read_tools(path)))


def _validator(tool: OwnTool) -> Any:
  """Returns a validator of a tool's arguments, formats included. Raises SgdxError: no schema."""
  purpose = "checking arguments against the schemas of tools"
  jsonschema = require("jsonschema", extra=_EXTRA, why=purpose)
  default = jsonschema.Draft202012Validator
  named_draft = default
  if isinstance(tool.parameters.get("$schema"), str):
    named_draft = jsonschema.validators.validator_for(tool.parameters, default)
  schema = _as_checked(tool.parameters)
  errors = []
  # OpenAPI 3.0 keeps some keywords of draft 4, as a boolean exclusiveMinimum.
  for draft in (named_draft, jsonschema.Draft4Validator):
    try:
      draft.check_schema(schema)
      draft = jsonschema.validators.extend(draft, {"multipleOf": _multiple_of})
      return draft(schema, format_checker=_formats())
    except jsonschema.SchemaError as e:
      errors.append(e)
  raise SgdxError(
    f"tool {tool.name} ({tool.place}), {errors[0].json_path}: {first_line(errors[0])}",
    expected="parameters that are a JSON Schema",
    fix="correct the definition of the tool",
  )


def _as_checked(schema: Any) -> Any:
  """Returns a schema as it is checked: OpenAPI's `nullable` is a type, and a pattern that only
  JavaScript reads matches all."""
  if not isinstance(schema, dict):
    return schema
  copy = with_children(schema, _as_checked)
  if isinstance(copy.get("pattern"), str) and not is_readable(copy["pattern"]):
    copy["pattern"] = ""
  if isinstance(copy.get(PATTERNS), dict):
    copy[PATTERNS] = {key if is_readable(key) else "": x for key, x in copy[PATTERNS].items()}
  if copy.get("nullable") is True:
    if isinstance(copy.get("type"), str):
      copy["type"] = [copy["type"], "null"]
    if isinstance(copy.get("enum"), list) and None not in copy["enum"]:
      copy["enum"] = [*copy["enum"], None]
  return copy


def _multiple_of(validator: Any, factor: Any, instance: Any, _: Any) -> Iterator[Any]:
  """Yields the error if a number is no multiple, in decimals: 19.99 is one of 0.01."""
  from jsonschema.exceptions import ValidationError

  is_number = validator.is_type(instance, "number")
  if not is_number or (isinstance(instance, float) and not math.isfinite(instance)):
    return
  with decimal.localcontext(prec=_DIGITS):
    quotient = decimal.Decimal(str(instance)) / decimal.Decimal(str(factor))
    if quotient != quotient.to_integral_value():
      yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")


@functools.cache
def _formats() -> Any:
  """Returns jsonschema's checker of formats, with those for which it needs further packages."""
  jsonschema = require("jsonschema", extra=_EXTRA, why="checking formats")
  checker = jsonschema.FormatChecker()
  for name in ("date-time", "time", "uri"):
    checker.checks(name, raises=ValueError)(functools.partial(_has_format, name))
  return checker


def _has_format(name: str, value: Any) -> bool:
  return not isinstance(value, str) or normal_form(name, value) is not None


def normal_form(format: str | None, text: str) -> Any:
  """Returns what two texts of a format have in common if they mean the same.

  Args: format, JSON Schema's keyword. Raises ValueError: the text is not of the format.
  """
  text = text.strip()
  if format in ("date-time", "time"):  # whose T and Z may be small
    text = text.upper()
  if format == "date-time":  # a date alone is midnight; without an offset, UTC is meant
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
  if format == "time":
    return datetime.time.fromisoformat(text)
  if format == "date":
    return datetime.date.fromisoformat(text)
  if format == "uuid":
    return uuid.UUID(text)
  if format == "uri" and not urllib.parse.urlsplit(text).scheme:
    raise ValueError(text)
  return text
