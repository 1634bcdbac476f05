"""Values of arguments: what a user says, and the JSON that is meant.

They come from the first of these that has any that the tool's schema allows: possible values,
examples, limits of numbers, the format or the name of a text, the default. A name such as "path" or
"timezone" stands for values of its kind; there are none for a name that does not say its kind.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.tools.delivery import words
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.schemas import PROPERTIES, Schema, of_item, of_same_value
from sgdx_t5x.tools.suite.toolset import ToolSet

Pool = Mapping[str, Any]  # what is said -> value

_NUMBERS = (2, 3, 5, 7, 10, 12, 15, 20, 25, 30, 50, 100)
_OF_FORMAT = {
  "date": ("2026-05-01", "2026-08-17", "2027-01-30"),
  "date-time": ("2026-05-01T09:00:00Z", "2026-08-17T14:30:00Z", "2027-01-30T18:15:00Z"),
  "time": ("09:00:00", "14:30:00", "18:15:00"),
  "email": ("ana@example.com", "li@example.org", "office@example.net"),
  "uri": ("https://example.com/a", "https://example.org/news", "https://example.net/b/7"),
  "uuid": ("7d444840-9dc0-4a8e-8d3c-2f1b6a9e5c01", "c9a646d3-9c61-4cb7-bfcd-ee2522c8f633"),
  "ipv4": ("192.0.2.1", "198.51.100.24", "203.0.113.7"),
}
_CITIES = {
  "Tokyo": "Asia/Tokyo", "Berlin": "Europe/Berlin", "New York": "America/New_York",
  "Nairobi": "Africa/Nairobi", "Sydney": "Australia/Sydney", "Lima": "America/Lima",
}  # fmt: skip
_PATHS = ("/srv/app/data", "/home/ana/notes", "/var/backup/july", "/tmp/report", "/opt/site/old")
_FILES = ("README.md", "main.py", "setup.cfg", "notes.txt", "LICENSE")
_FOLDERS = ("/srv/app", "/home/ana", "/var/log", "/opt/site", "/tmp/build")
_TEXTS = ("Fix the login", "See you on Monday", "Second draft", "Done, thanks", "Version 2")
_HASHES = ("3f2a9c1", "b71e04d", "9cc58aa", "e0d4f36")
_BRANCHES = ("main", "develop", "hotfix", "dark-mode", "release-2")
# A word of an argument's name -> values; the name's last word that is here decides.
_OF_WORD: Mapping[str, Sequence[str] | Pool] = {
  "path": _PATHS, "source": _PATHS, "destination": _PATHS, "file": _FILES, "filename": _FILES,
  "directory": _FOLDERS, "dir": _FOLDERS, "folder": _FOLDERS,
  "timezone": _CITIES, "tz": _CITIES, "zone": _CITIES,
  "commit": _HASHES, "revision": _HASHES, "sha": _HASHES, "hash": _HASHES, "branch": _BRANCHES,
  "owner": ("ana", "octo-labs", "li-wei"), "repo": ("website", "dotfiles", "billing-api"),
  "repository": ("website", "dotfiles", "billing-api"),
  "username": ("ana", "li-wei", "sam"), "user": ("ana", "li-wei", "sam"),
  "email": _OF_FORMAT["email"], "url": _OF_FORMAT["uri"], "uri": _OF_FORMAT["uri"],
  "date": _OF_FORMAT["date"], "time": ("09:00", "14:30", "18:15", "21:45"),
  "message": _TEXTS, "content": _TEXTS, "text": _TEXTS, "body": _TEXTS, "title": _TEXTS,
  "comment": _TEXTS,
}  # fmt: skip


def pool(tool: OwnTool, argument: str, toolset: ToolSet) -> Pool:
  """Returns the values of an argument that its schema allows; {} if no source has any.

  A boolean is not said: its part of a sentence stands for the value that is not the default.
  """
  root = tool.parameters
  schemas = of_same_value([root.get(PROPERTIES, {}).get(argument)], root)
  for candidates in _sources(argument, schemas, root):
    if fitting := allowed(tool, argument, candidates, toolset):
      return fitting
  return {}


def allowed(tool: OwnTool, argument: str, candidates: Pool, toolset: ToolSet) -> Pool:
  """Returns the values that the schema of an argument allows."""
  fitting = {}
  for phrase, value in candidates.items():
    errors = toolset.validator(tool.name).iter_errors({argument: value})
    # Other arguments are missing here, which is no fault of this one.
    if all(list(error.absolute_path)[:1] != [argument] for error in errors):
      fitting[phrase] = value
  return fitting


def said_as(values: Sequence[Any]) -> Pool:
  """Returns values as a user says them: texts as they are, but for "_" between words."""
  return {
    value.replace("_", " ") if isinstance(value, str) else json.dumps(value): value
    for value in values
  }


def _sources(argument: str, schemas: Sequence[Schema], root: Schema) -> Iterator[Pool]:
  """Yields values, of the best source first, whether the schema allows them or not."""
  types = _values_of("type", schemas)
  for key in ("const", "enum", "examples", "example"):
    yield said_as(_values_of(key, schemas))
  defaults = [schema["default"] for schema in schemas if schema.get("default") is not None]
  if "boolean" in types:
    yield {"": not any(defaults)}
  if "array" in types:
    items = of_same_value(of_item(schemas, 0), root)
    if "array" not in _values_of("type", items):  # which may refer to itself
      yield from map(lists, _sources(argument, items, root))
  if "integer" in types or "number" in types:
    yield said_as([number for number in _NUMBERS if number not in defaults])
    limits, factors = [], []
    for schema in schemas:
      factors += [schema["multipleOf"]] if schema.get("multipleOf") else []
      for key, steps in (("minimum", 0), ("minimum", 1), ("maximum", -1), ("maximum", 0)):
        if key in schema:
          limits.append(schema[key] + steps * schema.get("multipleOf", 1))
    yield said_as([*limits, *factors, 1, 0])
  if "string" in types:
    for schema in schemas:
      yield said_as(_OF_FORMAT.get(str(schema.get("format")), ()))
    kinds = list(filter(_OF_WORD.get, map(_singular, words(argument))))
    of_kind = _OF_WORD[kinds[-1]] if kinds else ()
    yield of_kind if isinstance(of_kind, Mapping) else dict(zip(of_kind, of_kind, strict=True))
  yield said_as([value for value in defaults if value and isinstance(value, str)])


def lists(items: Pool) -> Pool:
  """Returns lists of one and of two items."""
  pairs = list(items.items())
  lists: dict[str, Any] = {}
  for (phrase, value), (next_phrase, next_value) in itertools.pairwise(pairs):
    lists[f"{phrase} and {next_phrase}"] = [value, next_value]
    lists[phrase] = [value]
  return lists or {phrase: [value] for phrase, value in pairs}


def _values_of(key: str, schemas: Sequence[Schema]) -> list[Any]:
  """Returns the values of a keyword in schemas, those of lists one by one, without null."""
  values: list[Any] = []
  for schema in schemas:
    value = schema.get(key)
    values += value if isinstance(value, list) else [value]
  return [value for value in values if value is not None]


def _singular(word: str) -> str:
  return word if word in _OF_WORD else word.removesuffix("s")
