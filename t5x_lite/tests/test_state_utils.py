"""Renaming and merging state dictionaries."""

import re

import pytest

from t5x import state_utils
from t5x.errors import T5XError

SPEC = {"driver": "zarr", "kvstore": {"path": "x"}, "metadata": {"shape": [2]}, "dtype": "float32"}


def test_descriptions_of_arrays_are_leaves():
  assert state_utils.tensorstore_leaf("any", SPEC)
  assert not state_utils.tensorstore_leaf("any", {"driver": 1, "kvstore": 2})
  tree = {"a": {"b": SPEC, "driver": 3}, "c": {}}
  assert state_utils.flatten_state_dict(tree) == {"a/b": SPEC, "a/driver": 3}
  assert set(state_utils.flatten_state_dict(tree, keep_empty_nodes=True)) == {
    "a/b",
    "a/driver",
    "c",
  }


def test_names_of_leaves():
  tree = {"a": {"b": 1, "c": {"d": 2}}, "e": {}}
  assert state_utils.get_name_tree(tree) == {"a": {"b": "a/b", "c": {"d": "a/c/d"}}}
  assert state_utils.get_name_tree(tree, keep_empty_nodes=True)["e"] == "e"


def test_cutting_and_merging(capsys):
  state, other = {"a": {"b": 1, "c": 2}}, {"a": {"b": 10}, "d": 11}
  assert state_utils.intersect_state(state, other) == {"a": {"b": 1}}
  assert "a/c" in capsys.readouterr().err
  assert state_utils.merge_state(state, other) == {"a": {"b": 1, "c": 2}, "d": 11}
  assert state_utils.merge_state(state, other, overwrite=True)["a"] == {"b": 10, "c": 2}


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
