"""Cases of the Berkeley Function-Calling Leaderboard: questions, and possible answers to them.

  question         {"id", "question": [[{"role", "content"}]], "function": [...]}
  possible answer  {"id", "ground_truth": [{NAME: {ARGUMENT: [values that are right]}}]}

Of an argument's values, "" says that it may be left out. Several calls are due in any order.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.definitions import legal_name
from sgdx_t5x.tools.suite.cases import Call, Case
from sgdx_t5x.tools.suite.toolset import ToolSet

QUESTION, TRUTH = "question", "ground_truth"  # keys
_MOST_ANSWERS = 200  # that one case accepts
_IRRELEVANT = "irrelevance"  # in ids of questions that no function answers


def case_of_question(
  row: Mapping[str, Any], place: str, truths: Mapping[str, Any], toolset: ToolSet
) -> Case:
  """Returns the case of a question; the first of all right answers is expected.

  Args:
    row, place: the question, and its file and line.
    truths: id -> "ground_truth", of this line or another.
    toolset: the tools of the suite; BFCL's names lose what APIs refuse, as its dots.

  Raises:
    SgdxError: several turns, no possible answer, too many.
    AttributeError, LookupError, TypeError, ValueError: another form.
  """
  turns, id = row[QUESTION], str(row["id"])
  truth = truths.get(id, [] if _IRRELEVANT in id else None)
  if truth is None:
    raise _not_held(place, f"no possible answer to {id!r}")
  if len(turns) != 1 or any(not isinstance(call, dict) for call in truth):
    raise _not_held(place, f"{id!r} has {len(turns)} turns, with calls in between")
  answers_of_calls = [list(_calls(call, toolset)) for call in truth]
  answers = list(itertools.islice(itertools.product(*answers_of_calls), _MOST_ANSWERS + 1))
  if len(answers) > _MOST_ANSWERS:
    raise _not_held(place, f"{id!r} has over {_MOST_ANSWERS} right answers")
  return Case(id, tuple(turns[0]), answers[0], tuple(answers[1:]))


def _not_held(place: str, fault: str) -> SgdxError:
  return SgdxError(
    f"{place}: {fault}",
    expected=f"questions of one turn, with up to {_MOST_ANSWERS} possible answers",
    fix="leave the question out",
  )


def _calls(possible: Mapping[str, Any], toolset: ToolSet) -> Iterator[Call]:
  """Yields the right calls of a function, at most one more than a case accepts."""
  ((name, arguments),) = possible.items()
  name = name if name in toolset.by_name else legal_name(name)
  for values in itertools.islice(_objects(arguments), _MOST_ANSWERS + 1):
    yield Call(name, values)


def _objects(possible: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
  """Yields the objects that have one of the right values of each key, which "" leaves out."""
  choices = []
  for key, values in possible.items():
    if not isinstance(values, list):  # a text is no list of its characters
      raise TypeError(f"{key} has no list of values")
    of_key: list[tuple[Any, ...]] = []
    for value in values:
      of_key += [()] if value == "" else [(choice,) for choice in _values(value)]
    choices.append(of_key)
  for combination in itertools.product(*choices):
    pairs = zip(possible, combination, strict=True)
    yield {key: value[0] for key, value in pairs if value}


def _values(value: Any) -> Iterator[Any]:
  """Yields what a value stands for: objects in it have lists of right values, too."""
  if isinstance(value, dict):
    yield from _objects(value)
  elif isinstance(value, list):
    yield from map(list, itertools.product(*map(_values, value)))
  else:
    yield value
