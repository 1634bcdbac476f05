"""Answers of a model by what it read: frames of a dialogue that continues are computed once."""

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")
_MOST_CACHED = 5_000  # answers: as a dialogue continues, all but those of the last turn are known


def answer_once(
  cache: MutableMapping[Any, _Answer],
  keys: Sequence[Hashable],
  examples: Sequence[Any],
  compute: Callable[[list[Any]], Sequence[_Answer]],
) -> list[_Answer]:
  """Returns the answer for each example.

  Args:
    cache: key -> answer, of earlier calls; updated.
    keys: of the examples; equal ones have one answer.
    examples: what the model reads.
    compute: the model: takes examples that `cache` lacks, each once, and returns their answers.
  """
  unanswered = {key: x for key, x in zip(keys, examples, strict=True) if key not in cache}
  if len(cache) + len(unanswered) > _MOST_CACHED:
    # What is not asked now is of dialogues that have ended.
    for key in cache.keys() - set(keys):
      del cache[key]
  if unanswered:
    cache.update(zip(unanswered, compute(list(unanswered.values())), strict=True))
  return [cache[key] for key in keys]
