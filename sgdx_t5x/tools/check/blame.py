"""What hurts: the changes that broke cases, with an example and what was called instead."""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from sgdx_t5x.tools.check.asking import Asker, Question, Response, Words
from sgdx_t5x.tools.check.bisect import Cause, Changes, causes
from sgdx_t5x.tools.check.differences import Change, Differences
from sgdx_t5x.tools.check.measuring import Comparison, Measurements, most_called_instead
from sgdx_t5x.tools.suite.cases import Case


@dataclasses.dataclass(frozen=True)
class Finding:
  """Changes that broke cases.

  Attributes:
    changes: that break them, only together if there are several; () if none were found.
    cases: that they broke.
    only_these: how many of the cases are right without them; others break the rest, too.
    called_instead: what was called in their place most often; "" if only arguments are wrong.
  """

  changes: tuple[Change, ...]
  cases: tuple[Case, ...]
  only_these: int
  called_instead: str


def find_causes(
  differences: Differences, measurements: Measurements, comparison: Comparison, asker: Asker,
  most_cases: int,
) -> list[Finding]:  # fmt: skip
  """Bisects the changes on broken cases. Returns them, those that broke most cases first.

  Args:
    differences: the versions.
    measurements, comparison: of both.
    asker: for questions between the versions.
    most_cases: how many broken cases are looked at.
  """
  broken = comparison.broken[:most_cases]
  if not broken:
    return []
  responses = {case.id: measurements.response(comparison.words, case) for case in broken}
  cases = {case.id: case for case in broken}
  words: dict[Changes, Words] = {}

  def ask(pairs: Sequence[tuple[Changes, str]]) -> list[bool | None]:
    questions = []
    for changes, case_id in pairs:
      if changes not in words:
        words[changes] = Words(f"{len(changes)} changes", *differences.with_changes(changes))
      questions.append(Question(words[changes], cases[case_id]))
    answers = asker.ask(questions)
    return [answers[q].judgement.right if q in answers else None for q in questions]

  # A case that a harmless change breaks, too, says nothing about the others.
  steady = np.all([np.ones(len(broken), bool), *measurements.controls(broken).values()], axis=0)
  in_order = {
    case.id: _likeliest_first(differences.changes, case, responses[case.id])
    for case, is_steady in zip(broken, steady, strict=True)
    if is_steady
  }
  cause_of_case = collections.defaultdict(Cause, causes(in_order, ask))
  cases_of_changes: dict[tuple[Change, ...], list[Case]] = collections.defaultdict(list)
  for case in broken:
    cases_of_changes[cause_of_case[case.id].changes].append(case)
  findings = []
  for changes, group in cases_of_changes.items():
    only_these = sum(cause_of_case[case.id].necessary for case in group)
    instead = most_called_instead([responses[case.id] for case in group])
    findings.append(Finding(changes, tuple(group), only_these, instead))
  return sorted(findings, key=lambda finding: (not finding.changes, -len(finding.cases)))


def _likeliest_first(changes: Sequence[Change], case: Case, response: Response) -> list[Change]:
  """Returns changes of the tools that are due, then of those called, then the others."""
  due, called = {call.name for call in case.calls}, set(response.tools)

  def distance(change: Change) -> int:
    return 0 if change.tool in due else 1 if change.tool in called else 2

  return sorted(changes, key=distance)
