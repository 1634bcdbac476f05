"""Differences of two versions of tools, and tools between the two."""

import dataclasses
import itertools
import json

import pytest
from simulated_assistant import tool, toolset

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.check.differences import Kind, counts_of, differences, read_renames
from sgdx_t5x.tools.suite.rewording import back
from sgdx_t5x.tools.suite.toolset import ToolSet

OLD = ToolSet(
  (
    tool("log", "Shows commits.", max_count="How many."),
    tool("status", "Shows the status."),
    tool("diff", "Shows changes.", target="A revision."),
    tool("old_one", "Goes away."),
  )
)
NEW = ToolSet(
  (
    tool("status", "Status."),
    tool("history", "Shows commits.", limit="How many."),
    tool("diff", "Compares.", source="A revision.", target="A revision."),
    tool("new_one", "Comes, with two parameters.", unit="A unit."),
  )
)
RENAMES = {"/log": "history", "/log/parameters/properties/max_count": "limit"}


def shown(tools):
  return json.dumps(tools.for_openai())


def test_every_kind_of_change():
  found = differences(OLD, NEW, RENAMES)
  assert [(change.kind, change.pointer, change.new) for change in found.changes] == [
    (Kind.RENAMED, "/log", "history"),
    (Kind.RENAMED, "/log/parameters/properties/max_count", "limit"),
    (Kind.TEXT, "/status/description", "Status."),
    (Kind.TEXT, "/diff/description", "Compares."),
    (Kind.SCHEMA, "/diff/parameters", "source added"),
    (Kind.DROPPED, "/old_one", ""),
    (Kind.ADDED, "/new_one", ""),
    (Kind.ORDER, "/", ""),
  ]
  assert counts_of(found.changes) == (
    "2 texts changed, 2 names changed, 1 schemas changed, 1 tools added, 1 tools dropped, "
    "order changed"
  )
  assert [x.name for x in found.base.tools] == ["log", "status", "diff", "old_one", "new_one"]


def test_all_changes_make_the_new_tools_and_none_the_old_ones():
  found = differences(OLD, NEW, RENAMES)
  assert shown(found.with_changes(())[0]) == shown(OLD)
  assert shown(found.with_changes(found.changes)[0]) == shown(NEW)
  for number in range(1, len(found.changes)):
    for changes in itertools.combinations(found.changes, number):
      tools, rewording = found.with_changes(changes)
      assert shown(tools) not in (shown(OLD), shown(NEW))
      has_name = any(c.pointer.endswith("max_count") for c in changes)
      called = "history" if any(c.pointer == "/log" for c in changes) else "log"
      argument = "limit" if has_name else "max_count"
      assert back(called, {argument: 1}, found.base, rewording) == ("log", {"max_count": 1})


def test_a_rename_within_a_changed_schema_comes_with_it():
  old = ToolSet((tool("diff", "Shows.", target="A revision."),))
  new = ToolSet((tool("diff", "Shows.", goal="A revision.", source="Another."),))
  found = differences(old, new, {"/diff/parameters/properties/target": "goal"})
  assert [(x.kind, x.new) for x in found.changes] == [(Kind.SCHEMA, "source added")]
  _, rewording = found.with_changes(found.changes)
  assert back("diff", {"goal": "x"}, found.base, rewording) == ("diff", {"target": "x"})


@pytest.mark.parametrize(
  ("call", "in_base"),
  [
    (("history", {"path": "/", "limit": "1"}), ("log", {"path": "/", "max_count": "1"})),
    (("log", {"path": "/", "max_count": "1"}), ("log", {"path": "/", "max_count": "1"})),
    (("new_one", {"path": "/", "unit": "1"}), ("new_one", {"path": "/", "unit": "1"})),
    (("diff", {"target": "x", "limit": "1"}), ("diff", {"target": "x", "limit": "1"})),
    (("nowhere", {"limit": "1"}), ("nowhere", {"limit": "1"})),
  ],
)
def test_calls_of_either_version_in_the_words_of_the_base(call, in_base):
  assert differences(OLD, NEW, RENAMES).to_base(*call) == in_base


def test_old_words_come_first_where_names_are_taken_over():
  """What additionalProperties allows stays as well."""
  old, new = tool("a", "", x="", y=""), tool("a", "", y="", x="")
  names = {"/a/parameters/properties/x": "y", "/a/parameters/properties/y": "x"}
  swapped = differences(ToolSet((old,)), ToolSet((new,)), names)
  assert swapped.to_base("a", {"x": "1"}) == ("a", {"x": "1"})
  names = {"/log/parameters/properties/max_count": "limit"}
  found = differences(OLD, ToolSet((tool("log", "", limit=""),)), names)
  for arguments in ({"max_count": "1", "more": "1"}, {"max_count": "1", "limit": "1"}):
    assert found.to_base("log", arguments) == ("log", arguments)
  assert found.to_base("log", {"limit": "1", "more": "2"})[1] == {"max_count": "1", "more": "2"}


def test_without_a_file_of_renames_one_is_proposed():
  old = toolset(["ab", "cd"])
  renamed = dataclasses.replace(old.tools[1], name="other")
  found = differences(old, ToolSet((old.tools[0], renamed)), {})
  assert [x.kind for x in found.changes] == [Kind.DROPPED, Kind.ADDED]
  assert found.possible_renames == (("tool_01", "other"),)
  assert not differences(old, old, {}).changes


@pytest.mark.parametrize(
  ("renames", "words"),
  [
    ({"/nothing": "x"}, "points to nothing"),
    ({"/log": "nowhere"}, "no tool 'nowhere' among the new ones"),
  ],
)
def test_renames_that_fit_neither_version_are_refused(renames, words):
  with pytest.raises(SgdxError, match=words):
    differences(OLD, NEW, renames)


def test_a_file_of_renames_is_an_object_of_texts(tmp_path):
  path = tmp_path / "renames.json"
  path.write_text(json.dumps(RENAMES))
  assert read_renames(path) == RENAMES
  path.write_text('{"/log": 1}')
  with pytest.raises(SgdxError, match="not of the form"):
    read_renames(path)
