"""Answers of a model by what it read: frames of a dialogue that continues are computed once."""

import hashlib
import itertools
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import numpy as np

_Answer = TypeVar("_Answer")
_MOST_CACHED = 5_000  # answers: as a dialogue continues, all but those of the last turn are known
_UPDATING = threading.Lock()  # of caches, as several threads may ask one model


def answer_once(
  cache: MutableMapping[bytes, _Answer],
  examples: Sequence[Mapping[str, Any]],
  compute: Callable[[list[Any]], Sequence[_Answer]],
) -> list[_Answer]:
  """Returns the answer for each example.

  Args:
    cache: digest of an example -> answer, of earlier calls; updated: those asked for last stay.
    examples: what the model reads, name -> whole numbers; equal ones have one answer.
    compute: the model: takes examples that `cache` lacks, each once, and returns their answers.
  """
  keys = [_digest(example) for example in examples]
  with _UPDATING:
    answers = {key: cache[key] for key in keys if key in cache}
  unanswered = {key: x for key, x in zip(keys, examples, strict=True) if key not in answers}
  if unanswered:
    answers.update(zip(unanswered, compute(list(unanswered.values())), strict=True))
  with _UPDATING:
    for key in answers:
      cache.pop(key, None)  # to come after those that were not asked now
    cache.update(answers)
    for key in list(itertools.islice(cache, max(0, len(cache) - _MOST_CACHED))):
      del cache[key]
  return [answers[key] for key in keys]


def _digest(example: Mapping[str, Any]) -> bytes:
  """Returns 16 bytes that stand for an example: its numbers would take 30 KB as a key."""
  digest = hashlib.blake2b(digest_size=16)
  for name in sorted(example):
    numbers = np.asarray(example[name], np.int64)
    digest.update(f"{name} {len(numbers)} ".encode() + numbers.tobytes())
  return digest.digest()
