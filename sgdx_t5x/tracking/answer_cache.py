"""Answers of a model by what it read: frames of a dialogue that continues are computed once."""

import itertools
import threading
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")
_MOST_CACHED = 5_000  # answers: as a dialogue continues, all but those of the last turn are known
_UPDATING = threading.Lock()  # of caches, as several threads may ask one model


def answer_once(
  cache: MutableMapping[Any, _Answer],
  keys: Sequence[Hashable],
  examples: Sequence[Any],
  compute: Callable[[list[Any]], Sequence[_Answer]],
) -> list[_Answer]:
  """Returns the answer for each example.

  Args:
    cache: key -> answer, of earlier calls; updated: the answers asked for last stay.
    keys: of the examples; equal ones have one answer.
    examples: what the model reads.
    compute: the model: takes examples that `cache` lacks, each once, and returns their answers.
  """
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
