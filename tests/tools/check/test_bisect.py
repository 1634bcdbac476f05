"""Bisection of changes, with models whose reasons are known."""

import dataclasses
import functools
import random

import pytest
from simulated_assistant import answer, cases, toolset, verbs

from sgdx_t5x.tools.check.bisect import Cause, causes
from sgdx_t5x.tools.check.differences import Change, Kind, differences
from sgdx_t5x.tools.suite.judge import judge
from sgdx_t5x.tools.suite.toolset import ToolSet

CHANGES = [Change(Kind.TEXT, f"t{i}", f"/t{i}/description", "old", "new") for i in range(10)]


def cause_of(breaks):
  """The cause of a case, and how many questions it took. Args: whether changes break it."""
  asked = []

  def ask(pairs):
    asked.extend(pairs)
    return [not breaks(changes) for changes, _ in pairs]

  return causes({"case": CHANGES}, ask)["case"], len(asked)


@pytest.mark.parametrize("guilty", range(10))
def test_one_change_is_found_in_logarithmically_many_questions(guilty):
  cause, asked = cause_of(lambda changes: CHANGES[guilty] in changes)
  assert cause == Cause((CHANGES[guilty],), necessary=True)
  assert asked <= (len(CHANGES) - 1).bit_length() + 2  # the search, the change alone, all others


def test_changes_that_break_a_case_only_together():
  together = {CHANGES[2], CHANGES[5], CHANGES[9]}
  cause, _ = cause_of(lambda changes: together <= changes)
  assert set(cause.changes) == together
  assert cause.necessary


def test_one_of_several_changes_that_suffice_is_named_as_one_of_several():
  cause, _ = cause_of(lambda changes: bool({CHANGES[3], CHANGES[7]} & changes))
  assert cause == Cause((CHANGES[3],), necessary=False)


def test_chance_and_refusals_have_no_cause():
  assert cause_of(lambda changes: len(changes) == len(CHANGES))[0].changes == ()
  assert causes({"case": CHANGES}, lambda pairs: [None] * len(pairs)) == {"case": Cause()}


def edited_suite(seed):
  """Old and new tools and their cases: all 27 descriptions are edited, and one is emptied."""
  rng = random.Random(seed)
  words = verbs(27, seed)
  old, bad = toolset(words), rng.randrange(26)
  new = [
    dataclasses.replace(x, description=f"This tool does {word} well.")
    for x, word in zip(old.tools, words, strict=True)
  ]
  new[bad] = dataclasses.replace(new[bad], description="")
  return differences(old, ToolSet(tuple(new)), {}), cases(words, 4), f"/tool_{bad:02}/description"


def test_an_emptied_description_of_27_is_named_in_19_of_20_suites():
  """The mark of issue 68. The model keys on descriptions, and flips 3% of requests by chance."""
  named = 0
  for seed in range(20):
    found, suite, bad = edited_suite(seed)
    by_id = {case.id: case for case in suite}

    @functools.cache
    def with_changes(changes, found=found):
      shown, rewording = found.with_changes(changes)
      return shown, rewording, shown.for_openai()

    def is_right(changes, case, found=found, with_changes=with_changes):
      shown, rewording, definitions = with_changes(changes)
      calls = answer(case.messages, definitions, churn=0.03)
      return judge(calls, case, found.base, shown, rewording).right

    broken = [case for case in suite if is_right((), case) and not is_right(found.changes, case)]
    causes_of_cases = causes(
      {case.id: found.changes for case in broken},
      lambda pairs, by_id=by_id, is_right=is_right: [
        is_right(changes, by_id[case]) for changes, case in pairs
      ],
    )
    pointers = [x.changes[0].pointer for x in causes_of_cases.values() if len(x.changes) == 1]
    named += bool(pointers) and max(set(pointers), key=pointers.count) == bad
  assert named >= 19
