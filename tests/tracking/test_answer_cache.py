"""Answers of a model are computed once for what it reads."""

from sgdx_t5x.tracking import answer_cache
from sgdx_t5x.tracking.answer_cache import answer_once


def test_equal_examples_are_computed_once_and_old_answers_make_room(monkeypatch):
  monkeypatch.setattr(answer_cache, "_MOST_CACHED", 3)
  cache, computed = {}, []

  def compute(examples):
    computed.extend(examples)
    return [[ord(example)] for example in examples]

  assert answer_once(cache, "aba", "aba", compute) == [[97], [98], [97]]
  assert answer_once(cache, "bc", "bc", compute) == [[98], [99]]
  assert computed == ["a", "b", "c"]
  assert answer_once(cache, "cd", "cd", compute) == [[99], [100]]
  assert list(cache) == ["b", "c", "d"]  # a fourth answer: the one not asked for longest is gone
  assert answer_once(cache, (), (), None) == []  # nothing to compute: the model is not called


def test_another_thread_may_forget_what_this_one_found(monkeypatch):
  """While one call computes, another's answers take all the room."""
  monkeypatch.setattr(answer_cache, "_MOST_CACHED", 1)
  cache = {"a": [97]}

  def compute(examples):
    answer_once(cache, "c", "c", lambda _: [[99]])
    return [[98]]

  assert answer_once(cache, "ab", "ab", compute) == [[97], [98]]
  assert len(cache) == 1
