"""Answers of a model are computed once for what it reads."""

import numpy as np

from sgdx_t5x.tracking import answer_cache
from sgdx_t5x.tracking.answer_cache import answer_once


def examples(*numbers):
  return [{"inputs": [number]} for number in numbers]


def test_equal_examples_are_computed_once_and_old_answers_make_room(monkeypatch):
  monkeypatch.setattr(answer_cache, "_MOST_CACHED", 3)
  cache, computed = {}, []

  def compute(batch):
    computed.extend(example["inputs"][0] for example in batch)
    return [example["inputs"] for example in batch]

  assert answer_once(cache, examples(1, 2, 1), compute) == [[1], [2], [1]]
  assert answer_once(cache, examples(2, 3), compute) == [[2], [3]]
  assert computed == [1, 2, 3]
  assert answer_once(cache, examples(3, 4), compute) == [[3], [4]]
  # A fourth answer: the one not asked for longest is gone.
  assert list(cache.values()) == [[2], [3], [4]]
  assert answer_once(cache, (), None) == []  # nothing to compute: the model is not called


def test_another_thread_may_forget_what_this_one_found(monkeypatch):
  """While one call computes, another's answers take all the room."""
  monkeypatch.setattr(answer_cache, "_MOST_CACHED", 1)
  cache = {}
  assert answer_once(cache, examples(1), lambda _: [[1]]) == [[1]]

  def compute(batch):
    answer_once(cache, examples(3), lambda _: [[3]])
    return [[2]]

  assert answer_once(cache, examples(1, 2), compute) == [[1], [2]]
  assert len(cache) == 1


def test_examples_are_told_apart():
  frames = [{"slots": [1, 2], "values": [3]}, {"slots": [1], "values": [2, 3]}]
  frames += [{"slots": [1, 2], "memory": [3]}, {"slots": [1, 2, 3]}]
  cache = {}
  answer_once(cache, frames, lambda batch: range(len(batch)))
  same = [{"values": np.array([3]), "slots": np.array([1, 2], np.int32)}]
  assert answer_once(cache, same, None) == [0]
  assert len(cache) == len(frames)
  assert {len(key) for key in cache} == {16}
