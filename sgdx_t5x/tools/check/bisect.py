"""Which change broke a case: bisection over the changes, for all broken cases at once.

The changes are put in a row. With the first 0 of them a case is right, with all of them wrong; the
change at which it turns is found in log2 steps. If that change alone does not break the case, it
does so together with earlier ones, which are found in the same way (as delta debugging does,
Zeller 1999, "Yesterday, my program worked. Today, it does not. Why?").
"""

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence

from sgdx_t5x.tools.check.differences import Change

_MOST_TOGETHER = 4  # changes; a cause of more is no explanation

Changes = frozenset[Change]
# Asks cases with some of the changes made: (changes, case id) pairs -> right, None if unanswered.
Ask = Callable[[Sequence[tuple[Changes, str]]], Sequence[bool | None]]
_Search = Generator[Changes, bool | None, "Cause"]


@dataclasses.dataclass(frozen=True)
class Cause:
  """Why a case is broken: by these changes together, if any were found.

  Attributes: necessary, whether it is right with all changes but these; otherwise others break it,
  too.
  """

  changes: tuple[Change, ...] = ()
  necessary: bool = False


def causes(cases: Mapping[str, Sequence[Change]], ask: Ask) -> dict[str, Cause]:
  """Returns case id -> cause of broken cases.

  Args:
    cases: id of a case that is right without any change and wrong with all -> all changes, the
      likeliest first: of several that suffice, the first is found.
    ask: asks questions of many cases at once.
  """
  searches = {case: _search(tuple(changes)) for case, changes in cases.items()}
  questions = {case: next(search) for case, search in searches.items()}
  result: dict[str, Cause] = {}
  while questions:
    pairs = [(changes, case) for case, changes in questions.items()]
    answers = ask(pairs)
    questions = {}
    for (_, case), is_right in zip(pairs, answers, strict=True):
      try:
        questions[case] = searches[case].send(is_right)
      except StopIteration as end:
        result[case] = end.value
  return result


def _search(changes: tuple[Change, ...]) -> _Search:
  """Searches the cause for one case: yields changes to make, is sent whether it is right then."""
  cause: list[Change] = []
  length = len(changes)  # with the first `length` and those of the cause, the case is wrong
  while len(cause) < _MOST_TOGETHER:
    right_with, wrong_with = 0, length
    while wrong_with - right_with > 1:
      middle = (right_with + wrong_with) // 2
      is_right = yield frozenset((*changes[:middle], *cause))
      if is_right is None:
        return Cause()
      if is_right:
        right_with = middle
      else:
        wrong_with = middle
    cause.append(changes[wrong_with - 1])
    length = wrong_with - 1
    is_right = yield frozenset(cause)
    if is_right is None:
      return Cause()
    if not is_right:
      without_cause = yield frozenset(changes) - frozenset(cause)
      return Cause(tuple(cause), necessary=without_cause is True)
    if not length:  # all that could be added was, and the case is right: chance
      return Cause()
  return Cause()
