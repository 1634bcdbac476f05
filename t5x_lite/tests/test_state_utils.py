"""Renaming the arrays of a checkpoint."""

import re

import pytest

from t5x import state_utils
from t5x.errors import T5XError


def _assign(stored, wanted, *rules, **kwargs):
  return state_utils.apply_assignment_map(stored, wanted, rules, **kwargs)


def test_arrays_get_new_names():
  stored = {"old": {"x": 1, "y": 2}, "same": 3, "other": 4}
  wanted = {"new": {"x": None}, "copy": None, "same": None, "fresh": {"z": None}}
  rules = [(re.compile("new/(.)"), r"old/\1"), ("copy", "old/x"), ("fresh/.*", None)]
  assert _assign(stored, wanted, *rules) == {
    "new": {"x": 1},
    "copy": 1,
    "old": {"y": 2},  # not requested
    "same": 3,
    "other": 4,
  }


def test_names_can_change_places():
  both = ("a", "b"), ("b", "a")
  assert _assign({"a": 1, "b": 2}, {"a": None, "b": None}, *both) == {"a": 2, "b": 1}
  assert _assign({"a": 1, "b": 2}, {"a": None, "b": None}, ("a", "b")) == {"a": 2, "b": 2}


def test_what_is_left_out_is_left_out_of_the_checkpoint_too():
  assert _assign({"a": 1, "b": 2}, {"a": None, "b": None}, ("a", None)) == {"b": 2}


def test_a_resumed_run_has_the_new_names_already():
  assert _assign({"b": 1}, {"a": None}, ("a", "b"), is_resuming=True) == {"b": 1}


def test_mistakes_are_named():
  with pytest.raises(T5XError, match=r"no c \(for a\)"):
    _assign({"b": 1}, {"a": None}, ("a", "c"))
  with pytest.raises(T5XError, match="decoder/"):
    _assign({"a": 1}, {"a": None}, ("decoder/.*", "x"))
  assert _assign({"a": 1}, {"a": None}, ("z", "x"), require_all_rules_match=False) == {"a": 1}


def test_a_replacement_has_groups_of_its_pattern_only():
  """It ended in a traceback of Python's module for regular expressions."""
  for replacement in (r"old/\2", r"old/\g<x>"):
    with pytest.raises(T5XError, match="invalid replacement") as e:
      _assign({"old": {"x": 1}}, {"new": {"x": None}}, ("new/(.*)", replacement))
    assert e.value.found == repr(replacement)
    assert e.value.fix
